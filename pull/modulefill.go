package pull

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"time"

	version "github.com/hashicorp/go-version"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/layout"
	"github.com/caddy-terraform/caddy-terraform-registry/index/offer"
	"github.com/caddy-terraform/caddy-terraform-registry/pull/quota"
	"github.com/caddy-terraform/caddy-terraform-registry/pull/scratch"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// fillModule finds the package of a module in the tree, or fetches it when it gets a
// slot. It takes no lock before that, since others wait for the locks.
func (f *Filler) fillModule(ctx context.Context, w *moduleRequest) (v *index.ModuleVersion, fetched bool, err error) {
	if err := f.withdrawn(w.Address, w.number); err != nil {
		return nil, false, err
	}
	if v, err = f.presentModule(w); v != nil || err != nil {
		return v, false, err
	}
	if err := f.mayCome(ctx, w); err != nil {
		return nil, false, err
	}
	if f.options.ReadOnly {
		return nil, false, ErrWouldFill
	}
	source, err := f.locate(ctx, w)
	if err != nil {
		return nil, false, err
	}
	located := time.Now()
	if err, ok := f.unpublishable.Get(w.atSource(source)); ok {
		return nil, false, err
	}
	release, err := w.Client.ReserveModule(ctx, source)
	if err != nil {
		return nil, false, err
	}
	defer release()
	unlock, err := f.lock(locks+path.Join(string(w.Hostname), w.Namespace, w.Name, w.System, w.version), packagePatience)
	if err != nil {
		return nil, false, err
	}
	defer unlock()
	for range maxAttempts {
		if v, err = f.presentModule(w); v != nil || err != nil {
			return v, false, err
		}
		if !source.Git && time.Since(located) > linkLife {
			if source, err = f.locate(ctx, w); err != nil {
				return nil, false, err
			}
			located = time.Now()
		}
		if v, err = f.fetchModule(ctx, w, source); !errors.Is(err, tree.ErrReplaced) {
			break
		}
		f.opener.Forget() // open the tree again
	}
	if !errors.Is(err, tree.ErrChanged) {
		return v, true, err
	}
	// Another instance or the operator has added the package meanwhile. It counts.
	if v, err = f.presentModule(w); v == nil && err == nil {
		err = unread(tree.ErrChanged)
	}
	return v, false, err
}

// linkLife is how long the link to an archive certainly works. Some registries sign links for half a
// minute. A module may wait longer than that for a slot or a lock.
const linkLife = 15 * time.Second

// presentModule returns a package that was added to the tree in another way: another
// instance has filled it, or the index has not read it yet. It may be a folder, or
// another kind of archive. If there is none, presentModule returns nil.
func (f *Filler) presentModule(w *moduleRequest) (*index.ModuleVersion, error) {
	files, in, dir, err := f.folder(w.Address)
	if err != nil {
		return nil, err
	}
	v, err := index.ReadVersion(f.ctx, files, w.Address, w.number)
	var bad *archive.PackageError
	switch {
	case errors.As(err, &bad):
		return nil, fmt.Errorf("%w: the tree has it and cannot offer it: %s", ErrConflict, bad.Detail)
	case errors.Is(err, tree.ErrNotWritable):
		return nil, unread(err)
	case v == nil || err != nil:
		return nil, err
	}
	if err := f.checkRecord(w.Address, w.version, address.Platform{}, v.FileHashes.H1(), v.Archive.SHA256); err != nil {
		return nil, err
	}
	if _, err := f.readSource(in, dir, w.version); err != nil { // an answer of the store may have been lost
		f.noteUnsettled(w.Address)
	}
	return v, nil
}

// fetchModule fetches the files of a module from its origin, and adds its package to
// the tree.
func (f *Filler) fetchModule(ctx context.Context, w *moduleRequest, source upstream.ModuleSource) (*index.ModuleVersion, error) {
	before, _, _, err := f.folder(w.Address)
	if err != nil {
		return nil, err
	}
	room := f.reserve(w.Source, before, w.Address)
	kept := false
	defer func() { room.End(kept) }()
	if err := room.Expect(1); err != nil { // before megabytes are received for nothing
		return nil, err
	}
	from, err := scratch.New()
	if err != nil {
		return nil, err
	}
	defer from.Remove()
	source, returned := f.checkouts.CheckOut(ctx, w.Client, source)
	defer returned()
	content, err := w.Client.FetchModule(ctx, source, from.Files())
	var failure *upstream.Failure
	switch {
	case err != nil && ctx.Err() == nil && !errors.As(err, &failure): // an error of the local disk
		return nil, tree.StorageError(err)
	case upstream.IsKind(err, upstream.ErrNoFolder, upstream.ErrTooLarge):
		f.noteUnpublishable(w, source, err)
		return nil, err
	case err != nil:
		return nil, err
	}
	opened, in, dir, err := f.folder(w.Address)
	if err != nil {
		return nil, err
	}
	if err := room.CheckDisk(); err != nil {
		return nil, err
	}
	name := path.Join(dir, w.version+".tar.gz")
	temporary, err := in.NewTemporary(f.ctx, name)
	if err != nil {
		return nil, err
	}
	defer temporary.Discard()
	files := archive.FetchedModule{Dir: from.Files(), Commit: content.Commit, Folder: source.Folder, Published: w.Hostname == ""}
	digest, err := f.packModule(w, source, files, &quota.Package{TemporaryFile: temporary, Reservation: room})
	if err != nil {
		return nil, err
	}
	if err := findAgain(opened, w.Address); err != nil {
		return nil, err
	}
	record := newSourceRecord(source, content, digest.SHA256)
	pending, err := keepSource(ctx, in, dir, w.version, record)
	if err != nil {
		return nil, err
	}
	info, err := f.placeModule(w, in, temporary, name)
	if pending && (err != nil || in.WriteFile(path.Join(dir, tree.SourceName(w.version)), record.settled().encode()) != nil) {
		f.noteUnsettled(w.Address) // the package may be there although the answer was lost
	}
	if err != nil {
		return nil, err
	}
	kept = true
	for _, d := range f.digests() {
		d.Add(info, digest)
	}
	return offer.NewWrittenModuleVersion(w.Hostname, w.number, name, info, digest), nil
}

// placeModule gives the package of a version its name in the tree. If the version has come in another way
// meanwhile, as another kind of archive or as a folder, creating the file does not fail. The version that has
// come counts: placeModule then leaves no package, and returns tree.ErrChanged. A PUT gives way in the same
// manner, so placeModule takes the lock of a PUT: otherwise both might give way to each other.
func (f *Filler) placeModule(w *moduleRequest, in tree.Part, temporary tree.TemporaryFile, name string) (fs.FileInfo, error) {
	if w.Hostname == "" {
		unlock, err := f.lock(tree.PublishLocks+tree.ModuleLock(w.Address, w.version), lockPatience)
		if err != nil {
			return nil, err
		}
		defer unlock()
	}
	if err := isOnly(in, name, w.number); err != nil {
		return nil, err
	}
	info, err := temporary.Create(f.ctx, name)
	if err != nil {
		return nil, err
	}
	switch err := isOnly(in, name, w.number); {
	case errors.Is(err, tree.ErrChanged), errors.Is(err, tree.ErrReserved):
		return nil, cmp.Or(tree.StorageError(in.Remove(name)), err)
	case err != nil: // the package may be offered already
		return nil, err
	}
	return info, nil
}

// isOnly returns tree.ErrChanged if the folder of a package has its version under another name, too.
func isOnly(in tree.Part, name string, v *version.Version) error {
	entries, err := in.Entries(path.Dir(name))
	if err != nil {
		return unread(err)
	}
	others := slices.DeleteFunc(entries, func(e tree.Entry) bool { return e.Path() == name })
	switch other, _, err := layout.FindModulePackage(others, v); {
	case other != nil:
		return tree.ErrChanged
	case err != nil: // it cannot be read, or is still being written
		return unread(err)
	}
	return nil
}

// unpublishableLifetime is how long a module that may not be published is not fetched again: its commit
// does not change.
const unpublishableLifetime = 24 * time.Hour

// noteUnpublishable remembers why a hosted module may not be published at a commit. With fetch = "all",
// and tags that are older than the module, it would be fetched at every poll.
func (f *Filler) noteUnpublishable(w *moduleRequest, at upstream.ModuleSource, err error) {
	if w.Hostname == "" {
		f.unpublishable.Put(w.atSource(at), err, unpublishableLifetime)
	}
}

// atSource names a version at its source. The reason why it may not be published names the version, which may
// be one of several at a commit.
func (w *moduleRequest) atSource(source upstream.ModuleSource) string {
	return w.Address.String() + " " + w.version + " " + source.String()
}

// packModule writes the package of a module, and checks it as a scan will. It refuses a
// package that the index would withhold.
func (f *Filler) packModule(w *moduleRequest, source upstream.ModuleSource, files archive.FetchedModule, to *quota.Package) (archive.Digest, error) {
	hash, name := sha256.New(), w.version+".tar.gz"
	arriving := archive.NewArrivingModule(name)
	defer arriving.Close()
	err := files.Pack(f.ctx, io.MultiWriter(to, hash, arriving))
	var digest archive.Digest
	if err == nil {
		to.SyncAhead()
		digest, err = arriving.CheckModule(f.ctx, to, to.Received(), name, wire.SHA256(hash.Sum(nil)))
	}
	var bad *archive.PackageError
	if err == nil && files.Published {
		err = publishable(archive.DoubtsOf(digest))
	}
	switch {
	case err == nil:
		return digest, f.checkRecord(w.Address, w.version, address.Platform{}, digest.FileHashes.H1(), digest.SHA256)
	case errors.As(err, &bad):
		failure := &upstream.Failure{Host: cmp.Or(w.Hostname.ForDisplay(), source.URL.Host), Kind: upstream.ErrMalformed, Detail: "version " + w.version + " of the module: " + bad.Detail}
		f.noteUnpublishable(w, source, failure)
		return digest, failure
	case f.ctx.Err() != nil:
		return digest, f.ctx.Err()
	}
	return digest, tree.StorageError(err)
}

// keepSource records the source of a module, unless there is a record that agrees. If
// there is one that disagrees, it returns ErrConflict. The package does not exist yet:
// a pending record is replaced, and the new one is pending.
func keepSource(ctx context.Context, in tree.Part, dir, version string, now *sourceRecord) (pending bool, err error) {
	name := path.Join(dir, tree.SourceName(version))
	now.Pending = true
	for range maxAttempts {
		before, err := readSourceRecord(in, dir, version)
		switch {
		case err != nil:
			return false, err
		case before == nil:
		case before.Pending && before.Package == now.Package:
			return true, nil
		case before.Pending:
			return true, in.WriteFile(name, now.encode())
		case now.agrees(before):
			return false, nil
		default:
			return false, now.conflict(before)
		}
		// If another instance writes a record at this moment, that record counts.
		err = in.CreateFile(ctx, name, now.encode())
		if !errors.Is(err, tree.ErrChanged) {
			return true, err
		}
	}
	return false, unread(tree.ErrChanged)
}

package pull

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"slices"
	"time"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/offer"
	"github.com/caddy-terraform/caddy-terraform-registry/pull/flight"
	"github.com/caddy-terraform/caddy-terraform-registry/pull/quota"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// maxAttempts is how often a fill starts again because the tree has been replaced.
const maxAttempts = 5

// filledLifetime is how long a filled file is remembered. It is longer than any index
// takes to see the file. It is limited since keys may be pinned later.
const filledLifetime = 15 * time.Minute

// A Filled file belongs to a verified release. The index may not have seen it yet.
type Filled struct {
	*index.File

	// FileHashes are the hashes of the files of a provider's package.
	FileHashes []string

	// New reports whether the index does not know of the new file yet.
	New bool

	opener  *tree.Opener // nil: the file is not in the tree
	growing *growing     // nil: it is complete and verified
}

// Open opens the verified file in the present tree: a snapshot's tree may be a root
// that has been replaced since. The error is tree.ErrChanged if the file has changed.
func (f *Filled) Open() (*index.OpenFile, error) {
	var files tree.Tree
	if f.opener != nil {
		var err error
		if files, err = f.opener.Tree(); err != nil {
			return nil, tree.ErrChanged
		}
	}
	return f.File.Open(&files)
}

// unchanged reports whether the file is still there.
func (f *Filled) unchanged() bool {
	file, err := f.Open()
	if err != nil {
		return false
	}
	file.Close()
	return true
}

// FillOptions say how a caller waits for a file. The zero value waits until the file is in the tree.
type FillOptions struct {
	// Follow: if a package takes long, and its length and sha256 are known, the caller gets one
	// that grows.
	Follow bool

	// Progress is called with the received bytes and the total, which is zero if it is not
	// known. It is called from one goroutine at a time, while the package is fetched, if no other
	// caller has begun to fetch it. May be nil.
	Progress func(received, size int64)
}

// Fill adds a file of a provider to the tree, and returns when it is there and
// verified. A package is fetched once for all callers, and the fetch continues when
// they have left. SHA256SUMS and similar files are added only with a package. provider
// is the provider in the index, which saves requests and reading; it may be nil.
func (f *Filler) Fill(ctx context.Context, a address.Address, name string, provider *index.Provider, o FillOptions) (*Filled, error) {
	s, err := f.source(a)
	if err != nil {
		return nil, err
	}
	file, err := address.ParseReleaseFile(a.Name, name)
	if err != nil {
		return nil, ErrNotMirrored
	}
	present := provider.Release(file.Version.String()) // nil for nil
	switch {
	case file.Kind != address.PackageFile:
		return f.document(ctx, a, name, file, present)
	case !s.Policy.includesPlatform(file.Platform):
		return nil, ErrExcluded
	}
	id := fileID{a, name}
	if filled := f.recent(id); filled != nil {
		return filled, nil
	}
	if err, ok := f.unfilled.Get(id); ok {
		return nil, err
	}
	r, _, err := f.approved(ctx, a, file.Version.String(), present)
	if err != nil {
		return nil, err
	}
	if r, err = f.withPlatform(ctx, s, r, file.Platform); err != nil {
		return nil, err
	}
	under := f.filling.Join(ctx, id, func(under *flight.Flight[*Filled]) (*Filled, error) {
		began := time.Now()
		k := &packageFill{approved: r, platform: file.Platform, indexed: present, offer: under.Offer, progress: o.Progress}
		filled, fetched, err := f.fillPackage(under.Clients.Context(f.ctx), s, k)
		if err != nil {
			followers := k.growing.followers()
			if followers > 0 {
				f.misled.Put(k.growing.sum, struct{}{}, misledLife)
			}
			f.noteUnfilled(id, began, err, followers)
			return nil, err
		}
		f.filled.Put(id, filled, filledLifetime)
		f.keepRecordOf(a)
		if fetched {
			f.noteFilled(a, began, filled.File, k.growing.followers())
		}
		fresh := *filled
		fresh.New = true
		return &fresh, nil
	})
	if !o.Follow {
		return under.Wait(ctx)
	}
	return followed(ctx, under)
}

// noteFilled reports a package that was added to the tree.
func (f *Filler) noteFilled(a address.Address, began time.Time, file *index.File, followers int) {
	e := Event{Kind: PackageFilled, Hostname: a.Hostname, Bytes: file.Size, Took: time.Since(began)}
	text, args := "filled "+a.String()+" "+file.Version, []any{kindOf(a), a.String(), "version", file.Version}
	if file.Platform != "" {
		text, args = text+" "+file.Platform, append(args, "platform", file.Platform)
	}
	args = append(args, "bytes", file.Size, "duration", e.Took)
	if followers > 0 {
		args = append(args, "followers", followers)
	}
	f.log(slog.LevelInfo, text, args...)
	f.observe(e, nil)
}

// noteUnfilled remembers and reports a package that was not added to the tree. One line tells
// of all followers whose answers are broken off.
func (f *Filler) noteUnfilled(id fileID, began time.Time, err error, followers int) {
	f.unfilled.remember(id, err)
	switch {
	case followers > 0:
		f.log(slog.LevelWarn, "a package could not be mirrored, and answers that had begun were broken off",
			kindOf(id.Address), id.Address.String(), "file", id.name, "followers", followers, "error", err.Error())
	case !isCanceled(err) && !errors.Is(err, ErrWouldFill):
		f.noteRefusal("a package could not be mirrored", id.Address, err, "file", id.name)
	}
	f.observe(Event{Kind: PackageFilled, Hostname: id.Hostname, Took: time.Since(began)}, err)
}

// recent returns a file that was filled a short time ago and has not changed, or nil.
func (f *Filler) recent(id fileID) *Filled {
	filled, ok := f.filled.Get(id)
	if !ok || !filled.unchanged() {
		return nil
	}
	return filled
}

// document returns a file beside the packages, for mirrors that are chained to this
// one.
func (f *Filler) document(ctx context.Context, a address.Address, name string, file address.ReleaseFile, present *index.Release) (*Filled, error) {
	version := file.Version.String()
	r, _, err := f.approved(ctx, a, version, present)
	if err != nil {
		return nil, err
	}
	content := r.Manifest
	switch {
	case file.Kind == address.ChecksumsFile:
		content = r.Checksums
	case file.Kind == address.SignatureFile:
		content = r.Signature
	case content == nil && r.present: // the index does not keep manifests
		d, err := f.directory(a)
		if err != nil {
			return nil, err
		}
		files, err := d.documents(version)
		if err != nil {
			return nil, err
		}
		content = files.manifest
	}
	// A manifest in the tree may have changed since the release was verified.
	if sum, listed := r.Sums[name]; file.Kind == address.ManifestFile && listed && sha256.Sum256(content) != sum {
		content = nil
	}
	if content == nil {
		return nil, ErrNotMirrored
	}
	return &Filled{File: offer.NewDocumentFile(name, version, content)}, nil
}

// A packageFill is a package of a release while it is added to the tree.
type packageFill struct {
	*approved
	platform address.Platform
	indexed  *index.Release             // from the index, signed by its publisher or not; may be nil
	progress func(received, size int64) // may be nil
	offer    func(*Filled)              // to followers, while it grows
	growing  *growing                   // the last one that was offered; nil: none
}

// fillPackage finds a package in the tree, or fetches it, and waits until it is on record.
// Followers wait for that, too. It has neither a slot nor a lock meanwhile, for which other
// packages wait.
func (f *Filler) fillPackage(ctx context.Context, s *Source, k *packageFill) (filled *Filled, fetched bool, err error) {
	defer func() { k.growing.end(filled, err) }() // even if it panics: otherwise followers wait for ever
	added, fetched, err := f.addPackage(ctx, s, k)
	if err == nil {
		err = f.awaitRecord(k.Address, k.Version, k.platform)
	}
	if err != nil {
		return nil, fetched, err
	}
	return added, fetched, nil
}

// addPackage finds a package in the tree, or fetches it when it gets a slot. It takes
// no lock before that, since others wait for the locks.
func (f *Filler) addPackage(ctx context.Context, s *Source, k *packageFill) (filled *Filled, fetched bool, err error) {
	p, ok := k.Package(k.platform)
	if !ok {
		return nil, false, fmt.Errorf("the release has no package for %s: %w", k.platform, upstream.ErrNotFound)
	}
	if p.SHA256 == (wire.SHA256{}) && len(p.Digests)+len(p.FileHashes) == 0 {
		return nil, false, fmt.Errorf("%w: its mirror gives no hash of the package", ErrUnsigned)
	}
	if err := f.releaseWithdrawn(k.Address, k.Version); err != nil {
		return nil, false, err
	}
	d, err := f.directory(k.Address)
	if err != nil {
		return nil, false, err
	}
	present, err := d.locate(k.Version, p.Name)
	if err != nil {
		return nil, false, err
	}
	if present == "" {
		release, err := s.Client.ReserveDownload(ctx)
		if err != nil {
			return nil, false, err
		}
		defer release()
	}
	unlock, err := f.lock(locks+path.Join(string(k.Address.Hostname), k.Address.Namespace, k.Address.Name, p.Name), packagePatience)
	if err != nil {
		return nil, false, err
	}
	defer unlock()
	for range maxAttempts {
		filled, fetched, err = f.findOrFetch(ctx, s, k, p)
		if !errors.Is(err, tree.ErrReplaced) {
			break
		}
		f.opener.Forget() // open the tree again
	}
	if errors.Is(err, upstream.ErrBadChecksum) {
		f.releases.Remove(releaseID{k.Address, k.Version})
		err = f.explain(ctx, s, k.approved, err)
	}
	return filled, fetched, err
}

func (f *Filler) findOrFetch(ctx context.Context, s *Source, k *packageFill, p upstream.Package) (filled *Filled, fetched bool, err error) {
	defer func() {
		if filled == nil { // the next attempt has followers of its own
			k.growing.end(nil, err)
		}
	}()
	d, err := f.directory(k.Address)
	if err != nil {
		return nil, false, err
	}
	if filled, err = f.findPackage(d, k, p); filled == nil && err == nil {
		fetched = true
		filled, err = f.fetchPackage(ctx, s, d, k, p)
	}
	if errors.Is(err, tree.ErrChanged) { // another instance or the operator has added the package meanwhile: it counts
		fetched = false
		if filled, err = f.findPackage(d, k, p); filled == nil && err == nil {
			err = unread(tree.ErrChanged)
		}
	}
	return filled, fetched, err
}

// findPackage verifies and returns a package in the tree; nil if there is none.
func (f *Filler) findPackage(d *directory, k *packageFill, p upstream.Package) (*Filled, error) {
	name, err := d.locate(k.Version, p.Name)
	if err != nil || name == "" {
		return nil, err
	}
	return f.verifyPresent(d, k, p, name)
}

// verifyPresent verifies a package that was added to the tree in another way: another
// instance has filled it, or the index has not read it yet.
func (f *Filler) verifyPresent(d *directory, k *packageFill, p upstream.Package, name string) (*Filled, error) {
	files, err := d.check(k.Release, k.indexed)
	if err != nil {
		return nil, err
	}
	file, info, err := d.providers.Open(name) // a file that changes later will not be opened
	if err != nil {
		return nil, unread(err)
	}
	defer file.Close()
	digest, err := f.verify(k, p, nil, file, info.Size(), wire.SHA256{})
	switch {
	case errors.Is(err, tree.ErrNotWritable):
		return nil, unread(err)
	case errors.Is(err, upstream.ErrMalformed), errors.Is(err, upstream.ErrBadChecksum), err == nil && !files.lists(p.Name, digest.SHA256):
		return nil, conflict(p.Name)
	case err != nil:
		return nil, err
	}
	if bytes.Equal(files.checksums, k.Checksums) && bytes.Equal(files.signature, k.Signature) {
		f.restoreKeys(d, k, p, digest)
	}
	return f.newFilled(k, p, name, info, digest), nil
}

// restoreKeys adds the keys of a release that is in the tree to a keys file without them: another instance may
// have written the file at the same time, when the lock that they share was not available. The package is valid
// even if that fails, and the next request tries again.
func (f *Filler) restoreKeys(d *directory, k *packageFill, p upstream.Package, digest archive.Digest) {
	keys, err := d.readKeys()
	if err != nil || keys.pinned || !k.Signed() || f.options.ReadOnly {
		return
	}
	if file, _ := keys.withKeys(k.Keys); file != nil {
		f.keepDocuments(d, k, p, digest)
	}
}

// verify compares a package with its release. It refuses a package that the index would
// withhold. It reads the package unless it was checked while it arrived, and computes the
// sha256 unless it is known.
func (f *Filler) verify(k *packageFill, p upstream.Package, arriving *archive.Arriving, file afero.File, size int64, known wire.SHA256) (d archive.Digest, err error) {
	refuse := func(kind error, detail string) error {
		return &upstream.Failure{Host: k.Address.Hostname.ForDisplay(), Kind: kind, Detail: detail}
	}
	d, err = arriving.CheckPackage(f.ctx, file, size, k.Address.Name, p.Platform, known)
	var bad *archive.PackageError
	switch withheld := errors.As(err, &bad); {
	case err != nil && !withheld && f.ctx.Err() != nil:
		return d, f.ctx.Err()
	case err != nil && !withheld:
		return d, tree.StorageError(err)
	case len(p.Digests) > 0 && !slices.Contains(p.Digests, d.SHA256):
		return d, refuse(upstream.ErrBadChecksum, p.Name+" is not the file that was released")
	case withheld:
		return d, refuse(upstream.ErrMalformed, p.Name+": "+bad.Detail)
	case p.SHA256 == (wire.SHA256{}) && len(p.FileHashes) > 0 && !slices.ContainsFunc(d.PackageHashes(), func(hash string) bool { return slices.Contains(p.FileHashes, hash) }):
		return d, refuse(upstream.ErrBadChecksum, p.Name+" has other files in it than the mirror says")
	}
	return d, f.checkRecord(k.Address, k.Version, p.Platform, d.FileHashes.H1(), d.SHA256)
}

// fetchPackage fetches a package from its origin.
func (f *Filler) fetchPackage(ctx context.Context, s *Source, d *directory, k *packageFill, p upstream.Package) (filled *Filled, err error) {
	files, err := d.check(k.Release, k.indexed) // before megabytes are received for nothing
	if err != nil {
		return nil, err
	}
	if p.SHA256 != (wire.SHA256{}) && !files.written(k.Release).lists(p.Name, p.SHA256) {
		return nil, conflict("SHA256SUMS")
	}
	if f.options.ReadOnly {
		return nil, ErrWouldFill
	}
	name := path.Join(files.packages, p.Name)
	room := f.reserve(s, d.tree, k.Address)
	kept := false
	defer func() { room.End(kept) }()
	temporary, err := d.providers.NewTemporary(f.ctx, name)
	if err != nil {
		return nil, err
	}
	defer temporary.Discard()
	arriving := archive.NewArrivingPackage()
	defer arriving.Close()
	to := &watchedPackage{Package: quota.Package{TemporaryFile: temporary, Reservation: room}, arriving: arriving, progress: k.progress}
	if p.SHA256 != (wire.SHA256{}) { // otherwise no client could tell that it is broken
		to.begin = func(size int64) *growing {
			early := newGrowing(k, p, size, temporary)
			k.growing = early.growing
			k.offer(early)
			return early.growing
		}
	}
	var digest archive.Digest
	received, err := s.Client.Download(ctx, k.Release, p.Platform, to)
	if err == nil {
		temporary.SyncAhead()
		digest, err = f.verify(k, p, arriving, temporary, received.Size, received.SHA256)
	}
	if err == nil {
		err = f.keepDocuments(d, k, p, digest)
	}
	if err != nil {
		return nil, err
	}
	info, err := temporary.Create(f.ctx, name)
	if err != nil {
		return nil, err
	}
	kept = true
	for _, d := range f.digests() {
		d.Add(info, digest)
	}
	return f.newFilled(k, p, name, info, digest), nil
}

// keepDocuments writes the documents of a package. It writes only one release of a
// namespace at a time, since the releases share a keys file.
func (f *Filler) keepDocuments(d *directory, k *packageFill, p upstream.Package, digest archive.Digest) error {
	namespace := path.Join(string(k.Address.Hostname), k.Address.Namespace)
	unlock, err := f.lock(locks+namespace, lockPatience)
	if err != nil {
		return err
	}
	defer unlock()
	defer f.writing.Lock(namespace)() // not before, or fills would wait for the lock one after the other
	if err := findAgain(d.tree, d.address); err != nil {
		return err
	}
	before, err := d.readKeys()
	if err != nil {
		return err
	}
	files, err := d.keep(f.ctx, k.Release, k.indexed)
	if err != nil {
		return err
	}
	f.noteKeys(k.Release, before)
	if !files.written(k.Release).lists(p.Name, digest.SHA256) {
		return conflict("SHA256SUMS")
	}
	return d.keepAnnounced(k.Release)
}

// explain distinguishes an origin that has released a version again from one that sends
// wrong bytes.
func (f *Filler) explain(ctx context.Context, s *Source, r *approved, wrong error) error {
	if !r.present {
		return wrong
	}
	now, err := f.askAgain(ctx, s, r, nil)
	if err != nil || bytes.Equal(now.Checksums, r.Checksums) {
		return wrong
	}
	return fmt.Errorf("%w: it has been released again: to have the new one, remove the version from the tree", ErrConflict)
}

func (f *Filler) newFilled(k *packageFill, p upstream.Package, name string, info fs.FileInfo, digest archive.Digest) *Filled {
	return &Filled{File: offer.NewPackageFile(name, k.Version, p.Platform, info, digest.SHA256), FileHashes: digest.PackageHashes(), opener: f.opener}
}

// A watchedPackage is a temporary package that is checked while it arrives, and tells how it
// grows.
type watchedPackage struct {
	quota.Package
	arriving *archive.Arriving
	progress func(received, size int64) // may be nil
	size     int64                      // zero: unknown

	begin   func(size int64) *growing // nil: there are no followers
	growing *growing                  // nil: there is nothing to follow yet
}

func (w *watchedPackage) tell() {
	if w.progress != nil {
		w.progress(w.Received(), w.size)
	}
}

// Expect implements upstream.Expecter.
func (w *watchedPackage) Expect(size int64) error {
	w.size = size
	err := w.Package.Expect(size)
	w.tell()
	return err
}

func (w *watchedPackage) Write(b []byte) (int, error) {
	first := w.Received() == 0
	n, err := w.Package.Write(b)
	if first && w.begin != nil && n > 0 && w.size > heldBack {
		w.growing = w.begin(w.size) // now that the origin sends something
	}
	w.growing.grow(b[:n])
	w.arriving.Write(b[:n])
	w.tell()
	return n, err
}

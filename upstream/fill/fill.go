package fill

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// heldLife is how long a filled file is known by heart: longer than any index
// takes to see it, and not for good, since keys may be pinned meanwhile.
const heldLife = 15 * time.Minute

// Held returns a file that was filled a short time ago and is still there, or
// nil.
func (f *Filler) Held(a address.Address, name string) *Filled {
	filled, ok := f.held.get(fileID{a, name})
	if !ok || !filled.there() {
		return nil
	}
	return filled
}

// Fill gets a file of a provider by its name into the tree, and returns when it
// is there and verified. A package is fetched once for all who want it, and goes
// on being fetched when they have left. What vouches for packages, SHA256SUMS
// and the like, comes into the tree with a package only.
func (f *Filler) Fill(ctx context.Context, a address.Address, name string) (*Filled, error) {
	return f.FillWatched(ctx, a, name, nil)
}

// FillWatched is Fill with a function that hears how many bytes there are, while
// they come in, and how many there will be; zero: it is not known. It is called from one goroutine at a time, and not any more when
// FillWatched has returned.
func (f *Filler) FillWatched(ctx context.Context, a address.Address, name string, progress func(received, size int64)) (*Filled, error) {
	s, err := f.source(a)
	if err != nil {
		return nil, err
	}
	p, ok := parsePackageName(a.Name, name)
	if !ok {
		return f.document(ctx, a, name)
	}
	if !s.Policy.takesPlatform(p.platform) {
		return nil, ErrNotMirrored
	}
	id := fileID{a, name}
	if filled := f.Held(a, name); filled != nil {
		return filled, nil
	}
	if err, ok := f.unfilled.get(id); ok {
		return nil, err
	}
	v, _, err := f.vouched(ctx, a, p.version)
	if err != nil {
		return nil, err
	}
	if _, ok := v.Package(p.platform); !ok && v.held {
		switch now, err := f.grown(ctx, s, v); {
		case err == nil:
			v = now
		case !errors.Is(err, errNotGrown):
			return nil, err
		}
	}
	defer f.watchers.add(id, progress)()
	filled, err := f.filling.do(ctx, id, func(by *upstream.Clients) (*Filled, error) {
		began := time.Now()
		filled, fetched, err := f.fill(by.In(f.ctx), s, v, p.platform, id)
		e := Event{Kind: PackageFilled, Hostname: a.Hostname, Took: time.Since(began)}
		switch {
		case err == nil:
			f.held.put(id, filled, heldLife)
			f.keepRecordOf(a)
			if !fetched {
				return filled, nil
			}
			e.Bytes = filled.Size
			f.log(slog.LevelInfo, "filled "+a.String()+" "+filled.Version+" "+filled.Platform,
				"provider", a.String(), "version", filled.Version, "platform", filled.Platform, "bytes", filled.Size, "duration", e.Took)
		case !givenUp(err) && !errors.Is(err, ErrWouldFill):
			f.unfilled.put(id, err, lifeOf(err))
			f.noteRefusal("a package could not be mirrored", a, err, "file", name)
		}
		f.observe(e, err)
		return filled, err
	})
	return filled, err
}

// document is one of the files that vouch for packages, for mirrors that are
// chained to this one.
func (f *Filler) document(ctx context.Context, a address.Address, name string) (*Filled, error) {
	rest, ours := strings.CutPrefix(name, "terraform-provider-"+a.Name+"_")
	version, kind, _ := strings.Cut(rest, "_")
	of, known := map[string]func(*upstream.Release) []byte{
		"SHA256SUMS":     func(r *upstream.Release) []byte { return r.Checksums },
		"SHA256SUMS.sig": func(r *upstream.Release) []byte { return r.Signature },
		"manifest.json":  func(r *upstream.Release) []byte { return r.Manifest },
	}[kind]
	if !ours || !known {
		return nil, ErrNotMirrored
	}
	v, _, err := f.vouched(ctx, a, version)
	if err != nil {
		return nil, err
	}
	content := of(v.Release)
	if content == nil {
		return nil, ErrNotMirrored
	}
	return &Filled{Name: name, Version: version, Size: int64(len(content)), SHA256: sha256.Sum256(content), content: content}, nil
}

// fill finds a package in the tree, or fetches it when it is its turn. Nothing is
// locked before that: others wait for the locks.
func (f *Filler) fill(ctx context.Context, s *Source, v *vouched, platform address.Platform, id fileID) (filled *Filled, fetched bool, err error) {
	p, ok := v.Package(platform)
	if !ok {
		return nil, false, fmt.Errorf("the release has no package for %s: %w", platform, upstream.ErrNotFound)
	}
	if p.SHA256 == (wire.SHA256{}) && len(p.Digests)+len(p.H1) == 0 {
		return nil, false, fmt.Errorf("%w: its mirror gives no hash of the package", ErrUnsigned)
	}
	where, err := f.place(v.Address)
	if err != nil {
		return nil, false, err
	}
	if where.locate(v.Version, p.Name) == "" {
		release, err := s.Client.ReserveDownload(ctx)
		if err != nil {
			return nil, false, err
		}
		defer release()
	}
	unlock, err := f.lock(path.Join(string(id.Hostname), id.Namespace, id.Name, id.name))
	if err != nil {
		return nil, false, err
	}
	defer unlock()
	for range maxBegins {
		filled, fetched, err = f.findOrFetch(ctx, s, v, p)
		if !errors.Is(err, errReplaced) {
			break
		}
		f.tree.forget() // the next one is opened where it is now
	}
	if errors.Is(err, upstream.ErrBadChecksum) {
		f.releases.drop(releaseID{id.Address, v.Version})
		err = f.explain(ctx, s, v, err)
	}
	return filled, fetched, err
}

func (f *Filler) findOrFetch(ctx context.Context, s *Source, v *vouched, p upstream.Package) (filled *Filled, fetched bool, err error) {
	where, err := f.place(v.Address)
	if err != nil {
		return nil, false, err
	}
	if name := where.locate(v.Version, p.Name); name != "" {
		filled, err := f.verifyHeld(where, v, p, name)
		return filled, false, err
	}
	filled, err = f.fetch(ctx, s, where, v, p)
	return filled, true, err
}

// verifyHeld checks a package that has come into the tree otherwise: another
// instance has filled it, or the index has not got round to it.
func (f *Filler) verifyHeld(where *place, v *vouched, p upstream.Package, name string) (*Filled, error) {
	d, err := where.settle(v.Release, false)
	if err != nil {
		return nil, err
	}
	info, err := where.providers.Fs.Stat(path.Join(where.providers.Dir, name)) // of what is read next, or it will not be opened
	if err != nil {
		return nil, storageError(err)
	}
	file, err := where.providers.Fs.Open(path.Join(where.providers.Dir, name))
	if err != nil {
		return nil, storageError(err)
	}
	defer file.Close()
	sums, err := f.verify(v, p, file, info.Size())
	switch {
	case errors.Is(err, upstream.ErrMalformed), errors.Is(err, upstream.ErrBadChecksum), err == nil && !d.lists(p.Name, sums.SHA256):
		return nil, conflict(p.Name)
	case err != nil:
		return nil, err
	}
	return f.newFilled(v, p, name, sums, info), nil
}

// checked is what a package turned out to be, with the hashes of the files in it.
type checked struct {
	upstream.Digest
	h1 []string
}

// verify reads a package to its end, and compares it with what vouches for it.
// What the index would withhold is refused: it is not worth keeping.
func (f *Filler) verify(v *vouched, p upstream.Package, file afero.File, size int64) (c checked, err error) {
	refuse := func(kind error, detail string) error {
		return &upstream.Failure{Host: v.Address.Hostname.ForDisplay(), Kind: kind, Detail: detail}
	}
	d, err := index.CheckPackage(f.ctx, file, size, v.Address.Name, p.Platform)
	var bad *index.PackageError
	switch withheld := errors.As(err, &bad); {
	case err != nil && !withheld && f.ctx.Err() != nil:
		return c, f.ctx.Err()
	case err != nil && !withheld:
		return c, storageError(err)
	case len(p.Digests) > 0 && !slices.Contains(p.Digests, d.SHA256):
		return c, refuse(upstream.ErrBadChecksum, p.Name+" is not the file that was released")
	case withheld:
		return c, refuse(upstream.ErrMalformed, p.Name+": "+bad.Detail)
	case p.SHA256 == (wire.SHA256{}) && len(p.H1) > 0 && !slices.ContainsFunc(d.H1, func(h1 string) bool { return slices.Contains(p.H1, h1) }):
		return c, refuse(upstream.ErrBadChecksum, p.Name+" has other files in it than the mirror says")
	}
	return checked{upstream.Digest{Size: size, SHA256: d.SHA256}, d.H1}, nil
}

// fetch gets a package from its origin.
func (f *Filler) fetch(ctx context.Context, s *Source, where *place, v *vouched, p upstream.Package) (*Filled, error) {
	d, err := where.settle(v.Release, false) // before megabytes come in for nothing
	if err != nil {
		return nil, err
	}
	if listed := d.vouching(v.Release); p.SHA256 != (wire.SHA256{}) && !listed.lists(p.Name, p.SHA256) {
		return nil, conflict("SHA256SUMS")
	}
	if f.options.ReadOnly {
		return nil, ErrWouldFill
	}
	name := path.Join(d.packages, p.Name)
	part, err := f.newPart(where.providers, name)
	if err != nil {
		return nil, err
	}
	part.room = f.newRoom(s, where.providers)
	kept := false
	defer func() { part.room.end(kept) }()
	to := &watched{part: part, watchers: &f.watchers, id: fileID{v.Address, p.Name}}
	var sums checked
	digest, err := s.Client.Download(ctx, v.Release, p.Platform, to)
	if err == nil {
		sums, err = f.verify(v, p, part, digest.Size)
	}
	if err == nil {
		err = f.keepDocuments(where, v, p, sums.Digest)
	}
	if err != nil {
		part.discard()
		return nil, err
	}
	info, err := part.publish(name)
	if err != nil {
		return nil, err
	}
	kept = true
	return f.newFilled(v, p, name, sums, info), nil
}

// keepDocuments puts into the tree what vouches for a package, one release of a
// namespace at a time: their keys are in one file.
func (f *Filler) keepDocuments(where *place, v *vouched, p upstream.Package, digest upstream.Digest) error {
	namespace := path.Join(string(v.Address.Hostname), v.Address.Namespace)
	defer f.writing.lock(namespace)()
	unlock, err := f.lock(namespace)
	if err != nil {
		return err
	}
	defer unlock()
	before, err := where.readKeys()
	if err != nil {
		return err
	}
	d, err := where.settle(v.Release, true)
	if err == nil {
		f.noteKeys(v.Release, before)
	}
	if listed := d.vouching(v.Release); err == nil && !listed.lists(p.Name, digest.SHA256) {
		err = conflict("SHA256SUMS")
	}
	return err
}

// explain tells an origin that has released a version again from one that sends
// wrong bytes.
func (f *Filler) explain(ctx context.Context, s *Source, v *vouched, wrong error) error {
	if !v.held {
		return wrong
	}
	now, err := s.Client.Release(ctx, v.Address, wire.ProviderVersion{Version: v.Version}, nil)
	if err != nil || bytes.Equal(now.Checksums, v.Checksums) {
		return wrong
	}
	return fmt.Errorf("%w: it has been released again: to have the new one, remove the version from the tree", ErrConflict)
}

func (f *Filler) newFilled(v *vouched, p upstream.Package, name string, sums checked, info os.FileInfo) *Filled {
	return &Filled{
		Name: p.Name, Version: v.Version, Platform: p.Platform.String(), Size: sums.Size, SHA256: sums.SHA256, H1: sums.h1,
		tree: f.tree, path: name, modTime: info.ModTime(), info: info,
	}
}

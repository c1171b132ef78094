package fill

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// An origin may add platforms to a version that it has released. Its SHA256SUMS
// then has further lines, and another signature.

// extends reports whether a SHA256SUMS has all lines of another as they are, and
// some that are new.
func extends(before, now []byte) bool {
	lines := make(map[string]bool)
	for line := range bytes.Lines(now) {
		lines[string(bytes.TrimRight(line, "\n"))] = true
	}
	kept := 0
	for line := range bytes.Lines(before) {
		if !lines[string(bytes.TrimRight(line, "\n"))] {
			return false
		}
		kept++
	}
	return kept > 0 && len(lines) > kept
}

// mayReplace reports whether a release, which is signed by keys that count, is the
// one that is held with further packages.
func mayReplace(r *upstream.Release, held []byte) bool {
	return r.Signed() && r.Signature != nil && extends(held, r.Checksums)
}

// errNotGrown: a release has no more packages than it had.
var errNotGrown = fmt.Errorf("the origin has added nothing to the release: %w", upstream.ErrNotFound)

// MayHaveMore reports whether an origin may have packages of a version for other
// platforms than those that are held, as far as its list of versions is known now.
// It asks for nothing.
func (f *Filler) MayHaveMore(a address.Address, version string, held func(address.Platform) bool) bool {
	platforms, listed := f.listedPlatforms(a, version)
	return listed && (len(platforms) == 0 || slices.ContainsFunc(platforms, func(p address.Platform) bool { return !held(p) }))
}

// listedPlatforms are those that the list of versions, as it is known now, has of
// one. An origin that is a mirror does not tell any.
func (f *Filler) listedPlatforms(a address.Address, version string) (platforms []address.Platform, listed bool) {
	c, ok := f.catalogs.get(a)
	if !ok {
		return nil, false
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.record == nil {
		return nil, false
	}
	i := slices.IndexFunc(c.record.Versions, func(d dated) bool { return d.ProviderVersion.Version == version })
	if i < 0 {
		return nil, false
	}
	return c.record.Versions[i].Platforms, true
}

// withAdditions is a release that is held with what the origin has added to it. Who
// wants it waits for the origin only if its list says that there is more. Of a
// mirror that is not known: it is asked meanwhile, and held up to then is what was.
func (f *Filler) withAdditions(ctx context.Context, s *Source, v *vouched) *vouched {
	platforms, listed := f.listedPlatforms(v.Address, v.Version)
	has := func(p address.Platform) bool {
		_, ok := v.Package(p)
		return ok
	}
	switch {
	case !v.held || !listed:
		return v
	case len(platforms) == 0:
		if _, known := f.ungrown.get(releaseID{v.Address, v.Version}); !known {
			go f.grown(upstream.NewClients(ctx).In(f.ctx), s, v)
		}
		return v
	case !slices.ContainsFunc(platforms, func(p address.Platform) bool { return !has(p) }):
		return v
	}
	now, err := f.grown(ctx, s, v)
	if err != nil {
		return v // which is known, whatever the origin is like now
	}
	return now
}

// grown is a release that is held as the origin has it now, once for all who ask.
// The error is errNotGrown when it is the same.
func (f *Filler) grown(ctx context.Context, s *Source, v *vouched) (*vouched, error) {
	id := releaseID{v.Address, v.Version}
	if err, ok := f.ungrown.get(id); ok {
		return nil, err
	}
	return f.growing.do(ctx, id, func(by *upstream.Clients) (*vouched, error) {
		now, err := f.grow(by.In(f.ctx), s, v)
		switch {
		case err == nil:
			f.releases.put(id, now, releaseLife)
		case errors.Is(err, errNotGrown):
			f.ungrown.put(id, err, releaseLife)
		case !givenUp(err):
			f.ungrown.put(id, err, lifeOf(err))
		}
		return now, err
	})
}

func (f *Filler) grow(ctx context.Context, s *Source, v *vouched) (*vouched, error) {
	where, err := f.place(v.Address)
	if err != nil {
		return nil, err
	}
	k, err := where.readKeys()
	if err != nil {
		return nil, err
	}
	r, err := s.Client.Release(ctx, v.Address, wire.ProviderVersion{Version: v.Version}, k.pin())
	switch {
	case errors.Is(err, upstream.ErrNotFound): // what is held stays, whatever has become of it there
		return nil, errNotGrown
	case err != nil:
		return nil, err
	}
	if err := s.accept(r, k); err != nil {
		return nil, err
	}
	switch {
	case r.Checksums == nil || bytes.Equal(r.Checksums, v.Checksums):
		return nil, errNotGrown
	case !mayReplace(r, v.Checksums):
		return nil, conflict("SHA256SUMS")
	}
	// A mirror lists what it holds, which may be less than what is held here.
	for _, p := range v.Packages {
		if _, ok := r.Package(p.Platform); !ok {
			r.Packages = append(r.Packages, p)
		}
	}
	slices.SortFunc(r.Packages, func(a, b upstream.Package) int { return a.Platform.Compare(b.Platform) })
	return &vouched{Release: r}, nil
}

// mayExtend reports whether extend can replace what vouches for a release.
func (p *place) mayExtend(d documents) bool {
	folder := path.Join(p.dir, d.version)
	entries, err := afero.ReadDir(p.providers.Fs, path.Join(p.providers.Dir, folder))
	if d.apart {
		return false
	}
	if d.dir == p.dir {
		return err != nil || len(entries) == 0
	}
	// It goes as a whole: packages that need it, or documentation that was put beside
	// them, would go with it.
	r := &upstream.Release{Address: p.address, Version: d.version}
	documents := []string{r.FileName("SHA256SUMS"), r.FileName("SHA256SUMS.sig"), r.FileName("manifest.json")}
	return err == nil && !slices.ContainsFunc(entries, func(e fs.FileInfo) bool { return !slices.Contains(documents, e.Name()) })
}

// extend replaces SHA256SUMS and its signature, of which one without the other is
// worth nothing: a scan in between would withhold the release. Of two pairs the
// index takes the one in the folder of the version, and a folder comes or goes at
// once. So the new pair comes in such a folder, if the old one is in that of the
// provider, or else is put there before the folder with the old one goes.
func (p *place) extend(r *upstream.Release, d documents) error {
	sums, sig := r.FileName("SHA256SUMS"), r.FileName("SHA256SUMS.sig")
	in, folder := p.providers, path.Join(p.dir, r.Version)
	hidden := temporaryName(folder, temporarySuffix)
	remove := func(dir string, names ...string) error {
		for _, name := range names {
			if err := in.Fs.Remove(path.Join(in.Dir, dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return storageError(err)
			}
		}
		return nil
	}
	if d.dir != p.dir {
		if d.manifest != nil {
			if err := write(in, path.Join(p.dir, r.FileName("manifest.json")), d.manifest); err != nil {
				return err
			}
		}
		if err := errors.Join(write(in, path.Join(p.dir, sums), r.Checksums), write(in, path.Join(p.dir, sig), r.Signature)); err != nil {
			return err
		}
		if err := in.Fs.Rename(path.Join(in.Dir, folder), path.Join(in.Dir, hidden)); err != nil {
			return storageError(err)
		}
		return storageError(in.Fs.RemoveAll(path.Join(in.Dir, hidden)))
	}
	in.Fs.Remove(path.Join(in.Dir, folder)) // if it is there, it is empty
	err := errors.Join(write(in, path.Join(hidden, sums), r.Checksums), write(in, path.Join(hidden, sig), r.Signature))
	if err == nil {
		err = storageError(in.Fs.Rename(path.Join(in.Dir, hidden), path.Join(in.Dir, folder)))
	}
	if err != nil {
		in.Fs.RemoveAll(path.Join(in.Dir, hidden))
		return err
	}
	syncFolder(in.Fs, path.Join(in.Dir, p.dir))
	return remove(p.dir, sig, sums)
}

package fill

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// releaseLifetime is how long a release is not requested again. It does not change;
// if the origin releases the version again all the same, its packages do not match
// and are refused until then.
const releaseLifetime = DefaultVersionsTTL

// An approved release is one whose packages may come into the tree.
type approved struct {
	*upstream.Release
	present bool           // the tree has its signed documents
	indexed *index.Release // where they were taken from; nil: from the disk
}

// weigh is about how many bytes a release takes in memory.
func (r *approved) weigh() int {
	total := 1024 + len(r.Checksums) + len(r.Signature) + len(r.Manifest)
	for _, key := range r.Keys {
		total += len(key.Armor)
	}
	for name := range r.Sums {
		total += 96 + len(name)
	}
	for _, p := range r.Packages {
		total += 256 + len(p.Name) + len(p.Digests)*len(wire.SHA256{})
		for _, h1 := range p.H1 {
			total += 16 + len(h1)
		}
	}
	for _, p := range r.Announced {
		total += 96
		for _, hash := range p.Hashes {
			total += 16 + len(hash)
		}
	}
	return total
}

func (r *approved) has(p address.Platform) bool {
	_, ok := r.Package(p)
	return ok
}

// Available returns the packages of a version that Fill gets. Packages without any
// hash that a client could check are left out. The release as the index has it
// saves requests and reading; nil if it has none.
func (f *Filler) Available(ctx context.Context, a address.Address, version string, present *index.Release) ([]wire.Archive, error) {
	r, s, err := f.approved(ctx, a, version, present)
	if err != nil {
		return nil, err
	}
	r = f.withAdditions(ctx, s, r)
	var list []wire.Archive
	for _, p := range r.Packages {
		hashes := p.H1
		if p.SHA256 != (wire.SHA256{}) {
			hashes = append(slices.Clone(hashes), "zh:"+p.SHA256.String())
		}
		if len(hashes) > 0 && s.Policy.includesPlatform(p.Platform) {
			list = append(list, wire.Archive{Platform: p.Platform, URL: p.Name, Hashes: hashes})
		}
	}
	return list, nil
}

// ReleaseFor returns a release as the tree or else the origin has it. If that of the
// tree has no package for the platform, the origin may have added it meanwhile, and
// is asked. The release as the index has it saves requests and reading; nil if it has
// none.
func (f *Filler) ReleaseFor(ctx context.Context, a address.Address, version string, p address.Platform, present *index.Release) (*upstream.Release, error) {
	r, s, err := f.approved(ctx, a, version, present)
	if err != nil {
		return nil, err
	}
	if r, err = f.withPlatform(ctx, s, r, p); err != nil {
		return nil, err
	}
	return r.Release, nil
}

// approved returns a release from memory, from the index, or by one request for all
// callers.
func (f *Filler) approved(ctx context.Context, a address.Address, version string, present *index.Release) (*approved, *Source, error) {
	s, err := f.source(a)
	if err != nil {
		return nil, nil, err
	}
	if _, err := address.ParseProviderVersion(version); err != nil {
		return nil, nil, ErrNotMirrored
	}
	if s.Policy.MinAge > 0 {
		// An origin has no date of a version that it does not list. Such a release
		// can only come from the tree.
		if _, _, err := f.listed(ctx, a, version); errors.Is(err, ErrTooYoung) || err != nil && !errors.Is(err, upstream.ErrNotFound) {
			return nil, nil, err
		}
	}
	if present != nil && present.Signature.By != index.ByPublisher {
		present = nil
	}
	id := releaseID{a, version}
	if r, ok := f.releases.get(id); ok && (!r.present || r.indexed == present) {
		return r, s, nil
	}
	if r, err := f.indexedRelease(a, present); r != nil {
		if err == nil {
			f.releases.put(id, r, releaseLifetime)
		}
		return r, s, nil
	}
	if err, ok := f.unapproved.get(id); ok {
		return nil, nil, err
	}
	r, err := f.approving.do(ctx, id.String(), func(clients *upstream.Clients) (*approved, error) {
		r, err := f.approve(clients.Context(f.ctx), s, a, version)
		switch {
		case err == nil:
			f.releases.put(id, r, releaseLifetime)
		case !isCanceled(err):
			if !isForgotten(err) {
				f.unapproved.put(id, err, lifetimeOf(err))
			}
			if !errors.Is(err, upstream.ErrNotFound) {
				f.noteRefusal("a release cannot be mirrored", a, err, "version", version)
			}
			f.observe(Event{Kind: ReleaseRefused, Hostname: a.Hostname}, err)
		}
		return r, err
	})
	return r, s, err
}

// indexedRelease is a release that the index has verified; nil for nil. The error is that
// what its origin announced could not be read: the release is as good, and not remembered.
func (f *Filler) indexedRelease(a address.Address, present *index.Release) (*approved, error) {
	if present == nil {
		return nil, nil
	}
	checksums, signature := present.Documents()
	r := signedRelease(a, present.Version, checksums, signature, nil, present.Keys)
	if r == nil {
		return nil, nil
	}
	return &approved{r, true, present}, f.addAnnounced(r)
}

// releaseWithdrawn is withdrawn for a version of a provider.
func (f *Filler) releaseWithdrawn(a address.Address, text string) error {
	v, err := address.ParseProviderVersion(text)
	if err != nil {
		return ErrNotMirrored
	}
	return f.withdrawn(a, v)
}

// approve takes a release from the disk, where the index may not have seen it yet,
// or else from the origin.
func (f *Filler) approve(ctx context.Context, s *Source, a address.Address, version string) (*approved, error) {
	if err := f.releaseWithdrawn(a, version); err != nil {
		return nil, err
	}
	d, err := f.directory(a)
	if err != nil {
		return nil, err
	}
	keys, err := d.readKeys()
	if err != nil {
		return nil, err
	}
	files, err := d.documents(version)
	if err != nil {
		return nil, err
	}
	if r := files.release(a, keys); r != nil {
		return &approved{Release: r, present: true}, f.addAnnounced(r)
	}
	v, listed, err := f.listed(ctx, a, version)
	if err != nil {
		return nil, err
	}
	if !listed {
		return nil, fmt.Errorf("version %s: %w", version, ErrUnlisted)
	}
	r, err := s.Client.Release(ctx, a, v, keys.pin())
	if err != nil {
		return nil, err
	}
	err = s.accept(r, keys)
	f.noteUnsigned(r, keys)
	return &approved{Release: r}, err
}

// accept decides by the policy and the keys in the tree whether a release may come
// in, and returns why it may not.
func (s *Source) accept(r *upstream.Release, keys namespaceKeys) error {
	if !r.Signed() && r.Signature != nil && keys.ring != nil {
		// The origin sends no keys now, but did before. A signature that is wrong, or
		// by another key, is refused whatever the policy: the index would withhold the
		// release.
		if _, err := keys.ring.Verify(r.Checksums, r.Signature); err != nil {
			return &upstream.Failure{Host: r.Address.Hostname.ForDisplay(), Kind: upstream.ErrBadSignature, Detail: err.Error(), Cause: err}
		}
		r.Keys = keys.ring.Keys()
	}
	switch {
	case r.Signed():
		return nil
	case keys.pinned: // or an origin could evade them by leaving signatures out
		return errPinned
	case s.Policy.Signatures == RequireSignatures:
		return fmt.Errorf("%w: put the publisher's public key into keys/%s/%s.asc, or take it all the same with `signatures prefer`",
			ErrUnsigned, r.Address.Hostname.ForDisplay(), r.Address.Namespace)
	}
	return nil
}

// errNoAdditions: a release has no more packages than it had.
var errNoAdditions = fmt.Errorf("the origin has added nothing to the release: %w", upstream.ErrNotFound)

// MayHaveMore reports whether the origin may have packages of a release for further
// platforms, according to the list of versions as it is known now. It makes no
// request.
func (f *Filler) MayHaveMore(a address.Address, present *index.Release) bool {
	return f.mayHaveMore(a, present.Version, func(p address.Platform) bool { return present.Package(p.OS, p.Arch) != nil })
}

func (f *Filler) mayHaveMore(a address.Address, version string, has func(address.Platform) bool) bool {
	platforms, listed := f.listedPlatforms(a, version)
	return listed && (len(platforms) == 0 || slices.ContainsFunc(platforms, func(p address.Platform) bool { return !has(p) }))
}

// listedPlatforms returns the platforms of a version according to the list as it is
// known now. An origin that is a mirror lists none.
func (f *Filler) listedPlatforms(a address.Address, version string) (platforms []address.Platform, listed bool) {
	c, ok := f.catalogs.get(a)
	if !ok {
		return nil, false
	}
	d, ok := c.version(version)
	return d.Platforms, ok
}

// withAdditions returns a release of the tree with what the origin has added to it.
// The caller waits for the origin only if its list has further platforms. A mirror's
// list does not say so: it is asked in the background.
func (f *Filler) withAdditions(ctx context.Context, s *Source, r *approved) *approved {
	if !r.present || !f.mayHaveMore(r.Address, r.Version, r.has) {
		return r
	}
	if platforms, _ := f.listedPlatforms(r.Address, r.Version); len(platforms) == 0 {
		if _, known := f.unextended.get(releaseID{r.Address, r.Version}); !known {
			go f.extended(upstream.NewClients(ctx).Context(f.ctx), s, r)
		}
		return r
	}
	extended, err := f.extended(ctx, s, r)
	if err != nil {
		return r // which is good, whatever state the origin is in
	}
	return extended
}

// withPlatform returns a release with the package of a platform if the origin has added it.
func (f *Filler) withPlatform(ctx context.Context, s *Source, r *approved, p address.Platform) (*approved, error) {
	if !r.present || r.has(p) {
		return r, nil
	}
	extended, err := f.extended(ctx, s, r)
	if errors.Is(err, errNoAdditions) {
		return r, nil
	}
	return extended, err
}

// extended returns a release of the tree as the origin has it now, by one request
// for all callers. The error is errNoAdditions when it is the same.
func (f *Filler) extended(ctx context.Context, s *Source, r *approved) (*approved, error) {
	id := releaseID{r.Address, r.Version}
	if err, ok := f.unextended.get(id); ok {
		return nil, err
	}
	return f.extending.do(ctx, id.String(), func(clients *upstream.Clients) (*approved, error) {
		extended, err := f.fetchExtended(clients.Context(f.ctx), s, r)
		switch {
		case err == nil:
			f.releases.put(id, extended, releaseLifetime)
		case errors.Is(err, errNoAdditions):
			f.unextended.put(id, err, releaseLifetime)
		case !isForgotten(err):
			f.unextended.put(id, err, lifetimeOf(err))
		}
		return extended, err
	})
}

func (f *Filler) fetchExtended(ctx context.Context, s *Source, r *approved) (*approved, error) {
	d, err := f.directory(r.Address)
	if err != nil {
		return nil, err
	}
	keys, err := d.readKeys()
	if err != nil {
		return nil, err
	}
	now, err := s.Client.Release(ctx, r.Address, wire.ProviderVersion{Version: r.Version}, keys.pin())
	switch {
	case errors.Is(err, upstream.ErrNotFound): // the tree keeps what it has, whatever has become of it there
		return nil, errNoAdditions
	case err != nil:
		return nil, err
	}
	if err := s.accept(now, keys); err != nil {
		return nil, err
	}
	switch {
	case now.Checksums == nil || bytes.Equal(now.Checksums, r.Checksums):
		return nil, errNoAdditions
	case !mayReplace(now, r.Checksums):
		return nil, conflict("SHA256SUMS")
	}
	// A mirror lists the packages it has, which may be fewer than there are here.
	for _, p := range r.Packages {
		if _, ok := now.Package(p.Platform); !ok {
			now.Packages = append(now.Packages, p)
		}
	}
	slices.SortFunc(now.Packages, func(a, b upstream.Package) int { return a.Platform.Compare(b.Platform) })
	return &approved{Release: now}, nil
}

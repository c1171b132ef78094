package fill

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// releaseLife is how long a release is not asked for again. It does not change;
// but if it has, the origin's packages have too and none comes in until then.
const releaseLife = DefaultVersionsTTL

// A vouched release is one that may come in.
type vouched struct {
	*upstream.Release
	held bool // by documents that the tree has
}

// weigh is about how many bytes a release has in memory.
func (v *vouched) weigh() int {
	total := 1024 + len(v.Checksums) + len(v.Signature) + len(v.Manifest)
	for _, key := range v.Keys {
		total += len(key.Armor)
	}
	for name := range v.Sums {
		total += 96 + len(name)
	}
	for _, p := range v.Packages {
		total += 256 + len(p.Name) + len(p.Digests)*len(wire.SHA256{})
		for _, h1 := range p.H1 {
			total += 16 + len(h1)
		}
	}
	return total
}

// Obtainable are the packages of a version that Fill gets. Those are left out
// that nobody says anything of which a client could check.
func (f *Filler) Available(ctx context.Context, a address.Address, version string) ([]wire.Archive, error) {
	v, s, err := f.vouched(ctx, a, version)
	if err != nil {
		return nil, err
	}
	v = f.withAdditions(ctx, s, v)
	var list []wire.Archive
	for _, p := range v.Packages {
		hashes := p.H1
		if p.SHA256 != (wire.SHA256{}) {
			hashes = append(slices.Clone(hashes), "zh:"+p.SHA256.String())
		}
		if len(hashes) > 0 && s.Policy.takesPlatform(p.Platform) {
			list = append(list, wire.Archive{Platform: p.Platform, URL: p.Name, Hashes: hashes})
		}
	}
	return list, nil
}

// Release is what vouches for a version, as the origin or the tree has it.
func (f *Filler) Release(ctx context.Context, a address.Address, version string) (*upstream.Release, error) {
	v, _, err := f.vouched(ctx, a, version)
	if err != nil {
		return nil, err
	}
	return v.Release, nil
}

// ReleaseFor is Release, where the package of a platform is wanted: if what is held
// has none, the origin may have added it meanwhile.
func (f *Filler) ReleaseFor(ctx context.Context, a address.Address, version string, p address.Platform) (*upstream.Release, error) {
	v, s, err := f.vouched(ctx, a, version)
	if err != nil {
		return nil, err
	}
	if _, ok := v.Package(p); ok || !v.held {
		return v.Release, nil
	}
	switch now, err := f.grown(ctx, s, v); {
	case err == nil:
		return now.Release, nil
	case !errors.Is(err, errNotGrown):
		return nil, err
	}
	return v.Release, nil
}

// vouched gets a release, from memory or once for all who ask.
func (f *Filler) vouched(ctx context.Context, a address.Address, version string) (*vouched, *Source, error) {
	s, err := f.source(a)
	if err != nil {
		return nil, nil, err
	}
	if _, err := address.ParseProviderVersion(version); err != nil {
		return nil, nil, ErrNotMirrored
	}
	if s.Policy.MinAge > 0 {
		// What the origin does not list, it does not let be dated either; only what is
		// held can be of it.
		if _, _, err := f.listed(ctx, a, version); errors.Is(err, ErrTooYoung) || err != nil && !errors.Is(err, upstream.ErrNotFound) {
			return nil, nil, err
		}
	}
	id := releaseID{a, version}
	if v, ok := f.releases.get(id); ok {
		return v, s, nil
	}
	if err, ok := f.unproven.get(id); ok {
		return nil, nil, err
	}
	v, err := f.vouching.do(ctx, id, func(by *upstream.Clients) (*vouched, error) {
		v, err := f.vouch(by.In(f.ctx), s, a, version)
		switch {
		case err == nil:
			f.releases.put(id, v, releaseLife)
		case !givenUp(err):
			f.unproven.put(id, err, lifeOf(err))
			if !errors.Is(err, upstream.ErrNotFound) {
				f.noteRefusal("a release cannot be mirrored", a, err, "version", version)
			}
			f.observe(Event{Kind: ReleaseRefused, Hostname: a.Hostname}, err)
		}
		return v, err
	})
	return v, s, err
}

// vouch takes the tree's word for a release, or else the origin's.
func (f *Filler) vouch(ctx context.Context, s *Source, a address.Address, version string) (*vouched, error) {
	p, err := f.place(a)
	if err != nil {
		return nil, err
	}
	k, err := p.readKeys()
	if err != nil {
		return nil, err
	}
	d, err := p.documents(&upstream.Release{Address: a, Version: version})
	if err != nil {
		return nil, err
	}
	if r := keptRelease(a, version, d, k); r != nil {
		return &vouched{r, true}, nil
	}
	v, listed, err := f.listed(ctx, a, version)
	if err != nil {
		return nil, err
	}
	if !listed {
		return nil, fmt.Errorf("the origin does not list version %s: %w", version, upstream.ErrNotFound)
	}
	r, err := s.Client.Release(ctx, a, v, k.pin())
	if err != nil {
		return nil, err
	}
	err = s.accept(r, k)
	f.noteUnsigned(r, k)
	return &vouched{Release: r}, err
}

// accept lets a release in, or says why not.
func (s *Source) accept(r *upstream.Release, k namespaceKeys) error {
	if !r.Signed() && r.Signature != nil && k.ring != nil {
		// The origin has no keys now, but had some before. What they say is wrong
		// is so whatever the policy, and so is a signature by another key: the index
		// would withhold the release.
		if _, err := k.ring.Verify(r.Checksums, r.Signature); err != nil {
			return &upstream.Failure{Host: r.Address.Hostname.ForDisplay(), Kind: upstream.ErrBadSignature, Detail: err.Error(), Cause: err}
		}
		r.Keys = k.ring.Keys()
	}
	switch {
	case r.Signed():
		return nil
	case k.pinned: // or an origin could get around them by leaving signatures out
		return errPinned
	case s.Policy.Signatures == RequireSignatures:
		return fmt.Errorf("%w: put the publisher's public key into keys/%s/%s.asc, or take it all the same with `signatures prefer`",
			ErrUnsigned, r.Address.Hostname.ForDisplay(), r.Address.Namespace)
	}
	return nil
}

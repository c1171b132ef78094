package pull

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// releaseLifetime is how long a release is not requested again. A release does not
// change. If the origin nevertheless releases the version again, its packages do not
// match and are refused until then.
const releaseLifetime = DefaultVersionsTTL

// An approved release may be added to the tree, with its packages.
type approved struct {
	*upstream.Release
	present bool           // the tree has its signed documents
	indexed *index.Release // source of the documents; nil: the disk
}

func (r *approved) has(p address.Platform) bool {
	_, ok := r.Package(p)
	return ok
}

// Available returns the packages of a version that Fill can fetch. It leaves out
// packages without any hash that a client could check. present is the release in the
// index, which saves requests and reading; it may be nil. The list is not complete if the
// origin may have added packages, and has not said so yet.
func (f *Filler) Available(ctx context.Context, a address.Address, version string, present *index.Release) (list []wire.Archive, complete bool, err error) {
	r, s, err := f.approved(ctx, a, version, present)
	if err != nil {
		return nil, false, err
	}
	r, complete = f.withAdditions(ctx, s, r)
	for _, p := range r.Packages {
		hashes := p.FileHashes
		if p.SHA256 != (wire.SHA256{}) {
			hashes = append(slices.Clone(hashes), p.SHA256.ZH())
		}
		if len(hashes) > 0 && s.Policy.includesPlatform(p.Platform) {
			list = append(list, wire.Archive{Platform: p.Platform, URL: p.Name, Hashes: hashes})
		}
	}
	return list, complete, nil
}

// ReleaseFor returns a release of the tree, or else of the origin. If the release in
// the tree has no package for the platform, the origin may have added it meanwhile, and
// is asked. present is the release in the index, which saves requests and reading; it
// may be nil.
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
		// An origin has no date for a version that it does not list. Such a release can
		// only come from the tree.
		if _, _, err := f.listed(ctx, a, version, ""); errors.Is(err, ErrTooYoung) || err != nil && !errors.Is(err, upstream.ErrNotFound) {
			return nil, nil, err
		}
	}
	if present != nil && present.Signature.By != index.ByPublisher {
		present = nil
	}
	id := releaseID{a, version}
	if r := f.knownRelease(id, present); r != nil {
		return r, s, nil
	}
	if r, err := f.indexedRelease(a, present); r != nil {
		if err == nil {
			f.releases.Put(id, r, releaseLifetime)
		}
		return r, s, nil
	}
	if err := f.unapproved.refusal(ctx, f, a, id); err != nil {
		return nil, nil, err
	}
	r, err := f.approveOnce(ctx, s, id, present)
	return r, s, err
}

// knownRelease returns a release from memory, or nil.
func (f *Filler) knownRelease(id releaseID, present *index.Release) *approved {
	if r, ok := f.releases.Get(id); ok && (!r.present || r.indexed == present) {
		return r
	}
	return nil
}

// approveOnce approves a release once for all callers. It looks into memory again: another flight
// may have landed since the caller has looked.
func (f *Filler) approveOnce(ctx context.Context, s *Source, id releaseID, present *index.Release) (*approved, error) {
	a, version := id.Address, id.version
	return f.approving.Do(ctx, id, func(clients *upstream.Clients) (*approved, error) {
		if r := f.knownRelease(id, present); r != nil {
			return r, nil
		}
		if err, ok := f.unapproved.Get(id); ok {
			return nil, err
		}
		r, err := f.approve(clients.Context(f.ctx), s, a, version)
		switch {
		case err == nil:
			f.releases.Put(id, r, releaseLifetime)
		case !isCanceled(err):
			f.unapproved.remember(id, err)
			if !errors.Is(err, upstream.ErrNotFound) {
				f.noteRefusal("a release cannot be mirrored", a, err, "version", version)
			}
			f.observe(Event{Kind: ReleaseRefused, Hostname: a.Hostname}, err)
		}
		return r, err
	})
}

// indexedRelease returns a release that the index has verified; nil for nil. The error
// means that the announced hashes could not be read: the release is valid, but is not
// remembered.
func (f *Filler) indexedRelease(a address.Address, present *index.Release) (*approved, error) {
	if present == nil {
		return nil, nil
	}
	checksums, signature := present.Documents()
	r := signedRelease(a, present.Version, checksums, signature, nil, present.Signature.Keys)
	if r == nil {
		return nil, nil
	}
	return &approved{r, true, present}, f.addAnnounced(r)
}

// releaseWithdrawn is like withdrawn, for a version of a provider.
func (f *Filler) releaseWithdrawn(a address.Address, text string) error {
	v, err := address.ParseProviderVersion(text)
	if err != nil {
		return ErrNotMirrored
	}
	return f.withdrawn(a, v)
}

// approve reads a release from the disk, where the index may not have seen it yet, or
// else requests it from the origin.
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
	v, err := f.mustList(ctx, a, version)
	if err != nil {
		return nil, err
	}
	r, err := s.Client.Release(ctx, a, v, keys.pin())
	if err != nil {
		return nil, err
	}
	err = s.accept(r, keys)
	f.noteUnsigned(r, keys)
	return &approved{Release: r}, err
}

// accept applies the policy and the keys in the tree. It returns why a release may not
// be added to the tree.
func (s *Source) accept(r *upstream.Release, keys namespaceKeys) error {
	if !r.Signed() && r.Signature != nil && keys.ring != nil {
		// The origin sends no keys now, but did before. A signature that is wrong, or
		// by another key, is refused whatever the policy says: the index would withhold
		// the release.
		if _, err := keys.ring.Verify(r.Checksums, r.Signature); err != nil {
			return &upstream.Failure{Host: r.Address.Hostname.ForDisplay(), Kind: upstream.ErrBadSignature, Detail: err.Error(), Cause: err}
		}
		r.Keys = keys.ring.Keys()
	}
	switch {
	case r.Signed():
		return nil
	case keys.pinned: // otherwise an origin could evade the keys by leaving signatures out
		return errPinned
	case s.Policy.Signatures == RequireSignatures:
		return fmt.Errorf("%w: put the publisher's public key into keys/%s/%s.asc, or take it all the same with `signatures prefer`",
			ErrUnsigned, r.Address.Hostname.ForDisplay(), r.Address.Namespace)
	}
	return nil
}

// errNoAdditions means that a release has no more packages than before.
var errNoAdditions = fmt.Errorf("the origin has added nothing to the release: %w", upstream.ErrNotFound)

// MayHaveMore reports whether the origin may have packages of a release for further
// platforms that the policy includes, according to the known list of versions. It sends no
// request.
func (f *Filler) MayHaveMore(a address.Address, present *index.Release) bool {
	return f.mayHaveMore(a, present.Version, func(p address.Platform) bool { return present.Package(p.OS, p.Arch) != nil })
}

func (f *Filler) mayHaveMore(a address.Address, version string, has func(address.Platform) bool) bool {
	s, err := f.source(a)
	if err != nil {
		return false
	}
	platforms, listed := f.listedPlatforms(a, version)
	missing := func(p address.Platform) bool { return s.Policy.includesPlatform(p) && !has(p) }
	return listed && (len(platforms) == 0 || slices.ContainsFunc(platforms, missing))
}

// listedPlatforms returns the platforms of a version according to the known list of
// versions. An origin that is a mirror lists none.
func (f *Filler) listedPlatforms(a address.Address, version string) (platforms []address.Platform, listed bool) {
	c, ok := f.lists.Get(a)
	if !ok {
		return nil, false
	}
	d, ok := c.version(version)
	return d.Platforms, ok
}

// withAdditions returns a release of the tree with the packages that the origin has
// added, and whether these are known. The caller waits for the origin only if its list has
// further platforms. A mirror's list has no platforms, so the mirror is asked in the background.
func (f *Filler) withAdditions(ctx context.Context, s *Source, r *approved) (with *approved, known bool) {
	if !r.present || !f.mayHaveMore(r.Address, r.Version, r.has) {
		return r, true
	}
	if platforms, _ := f.listedPlatforms(r.Address, r.Version); len(platforms) == 0 {
		err, asked := f.unextended.Get(releaseID{r.Address, r.Version})
		if !asked {
			go f.extended(upstream.NewClients(ctx).Context(f.ctx), s, r)
		}
		return r, errors.Is(err, errNoAdditions)
	}
	extended, err := f.extended(ctx, s, r)
	if err != nil {
		return r, errors.Is(err, errNoAdditions) // valid whatever the state of the origin
	}
	return extended, true
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

// extended returns the origin's present version of a release in the tree, by one
// request for all callers. The error is errNoAdditions if it has no further packages.
func (f *Filler) extended(ctx context.Context, s *Source, r *approved) (*approved, error) {
	id := releaseID{r.Address, r.Version}
	if err, ok := f.unextended.Get(id); ok {
		return nil, err
	}
	return f.extending.Do(ctx, id, func(clients *upstream.Clients) (*approved, error) {
		extended, err := f.fetchExtended(clients.Context(f.ctx), s, r)
		if err == nil {
			f.releases.Put(id, extended, releaseLifetime)
		} else {
			f.unextended.remember(id, err)
		}
		return extended, err
	})
}

// askAgain asks the origin for a release that is in the tree. The origin describes a release by platform, and
// may have none of the common ones.
func (f *Filler) askAgain(ctx context.Context, s *Source, r *approved, pinned *signing.Keyring) (*upstream.Release, error) {
	platforms, _ := f.listedPlatforms(r.Address, r.Version)
	return s.Client.Release(ctx, r.Address, wire.ProviderVersion{Version: r.Version, Platforms: platforms}, pinned)
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
	now, err := f.askAgain(ctx, s, r, keys.pin())
	switch {
	case errors.Is(err, upstream.ErrNotFound): // the tree keeps its release even if the origin has none
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
	// A mirror lists its own packages, and may have fewer than this tree.
	for _, p := range r.Packages {
		if _, ok := now.Package(p.Platform); !ok {
			now.Packages = append(now.Packages, p)
		}
	}
	slices.SortFunc(now.Packages, func(a, b upstream.Package) int { return a.Platform.Compare(b.Platform) })
	return &approved{Release: now}, nil
}

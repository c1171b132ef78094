package upstream

import (
	"context"
	"crypto/sha256"
	"net/url"
	"slices"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A Release is a version of a provider with the documents that authenticate its
// packages. It does not change.
type Release struct {
	Address address.Address
	Version string

	// Packages are ordered by platform.
	Packages []Package

	// SHA256SUMS, its signature and the release's manifest, byte for byte. Each is nil
	// if the origin has none. SHA256SUMS has the sha256 of the manifest.
	Checksums, Signature, Manifest []byte

	// Keys include the key that has verified Signature. Empty means that the
	// signature is missing, or that no key was pinned and the origin sent none: a
	// mirror, or the public OpenTofu registry.
	Keys []signing.PublicKey

	// Sums are the decoded Checksums.
	Sums wire.Checksums

	// Protocols are the plugin protocol versions according to the origin; empty if it
	// does not say.
	Protocols []string

	// Announced are hashes and sizes of packages according to the origin alone.
	// OpenTofu's registry sends them unsigned. Each has at least one h1: and, at the
	// end, the zh: that is in Sums.
	Announced map[address.Platform]wire.PackageHashes
}

// Weigh estimates how many bytes a release takes in memory.
func (r *Release) Weigh() int {
	total := 1024 + len(r.Checksums) + len(r.Signature) + len(r.Manifest)
	for _, key := range r.Keys {
		total += len(key.Armor)
	}
	for name := range r.Sums {
		total += 96 + len(name)
	}
	for _, p := range r.Packages {
		total += 256 + len(p.Name) + len(p.Digests)*len(wire.SHA256{})
		for _, hash := range p.FileHashes {
			total += 16 + len(hash)
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

// A Package is a release for one platform.
type Package struct {
	address.Platform

	// Name of the file in SHA256SUMS.
	Name string

	// SHA256 of the file. It is zero if a mirror without SHA256SUMS gives none or
	// several.
	SHA256 wire.SHA256

	// FileHashes are a mirror's hashes of the files in the zip, if SHA256 is zero. Download
	// does not check them, since that needs the whole file. The caller has to check that
	// archive.CheckPackage computes one of them.
	FileHashes []string

	// Digests of the file. The file must have any one of them, as clients require. If
	// there are neither Digests nor FileHashes, the mirror does not authenticate the package.
	Digests []wire.SHA256
}

// Signed reports whether the signature of SHA256SUMS was verified.
func (r *Release) Signed() bool { return len(r.Keys) > 0 }

// Package returns the package of a platform.
func (r *Release) Package(p address.Platform) (Package, bool) {
	i := slices.IndexFunc(r.Packages, func(have Package) bool { return have.Platform == p })
	if i < 0 {
		return Package{}, false
	}
	return r.Packages[i], true
}

// ListedPackages returns the packages in SHA256SUMS. It leaves out packages with other
// names, since no tree could store them under the signed names.
func (r *Release) ListedPackages() (packages []Package) {
	for name, sum := range r.Sums {
		f, err := address.ParseReleaseFile(r.Address.Name, name)
		if err != nil || f.Kind != address.PackageFile || name != address.PackageName(r.Address.Name, r.Version, f.Platform) {
			continue
		}
		packages = append(packages, Package{Platform: f.Platform, Name: name, SHA256: sum, Digests: []wire.SHA256{sum}})
	}
	slices.SortFunc(packages, func(a, b Package) int { return a.Platform.Compare(b.Platform) })
	return packages
}

// readChecksums fetches SHA256SUMS. It refuses a document that some clients cannot
// read, since the release could not be served.
func (c *Client) readChecksums(ctx context.Context, r *Release, u *url.URL) error {
	d, err := c.read(ctx, u, maxChecksums)
	if err != nil {
		return err
	}
	sums, err := wire.DecodeChecksums(d.body)
	if err != nil {
		return &Failure{Host: d.url.Host, Kind: ErrMalformed, Detail: err.Error(), Cause: err}
	}
	r.Checksums, r.Sums = d.body, sums
	return nil
}

// readSignature fetches the signature of SHA256SUMS, and verifies it unless keys is
// nil.
func (c *Client) readSignature(ctx context.Context, r *Release, u *url.URL, keys *signing.Keyring) error {
	d, err := c.read(ctx, u, maxSignature)
	if err != nil {
		return err
	}
	r.Signature = d.body
	if keys == nil {
		return nil
	}
	if _, err := keys.Verify(r.Checksums, d.body); err != nil {
		return &Failure{Host: d.url.Host, Kind: ErrBadSignature, Detail: err.Error(), Cause: err}
	}
	r.Keys = keys.Keys()
	return nil
}

// readManifest fetches the manifest that SHA256SUMS lists, from the same folder. The
// protocol does not have it, and a release is complete without it. The error means that
// the origin may send it another time: a release that is kept without it stays so.
func (c *Client) readManifest(ctx context.Context, r *Release, sums *url.URL) error {
	name := address.ManifestName(r.Address.Name, r.Version)
	sum, listed := r.Sums[name]
	if !listed {
		return nil
	}
	d, err := c.read(ctx, sums.ResolveReference(&url.URL{Path: name}), maxManifest)
	switch {
	case IsKind(err, ErrUnavailable, ErrTimeout, context.Canceled, context.DeadlineExceeded):
		return err
	case err != nil || sha256.Sum256(d.body) != sum:
		return nil
	}
	if _, err := wire.DecodeManifest(d.body); err == nil {
		r.Manifest = d.body
	}
	return nil
}

package upstream

import (
	"cmp"
	"context"
	"crypto/sha256"
	"net/url"
	"slices"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A Release is one version of a provider with what vouches for its packages. It
// does not change.
type Release struct {
	Address address.Address
	Version string

	// Protocols it speaks; empty where the origin does not tell.
	Protocols []string

	// Packages are ordered by platform.
	Packages []Package

	// SHA256SUMS, its signature and the release's manifest, byte for byte. Each
	// is nil where the origin has none. The manifest is only there if SHA256SUMS
	// lists it, with that sha256.
	Checksums, Signature, Manifest []byte

	// Keys are those Signature was verified with, SignedBy the one of them that
	// made it. Without any the release is not signed by anybody known: there is
	// no signature, or the origin, being a mirror or the public OpenTofu registry,
	// sends no keys and none were pinned.
	Keys     []signing.PublicKey
	SignedBy signing.PublicKey

	// Sums are Checksums decoded.
	Sums wire.Checksums
}

// A Package is a release for one platform.
type Package struct {
	address.Platform

	// Name of its file, by which SHA256SUMS lists it.
	Name string

	// SHA256 of the file. A mirror without SHA256SUMS may leave it out; then it
	// is zero, and the hashes in H1 are all there is.
	SHA256 wire.SHA256

	// H1 are hashes a mirror gives of the files in the zip, "h1:…", where SHA256 is
	// zero; those beside it are left out. Download does not check them, since they
	// need the whole file. The caller has to: dirhash.HashZip(file, dirhash.Hash1) of golang.org/x/mod must
	// be one of them, and so must the H1 of the index.Package it becomes. Empty,
	// with a zero SHA256: the mirror vouches for nothing.
	H1 []string

	// Digests of the file, any one of which will do, as for clients.
	Digests []wire.SHA256
}

// Signed tells whether SHA256SUMS was signed by a key that counts.
func (r *Release) Signed() bool { return len(r.Keys) > 0 }

// Package finds the package of a platform.
func (r *Release) Package(p address.Platform) (Package, bool) {
	i := slices.IndexFunc(r.Packages, func(have Package) bool { return have.Platform == p })
	if i < 0 {
		return Package{}, false
	}
	return r.Packages[i], true
}

// fileName is the name of one of the release's files.
func (r *Release) FileName(rest string) string {
	return "terraform-provider-" + r.Address.Name + "_" + r.Version + "_" + rest
}

// ListedPackages are the packages that SHA256SUMS lists. Those by other names are left
// out: no tree could hold them as they were signed.
func (r *Release) ListedPackages() (packages []Package) {
	for name, sum := range r.Sums {
		rest, ours := strings.CutPrefix(name, r.FileName(""))
		rest, zip := strings.CutSuffix(rest, ".zip")
		os, arch, _ := strings.Cut(rest, "_")
		platform, err := address.ParsePlatform(os, arch)
		if !ours || !zip || err != nil {
			continue
		}
		packages = append(packages, Package{Platform: platform, Name: name, SHA256: sum, Digests: []wire.SHA256{sum}})
	}
	slices.SortFunc(packages, func(a, b Package) int { return a.Platform.Compare(b.Platform) })
	return packages
}

func comparePlatforms(a, b address.Platform) int {
	return cmp.Or(strings.Compare(a.OS, b.OS), strings.Compare(a.Arch, b.Arch))
}

// readChecksums fetches SHA256SUMS. A form of it that some client stumbles over
// is not taken: nothing could be served from it.
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

// readSignature fetches the signature of SHA256SUMS and verifies it, if there
// are keys to do it with.
func (c *Client) readSignature(ctx context.Context, r *Release, u *url.URL, keys *signing.Keyring) error {
	d, err := c.read(ctx, u, maxSignature)
	if err != nil {
		return err
	}
	r.Signature = d.body
	if keys == nil {
		return nil
	}
	by, err := keys.Verify(r.Checksums, d.body)
	if err != nil {
		return &Failure{Host: d.url.Host, Kind: ErrBadSignature, Detail: err.Error(), Cause: err}
	}
	r.Keys, r.SignedBy = keys.Keys(), by
	return nil
}

// readManifest fetches the manifest that SHA256SUMS lists, from beside it. It is
// in no protocol: a release is as good without it.
func (c *Client) readManifest(ctx context.Context, r *Release, sums *url.URL) {
	name := r.FileName("manifest.json")
	sum, listed := r.Sums[name]
	if !listed {
		return
	}
	d, err := c.read(ctx, sums.ResolveReference(&url.URL{Path: name}), maxManifest)
	if err != nil || sha256.Sum256(d.body) != sum {
		return
	}
	protocols, err := wire.DecodeManifest(d.body)
	if err != nil {
		return
	}
	r.Manifest = d.body
	if len(r.Protocols) == 0 {
		r.Protocols = protocols
	}
}

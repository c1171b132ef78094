package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// registry is the protocol of a provider registry, providers.v1.
type registry struct{ *Client }

// get reads a document of the provider service by the segments of its path.
func (c registry) get(ctx context.Context, limit int64, segments ...string) (document, error) {
	base, err := c.base(ctx)
	if err != nil {
		return document{}, err
	}
	return c.read(ctx, base.ResolveReference(&url.URL{Path: strings.Join(segments, "/")}), limit)
}

func (c registry) versions(ctx context.Context, a address.Address) (Listing, error) {
	d, err := c.get(ctx, maxVersions, a.Namespace, a.Name, "versions")
	if err != nil {
		return Listing{}, err
	}
	versions, err := wire.DecodeProviderVersions(d.body)
	if err != nil {
		return Listing{}, badList(d.url, err)
	}
	return Listing{versions}, nil
}

func (c registry) published(ctx context.Context, a address.Address, version string) (time.Time, error) {
	d, err := c.get(ctx, maxMetadata, a.Namespace, a.Name, version)
	if err != nil {
		return time.Time{}, err
	}
	var details struct {
		PublishedAt time.Time `json:"published_at"`
	}
	if err := json.Unmarshal(d.body, &details); err != nil {
		return time.Time{}, fail(d.url, ErrMalformed, "its details of a version are not the JSON they should be")
	}
	if details.PublishedAt.IsZero() {
		return time.Time{}, fail(d.url, ErrNotFound, "it does not tell when it published a version")
	}
	return details.PublishedAt, nil
}

// metadata is what a registry says about the package of one platform, its
// links resolved.
type metadata struct {
	from      *url.URL // who says so
	protocols []string
	filename  string
	shasum    string
	size      int64 // zero: it does not tell
	armored   []byte

	download, checksums, signature *url.URL
}

func (c registry) metadata(ctx context.Context, a address.Address, version string, p address.Platform) (*metadata, error) {
	d, err := c.get(ctx, maxMetadata, a.Namespace, a.Name, version, "download", p.OS, p.Arch)
	if err != nil {
		return nil, err
	}
	m, err := parseMetadata(d.body, d.url, p)
	if err != nil {
		return nil, fail(d.url, ErrMalformed, "%v", err)
	}
	return m, nil
}

// parseMetadata reads the description of a package and resolves its links.
func parseMetadata(body []byte, from *url.URL, p address.Platform) (*metadata, error) {
	d, vouchers, err := wire.DecodeDownload(body, p)
	if err != nil {
		return nil, err
	}
	m := &metadata{
		from: from, protocols: d.Protocols, filename: d.Filename, shasum: strings.ToLower(d.SHA256),
		size: vouchers.Packages[p].Size,
	}
	for _, link := range []struct {
		url  **url.URL
		text string
	}{{&m.download, d.URL}, {&m.checksums, d.ChecksumsURL}, {&m.signature, d.SignatureURL}} {
		if *link.url, err = resolve(from, link.text); err != nil {
			return nil, err
		}
	}
	for _, armor := range vouchers.Armor {
		m.armored = append(append(m.armored, armor...), '\n')
	}
	return m, nil
}

// common are the platforms that a release is asked for by where it is not known
// which there are. One of them is in nearly every release, and SHA256SUMS then
// names all.
var common = []address.Platform{
	{OS: "linux", Arch: "amd64"}, {OS: "darwin", Arch: "arm64"}, {OS: "linux", Arch: "arm64"}, {OS: "windows", Arch: "amd64"}, {OS: "darwin", Arch: "amd64"},
}

// any finds the description of a version's package on any platform.
func (c registry) any(ctx context.Context, a address.Address, v wire.ProviderVersion) (m *metadata, err error) {
	platforms := v.Platforms
	if len(platforms) == 0 {
		platforms = common
	}
	for _, p := range platforms[:min(len(platforms), len(common))] {
		m, err = c.metadata(ctx, a, v.Version, p)
		if !errors.Is(err, ErrNotFound) {
			break
		}
	}
	return m, err
}

func (c registry) release(ctx context.Context, a address.Address, v wire.ProviderVersion, pinned *signing.Keyring) (*Release, error) {
	m, err := c.any(ctx, a, v)
	if err != nil {
		return nil, err
	}
	keys := pinned
	if keys == nil && len(m.armored) > 0 {
		// What of them is not usable, clients would not use either.
		ring, problems := c.readKeyring(m.armored)
		if len(ring.Keys()) == 0 && len(problems) > 0 {
			return nil, fail(m.from, ErrBadSignature, "the keys it gives cannot be used: %v", problems[0])
		}
		keys = ring
	}
	r := &Release{Address: a, Version: v.Version, Protocols: m.protocols}
	if len(r.Protocols) == 0 {
		r.Protocols = v.Protocols
	}
	if err := c.readChecksums(ctx, r, m.checksums); err != nil {
		return nil, brokenLink(err, "SHA256SUMS")
	}
	if err := m.agreesWith(r.Sums); err != nil {
		return nil, err
	}
	err = c.readSignature(ctx, r, m.signature, keys)
	// The public OpenTofu registry has keys of some namespaces only, and there is
	// not always a signature where there is no key.
	if keys != nil || !errors.Is(err, ErrNotFound) {
		if err != nil {
			return nil, brokenLink(err, "signature")
		}
	}
	if r.Packages = r.ListedPackages(); len(r.Packages) == 0 {
		return nil, fail(m.from, ErrMalformed, "its packages have other names than %s", r.FileName("OS_ARCH.zip"))
	}
	c.readManifest(ctx, r, m.checksums)
	return r, nil
}

// agreesWith compares the description of a package with what was signed.
func (m *metadata) agreesWith(sums wire.Checksums) error {
	sum, listed := sums[m.filename]
	switch {
	case !listed:
		return fail(m.from, ErrMalformed, "SHA256SUMS does not list the package it describes")
	case m.shasum != sum.String():
		return fail(m.from, ErrBadChecksum, "it describes another package than SHA256SUMS lists")
	}
	return nil
}

// locate asks where the package is now: the link may be good for minutes only.
func (c registry) locate(ctx context.Context, r *Release, p Package) (link, error) {
	m, err := c.metadata(ctx, r.Address, r.Version, p.Platform)
	if err != nil {
		return link{}, err
	}
	if m.filename != p.Name {
		return link{}, fail(m.from, ErrMalformed, "it names the package otherwise than %s", p.Name)
	}
	return link{m.download, m.size}, m.agreesWith(r.Sums)
}

package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// registry implements the provider registry protocol, providers.v1.
type registry struct{ *Client }

// get reads a document of the provider service for the segments of its path.
func (c registry) get(ctx context.Context, limit int64, segments ...string) (document, error) {
	base, err := c.providersBase(ctx)
	if err != nil {
		return document{}, err
	}
	return c.read(ctx, below(base, segments...), limit)
}

func (c registry) versions(ctx context.Context, a address.Address) ([]wire.ProviderVersion, error) {
	d, err := c.get(ctx, maxVersions, a.Namespace, a.Name, "versions")
	if err != nil {
		return nil, err
	}
	versions, err := wire.DecodeProviderVersions(d.body)
	if err != nil {
		return nil, badList(d.url, err)
	}
	return versions, nil
}

// badList returns the failure for a list of versions that does not decode.
func badList(from *url.URL, err error) error {
	if errors.Is(err, wire.ErrTooManyVersions) {
		return fail(from, ErrTooLarge, "%v", err)
	}
	return fail(from, ErrMalformed, "%v", err)
}

func (c registry) published(ctx context.Context, a address.Address, version string) (time.Time, error) {
	d, err := c.get(optional(ctx), maxMetadata, a.Namespace, a.Name, version)
	if err != nil {
		return time.Time{}, err
	}
	return d.published()
}

// published reads the publication time of a version from the public registry's details
// of a provider or a module.
func (d document) published() (time.Time, error) {
	var details struct {
		PublishedAt time.Time `json:"published_at"`
	}
	if err := json.Unmarshal(d.body, &details); err != nil {
		return time.Time{}, fail(d.url, ErrMalformed, "its details of a version are not the JSON they should be")
	}
	if details.PublishedAt.IsZero() {
		return time.Time{}, fail(d.url, ErrNotFound, "it does not say when the version was published")
	}
	return details.PublishedAt, nil
}

// metadata is a registry's description of the package of one platform, with its
// links resolved.
type metadata struct {
	url      *url.URL // of the description
	filename string
	sha256   string // lower-case hexadecimal
	size     int64  // of the package in bytes; zero if the registry does not say
	armor    []byte // all keys

	protocols []string
	packages  map[address.Platform]wire.PackageHashes // for all platforms of the version

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

func parseMetadata(body []byte, from *url.URL, p address.Platform) (*metadata, error) {
	d, evidence, err := wire.DecodeDownload(body, p)
	if err != nil {
		return nil, err
	}
	m := &metadata{
		url: from, filename: d.Filename, sha256: strings.ToLower(d.SHA256), size: evidence.Packages[p].Size,
		protocols: d.Protocols, packages: evidence.Packages,
	}
	for _, link := range []struct {
		url  **url.URL
		text string
	}{{&m.download, d.URL}, {&m.checksums, d.ChecksumsURL}, {&m.signature, d.SignatureURL}} {
		if *link.url, err = resolve(from, link.text); err != nil {
			return nil, err
		}
	}
	for _, armor := range evidence.Armor {
		m.armor = append(append(m.armor, armor...), '\n')
	}
	return m, nil
}

// commonPlatforms are tried for a release whose platforms are not known. Nearly every
// release has one of them, and SHA256SUMS then lists all.
var commonPlatforms = []address.Platform{
	{OS: "linux", Arch: "amd64"}, {OS: "darwin", Arch: "arm64"}, {OS: "linux", Arch: "arm64"}, {OS: "windows", Arch: "amd64"}, {OS: "darwin", Arch: "amd64"},
}

// anyMetadata finds the description of a version's package on any platform.
func (c registry) anyMetadata(ctx context.Context, a address.Address, v wire.ProviderVersion) (m *metadata, err error) {
	platforms := v.Platforms
	if len(platforms) == 0 {
		platforms = commonPlatforms
	}
	for _, p := range platforms[:min(len(platforms), len(commonPlatforms))] {
		m, err = c.metadata(ctx, a, v.Version, p)
		if !errors.Is(err, ErrNotFound) {
			break
		}
	}
	return m, err
}

func (c registry) release(ctx context.Context, a address.Address, v wire.ProviderVersion, pinned *signing.Keyring) (*Release, error) {
	m, err := c.anyMetadata(ctx, a, v)
	if err != nil {
		return nil, err
	}
	keys := pinned
	if keys == nil && len(m.armor) > 0 {
		// Clients ignore keys that are not usable, too.
		ring, problems := signing.ReadKeyring(m.armor)
		if len(ring.Keys()) == 0 && len(problems) > 0 {
			return nil, fail(m.url, ErrBadSignature, "its keys cannot be used: %v", problems[0])
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
	// The public OpenTofu registry has the keys of some namespaces only, and a release
	// without keys may have no signature.
	if keys != nil || !errors.Is(err, ErrNotFound) {
		if err != nil {
			return nil, brokenLink(err, "signature")
		}
	}
	if r.Packages = r.ListedPackages(); len(r.Packages) == 0 {
		return nil, fail(m.url, ErrMalformed, "its packages have other names than %s", address.ReleaseFileName(a.Name, v.Version, "OS_ARCH.zip"))
	}
	r.Announced = r.announced(m.packages)
	if err := c.readManifest(ctx, r, m.checksums); err != nil {
		return nil, err
	}
	return r, nil
}

// announced returns the packages that SHA256SUMS lists, too, with the same sha256.
func (r *Release) announced(packages map[address.Platform]wire.PackageHashes) map[address.Platform]wire.PackageHashes {
	announced := make(map[address.Platform]wire.PackageHashes)
	for _, p := range r.Packages {
		said := wire.Archive{Hashes: packages[p.Platform].Hashes}
		files, zh := said.OfFiles(), said.SHA256()
		if len(files) == 0 || len(zh) == 0 || slices.ContainsFunc(zh, func(sum wire.SHA256) bool { return sum != p.SHA256 }) {
			continue
		}
		announced[p.Platform] = wire.PackageHashes{Hashes: append(files, p.SHA256.ZH()), Size: packages[p.Platform].Size}
	}
	return announced
}

// agreesWith compares the description of a package with the signed SHA256SUMS.
func (m *metadata) agreesWith(sums wire.Checksums) error {
	sum, listed := sums[m.filename]
	switch {
	case !listed:
		return fail(m.url, ErrMalformed, "SHA256SUMS does not list the package it describes")
	case m.sha256 != sum.String():
		return fail(m.url, ErrBadChecksum, "it describes another package than SHA256SUMS lists")
	}
	return nil
}

func (c registry) packageLink(ctx context.Context, r *Release, p Package) (link, error) {
	m, err := c.metadata(ctx, r.Address, r.Version, p.Platform)
	if err != nil {
		return link{}, err
	}
	if m.filename != p.Name {
		return link{}, fail(m.url, ErrMalformed, "it has another name for the package than %s", p.Name)
	}
	return link{m.download, m.size}, m.agreesWith(r.Sums)
}

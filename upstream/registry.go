package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A service is the URL of the origin's provider service, and when it was discovered.
type service struct {
	mutex      sync.Mutex
	base       *url.URL
	discovered time.Time
}

// last returns the base that was discovered last, and whether it may be reused.
func (s *service) last() (base *url.URL, fresh bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.base, s.base != nil && time.Since(s.discovered) < discoveryLifetime
}

func (s *service) set(base *url.URL) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.base, s.discovered = base, time.Now()
}

// registry is the provider registry protocol, providers.v1.
type registry struct{ *Client }

// serviceBase is what the URLs of the provider service are resolved against.
func (c registry) serviceBase(ctx context.Context) (*url.URL, error) {
	if !c.origin.needsDiscovery(c.base) {
		return c.base, nil
	}
	last, fresh := c.service.last()
	if fresh {
		return last, nil
	}
	base, err := c.discover(ctx)
	switch {
	case err == nil:
		c.service.set(base)
		return base, nil
	case last != nil && IsKind(err, ErrUnavailable, ErrTimeout):
		return last, nil // which is likely still right
	}
	return nil, err
}

func (c registry) discover(ctx context.Context) (*url.URL, error) {
	d, err := c.read(ctx, c.base.JoinPath(wire.DiscoveryPath), maxDiscovery)
	var f *Failure
	if errors.As(err, &f) && f.Kind == ErrNotFound {
		// Nothing was said about the provider, so it must not become ErrNotFound.
		return nil, &Failure{Host: f.Host, Status: f.Status, Kind: ErrMalformed, Detail: "it is not a registry: configure its URL or a mirror"}
	}
	if err != nil {
		return nil, err
	}
	base, err := parseDiscovery(d.body, d.url)
	if err != nil {
		return nil, fail(d.url, ErrMalformed, "%v", err)
	}
	return base, nil
}

// parseDiscovery follows the clients' rules for the URL of a service. Like clients
// it adds no slash at the end.
func parseDiscovery(body []byte, from *url.URL) (*url.URL, error) {
	text, err := wire.DecodeProvidersService(body)
	if err != nil {
		return nil, err
	}
	base, err := resolve(from, text)
	if err != nil {
		return nil, err
	}
	base.Fragment, base.RawFragment = "", ""
	return base, nil
}

// resolve reads a URL in a document.
func resolve(from *url.URL, text string) (*url.URL, error) {
	u, err := from.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New("it has a link that is not a URL")
	case u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return nil, errors.New("it has a link that is not on a web server")
	case u.User != nil:
		return nil, errors.New("it links to a URL with a user name or password in it, which clients refuse")
	}
	return u, nil
}

// get reads a document of the provider service by the segments of its path.
func (c registry) get(ctx context.Context, limit int64, segments ...string) (document, error) {
	base, err := c.serviceBase(ctx)
	if err != nil {
		return document{}, err
	}
	return c.read(ctx, base.ResolveReference(&url.URL{Path: strings.Join(segments, "/")}), limit)
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

// badList is the failure of a list of versions that does not decode.
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
	armor    []byte // of all keys

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
	d, vouchers, err := wire.DecodeDownload(body, p)
	if err != nil {
		return nil, err
	}
	m := &metadata{
		url: from, filename: d.Filename, sha256: strings.ToLower(d.SHA256), size: vouchers.Packages[p].Size,
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
	r := &Release{Address: a, Version: v.Version}
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
	c.readManifest(ctx, r, m.checksums)
	return r, nil
}

// agreesWith compares the description of a package with what was signed.
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

package offer

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"time"

	version "github.com/hashicorp/go-version"
	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/content"
	"github.com/caddy-terraform/caddy-terraform-registry/index/report"
	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A Provider has all releases that are offered under a provider address.
type Provider struct {
	Address address.Address

	// Releases are the newest first; there is at least one.
	Releases []*Release

	// Age of the origin's part of the lists, if it should have been renewed by now.
	Age time.Duration

	metadata  Metadata
	byVersion map[string]*Release
	files     []*File        // by name
	titles    content.Titles // of the documentation of the latest release
	versions  func() *wire.Document
	index     func() *wire.Document
}

// ReleaseList returns Releases, which a nil Provider does not have.
func (p *Provider) ReleaseList() []*Release {
	if p == nil {
		return nil
	}
	return p.Releases
}

// Release returns the release of a version, or nil. A nil Provider has none.
func (p *Provider) Release(version string) *Release {
	if p == nil {
		return nil
	}
	return p.byVersion[version]
}

// File returns the file of that name, or nil.
func (p *Provider) File(name string) *File {
	i, ok := slices.BinarySearchFunc(p.files, name, func(f *File, name string) int { return strings.Compare(f.Name, name) })
	if !ok {
		return nil
	}
	return p.files[i]
}

// Versions returns the registry's list of releases; nil if only the mirror offers them.
func (p *Provider) Versions() *wire.Document { return p.versions() }

// Index returns the mirror's index.json.
func (p *Provider) Index() *wire.Document { return p.index() }

// Latest returns the release to use if none is requested: the newest that is neither a
// prerelease nor deprecated, else the newest that is not a prerelease, else the newest.
func (p *Provider) Latest() *Release {
	return latestOf(p.Releases, func(r *Release) (*version.Version, *registryhcl.Notice) { return r.version, r.deprecated })
}

// DocTitles returns the titles of the documentation of the latest release, as far as they
// have been read.
func (p *Provider) DocTitles() content.Titles { return p.titles }

// WithTitles returns the provider with these titles.
func (p *Provider) WithTitles(titles content.Titles) *Provider {
	if bytes.Equal(p.titles, titles) {
		return p
	}
	other := *p
	other.titles = titles
	return &other
}

// Metadata returns the provider's registry.hcl; nil if it has none.
func (p *Provider) Metadata() *registryhcl.File { return p.metadata.File }

// Withdrawn returns the withdrawn versions, which lie in the tree but are not offered, the
// newest first.
func (p *Provider) Withdrawn() []WithdrawnVersion { return p.metadata.Withdrawn }

// NewProvider returns a provider with these releases, none of which may be withdrawn. It
// orders the releases and applies deprecations. The lists of releases are encoded on the
// first request.
func NewProvider(a address.Address, releases []*Release, s Metadata) *Provider {
	releases = slices.Clone(releases)
	address.SortNewestFirst(releases, func(r *Release) *version.Version { return r.version })
	for i, r := range releases {
		releases[i] = r.withNotice(s.File.DeprecatedVersion(r.version))
	}
	p := &Provider{
		Address: a, Releases: releases, metadata: s,
		byVersion: make(map[string]*Release, len(releases)),
		versions:  sync.OnceValue(func() *wire.Document { return providerVersions(releases, s.Withdrawn, nil, nil) }),
		index:     sync.OnceValue(func() *wire.Document { return mirrorIndex(releases) }),
	}
	files := 0
	for _, r := range releases {
		files += len(r.Packages) + 2
	}
	p.files = make([]*File, 0, files)
	for _, r := range releases {
		p.byVersion[r.Version] = r
		p.files = append(p.files, r.checksums)
		if r.signatureFile != nil {
			p.files = append(p.files, r.signatureFile)
		}
		for _, k := range r.Packages {
			p.files = append(p.files, k.File)
		}
	}
	slices.SortFunc(p.files, func(a, b *File) int { return strings.Compare(a.Name, b.Name) })
	return p
}

// A Release is a verified version of a provider.
type Release struct {
	version *version.Version

	// Hostname of its folder in the tree. Empty: it is hosted, not mirrored.
	Hostname svchost.Hostname

	// Version in strict semantic versioning without a v.
	Version string

	// Packages are ordered by platform; there is at least one.
	Packages []*Package

	// Signature says whose signature of SHA256SUMS clients get.
	Signature Signature

	// Keys are the keys that clients verify the signature with. Empty: the release is not
	// signed, and only the mirror offers it.
	Keys []signing.PublicKey

	// Changed lists packages whose bytes have changed since they were first offered.
	Changed []ChangedBytes

	// Report is the release in the form of a report, without a notice.
	Report report.Offer

	protocols     []string // the plugin protocol versions it speaks, MAJOR.MINOR
	checksums     *File
	signatureFile *File // nil if it is not signed
	published     int64 // nanoseconds
	deprecated    *registryhcl.Notice
	docs          string // the folder of its documentation; empty if there is none

	// It is used again if neither its files nor its keys have changed.
	state    wire.SHA256 // of its files and keys when it was verified
	verified int64       // when that was, in nanoseconds; zero: its files may change unnoticed

	encoded *encodedRelease // shared with this release under other notices
}

// An encodedRelease has the documents of a release, except for its packages' documents.
type encodedRelease struct {
	once     sync.Once
	archives *wire.Document // the mirror's VERSION.json
}

// NewRelease returns a release with at least one package. published is the time of its newest
// file, in nanoseconds.
func NewRelease(v *version.Version, protocols []string, packages []Package, published int64) *Release {
	r := &Release{
		version: v, Version: v.String(), Packages: make([]*Package, len(packages)),
		protocols: protocols, published: published, encoded: new(encodedRelease),
	}
	for i := range packages {
		packages[i].release, r.Packages[i] = r, &packages[i]
	}
	return r
}

// SetDocuments gives the release its SHA256SUMS and the signature of it.
func (r *Release) SetDocuments(checksums, signature *File) {
	r.checksums, r.signatureFile = checksums, signature
}

// SetVerified notes that a release was verified. state identifies its files and keys.
func (r *Release) SetVerified(state wire.SHA256, now time.Time) {
	r.state, r.verified = state, now.UnixNano()
}

// IsVerified reports whether a release, which may be nil, was verified with the same files
// and keys not long ago.
func (r *Release) IsVerified(state wire.SHA256, now time.Time, within time.Duration) bool {
	if r == nil || r.verified == 0 || r.state != state {
		return false
	}
	age := now.Sub(time.Unix(0, r.verified))
	return age >= 0 && age < within
}

// Verified returns when the release was verified; zero if its files may change unnoticed.
func (r *Release) Verified() time.Time {
	if r.verified == 0 {
		return time.Time{}
	}
	return time.Unix(0, r.verified)
}

// Reported returns the release in the form of a report.
func (r *Release) Reported() report.Offer { return r.Report.WithNotice(r.deprecated) }

// Docs returns the folder of its documentation; empty if there is none.
func (r *Release) Docs() string { return r.docs }

// Sign adds the registry's signature to a release without a usable one. It signs the
// publisher's SHA256SUMS unchanged, which also lists packages that are not in the tree: lock
// files get the hashes of all platforms, and the list stays the same when further packages
// are added. Without that document it signs a list of the packages in the tree. Without a
// signer the release has no signature.
func (r *Release) Sign(typ string, checksums []byte, signer Signer) {
	if checksums == nil {
		sums := make(wire.Checksums)
		for _, p := range r.Packages {
			sums[p.File.Name] = p.File.SHA256
		}
		checksums = sums.Encode()
	}
	if signer == nil {
		r.checksums = NewDocumentFile(address.ChecksumsName(typ, r.Version), r.Version, checksums)
		return
	}
	v := NewSignedChecksums(typ, r.Version, checksums, signer)
	r.Signature, r.Keys = Signature{ByRegistry, v.Key.ID}, []signing.PublicKey{v.Key}
	r.checksums, r.signatureFile = v.Checksums, v.Signature
}

func (r *Release) number() *version.Version { return r.version }

// Deprecated returns the notice that deprecates the release; nil if there is none.
func (r *Release) Deprecated() *registryhcl.Notice { return r.deprecated }

// withNotice returns the release with the notice that deprecates it, which may be nil.
func (r *Release) withNotice(n *registryhcl.Notice) *Release {
	if r.deprecated == n {
		return r
	}
	other := *r
	other.deprecated = n
	return &other
}

// WithDocs returns the release with that folder of documentation.
func (r *Release) WithDocs(dir string) *Release {
	if r.docs == dir {
		return r
	}
	other := *r
	other.docs = dir
	return &other
}

// Protocols returns the plugin protocol versions of the provider, such as "6.0".
func (r *Release) Protocols() []string { return r.protocols }

// Published returns the time of the newest file of the release.
func (r *Release) Published() time.Time { return time.Unix(0, r.published) }

// A Signature says who signed the SHA256SUMS of a release that clients get. The zero value
// means that the release is not signed.
type Signature struct {
	By    SignedBy
	KeyID string // of the key that signed: 16 upper-case hexadecimal digits
}

// SignedBy is the kind of a Signature's author.
type SignedBy uint8

// Authors of signatures.
const (
	NotSigned   SignedBy = iota // only the mirror offers the release
	ByRegistry                  // SHA256SUMS is the publisher's, or lists the packages in the tree
	ByPublisher                 // SHA256SUMS is the publisher's and lists all packages there are
)

// String returns the signature in the form of a report: "publisher KEYID", "registry KEYID"
// or "none".
func (s Signature) String() string {
	switch s.By {
	case ByPublisher:
		return "publisher " + s.KeyID
	case ByRegistry:
		return "registry " + s.KeyID
	}
	return "none"
}

// A Package is a release for one platform.
type Package struct {
	address.Platform
	File *File

	// H1 is Go's dirhash of the files in the zip as clients unpack them, "h1:…". Clients
	// record it in their lock files.
	H1 string

	// PackedH1 is the hash of the zip's entries, if it differs from H1.
	PackedH1 string

	release  *Release
	download *wire.Document // the registry's answer
}

// Archives returns the mirror's VERSION.json.
func (r *Release) Archives() *wire.Document {
	r.encode()
	return r.encoded.archives
}

// Documents returns the publisher's SHA256SUMS and signature, byte for byte; nil for a
// release that the registry signs.
func (r *Release) Documents() (checksums, signature []byte) {
	if r.Signature.By != ByPublisher {
		return nil, nil
	}
	return r.checksums.source().content, r.signatureFile.source().content
}

// Package returns the package for a platform, or nil. A nil Release has none.
func (r *Release) Package(os, arch string) *Package {
	if r == nil {
		return nil
	}
	for _, p := range r.Packages {
		if p.OS == os && p.Arch == arch {
			return p
		}
	}
	return nil
}

// Download returns the registry's description of the package; nil if only the mirror offers
// the release.
func (p *Package) Download() *wire.Document {
	p.release.encode()
	return p.download
}

// MergedProvider returns a provider with the lists of another one, which may be nil, and of
// further versions that can be fetched, of which nothing but what the lists say is known.
// m is the provider's registry.hcl. MergedProvider returns nil if there is no version.
func MergedProvider(a address.Address, present *Provider, further []wire.ProviderVersion, m *registryhcl.File) *Provider {
	kept, _ := WithoutWithdrawn(m, further, nil)
	p := &Provider{Address: a, Releases: withFurther(present.ReleaseList(), kept, m), metadata: Metadata{File: m}}
	if len(p.Releases) == 0 {
		return nil
	}
	var withdrawn []WithdrawnVersion
	if present != nil {
		withdrawn = present.Withdrawn()
	}
	p.versions = sync.OnceValue(func() *wire.Document {
		return providerVersions(present.ReleaseList(), withdrawn, further, m)
	})
	p.index = sync.OnceValue(func() *wire.Document { return mirrorIndex(p.Releases) })
	return p
}

// providerVersions returns the provider registry's list of a provider's releases, the newest
// first, and of further versions and platforms that the registry can fetch, with warnings
// about withdrawn and deprecated versions. m is the provider's registry.hcl, which also
// withdraws or deprecates further versions. The list is nil if it is empty.
func providerVersions(releases []*Release, withdrawn []WithdrawnVersion, further []wire.ProviderVersion, m *registryhcl.File) *wire.Document {
	var fetched map[string][]address.Platform
	further, withdrawn = WithoutWithdrawn(m, further, withdrawn)
	if len(further) > 0 {
		fetched = make(map[string][]address.Platform, len(further))
		releases = withFurther(releases, further, m)
		for _, v := range further {
			fetched[v.Version] = v.Platforms
		}
	}
	var list []wire.ProviderVersion
	var offered []*Release
	for _, r := range releases {
		if len(r.Keys) == 0 && len(r.Packages) > 0 {
			continue // clients would refuse it, so that only the mirror can offer it
		}
		offered = append(offered, r)
		v := wire.ProviderVersion{Version: r.Version, Protocols: r.protocols, Platforms: make([]address.Platform, len(r.Packages))}
		for i, p := range r.Packages {
			v.Platforms[i] = p.Platform
		}
		for _, p := range fetched[r.Version] {
			if r.Package(p.OS, p.Arch) == nil {
				v.Platforms = append(v.Platforms, p)
			}
		}
		list = append(list, v)
	}
	warnings := append(withdrawalWarnings(withdrawn), deprecationWarnings(offered)...)
	return wire.EncodeProviderVersions(list, warnings)
}

// WithoutWithdrawn moves the withdrawn versions from a list of versions that can be fetched
// to the list of withdrawn versions in the tree.
func WithoutWithdrawn(m *registryhcl.File, list []wire.ProviderVersion, withdrawn []WithdrawnVersion) ([]wire.ProviderVersion, []WithdrawnVersion) {
	if m == nil || len(m.Withdrawn) == 0 {
		return list, withdrawn
	}
	kept := make([]wire.ProviderVersion, 0, len(list))
	all := Metadata{Withdrawn: slices.Clone(withdrawn)}
	for _, listed := range list {
		if v, err := version.NewVersion(listed.Version); err == nil {
			if n := m.WithdrawnVersion(v); n != nil {
				all.Withdraw(v, n)
				continue
			}
		}
		kept = append(kept, listed)
	}
	all.Sort()
	return kept, all.Withdrawn
}

// withFurther adds versions that are not in the tree to a list of releases. These versions
// have no packages.
func withFurther(releases []*Release, further []wire.ProviderVersion, m *registryhcl.File) []*Release {
	known := make(map[string]bool, len(releases)+len(further))
	for _, r := range releases {
		known[r.Version] = true
	}
	all := slices.Clone(releases)
	for _, f := range further {
		v, err := address.ParseProviderVersion(f.Version)
		if err != nil || known[f.Version] {
			continue
		}
		known[f.Version] = true
		r := &Release{version: v, Version: f.Version, protocols: f.Protocols, deprecated: m.DeprecatedVersion(v)}
		if len(r.protocols) == 0 {
			r.protocols = wire.DefaultProtocols()
		}
		all = append(all, r)
	}
	address.SortNewestFirst(all, func(r *Release) *version.Version { return r.version })
	return all
}

// encode makes the documents of a release on the first request for any of them: most
// releases of a large tree are never requested.
func (r *Release) encode() { r.encoded.once.Do(r.encodeNow) }

func (r *Release) encodeNow() {
	r.encoded.archives = wire.EncodeArchives(r.mirrorArchives())
	if len(r.Keys) == 0 {
		return
	}
	v := wire.Evidence{Packages: make(map[address.Platform]wire.PackageHashes)}
	for _, k := range r.Keys {
		v.Armor, v.IDs = append(v.Armor, k.Armor), append(v.IDs, k.ID)
	}
	downloads := make([]wire.Download, len(r.Packages))
	for i, p := range r.Packages {
		v.Packages[p.Platform] = p.Hashes()
		downloads[i] = wire.Download{
			Protocols: r.protocols, Platform: p.Platform, Filename: p.File.Name, SHA256: p.File.SHA256.String(),
			URL: p.File.Name, ChecksumsURL: r.checksums.Name, SignatureURL: r.signatureFile.Name,
		}
	}
	for i, d := range wire.EncodeDownloads(downloads, v) {
		r.Packages[i].download = d
	}
}

// Hashes returns the hashes and the size of the package.
func (p *Package) Hashes() wire.PackageHashes {
	return wire.PackageHashes{Hashes: p.hashes(), Size: p.File.Size}
}

// hashes returns the hashes that the mirror lists: h1: and zh: (checklist 69). If the hash
// of the zip's entries differs, it is listed too, since clients compute both.
func (p *Package) hashes() []string {
	if p.PackedH1 != "" {
		return []string{p.H1, p.PackedH1, "zh:" + p.File.SHA256.String()}
	}
	return []string{p.H1, "zh:" + p.File.SHA256.String()}
}

// mirrorArchives returns the packages in the form of VERSION.json.
func (r *Release) mirrorArchives() []wire.Archive {
	archives := make([]wire.Archive, len(r.Packages))
	for i, p := range r.Packages {
		archives[i] = wire.Archive{Platform: p.Platform, URL: p.File.Name, Hashes: p.hashes()}
	}
	return archives
}

// listedArchives returns the packages that a SHA256SUMS lists for one version of the
// provider called typ, ordered by platform. Other files are left out.
func listedArchives(typ, version string, sums wire.Checksums) []wire.Archive {
	var list []wire.Archive
	for name, sum := range sums {
		f, err := address.ParseReleaseFile(typ, name)
		if err == nil && f.Kind == address.PackageFile && f.Version.String() == version {
			list = append(list, wire.Archive{Platform: f.Platform, URL: name, Hashes: []string{"zh:" + sum.String()}})
		}
	}
	slices.SortFunc(list, func(a, b wire.Archive) int { return a.Platform.Compare(b.Platform) })
	return list
}

// Missing returns the packages of a release that its publisher signed and that are not in
// the tree. Without the publisher's signature nothing vouches for packages that are not in
// the tree, and Missing returns none.
func (p *Provider) Missing(r *Release) []wire.Archive {
	if r.Signature.By != ByPublisher {
		return nil
	}
	sums, err := wire.DecodeChecksums(r.checksums.source().content)
	if err != nil {
		return nil // it was decoded when it was verified, so there is no error
	}
	return slices.DeleteFunc(listedArchives(p.Address.Name, r.Version, sums), func(a wire.Archive) bool {
		return r.Package(a.Platform.OS, a.Platform.Arch) != nil
	})
}

// mirrorIndex returns the index.json of a provider's releases, the newest first.
func mirrorIndex(releases []*Release) *wire.Document {
	versions := make([]string, len(releases))
	for i, r := range releases {
		versions[i] = r.Version
	}
	return wire.EncodeMirrorIndex(versions)
}

// MirrorArchives returns the VERSION.json of a release, which may be nil, and of further
// packages that the mirror can fetch. h1Only is for clients that know only h1: hashes: they
// refuse a list of hashes without one, and accept a package without a list (checklist 68).
func MirrorArchives(r *Release, further []wire.Archive, h1Only bool) *wire.Document {
	var archives []wire.Archive
	if r != nil {
		archives = r.mirrorArchives()
	}
	for _, a := range further {
		if r != nil && r.Package(a.Platform.OS, a.Platform.Arch) != nil {
			continue
		}
		if h1Only && len(a.H1()) == 0 {
			a.Hashes = nil
		}
		archives = append(archives, a)
	}
	return wire.EncodeArchives(archives)
}

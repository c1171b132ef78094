package offer

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/content"
	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
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

// Numbers returns the versions of all releases, the newest first. A nil Provider has none.
func (p *Provider) Numbers() []string { return numbers(p.ReleaseList()) }

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
	return latestOf(p.Releases)
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

// NewProvider returns a provider with these releases, which must not be withdrawn. It
// orders the releases and applies deprecations.
func NewProvider(a address.Address, releases []*Release, s Metadata) *Provider {
	releases = slices.Clone(releases)
	address.SortNewestFirst(releases, number[*Release])
	for i, r := range releases {
		releases[i] = r.withNotice(s.File.DeprecatedVersion(r.version))
	}
	p := newProvider(a, releases, s)
	p.versions = sync.OnceValue(func() *wire.Document { return providerVersions(releases, s.Withdrawn, nil, nil) })
	return p
}

// newProvider returns a provider with these releases, in their order, which lacks the list of
// versions. The mirror's list is encoded on the first request.
func newProvider(a address.Address, releases []*Release, s Metadata) *Provider {
	p := &Provider{
		Address: a, Releases: releases, metadata: s,
		byVersion: make(map[string]*Release, len(releases)),
		index:     sync.OnceValue(func() *wire.Document { return wire.EncodeMirrorIndex(numbers(releases)) }),
	}
	files := 0
	for _, r := range releases {
		files += len(r.Packages) + 2
	}
	p.files = make([]*File, 0, files)
	for _, r := range releases {
		p.byVersion[r.Version] = r
		for _, f := range []*File{r.checksums, r.signatureFile} {
			if f != nil {
				p.files = append(p.files, f)
			}
		}
		for _, k := range r.Packages {
			p.files = append(p.files, k.File)
		}
	}
	slices.SortFunc(p.files, func(a, b *File) int { return strings.Compare(a.Name, b.Name) })
	return p
}

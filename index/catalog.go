package index

import (
	"cmp"
	"slices"
	"time"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A Catalog lists what a snapshot offers, with an entry for each address. It never
// changes.
type Catalog struct {
	// Modules and Providers are ordered by address.
	Modules, Providers []*Entry

	// Of those that are found both with and without HOSTNAME, merged.
	mergedModules, mergedProviders map[address.Address]*Entry

	hostnames map[svchost.Hostname]bool
}

// An Entry is what lists say about a provider or module: of its latest version.
type Entry struct {
	Address address.Address

	// Version is the latest one (see Module.Latest), and Versions how many there are.
	Version  string
	Versions int

	// Description is the operator's, or the first paragraph of the README.
	Description   string
	Source, Owner string

	// Published is when the latest version was, as far as the tree shows: the time of
	// its newest file.
	Published time.Time

	// Deprecated says why the latest version is, nil if it is not.
	Deprecated *registryhcl.Notice

	text entryText
}

// Catalog returns the catalog of the snapshot, which is made on the first request
// for it.
func (s *Snapshot) Catalog() *Catalog {
	s.cataloging.Do(func() { s.catalog = s.newCatalog() })
	return s.catalog
}

func (s *Snapshot) newCatalog() *Catalog {
	entry, finish := s.catalogs.begin()
	defer finish()
	ofModule := func(m *Module) *Entry {
		latest := m.Latest()
		return entry(entrySource{
			m.Address, latest.Version, len(m.Versions), latest.Archive.SHA256, latest.Published().UnixNano(), m.Metadata(), latest.Deprecated(),
		}, func() *Entry { return newModuleEntry(m) })
	}
	ofProvider := func(p *Provider) *Entry {
		latest := p.Latest()
		return entry(entrySource{
			p.Address, latest.Version, len(p.Releases), wire.SHA256{}, latest.published, p.Metadata(), latest.Deprecated(),
		}, func() *Entry { return newProviderEntry(p) })
	}
	c := &Catalog{
		mergedModules: make(map[address.Address]*Entry), mergedProviders: make(map[address.Address]*Entry),
		hostnames: make(map[svchost.Hostname]bool),
	}
	for e := range s.offered() {
		if e.module != nil {
			c.Modules = append(c.Modules, ofModule(e.module))
		}
		if e.provider != nil {
			c.Providers = append(c.Providers, ofProvider(e.provider))
		}
		c.hostnames[e.folder.address.Hostname] = c.hostnames[e.folder.address.Hostname] || e.offersVersions()
	}
	for m := range s.merged() {
		a := m.own.folder.address
		c.hostnames[a.Hostname] = true
		switch {
		case m.module != nil:
			c.mergedModules[a] = ofModule(m.module)
		case m.provider != nil:
			c.mergedProviders[a] = ofProvider(m.provider)
		case a.IsModule():
			c.mergedModules[a] = nil
		default:
			c.mergedProviders[a] = nil
		}
	}
	byAddress := func(a, b *Entry) int { return a.Address.Compare(b.Address) }
	slices.SortFunc(c.Modules, byAddress)
	slices.SortFunc(c.Providers, byAddress)
	return c
}

// Merged returns the entry of what a registry hosts at a if it answers as a.Hostname,
// where something is said about it both under that HOSTNAME and under none. The entry is
// nil if nothing of it is offered. ok is false where there is no more than what lies
// under one of the two.
func (c *Catalog) Merged(a address.Address) (e *Entry, ok bool) {
	if a.IsModule() {
		e, ok = c.mergedModules[a]
	} else {
		e, ok = c.mergedProviders[a]
	}
	return e, ok
}

// Has reports whether something lies under a HOSTNAME.
func (c *Catalog) Has(hostname svchost.Hostname) bool { return c.hostnames[hostname] }

func newModuleEntry(m *Module) *Entry {
	latest := m.Latest()
	summary := latest.Summary()
	e := &Entry{
		Address: m.Address, Version: latest.Version, Versions: len(m.Versions),
		Description: summary.Description, Published: latest.Published(), Deprecated: latest.Deprecated(),
	}
	e.describe(m.Metadata())
	e.text = newEntryText(e, &summary)
	return e
}

func newProviderEntry(p *Provider) *Entry {
	latest := p.Latest()
	e := &Entry{
		Address: p.Address, Version: latest.Version, Versions: len(p.Releases),
		Published: latest.Published(), Deprecated: latest.Deprecated(),
	}
	e.describe(p.Metadata())
	e.text = newEntryText(e, new(moduledoc.Summary))
	return e
}

// describe takes over what the operator says.
func (e *Entry) describe(m *registryhcl.File) {
	if m == nil {
		return
	}
	e.Description = cmp.Or(m.Description, e.Description)
	e.Source, e.Owner = m.Source, m.Owner
}

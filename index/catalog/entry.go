package catalog

import (
	"cmp"
	"strings"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/content"
	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
)

// An Entry describes the latest version of a provider or module for lists.
type Entry struct {
	Address address.Address

	// Version is the latest version (see index.Module.Latest), and Versions the number of
	// versions.
	Version  string
	Versions int

	// Description comes from the operator, or is the first paragraph of the README.
	Description   string
	Source, Owner string

	// Published is when the latest version was published (see index.ModuleVersion.Published).
	Published time.Time

	// Updated is when there was something new: a version, or what registry.hcl says of
	// versions.
	Updated time.Time

	// Deprecated says why the latest version is deprecated, nil if it is not.
	Deprecated *registryhcl.Notice

	// What searches read is decoded when it is needed: it would take several times the
	// memory of what it is decoded from, which the snapshot has anyway.
	summary func() moduledoc.Summary // of a module; nil for a provider
	pages   content.Titles           // of a provider

	pagesUnread bool // the provider has documentation whose titles have not been read yet

	uses []use
}

func newModuleEntry(m *index.Module) *Entry {
	latest := m.Latest()
	summary := latest.Summary()
	e := &Entry{
		Address: m.Address, Version: latest.Version, Versions: len(m.Versions),
		Description: strings.Clone(summary.Description), // the rest of the summary is not kept
		Published:   latest.Published(), Deprecated: latest.Deprecated(), summary: latest.Summary,
	}
	for _, v := range m.Versions {
		e.updated(v.Published())
	}
	e.describe(m.Metadata())
	e.addUses(&summary.Uses, "")
	for i := range summary.Submodules {
		e.addUses(&summary.Submodules[i].Uses, summary.Submodules[i].Path)
	}
	return e
}

func newProviderEntry(p *index.Provider) *Entry {
	latest := p.Latest()
	e := &Entry{
		Address: p.Address, Version: latest.Version, Versions: len(p.Releases),
		Published: latest.Published(), Deprecated: latest.Deprecated(), pages: p.DocTitles(),
	}
	e.pagesUnread = latest.Docs() != "" && !e.pages.AreCurrent()
	for _, r := range p.Releases {
		e.updated(r.Published())
	}
	e.describe(p.Metadata())
	return e
}

// newWithdrawnEntry returns the entry of an address whose versions are all withdrawn.
func newWithdrawnEntry(a address.Address, m *registryhcl.File) *Entry {
	e := &Entry{Address: a}
	e.describe(m)
	return e
}

func (e *Entry) updated(at time.Time) {
	if at.After(e.Updated) {
		e.Updated = at
	}
}

// describe takes over what the operator says.
func (e *Entry) describe(m *registryhcl.File) {
	if m == nil {
		return
	}
	e.Description = cmp.Or(m.Description, e.Description)
	e.Source, e.Owner = m.Source, m.Owner
	if len(m.Deprecated)+len(m.Withdrawn) > 0 {
		e.updated(m.Changed)
	}
}

// Titles returns the titles of the documentation of a provider.
func (e *Entry) Titles() content.Titles { return e.pages }

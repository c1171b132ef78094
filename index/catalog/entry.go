package catalog

import (
	"cmp"
	"strings"
	"time"
	"unique"

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

	// Published is when the latest version was published, as far as the tree shows: the time
	// of its newest file.
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

	uses []use
}

// A use is the use of a module or provider. There are many, and few different ones.
type use struct {
	of   unique.Handle[address.Address]
	by   unique.Handle[string] // the path of the submodule that uses it; empty for the root
	with unique.Handle[string] // the constraint
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

// addUses adds what the module at a path uses.
func (e *Entry) addUses(u *moduledoc.Uses, path string) {
	add := func(source, constraint string, names int) {
		source, _, _ = strings.Cut(source, "//")
		if a, ok := ParseSource(source, names); ok {
			e.uses = append(e.uses, use{unique.Make(a.Clone()), unique.Make(path), unique.Make(constraint)})
		}
	}
	for _, p := range u.Providers {
		add(p.Source, p.Version, 2)
	}
	for _, c := range u.Calls {
		add(c.Source, c.Version, 3)
	}
}

// PublicRegistry is the registry that clients ask for addresses without a hostname.
const PublicRegistry = "registry.terraform.io"

// ParseSource reads the address of a provider or module in a configuration, which has that
// many names.
func ParseSource(source string, names int) (address.Address, bool) {
	a, err := address.Parse(source)
	if err != nil || a.IsModule() != (names == 3) {
		return a, false
	}
	if a.Hostname == "" {
		a = a.At(PublicRegistry)
	}
	return a, true
}

// Titles returns the titles of the documentation of a provider.
func (e *Entry) Titles() []content.DocTitle { return e.pages.All() }

// A text has what a search reads of an entry.
type text struct {
	names       []string // the first is the name of the provider or module itself
	description string   // and the owner
	further     string   // the words of the README
	codes       []code
	submodules  []submoduleText
	pages       []content.DocTitle
	typ         string // of a provider
}

type submoduleText struct {
	path, name, description string
	codes                   []code
}

// A code is a name in the configuration of a module.
type code struct {
	kind ReasonKind
	text string
}

func (e *Entry) text() text {
	a := e.Address
	t := text{description: strings.TrimSpace(e.Description + " " + e.Owner + " " + e.Source)}
	for _, name := range []string{a.Name, a.Namespace, a.System, string(a.Hostname)} {
		if name != "" {
			t.names = append(t.names, name)
		}
	}
	if e.summary == nil {
		t.pages, t.typ = e.Titles(), a.Name
		return t
	}
	s := e.summary()
	t.further = s.Words
	t.codes = codesOf(&s.Uses, s.Inputs, s.Outputs)
	for _, sub := range s.Submodules {
		t.submodules = append(t.submodules, submoduleText{
			path: sub.Path, name: strings.TrimPrefix(sub.Path, "modules/"), description: sub.Description, codes: codesOf(&sub.Uses, sub.Inputs, nil),
		})
	}
	return t
}

func codesOf(u *moduledoc.Uses, inputs, outputs []string) []code {
	codes := make([]code, 0, len(u.Types)+len(u.Providers)+len(inputs)+len(outputs))
	for _, typ := range u.Types {
		kind := Creates
		if mode, name, ok := strings.Cut(typ, "."); ok {
			if typ, kind = name, Reads; mode == string(moduledoc.Ephemeral) {
				kind = Opens
			}
		}
		codes = append(codes, code{kind, typ})
	}
	for _, p := range u.Providers {
		codes = append(codes, code{Requires, strings.TrimPrefix(p.Source, PublicRegistry+"/")})
	}
	for _, name := range inputs {
		codes = append(codes, code{Input, name})
	}
	for _, name := range outputs {
		codes = append(codes, code{Output, name})
	}
	return codes
}

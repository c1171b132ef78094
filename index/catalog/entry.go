package catalog

import (
	"cmp"
	"strings"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
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

	// Deprecated says why the latest version is deprecated, nil if it is not.
	Deprecated *registryhcl.Notice

	terms terms
}

func newModuleEntry(m *index.Module) *Entry {
	latest := m.Latest()
	summary := latest.Summary()
	e := &Entry{
		Address: m.Address, Version: latest.Version, Versions: len(m.Versions),
		Description: summary.Description, Published: latest.Published(), Deprecated: latest.Deprecated(),
	}
	e.describe(m.Metadata())
	e.terms = newTerms(e, &summary)
	return e
}

func newProviderEntry(p *index.Provider) *Entry {
	latest := p.Latest()
	e := &Entry{
		Address: p.Address, Version: latest.Version, Versions: len(p.Releases),
		Published: latest.Published(), Deprecated: latest.Deprecated(),
	}
	e.describe(p.Metadata())
	e.terms = newTerms(e, new(moduledoc.Summary))
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

// terms have the text of an entry that searches read, in lower case.
type terms struct {
	names []string // the first is the name of the provider or module itself
	prose
	submodules []submoduleTerms
}

// prose is text whose words count.
type prose struct {
	description string
	further     string // the README, and the names of inputs and outputs
}

type submoduleTerms struct {
	path, name string
	prose
}

func newTerms(e *Entry, s *moduledoc.Summary) terms {
	a := e.Address
	t := terms{prose: prose{
		description: strings.ToLower(e.Description + " " + e.Owner),
		further:     s.Words + " " + strings.ToLower(strings.Join(s.Inputs, " ")+" "+strings.Join(s.Outputs, " ")),
	}}
	for _, name := range []string{a.Name, a.Namespace, a.System, string(a.Hostname)} {
		if name != "" {
			t.names = append(t.names, strings.ToLower(name))
		}
	}
	for _, sub := range s.Submodules {
		t.submodules = append(t.submodules, submoduleTerms{
			path: sub.Path, name: strings.ToLower(strings.TrimPrefix(sub.Path, "modules/")),
			prose: prose{strings.ToLower(sub.Description), strings.ToLower(strings.Join(sub.Inputs, " "))},
		})
	}
	return t
}

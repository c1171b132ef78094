package pages

import (
	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/snippet"
)

// A modulePage is a tab of the page of a module, a submodule or an example.
type modulePage struct {
	page
	heading
	sidebar

	// Tab selects one of the following fields, by its name in the URL.
	Tab string

	Readme       readme
	Inputs       inputs
	Outputs      []output
	Resources    []resourceGroup
	Dependencies dependencies
	UsedBy       usedBy
	Submodules   []part
	Examples     []part
	Versions     []versionGroup
	Changes      comparison

	// Problems are the parts of the module that could not be read.
	Problems []unreadPart
}

// An unreadPart is a part of a module that could not be read.
type unreadPart struct {
	At   link // the file and the line
	Text string
}

// The tabs of a module's page, by their names in URLs.
const (
	tabReadme       = "readme"
	tabInputs       = "inputs"
	tabOutputs      = "outputs"
	tabResources    = "resources"
	tabDependencies = "dependencies"
	tabUsedBy       = "used-by"
	tabSubmodules   = "submodules"
	tabExamples     = "examples"
	tabVersions     = "versions"
	tabChanges      = "changes"
)

// A readme is the README of a module.
type readme struct {
	Content   prose
	Name      string // the name of the file
	Truncated bool   // only its beginning is shown
}

// inputs are the variables of a module.
type inputs struct {
	Required, Optional []input
}

// An input is a variable of the module.
type input struct {
	Name        string
	Description prose
	Deprecated  prose // the author's message
	Type        snippet.Value
	Default     snippet.Value // empty: the input is required

	Required, Sensitive, Ephemeral, NotNull bool

	Validations []string // the error messages of its validation rules

	At link // its file and line
}

// An output is a value that a module returns.
type output struct {
	Name                    string
	Description, Deprecated prose
	Sensitive, Ephemeral    bool

	At link // its file and line
}

// inputs arranges the variables of the module: the required ones first, both in the order of the
// author. Each description is passed through render.
func (m *moduleView) inputs(render func(string) prose) (all inputs) {
	for i := range m.shown.Variables {
		v := &m.shown.Variables[i]
		in := input{
			Name: v.Name, Description: render(v.Description), Deprecated: render(v.Deprecated), Type: snippet.NewType(v.Type),
			Required: v.Required(), Sensitive: v.Sensitive, Ephemeral: v.Ephemeral, NotNull: !v.Nullable,
			Validations: v.Validations, At: m.line(v.At),
		}
		if in.Required {
			all.Required = append(all.Required, in)
			continue
		}
		in.Default = snippet.NewDefault(v.Default)
		all.Optional = append(all.Optional, in)
	}
	return all
}

func (m *moduleView) outputs(render func(string) prose) []output {
	all := make([]output, len(m.shown.Outputs))
	for i, o := range m.shown.Outputs {
		all[i] = output{
			Name: o.Name, Description: render(o.Description), Deprecated: render(o.Deprecated),
			Sensitive: o.Sensitive, Ephemeral: o.Ephemeral, At: m.line(o.At),
		}
	}
	return all
}

// A resourceGroup has the resources of one kind.
type resourceGroup struct {
	Title string
	Count int
	Types []resourceType
}

// A resourceType has the names of the resources of one type.
type resourceType struct {
	Type  string
	URL   string // of its documentation; empty if there is none here
	Names []link
}

// resources groups the resources of the module by kind, then by type, in the order in which the types
// first appear.
func (m *moduleView) resources() (groups []resourceGroup) {
	docs := m.documented()
	for _, kind := range []struct {
		mode  moduledoc.Mode
		title string
	}{{moduledoc.Managed, "Resources"}, {moduledoc.Data, "Data sources"}, {moduledoc.Ephemeral, "Ephemeral resources"}} {
		g := resourceGroup{Title: kind.title}
		at := make(map[string]int)
		for _, r := range m.shown.Resources {
			if r.Mode != kind.mode {
				continue
			}
			i, known := at[r.Type]
			if !known {
				i = len(g.Types)
				at[r.Type] = i
				g.Types = append(g.Types, resourceType{Type: r.Type, URL: docs(&r)})
			}
			g.Types[i].Names = append(g.Types[i].Names, link{r.Name, m.line(r.At).URL})
			g.Count++
		}
		if g.Count > 0 {
			groups = append(groups, g)
		}
	}
	return groups
}

// dependencies are the requirements of a module.
type dependencies struct {
	Terraform string // constraints on the version of the client
	Providers []dependency
	Modules   []dependency
}

// A dependency is a provider or module that a module uses.
type dependency struct {
	Name    string // the name in the module
	Source  link
	Version string // the constraint; empty: any
	Local   bool   // it is in the same package, and has no version of its own
}

// A part is a submodule or an example of a module.
type part struct {
	Name, URL       string
	Description     string
	Inputs, Outputs int
	Resources       int
}

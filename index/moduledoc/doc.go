// Package moduledoc reads what a Terraform or OpenTofu module says about itself: its
// variables, outputs, resources, module calls, required providers, and README; for
// the module at the root of a package, its submodules in modules/ and its examples
// in examples/.
//
// It is tolerant. Parts that can be parsed are returned, and parts that cannot be are in the
// module's Problems: pages show both. Packages are written by anyone, so everything is
// bounded: a hostile package costs no more time and memory than a large one, and parts
// beyond a limit are left out, which a Problem says.
package moduledoc

import "strconv"

// A Package describes a module package.
type Package struct {
	// Root is the module at the root of the package, or in the only folder there.
	Root Module

	// Submodules are the modules in modules/, and Examples the modules in examples/, ordered
	// by path.
	Submodules, Examples []Module

	// Refused are the files that clients cannot parse, so that they refuse the module: the
	// first error of each file, by path.
	Refused []Problem

	// License is the SPDX identifier of the licence; empty if no file is recognised as a
	// licence.
	License string
}

// Module returns the module at a path in the package, or nil if there is none. The root has
// an empty path.
func (p *Package) Module(path string) *Module {
	if path == "" {
		return &p.Root
	}
	for _, modules := range [][]Module{p.Submodules, p.Examples} {
		for i := range modules {
			if modules[i].Path == path {
				return &modules[i]
			}
		}
	}
	return nil
}

// A Module is a folder of a package with configuration in it.
type Module struct {
	// Path in the package, with slashes: empty for the root, "modules/subnets",
	// "examples/complete".
	Path string

	Readme Readme

	// Variables, Outputs, Calls and Resources are in the order in which the files have them.
	// Files are ordered by name, and Resources by their Mode first.
	Variables []Variable
	Outputs   []Output
	Calls     []Call
	Resources []Resource

	// Providers are the required providers by local name, and providers that are only used.
	Providers []Provider

	// RequiredVersion are the constraints on the client's version, joined by commas.
	RequiredVersion string

	// Problems are the parts that could not be read.
	Problems []Problem
}

// A Position is the place of a block in a package. The file is empty if it is not known.
type Position struct {
	File string // in the package
	Line int
}

// A Readme is the text of a README.
type Readme struct {
	Name    string // of the file; empty if there is none
	Content string // Markdown, valid UTF-8

	// Truncated: the file is longer, and Content is its beginning.
	Truncated bool
}

// A Variable is an input of a module.
type Variable struct {
	Name string

	// Type as written, without the indentation of its first line; empty if the variable has
	// none.
	Type string

	// Default is the value as JSON if it is a literal, otherwise as written. Empty: there is
	// no default.
	Default string

	Description string
	Deprecated  string // the message, if the author deprecates it

	Sensitive, Ephemeral bool

	// Nullable: the variable accepts null. It is true unless the module says otherwise.
	Nullable bool

	// Validations are the messages of its validation rules.
	Validations []string

	At Position
}

// Required reports whether callers must set the variable.
func (v *Variable) Required() bool { return v.Default == "" }

// An Output is a value that a module returns.
type Output struct {
	Name, Description, Deprecated string
	Sensitive, Ephemeral          bool

	At Position
}

// A Call is a module block.
type Call struct {
	Name, Source string
	Version      string // the constraint; empty if there is none
}

// A Resource is a resource, data source or ephemeral resource.
type Resource struct {
	Mode Mode
	Type string // aws_vpc
	Name string

	// Provider is the local name of its provider.
	Provider string

	At Position
}

// Mode is the kind of a Resource.
type Mode string

// The kinds of resources, by the names of their blocks.
const (
	Managed   Mode = "resource"
	Data      Mode = "data"
	Ephemeral Mode = "ephemeral"
)

// A Provider is a provider that a module requires.
type Provider struct {
	Name    string // its local name
	Source  string // as written, or as clients derive it from the name
	Version string // the constraint; empty if there is none

	// Aliases are further configurations of the provider, which callers have to pass, in order
	// and with commas: "aws.peer, aws.west".
	Aliases string
}

// A Problem is a part of a module that could not be read.
type Problem struct {
	File string // in the package
	Line int    // zero if it is about the whole file
	Text string // one sentence
}

// Place returns FILE:LINE, or FILE.
func (p Problem) Place() string {
	if p.Line == 0 {
		return p.File
	}
	return p.File + ":" + strconv.Itoa(p.Line)
}

// A Summary is the short form of a Package, for lists and search. It is small, since it is
// kept in memory for every version of every module.
type Summary struct {
	// Description is the first paragraph of the README as plain text, at most 300
	// bytes.
	Description string

	// Inputs and Outputs are the names of the root module's inputs and outputs, in order. If
	// there are very many, only the first names are kept.
	Inputs, Outputs []string

	// Submodules are the submodules whose names are not hidden, by path.
	Submodules []SubmoduleSummary

	Uses // by the root module

	// Resources and Examples are numbers.
	Resources, Examples int

	// Refused are the first of the Package's Refused, and RefusedTotal is the number of all.
	Refused      []Problem
	RefusedTotal int

	// Words are the words of the README for search, in lower case, each once, separated by
	// spaces: the first of them, up to a limit.
	Words string
}

// A SubmoduleSummary is the short form of a submodule.
type SubmoduleSummary struct {
	Path, Description string
	Inputs            []string
	Uses
}

// Uses names the modules and providers that a module uses. Of very many, the first are kept.
type Uses struct {
	// Types are the types of its resources, each once, as expressions name them: "aws_vpc",
	// "data.aws_ami", "ephemeral.aws_secret".
	Types []string

	// Providers are the providers it requires, and Calls the modules of other packages that
	// it calls.
	Providers, Calls []Use
}

// A Use is the use of a provider or module.
type Use struct {
	Source  string // as written, or as clients derive it
	Version string // the constraint; empty if there is none
}

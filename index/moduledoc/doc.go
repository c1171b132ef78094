// Package moduledoc reads what a Terraform or OpenTofu module says about itself: its
// variables, outputs, resources, module calls, required providers, and README; for
// the module at the root of a package, its submodules in modules/ and its examples
// in examples/.
//
// It is tolerant. What can be parsed is returned, and what cannot be is in the
// module's Problems: pages show both. Packages are written by anyone, so that
// everything is bounded: a hostile package costs no more time and memory than a
// large one, and what is beyond a bound is left out and said to be.
package moduledoc

import "strconv"

// A Package is a module package with all that is in it.
type Package struct {
	// Root is the module at the root of the package, or in its one folder there.
	Root Module

	// Submodules are the modules in modules/, and Examples those in examples/,
	// ordered by path.
	Submodules, Examples []Module

	// Refused are the files that clients cannot parse, for which they refuse the module:
	// the first error of each, by path.
	Refused []Problem

	// License is the SPDX identifier of the licence, empty if there is no file that
	// is recognised as one.
	License string
}

// Module returns the module at a path in the package: the root for an empty path,
// nil if there is none.
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

// A Module is one folder of a package with configuration in it.
type Module struct {
	// Path in the package, with slashes: empty for the root, "modules/subnets",
	// "examples/complete".
	Path string

	Readme Readme

	// Variables, Outputs, Calls and Resources are in the order in which the files
	// have them, files by name; Resources by their Mode first.
	Variables []Variable
	Outputs   []Output
	Calls     []Call
	Resources []Resource

	// Providers are the required ones by local name, also those that are only used.
	Providers []Provider

	// RequiredVersion are the constraints on the client's version, joined by commas.
	RequiredVersion string

	// Problems are what could not be read.
	Problems []Problem
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

	// Type as it is written, with the indentation of its first line removed; empty
	// if there is none.
	Type string

	// Default is the value as JSON if it is a literal, otherwise as it is written.
	// Empty: there is no default.
	Default string

	Description string
	Deprecated  string // the message, if the author deprecates it

	Sensitive, Ephemeral bool

	// Nullable: the variable accepts null. It is true unless the author says
	// otherwise.
	Nullable bool

	// Validations are the messages of its validation rules.
	Validations []string
}

// Required reports whether callers must set the variable.
func (v *Variable) Required() bool { return v.Default == "" }

// An Output is a value that a module returns.
type Output struct {
	Name, Description, Deprecated string
	Sensitive, Ephemeral          bool
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
}

// Mode is the kind of a Resource.
type Mode string

// The kinds of resources, as their blocks are called.
const (
	Managed   Mode = "resource"
	Data      Mode = "data"
	Ephemeral Mode = "ephemeral"
)

// A Provider is one that a module requires.
type Provider struct {
	Name    string // its local name
	Source  string // as it is written, or what clients derive from the name
	Version string // the constraint; empty if there is none
}

// A Problem is a part of a module that could not be read.
type Problem struct {
	File string // in the package
	Line int    // zero if it is about the whole file
	Text string // one sentence
}

// Place is FILE:LINE, or FILE.
func (p Problem) Place() string {
	if p.Line == 0 {
		return p.File
	}
	return p.File + ":" + strconv.Itoa(p.Line)
}

// A Summary is the short form of a Package: what lists and search need. It is kept
// in memory for every version of every module, so that it is small.
type Summary struct {
	// Description is the first paragraph of the README as plain text, at most 300
	// bytes.
	Description string

	// Inputs and Outputs are the names of the root module's, in order: of very many
	// only the first.
	Inputs, Outputs []string

	// Submodules are those with a name that is not hidden, by path.
	Submodules []SubmoduleSummary

	// Resources and Examples are how many there are.
	Resources, Examples int

	// Refused are the Package's, the first of them, and RefusedTotal how many there are.
	Refused      []Problem
	RefusedTotal int

	// Words are the words of the README for search, in lower case, each once,
	// separated by spaces: the first of them, up to a bound.
	Words string
}

// A SubmoduleSummary is the short form of a submodule.
type SubmoduleSummary struct {
	Path, Description string
	Inputs            []string
}

package catalog

import (
	"iter"
	"slices"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/content"
	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
)

// A text has what a search reads of an entry.
type text struct {
	names       []string // the first is the name of the provider or module itself
	version     string
	repository  string // the name of the repository
	description string // and the owner
	further     string // the words of the README
	codes       iter.Seq[code]
	submodules  []submoduleText
	pages       []content.DocTitle
	typ         string // of a provider
}

// repositoryOf returns the name of a repository in its URL.
func repositoryOf(source string) string {
	return strings.TrimSuffix(source[strings.LastIndexByte(source, '/')+1:], ".git")
}

type submoduleText struct {
	path, name, description string
	codes                   iter.Seq[code]
}

// A code is a name in the configuration of a module.
type code struct {
	kind ReasonKind
	text string
}

// names returns the names of the address, the name of the provider or module itself first.
func (e *Entry) names() []string {
	a := e.Address
	return slices.DeleteFunc([]string{a.Name, a.Namespace, a.System, string(a.Hostname)}, func(name string) bool { return name == "" })
}

func (e *Entry) text() text {
	t := text{names: e.names(), version: e.Version, repository: repositoryOf(e.Source), description: strings.TrimSpace(e.Description + " " + e.Owner + " " + e.Source)}
	var s moduledoc.Summary
	if e.summary == nil {
		t.pages, t.typ = e.pages.All(), e.Address.Name
	} else {
		s = e.summary()
	}
	t.further = s.Words
	t.codes = codesOf(&s.Uses, s.Inputs, s.Outputs)
	for i := range s.Submodules {
		sub := &s.Submodules[i]
		t.submodules = append(t.submodules, submoduleText{
			path: sub.Path, name: strings.TrimPrefix(sub.Path, "modules/"), description: sub.Description, codes: codesOf(&sub.Uses, sub.Inputs, nil),
		})
	}
	return t
}

// codesOf yields the names in a configuration, the most telling first. A list of them would be garbage
// of each result.
func codesOf(u *moduledoc.Uses, inputs, outputs []string) iter.Seq[code] {
	return func(yield func(code) bool) {
		for _, typ := range u.Types {
			kind := Creates
			if mode, name, ok := strings.Cut(typ, "."); ok {
				if typ, kind = name, Reads; mode == string(moduledoc.Ephemeral) {
					kind = Opens
				}
			}
			if !yield(code{kind, typ}) {
				return
			}
		}
		for _, p := range u.Providers {
			if !yield(code{Requires, strings.TrimPrefix(p.Source, string(address.TerraformHost)+"/")}) {
				return
			}
		}
		for _, name := range inputs {
			if !yield(code{Input, name}) {
				return
			}
		}
		for _, name := range outputs {
			if !yield(code{Output, name}) {
				return
			}
		}
	}
}

// fullSource returns the source of a provider with its hostname.
func fullSource(source string) string {
	if strings.Count(source, "/") == 1 {
		return string(address.TerraformHost) + "/" + source
	}
	return source
}

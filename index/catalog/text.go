package catalog

import (
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/index/content"
	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
)

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
		t.pages, t.typ = e.pages.All(), a.Name
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

// fullSource returns the source of a provider with its hostname.
func fullSource(source string) string {
	if strings.Count(source, "/") == 1 {
		return PublicRegistry + "/" + source
	}
	return source
}

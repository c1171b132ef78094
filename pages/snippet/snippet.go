// Package snippet makes configuration to paste: calls of modules, requirements of providers,
// blocks of lock files, the configuration of clients, and examples with addresses in
// place of paths.
package snippet

import (
	"cmp"
	"fmt"
	"html/template"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	version "github.com/hashicorp/go-version"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/markdown"
)

// A Code is source text that is shown as it is and can be copied.
type Code struct {
	Language string // a language that markdown.Highlight knows; empty: it is not highlighted
	Text     string
}

// HTML returns the text with its tokens in spans.
func (c Code) HTML() template.HTML {
	var b strings.Builder
	markdown.Highlight(&b, c.Language, c.Text)
	return template.HTML(strings.TrimSuffix(b.String(), "\n"))
}

// Module returns the configuration that calls a module, with a line for each
// required input. Its value has the right type, and is there to be replaced. A module with
// aliases of providers gets all its providers, since clients then pass none by themselves.
//
// The source is the source of the module without a path in it, such as
// "registry.example.com/acme/vpc/aws".
func Module(source, constraint string, m *moduledoc.Module, name string) Code {
	if m.Path != "" {
		source += "//" + m.Path
		name = path.Base(m.Path)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "module %s {\n  source  = %s\n  version = %s\n", literal(blockName(name)), literal(source), literal(constraint))
	b.WriteString(providersArgument(m))
	var required []*moduledoc.Variable
	width := 0
	for i := range m.Variables {
		// Only broken modules have names that are no identifiers or are reserved.
		if v := &m.Variables[i]; v.Required() && hclsyntax.ValidIdentifier(v.Name) && !slices.Contains(reserved, v.Name) {
			required = append(required, v)
			width = max(width, utf8.RuneCountInString(v.Name))
		}
	}
	if len(required) > 0 {
		b.WriteByte('\n')
	}
	for _, v := range required {
		fmt.Fprintf(&b, "  %-*s = %s\n", width, v.Name, placeholder(v.Type))
	}
	b.WriteString("}")
	return Code{"terraform", b.String()}
}

// providersArgument returns the argument that passes providers to a module; empty if it needs none.
func providersArgument(m *moduledoc.Module) string {
	var names []string
	needed, width := false, 0
	for _, p := range m.Providers {
		of := []string{p.Name}
		if p.Aliases != "" {
			needed = true
			of = append(of, strings.Split(p.Aliases, ", ")...)
		}
		for _, name := range of {
			names = append(names, name)
			width = max(width, utf8.RuneCountInString(name))
		}
	}
	if !needed {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n  providers = {\n")
	for _, name := range names {
		fmt.Fprintf(&b, "    %-*s = %s\n", width, name, name)
	}
	b.WriteString("  }\n")
	return b.String()
}

// reserved are the arguments of a call that are no inputs.
var reserved = []string{"source", "version", "providers", "count", "for_each", "lifecycle", "depends_on", "locals"}

// Provider returns the configuration that requires a provider.
func Provider(source, name, constraint string) Code {
	if !hclsyntax.ValidIdentifier(name) {
		name = "provider-" + name // clients refuse an underscore
	}
	return Code{"terraform", fmt.Sprintf("terraform {\n  required_providers {\n    %s = {\n      source  = %s\n      version = %s\n    }\n  }\n}",
		name, literal(source), literal(constraint))}
}

// LockBlock returns the block of a .terraform.lock.hcl that locks a release with hashes of its
// packages, as clients write it.
func LockBlock(a address.Address, version string, hashes []string) Code {
	hashes = slices.Sorted(slices.Values(hashes)) // all of h1: before all of zh:
	var b strings.Builder
	b.WriteString("provider " + literal(a.String()) + " {\n  version = " + literal(version) + "\n  hashes = [\n")
	for _, h := range slices.Compact(hashes) {
		b.WriteString("    " + literal(h) + ",\n")
	}
	b.WriteString("  ]\n}")
	return Code{"terraform", b.String()}
}

// ConstraintOn returns the constraint for the page of a version: one that allows later
// compatible versions, or, if the latest version is another one, exactly the version that
// is being read. It is also exactly this version if clients would select another one of the
// offered versions now, which the registry does not call the latest since it is deprecated.
func ConstraintOn(text, latest string, offered []string) string {
	if text != latest {
		return text
	}
	loose := constraintFor(text)
	allowed, err := version.NewConstraint(loose)
	this, parseErr := version.NewVersion(text)
	if err != nil || parseErr != nil {
		return text
	}
	for _, other := range offered {
		if v, err := version.NewVersion(other); err == nil && v.Prerelease() == "" && v.GreaterThan(this) && allowed.Check(v) {
			return text
		}
	}
	return loose
}

// constraintFor returns the constraint to recommend to users of a version. It allows
// later compatible versions. A prerelease is selected only by an exact constraint.
func constraintFor(text string) string {
	v, err := version.NewVersion(text)
	if err != nil || v.Prerelease() != "" {
		return text
	}
	segments := v.Segments64()
	if segments[0] == 0 {
		return "~> " + v.Core().String()
	}
	return fmt.Sprintf("~> %d.%d", segments[0], segments[1])
}

// blockName makes an identifier of a module's name, which may begin with a digit.
func blockName(name string) string {
	var b strings.Builder
	for _, r := range name {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r == '_', r >= '0' && r <= '9', r == '-':
			b.WriteRune(r)
		default:
			b.WriteByte('_')
		}
	}
	if s := b.String(); s != "" && (s[0] < '0' || s[0] > '9') && s[0] != '-' {
		return s
	}
	return "module_" + b.String()
}

// literal returns a string of the configuration language.
func literal(s string) string {
	return string(hclwrite.TokensForValue(cty.StringVal(strings.ToValidUTF8(s, "\uFFFD"))).Bytes())
}

// placeholder returns a value of a type, which is to be replaced, and where that does not
// tell the type, a comment with it.
func placeholder(typ string) string {
	words := strings.Fields(typ)
	constructor, _, _ := strings.Cut(strings.Join(words, ""), "(")
	value := "null"
	switch constructor {
	case "string":
		return `"…"`
	case "number":
		return "0"
	case "bool":
		return "false"
	case "list", "set", "tuple":
		value = "[]"
	case "map", "object":
		value = "{}"
	}
	return value + " # " + typePreview(cmp.Or(strings.Join(words, " "), "any"))
}

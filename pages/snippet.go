package pages

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	version "github.com/hashicorp/go-version"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"

	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
)

// moduleSnippet returns the configuration that calls a module. It can be applied
// unchanged, unless the module has required inputs. Comments name these.
//
// The source is the source of the module without a path in it, such as
// "registry.example.com/acme/vpc/aws".
func moduleSnippet(source, versionText string, m *moduledoc.Module, name string) code {
	if m.Path != "" {
		source += "//" + m.Path
		name = path.Base(m.Path)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "module %s {\n  source  = %s\n  version = %s\n", literal(blockName(name)), literal(source), literal(constraintFor(versionText)))
	var required []*moduledoc.Variable
	width := 0
	for i := range m.Variables {
		// Only broken modules have names that are not identifiers.
		if v := &m.Variables[i]; v.Required() && hclsyntax.ValidIdentifier(v.Name) {
			required = append(required, v)
			width = max(width, utf8.RuneCountInString(v.Name))
		}
	}
	if len(required) > 0 {
		b.WriteString("\n  # required:\n")
	}
	for _, v := range required {
		fmt.Fprintf(&b, "  # %-*s = %s\n", width, v.Name, placeholder(v.Type))
	}
	b.WriteString("}")
	return code{"terraform", b.String()}
}

// providerSnippet returns the configuration that requires a provider.
func providerSnippet(source, name, versionText string) code {
	if !hclsyntax.ValidIdentifier(name) {
		name = "provider_" + name
	}
	return code{"terraform", fmt.Sprintf("terraform {\n  required_providers {\n    %s = {\n      source  = %s\n      version = %s\n    }\n  }\n}",
		name, literal(source), literal(constraintFor(versionText)))}
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
		return "~> " + joinSegments(segments)
	}
	return "~> " + joinSegments(segments[:2])
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

// maxPlaceholder is the length of the longest type in a comment.
const maxPlaceholder = 40

// placeholder returns a text on one line for a value of a type.
func placeholder(typ string) string {
	typ = strings.Join(strings.Fields(typ), " ")
	if typ == "" {
		typ = "any"
	}
	if len(typ) > maxPlaceholder {
		before, _, _ := strings.Cut(typ, "(")
		typ = before + "(…)"
		if len(before) > maxPlaceholder {
			typ = "…"
		}
	}
	return typ
}

func joinSegments(segments []int64) string {
	words := make([]string, len(segments))
	for i, n := range segments {
		words[i] = strconv.FormatInt(n, 10)
	}
	return strings.Join(words, ".")
}

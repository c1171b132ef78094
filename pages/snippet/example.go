package snippet

import (
	"path"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
)

// An example calls the module that it is an example of by a path, such as "../..". Pages
// show the address in the registry in its place, so that the example can be pasted.

// An Adapted is a file with addresses in place of paths.
type Adapted struct {
	Text string

	// Sources are the paths that were replaced, by the index of their line in Text. Added are
	// the lines that the file does not have, which set the version.
	Sources map[int]string
	Added   map[int]bool
}

// Example replaces the paths in a file of an example that lead out of it to other modules of
// the package. address is the address of the package, which gets the constraint beside it.
func Example(file, text, address, constraint string) Adapted {
	example := ExampleOf(file)
	if example == "" || !IsTerraform(file) {
		return Adapted{Text: text}
	}
	return adaptSources(text, constraint, func(source string) string {
		if !moduledoc.IsLocal(source) && source != ".." {
			return ""
		}
		to := path.Join(path.Dir(file), source)
		switch {
		case to == ".":
			return address
		case to == "..", strings.HasPrefix(to, "../"), to == example, strings.HasPrefix(to, example+"/"):
			return ""
		}
		return address + "//" + to
	})
}

// adaptSources replaces the sources of the module calls of a file. address returns the
// address for a source, or nothing for a source that stays. Each has the version beside it.
func adaptSources(text, version string, address func(source string) string) Adapted {
	a := Adapted{Sources: make(map[int]string), Added: make(map[int]bool)}
	tokens, _ := hclsyntax.LexConfig([]byte(text), "", hcl.InitialPos)
	var b strings.Builder
	written, depth, inCall := 0, 0, false
	for i, t := range tokens {
		switch t.Type {
		case hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenOParen, hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl:
			depth++
		case hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen, hclsyntax.TokenTemplateSeqEnd:
			depth = max(depth-1, 0)
		case hclsyntax.TokenIdent:
			if !beginsItem(tokens, i) {
				continue
			}
			if depth == 0 {
				inCall = string(t.Bytes) == "module"
			}
			if depth != 1 || !inCall || string(t.Bytes) != "source" {
				continue
			}
			source, end := quotedValue(tokens[i+1:])
			to := ""
			if end > 0 {
				to = address(source)
			}
			start, stop := t.Range.End.Byte, 0
			if to == "" || start < written {
				continue
			}
			last := tokens[i+end]
			stop = last.Range.End.Byte
			space := strings.Repeat(" ", max(2, tokens[i+1].Range.Start.Byte-start))
			b.WriteString(text[written:start] + space + "= " + literal(to))
			written = stop
			at := strings.Count(b.String(), "\n")
			a.Sources[at] = source
			if kindAfter(tokens, i+end) == hclsyntax.TokenNewline {
				rest, _, _ := strings.Cut(text[stop:], "\n") // a comment, and the break itself if the system is Windows
				indent := text[strings.LastIndexByte(text[:t.Range.Start.Byte], '\n')+1 : t.Range.Start.Byte]
				b.WriteString(rest + "\n" + indent + "version" + space[1:] + "= " + literal(version))
				if strings.HasSuffix(rest, "\r") {
					b.WriteByte('\r')
				}
				written += len(rest)
				a.Added[at+1] = true
			}
		}
	}
	b.WriteString(text[written:])
	a.Text = b.String()
	return a
}

// beginsItem reports whether a token is the first of an argument or block.
func beginsItem(tokens hclsyntax.Tokens, i int) bool {
	if i == 0 {
		return true
	}
	before := tokens[i-1]
	return before.Type == hclsyntax.TokenNewline || before.Type == hclsyntax.TokenOBrace ||
		before.Type == hclsyntax.TokenComment && strings.HasSuffix(string(before.Bytes), "\n")
}

// quotedValue returns the string in "= STRING", and how many tokens that has. The string has
// neither escapes nor expressions in it.
func quotedValue(tokens hclsyntax.Tokens) (value string, length int) {
	kinds := []hclsyntax.TokenType{hclsyntax.TokenEqual, hclsyntax.TokenOQuote, hclsyntax.TokenQuotedLit, hclsyntax.TokenCQuote}
	for i, kind := range kinds {
		if i >= len(tokens) || tokens[i].Type != kind {
			return "", 0
		}
	}
	value = string(tokens[2].Bytes)
	if strings.ContainsAny(value, "\\$%") {
		return "", 0
	}
	return value, len(kinds)
}

// kindAfter returns the type of the token after one, where a comment at the end of its line
// is that end.
func kindAfter(tokens hclsyntax.Tokens, i int) hclsyntax.TokenType {
	if i+1 >= len(tokens) {
		return hclsyntax.TokenEOF
	}
	after := tokens[i+1]
	if after.Type == hclsyntax.TokenComment && strings.HasSuffix(string(after.Bytes), "\n") {
		return hclsyntax.TokenNewline
	}
	return after.Type
}

// ExampleOf returns the folder of the example that a file belongs to: examples/NAME at the
// root of the package or of a module in it. It is empty for other files.
func ExampleOf(file string) string {
	segments := strings.Split(path.Dir(file), "/")
	at := slices.Index(segments, "examples")
	if at < 0 || at+1 >= len(segments) {
		return ""
	}
	return path.Join(segments[:at+2]...)
}

// IsTerraform reports whether a file is configuration in the native syntax.
func IsTerraform(file string) bool {
	return strings.HasSuffix(file, ".tf") || strings.HasSuffix(file, ".tofu")
}

package clientconfig

import (
	"bytes"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	hcljson "github.com/hashicorp/hcl/v2/json"
)

// Parse parses a CLI configuration. As for clients, it is JSON if it begins as JSON does, whatever its
// name is.
//
// Clients read an older version of HCL than this package. In that, blocks and arguments may share a
// line, and names may have quotes, as in the examples of dev_overrides in the clients' manual. Parse
// leaves out the content of dev_overrides.
func Parse(content []byte) *File {
	if bytes.HasPrefix(bytes.TrimSpace(content), []byte("{")) {
		return newFile(hcljson.Parse(content, ""))
	}
	content = withoutOverrides(content)
	file := newFile(hclsyntax.ParseConfig(content, "", hcl.InitialPos))
	if !file.diagnostics.HasErrors() {
		return file
	}
	text, lines := withBreaks(content)
	again := newFile(hclsyntax.ParseConfig(text, "", hcl.InitialPos))
	if again.diagnostics.HasErrors() {
		return file
	}
	again.lines = lines
	return again
}

func newFile(parsed *hcl.File, diagnostics hcl.Diagnostics) *File {
	f := &File{body: hcl.EmptyBody(), diagnostics: diagnostics}
	if parsed != nil {
		f.body = parsed.Body
	}
	return f
}

// withoutOverrides returns the content with spaces for all between the braces of dev_overrides,
// so that the lines of all else stay the same.
func withoutOverrides(content []byte) []byte {
	tokens, _ := hclsyntax.LexConfig(content, "", hcl.InitialPos)
	content = bytes.Clone(content)
	begin, depth := 0, 0 // of the braces that are open
	for i, t := range tokens {
		switch {
		case t.Type == hclsyntax.TokenOBrace && depth > 0:
			depth++
		case t.Type == hclsyntax.TokenOBrace && i > 0 && string(tokens[i-1].Bytes) == "dev_overrides":
			begin, depth = t.Range.End.Byte, 1
		case t.Type == hclsyntax.TokenCBrace && depth > 0:
			if depth--; depth > 0 {
				continue
			}
			for j := begin; j < t.Range.Start.Byte; j++ {
				if content[j] != '\n' {
					content[j] = ' '
				}
			}
		}
	}
	return content
}

// withBreaks returns the content with line breaks where the newer HCL needs them and the older one
// does not: within braces, and after each argument and block. For each line of the text, lines has
// the line of the content.
func withBreaks(content []byte) (text []byte, lines []int) {
	tokens, _ := hclsyntax.LexConfig(content, "", hcl.InitialPos)
	line, written := 1, 0
	lines = []int{line}
	write := func(until int) {
		for _, c := range content[written:until] {
			if text = append(text, c); c == '\n' {
				line++
				lines = append(lines, line)
			}
		}
		written = until
	}
	var open []hclsyntax.TokenType // the brackets around the token
	isValue := false               // whether the token comes after the equals sign of an argument
	ended := false                 // whether an argument or block ended with the token before
	before := hclsyntax.TokenNewline
	inBraces := func() bool { return len(open) == 0 || open[len(open)-1] == hclsyntax.TokenOBrace }
	for _, t := range tokens {
		write(t.Range.Start.Byte)
		begins := t.Type == hclsyntax.TokenIdent || t.Type == hclsyntax.TokenOQuote
		comma := t.Type == hclsyntax.TokenComma && inBraces()
		if comma || inBraces() && (before == hclsyntax.TokenOBrace || t.Type == hclsyntax.TokenCBrace || ended && begins) {
			text, lines = append(text, '\n'), append(lines, line)
			isValue = false
		}
		if comma {
			written = t.Range.End.Byte
		}
		write(t.Range.End.Byte)
		ended = false
		switch t.Type {
		case hclsyntax.TokenNewline, hclsyntax.TokenComment:
			isValue = isValue && !inBraces()
		case hclsyntax.TokenEqual:
			isValue = true
		case hclsyntax.TokenOBrace:
			open, isValue = append(open, t.Type), false
		case hclsyntax.TokenOBrack, hclsyntax.TokenOParen, hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl:
			open = append(open, t.Type)
		case hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen, hclsyntax.TokenTemplateSeqEnd:
			open = open[:max(0, len(open)-1)]
			ended = inBraces() && t.Type != hclsyntax.TokenTemplateSeqEnd
		case hclsyntax.TokenCQuote, hclsyntax.TokenIdent, hclsyntax.TokenNumberLit:
			ended = isValue
		}
		before = t.Type
	}
	return text, lines
}

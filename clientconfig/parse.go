package clientconfig

import (
	"bytes"
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	hcljson "github.com/hashicorp/hcl/v2/json"
	"github.com/zclconf/go-cty/cty"
)

// A File is a CLI configuration. Errors about it quote nothing of it.
type File struct {
	body        hcl.Body
	diagnostics hcl.Diagnostics // of parsing
}

// Parse parses a CLI configuration. As for clients, it is JSON if it begins as JSON does, whatever its
// name is.
//
// Clients read an older version of HCL than this package. In that, blocks and arguments may share a
// line, and names may have quotes, as in the examples of dev_overrides in the clients' manual. Parse
// leaves out the content of dev_overrides.
func Parse(content []byte) *File {
	file, diagnostics := parse(content)
	if file == nil {
		return &File{hcl.EmptyBody(), diagnostics}
	}
	return &File{file.Body, diagnostics}
}

// blocks returns the blocks of some types.
func (f *File) blocks(types ...hcl.BlockHeaderSchema) (hcl.Blocks, hcl.Diagnostics) {
	content, _, diagnostics := f.body.PartialContent(&hcl.BodySchema{Blocks: types})
	return content.Blocks, diagnostics
}

// argument returns an argument of a block; nil if the block does not have it.
func argument(b *hcl.Block, name string) *hcl.Attribute {
	content, _, _ := b.Body.PartialContent(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: name}}})
	return content.Attributes[name]
}

// stringValue returns the value of an argument that is a string.
func stringValue(a *hcl.Attribute) (value string, ok bool) {
	v, bad := a.Expr.Value(nil)
	if bad.HasErrors() || !isString(v) {
		return "", false
	}
	return v.AsString(), true
}

// stringList returns the values of an argument that is a list of strings.
func stringList(a *hcl.Attribute) (values []string, ok bool) {
	v, bad := a.Expr.Value(nil)
	if bad.HasErrors() || !v.IsKnown() || v.IsNull() || !v.CanIterateElements() {
		return nil, false
	}
	for it := v.ElementIterator(); it.Next(); {
		_, element := it.Element()
		if !isString(element) {
			return nil, false
		}
		values = append(values, element.AsString())
	}
	return values, true
}

func isString(v cty.Value) bool { return v.IsKnown() && !v.IsNull() && v.Type() == cty.String }

// unread returns the error of diagnostics; nil if there is none.
func unread(diagnostics hcl.Diagnostics) error {
	for _, d := range diagnostics {
		if d.Severity == hcl.DiagError && d.Subject != nil {
			return unreadAt(*d.Subject)
		}
	}
	return nil
}

func unreadAt(r hcl.Range) error {
	return fmt.Errorf("line %d cannot be read: correct it", r.Start.Line)
}

func parse(content []byte) (*hcl.File, hcl.Diagnostics) {
	if bytes.HasPrefix(bytes.TrimSpace(content), []byte("{")) {
		return hcljson.Parse(content, "")
	}
	content = withoutOverrides(content)
	file, diagnostics := hclsyntax.ParseConfig(content, "", hcl.InitialPos)
	if !diagnostics.HasErrors() {
		return file, diagnostics
	}
	text, lines := withBreaks(content)
	again, further := hclsyntax.ParseConfig(text, "", hcl.InitialPos)
	if further.HasErrors() {
		return file, diagnostics
	}
	// Messages name lines of the content.
	hclsyntax.VisitAll(again.Body.(*hclsyntax.Body), func(node hclsyntax.Node) hcl.Diagnostics {
		switch n := node.(type) {
		case *hclsyntax.Block:
			n.TypeRange.Start.Line = lines[n.TypeRange.Start.Line-1]
			n.OpenBraceRange.Start.Line = lines[n.OpenBraceRange.Start.Line-1]
		case *hclsyntax.Attribute:
			n.SrcRange.Start.Line = lines[n.SrcRange.Start.Line-1]
		}
		return nil
	})
	return again, further
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

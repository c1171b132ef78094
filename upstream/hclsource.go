package upstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	hcljson "github.com/hashicorp/hcl/v2/json"
	"github.com/spf13/afero"
	"github.com/zclconf/go-cty/cty"
)

// maxHCL bounds a file of a configuration. Those written by generators can be
// large.
const maxHCL = 16 << 20

// maxNesting bounds what is open at any one place of a file: brackets, and the
// words of unfinished expressions. HCL's parser calls itself for each, and a
// megabyte of "[" or "!" would overflow the stack, which ends the process.
const maxNesting = 10_000

// maxHeredocs bounds the lines of text in all heredocs of a file, or in one
// template of a JSON file. The parser takes a second for ten thousand lines in
// one, and four for twice that.
const maxHeredocs = 20_000

// readRegular reads a file that is not a directory, a device or a pipe: opening
// the latter would wait for its writer.
func readRegular(fsys afero.Fs, name string, limit int64) ([]byte, error) {
	info, err := fsys.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: it is not a regular file", name)
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(content)) > limit {
		return nil, fmt.Errorf("%s: it is larger than %d bytes, which no such file is", name, limit)
	}
	return content, nil
}

// parseHCL parses a file of the language's native syntax, or of its JSON one if
// the name ends so.
func parseHCL(name string, content []byte) (*hcl.File, error) {
	if strings.HasSuffix(name, ".json") {
		if err := checkJSON(name, content); err != nil {
			return nil, err
		}
		f, diags := hcljson.Parse(content, name)
		return f, located(name, diags)
	}
	return parseNative(name, content)
}

func parseNative(name string, content []byte) (*hcl.File, error) {
	tokens, _ := hclsyntax.LexConfig(content, name, hcl.InitialPos) // the parser tells what is wrong
	if line, why := unparsable(tokens); why != "" {
		return nil, fmt.Errorf("%s:%d: %s", name, line, why)
	}
	f, diags := hclsyntax.ParseConfig(content, name, hcl.InitialPos)
	return f, located(name, diags)
}

// checkJSON refuses what would overflow the stack of HCL's JSON parser, or of
// the one for the templates in its strings. The standard library has a limit of
// its own for the depth of JSON.
func checkJSON(name string, content []byte) error {
	if err := json.Unmarshal(content, new(json.RawMessage)); err != nil {
		var offset int64
		if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
			offset = syntax.Offset
		}
		return fmt.Errorf("%s:%d: %w", name, lineAt(content, offset), err)
	}
	words := json.NewDecoder(bytes.NewReader(content))
	for {
		word, err := words.Token()
		if err != nil {
			return nil // its end: it was valid a moment ago
		}
		if text, ok := word.(string); ok && isTemplate(text) {
			tokens, _ := hclsyntax.LexTemplate([]byte(text), name, hcl.InitialPos)
			if _, why := unparsable(tokens); why != "" {
				return fmt.Errorf("%s:%d: %s", name, lineAt(content, words.InputOffset()), why)
			}
		}
	}
}

func isTemplate(s string) bool { return strings.Contains(s, "${") || strings.Contains(s, "%{") }

func lineAt(content []byte, offset int64) int {
	return 1 + bytes.Count(content[:min(offset, int64(len(content)))], []byte("\n"))
}

// located is the first error of a parser, and where it is.
func located(name string, diags hcl.Diagnostics) error {
	for _, d := range diags {
		if d.Severity != hcl.DiagError {
			continue
		}
		detail := strings.TrimSuffix(strings.Join(strings.Fields(d.Summary+": "+d.Detail), " "), ".")
		if d.Subject == nil {
			return fmt.Errorf("%s: %s", name, detail)
		}
		return fmt.Errorf("%s: %s", position(*d.Subject), detail)
	}
	return nil
}

// position is a place as editors jump to it.
func position(r hcl.Range) string { return fmt.Sprintf("%s:%d", r.Filename, r.Start.Line) }

// A bracket is one that is open, and what was said in it since the last
// separator.
type bracket struct {
	closedBy  hclsyntax.TokenType
	words     int
	separable bool // a new line ends an expression
}

var closedBy = map[hclsyntax.TokenType]hclsyntax.TokenType{
	hclsyntax.TokenOBrace:          hclsyntax.TokenCBrace,
	hclsyntax.TokenOBrack:          hclsyntax.TokenCBrack,
	hclsyntax.TokenOParen:          hclsyntax.TokenCParen,
	hclsyntax.TokenOQuote:          hclsyntax.TokenCQuote,
	hclsyntax.TokenOHeredoc:        hclsyntax.TokenCHeredoc,
	hclsyntax.TokenTemplateInterp:  hclsyntax.TokenTemplateSeqEnd,
	hclsyntax.TokenTemplateControl: hclsyntax.TokenTemplateSeqEnd,
}

// unparsable tells on which line there is more than maxNesting or maxHeredocs.
// It counts too much nesting rather than too little: whatever makes an
// expression deeper is a word, so none is deeper than its words and those
// around it.
func unparsable(tokens hclsyntax.Tokens) (line int, why string) {
	open := []bracket{{separable: true}}
	words := 0 // in all of open
	lines := 0 // of heredocs
	for i, t := range tokens {
		top := &open[len(open)-1]
		switch {
		case t.Type == hclsyntax.TokenQuotedLit:
		case t.Type == hclsyntax.TokenStringLit: // one a line, side by side
			if lines++; lines > maxHeredocs {
				return t.Range.Start.Line, "there is too much text in heredocs up to here: put it in files of its own"
			}
		case t.Type == hclsyntax.TokenComma && len(open) > 1, newline(t) && top.separable:
			words -= top.words
			top.words = 0
		case newline(t) || t.Type == hclsyntax.TokenComment:
		case closedBy[t.Type] != 0:
			top.words++
			words++
			open = append(open, bracket{
				closedBy:  closedBy[t.Type],
				separable: t.Type == hclsyntax.TokenOBrace && !beginsFor(tokens[i+1:]),
			})
		case len(open) > 1 && t.Type == top.closedBy:
			words -= top.words
			open = open[:len(open)-1]
		default:
			top.words++
			words++
		}
		if words > maxNesting {
			return t.Range.Start.Line, "an expression is nested too deeply here"
		}
	}
	return 0, ""
}

// newline also tells the comments that run to the end of their line.
func newline(t hclsyntax.Token) bool {
	return t.Type == hclsyntax.TokenNewline || t.Type == hclsyntax.TokenComment && bytes.HasSuffix(t.Bytes, []byte("\n"))
}

// beginsFor tells a { for … } expression, in which new lines mean nothing.
func beginsFor(tokens hclsyntax.Tokens) bool {
	for _, t := range tokens {
		if !newline(t) && t.Type != hclsyntax.TokenComment {
			return t.Type == hclsyntax.TokenIdent && string(t.Bytes) == "for"
		}
	}
	return false
}

// literal returns a string that is written out. Nothing is evaluated: an
// expression could be one that takes forever.
func literal(expr hcl.Expression, src []byte) (string, bool) {
	if hcljson.IsJSONExpression(expr) {
		if isTemplate(string(expr.Range().SliceBytes(src))) {
			return "", false
		}
	} else if template, ok := expr.(*hclsyntax.TemplateExpr); !ok || !template.IsStringLiteral() {
		return "", false
	}
	v, diags := expr.Value(nil)
	if diags.HasErrors() || v.IsNull() || v.Type() != cty.String {
		return "", false
	}
	return v.AsString(), true
}

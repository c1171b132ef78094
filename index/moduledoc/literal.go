package moduledoc

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// Defaults and descriptions are shown as values if they are literals: strings and heredocs
// without ${}, numbers, true, false, null, and lists and objects of literals. They are read
// from their tokens, in a time that grows with their length, and numbers stay text:
// formatting 1e999999999 would take gigabytes.

// maxNesting is how deep lists and objects may be nested.
const maxNesting = 100

// A literalReader converts tokens of a literal to JSON.
type literalReader struct {
	tokens hclsyntax.Tokens // the tokens that are left
	depth  int
	bytes.Buffer
}

// literal converts all tokens.
func literal(tokens hclsyntax.Tokens) (text string, ok bool) {
	r := literalReader{tokens: tokens}
	if !r.value() {
		return "", false
	}
	r.skip(true)
	return r.String(), len(r.tokens) == 0
}

// skip skips comments, and line breaks that have no meaning.
func (r *literalReader) skip(newlines bool) {
	for len(r.tokens) > 0 {
		t := r.tokens[0].Type
		if t != hclsyntax.TokenComment && !(newlines && t == hclsyntax.TokenNewline) {
			return
		}
		r.tokens = r.tokens[1:]
	}
}

// next takes the next token if it is of one of these types.
func (r *literalReader) next(types ...hclsyntax.TokenType) (t hclsyntax.Token, ok bool) {
	if len(r.tokens) == 0 || !slices.Contains(types, r.tokens[0].Type) {
		return t, false
	}
	t = r.tokens[0]
	r.tokens = r.tokens[1:]
	return t, true
}

// value writes a value, and reports whether it is a literal.
func (r *literalReader) value() bool {
	r.skip(true)
	if len(r.tokens) == 0 {
		return false
	}
	t := r.tokens[0]
	switch t.Type {
	case hclsyntax.TokenOQuote, hclsyntax.TokenOHeredoc:
		content, ok := r.text()
		if ok {
			r.string(content)
		}
		return ok
	case hclsyntax.TokenMinus, hclsyntax.TokenNumberLit:
		return r.number()
	case hclsyntax.TokenIdent:
		r.tokens = r.tokens[1:]
		r.Write(t.Bytes)
		return slices.Contains([]string{"true", "false", "null"}, string(t.Bytes))
	}
	if r.depth++; r.depth > maxNesting {
		return false
	}
	defer func() { r.depth-- }()
	r.tokens = r.tokens[1:]
	switch t.Type {
	case hclsyntax.TokenOParen:
		if !r.value() {
			return false
		}
		r.skip(true)
		_, ok := r.next(hclsyntax.TokenCParen)
		return ok
	case hclsyntax.TokenOBrack:
		return r.list()
	case hclsyntax.TokenOBrace:
		return r.object()
	}
	return false
}

// list writes a list whose bracket has been taken.
func (r *literalReader) list() bool {
	r.WriteByte('[')
	for first := true; ; first = false {
		r.skip(true)
		if _, end := r.next(hclsyntax.TokenCBrack); end {
			r.WriteByte(']')
			return true
		}
		if !first {
			r.WriteByte(',')
		}
		if !r.value() {
			return false
		}
		r.skip(true)
		if _, more := r.next(hclsyntax.TokenComma); !more && (len(r.tokens) == 0 || r.tokens[0].Type != hclsyntax.TokenCBrack) {
			return false
		}
	}
}

// object writes an object whose brace has been read. An object with a repeated key cannot be
// written as JSON.
func (r *literalReader) object() bool {
	r.WriteByte('{')
	seen := make(map[string]bool)
	for {
		r.skip(true)
		if _, end := r.next(hclsyntax.TokenCBrace); end {
			r.WriteByte('}')
			return true
		}
		key, ok := r.key()
		if !ok || seen[key] {
			return false
		}
		if len(seen) > 0 {
			r.WriteByte(',')
		}
		seen[key] = true
		r.string(key)
		r.WriteByte(':')
		r.skip(false)
		if _, ok := r.next(hclsyntax.TokenEqual, hclsyntax.TokenColon); !ok || !r.value() {
			return false
		}
		if _, more := r.separator(); !more && (len(r.tokens) == 0 || r.tokens[0].Type != hclsyntax.TokenCBrace) {
			return false
		}
	}
}

// separator reads the separator of an object's members.
func (r *literalReader) separator() (t hclsyntax.Token, ok bool) {
	for len(r.tokens) > 0 && r.tokens[0].Type == hclsyntax.TokenComment {
		t = r.tokens[0]
		r.tokens = r.tokens[1:]
		if endsLine(t) {
			return t, true
		}
	}
	return r.next(hclsyntax.TokenComma, hclsyntax.TokenNewline)
}

// key reads the key of an object's member.
func (r *literalReader) key() (key string, ok bool) {
	if t, ok := r.next(hclsyntax.TokenIdent, hclsyntax.TokenNumberLit); ok {
		return string(t.Bytes), true
	}
	return r.text()
}

// text reads a string or a heredoc.
func (r *literalReader) text() (content string, ok bool) {
	open, ok := r.next(hclsyntax.TokenOQuote, hclsyntax.TokenOHeredoc)
	if !ok {
		return "", false
	}
	var lines []string
	for {
		if _, end := r.next(hclsyntax.TokenCQuote, hclsyntax.TokenCHeredoc); end {
			break
		}
		part, ok := r.next(hclsyntax.TokenQuotedLit, hclsyntax.TokenStringLit)
		if !ok {
			return "", false
		}
		line, problems := hclsyntax.ParseStringLiteralToken(part)
		if problems.HasErrors() {
			return "", false
		}
		lines = append(lines, line)
	}
	if bytes.HasPrefix(open.Bytes, []byte("<<-")) {
		removeIndentation(lines)
	}
	return strings.Join(lines, ""), true
}

// removeIndentation removes the indentation that all lines share, as clients do for <<-.
// Parts that follow on the same line do not begin a line.
func removeIndentation(lines []string) {
	least := -1
	begins := func(i int) bool { return i == 0 || strings.HasSuffix(lines[i-1], "\n") }
	indented := make([]bool, len(lines))
	for i, line := range lines {
		trimmed := strings.TrimLeftFunc(line, unicode.IsSpace)
		if !begins(i) || trimmed == "" && strings.HasSuffix(line, "\n") {
			continue
		}
		indented[i] = true
		spaces := utf8.RuneCountInString(line[:len(line)-len(trimmed)])
		if least < 0 || spaces < least {
			least = spaces
		}
	}
	for i, line := range lines {
		for n := 0; indented[i] && n < least; n++ {
			_, size := utf8.DecodeRuneInString(line)
			line = line[size:]
		}
		lines[i] = line
	}
}

// number writes a number as it is in the file.
func (r *literalReader) number() bool {
	if _, negative := r.next(hclsyntax.TokenMinus); negative {
		r.WriteByte('-')
	}
	t, ok := r.next(hclsyntax.TokenNumberLit)
	if !ok {
		return false
	}
	number := bytes.TrimLeft(t.Bytes, "0") // JSON has no 007
	if len(number) == 0 || number[0] < '0' || number[0] > '9' {
		number = append([]byte("0"), number...)
	}
	r.Write(number)
	return json.Valid(number) // HCL's lexer accepts 0E+0E0 as a number
}

func (r *literalReader) string(s string) {
	e := json.NewEncoder(&r.Buffer)
	e.SetEscapeHTML(false)
	_ = e.Encode(s)         // cannot fail
	r.Truncate(r.Len() - 1) // the line break
}

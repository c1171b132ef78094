package moduledoc

import (
	"bytes"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// HCL's own syntax is read from the tokens of HCL's lexer, one item of a file after
// another. HCL's parser is not used: it calls itself for what is nested, which no Go
// program survives if it is deep enough, and takes more than a minute for some files
// of a megabyte. Reading item by item also finds what follows a broken one.

// Bounds of reading a file.
const (
	minChunk  = 8 << 10   // bytes given to the lexer at once…
	maxChunk  = 128 << 10 // …and at most, if no item ends before: no item may be longer
	maxBroken = 5         // items that do not end
)

// parseHCL yields the items of a file, some at once. report is called with every problem.
func parseHCL(content []byte, report func(line int, text string)) iter.Seq[body] {
	return func(yield func(body) bool) {
		line, broken := 1, 0
		for at := 0; at < len(content); {
			length, tokens := nextItems(content[at:], hcl.Pos{Line: line, Column: 1, Byte: at})
			if length == 0 {
				report(line, "What begins here does not end, or is too long: a bracket, a quote or the end of a heredoc may be missing.")
				if broken++; broken > maxBroken {
					report(line, fmt.Sprintf("More than %d blocks of the file do not end: the rest is left out.", maxBroken))
					return
				}
				length = nextName(content[at:])
				if length <= maxChunk {
					tokens, _ = hclsyntax.LexConfig(content[at:at+length], "", hcl.Pos{Line: line, Column: 1, Byte: at})
				}
			}
			b := &nativeBody{at: line, file: content, report: report}
			b.parse(tokens)
			if !yield(b) {
				return
			}
			line += bytes.Count(content[at:at+length], []byte("\n"))
			at += length
		}
	}
}

// nextItems returns the tokens of some items that content begins with, whole ones, and
// how many bytes they have: none if the first one does not end.
func nextItems(content []byte, start hcl.Pos) (length int, tokens hclsyntax.Tokens) {
	for size := minChunk; size <= maxChunk; size *= 2 {
		chunk := content[:min(size, len(content))]
		if len(chunk) < len(content) {
			chunk = chunk[:bytes.LastIndexByte(chunk, '\n')+1]
		}
		tokens, _ := hclsyntax.LexConfig(chunk, "", start)
		whole := wholeItems(tokens, len(chunk) == len(content))
		if whole > 0 {
			return tokens[whole-1].Range.End.Byte - start.Byte, tokens[:whole]
		}
		if len(chunk) == len(content) {
			break
		}
	}
	return 0, nil
}

// wholeItems is how many tokens there are up to the last line at whose end nothing is
// open. atEnd: what the tokens end with is the end of the file.
func wholeItems(tokens hclsyntax.Tokens, atEnd bool) (whole int) {
	var n nesting
	for i, t := range tokens {
		n.add(t.Type)
		if len(n.open) == 0 && endsLine(t) && (atEnd || t.Type != hclsyntax.TokenEOF) {
			whole = i + 1
		}
	}
	return whole
}

// nextName is where the next line begins with a name, as items at the top of a file do:
// the end if there is none.
func nextName(content []byte) int {
	for at := 0; ; {
		n := bytes.IndexByte(content[at:], '\n')
		if n < 0 {
			return len(content)
		}
		at += n + 1
		if at < len(content) && (content[at]|0x20 >= 'a' && content[at]|0x20 <= 'z' || content[at] == '_') {
			return at
		}
	}
}

// A nativeBody is a body in HCL's own syntax.
type nativeBody struct {
	items  []item
	at     int // its line
	file   []byte
	report func(line int, text string)
}

// An item is an argument or a block of a body.
type item struct {
	name   string // of the argument, or the type of the block
	labels []string
	tokens hclsyntax.Tokens // of the expression, or in the block
	block  bool
	line   int
}

func (b *nativeBody) line() int { return b.at }

func (b *nativeBody) attribute(name string) value {
	for _, i := range b.items {
		if !i.block && i.name == name {
			return b.valueOf(i)
		}
	}
	return nil
}

func (b *nativeBody) attributes(yield func(string, value) bool) {
	for _, i := range b.items {
		if !i.block && !yield(i.name, b.valueOf(i)) {
			return
		}
	}
}

func (b *nativeBody) valueOf(i item) value {
	return nativeValue{tokens: i.tokens, at: i.line, file: b.file}
}

func (b *nativeBody) blocks(typ string, labels int) []block {
	var found []block
	for _, i := range b.items {
		if !i.block || i.name != typ {
			continue
		}
		if len(i.labels) != labels {
			b.report(i.line, fmt.Sprintf("The number of labels of this %s block is %d instead of %d.", typ, len(i.labels), labels))
			continue
		}
		inner := &nativeBody{at: i.line, file: b.file, report: b.report}
		inner.parse(i.tokens)
		found = append(found, block{inner, i.labels})
	}
	return found
}

// parse finds the items in tokens.
func (b *nativeBody) parse(tokens hclsyntax.Tokens) {
	for len(tokens) > 0 {
		first := tokens[0]
		switch first.Type {
		case hclsyntax.TokenNewline, hclsyntax.TokenComment, hclsyntax.TokenEOF:
			tokens = tokens[1:]
			continue
		case hclsyntax.TokenIdent:
			i, n, ok := parseItem(tokens)
			if ok {
				b.items = append(b.items, i)
				tokens = tokens[n:]
				continue
			}
		}
		b.report(first.Range.Start.Line, "An argument or a block is expected here.")
		tokens = tokens[lengthOfLine(tokens):]
	}
}

// parseItem parses the item that tokens begin with, and returns how many it has.
func parseItem(tokens hclsyntax.Tokens) (i item, length int, ok bool) {
	i.name, i.line = strings.Clone(string(tokens[0].Bytes)), tokens[0].Range.Start.Line
	if len(tokens) > 1 && tokens[1].Type == hclsyntax.TokenEqual {
		n := 2 + lengthOfLine(tokens[2:])
		i.tokens = withoutEnd(tokens[2:n])
		return i, n, true
	}
	i.block = true
	for n := 1; n < len(tokens); n++ {
		switch t := tokens[n]; t.Type {
		case hclsyntax.TokenIdent:
			i.labels = append(i.labels, strings.Clone(string(t.Bytes)))
		case hclsyntax.TokenOQuote:
			label, used := parseLabel(tokens[n:])
			if used == 0 {
				return i, 0, false
			}
			i.labels = append(i.labels, label)
			n += used - 1
		case hclsyntax.TokenOBrace:
			inner := lengthOfBlock(tokens[n:])
			i.tokens = tokens[n+1 : n+inner]
			return i, min(n+inner+1, len(tokens)), true
		default:
			return i, 0, false
		}
	}
	return i, 0, false
}

// parseLabel parses a label in quotes, and returns how many tokens it has.
func parseLabel(tokens hclsyntax.Tokens) (label string, length int) {
	for n, t := range tokens[1:] {
		switch t.Type {
		case hclsyntax.TokenQuotedLit:
			part, _ := hclsyntax.ParseStringLiteralToken(t)
			label += part
		case hclsyntax.TokenCQuote:
			return label, n + 2
		default:
			return "", 0
		}
		if n > 1 {
			break
		}
	}
	return "", 0
}

// lengthOfLine is how many tokens there are up to the end of the line, with what ends
// it. Brackets and strings that are open go on; so does a file's end.
func lengthOfLine(tokens hclsyntax.Tokens) int {
	var n nesting
	for i, t := range tokens {
		if len(n.open) == 0 && endsLine(t) {
			return i + 1
		}
		n.add(t.Type)
	}
	return len(tokens)
}

// endsLine: a comment of one line has the line's end in it.
func endsLine(t hclsyntax.Token) bool {
	return t.Type == hclsyntax.TokenNewline || t.Type == hclsyntax.TokenComment && bytes.HasSuffix(t.Bytes, []byte("\n")) || t.Type == hclsyntax.TokenEOF
}

// lengthOfBlock is the index of the brace that closes the one that tokens begin with,
// or how many tokens there are if none does.
func lengthOfBlock(tokens hclsyntax.Tokens) int {
	var n nesting
	for i, t := range tokens {
		n.add(t.Type)
		if len(n.open) == 0 {
			return i
		}
	}
	return len(tokens)
}

// withoutEnd removes what is not an expression after it.
func withoutEnd(tokens hclsyntax.Tokens) hclsyntax.Tokens {
	isSpace := func(t hclsyntax.Token) bool {
		return t.Type == hclsyntax.TokenNewline || t.Type == hclsyntax.TokenComment || t.Type == hclsyntax.TokenEOF
	}
	for len(tokens) > 0 && isSpace(tokens[len(tokens)-1]) {
		tokens = tokens[:len(tokens)-1]
	}
	for len(tokens) > 0 && isSpace(tokens[0]) {
		tokens = tokens[1:]
	}
	return tokens
}

// A nativeValue is an expression in HCL's own syntax.
type nativeValue struct {
	tokens hclsyntax.Tokens
	at     int // its line
	file   []byte
}

func (v nativeValue) line() int { return v.at }

func (v nativeValue) literal() (text string, ok bool) { return literal(v.tokens) }

func (v nativeValue) source() string {
	if len(v.tokens) == 0 {
		return ""
	}
	start, end := v.tokens[0].Range.Start.Byte, v.tokens[len(v.tokens)-1].Range.End.Byte
	return dedent(string(v.file[start:end]), indentation(v.file[:start]))
}

// indentation is that of the last line.
func indentation(before []byte) int {
	line := before[bytes.LastIndexByte(before, '\n')+1:]
	return len(line) - len(bytes.TrimLeft(line, " \t"))
}

// dedent removes up to n spaces and tabs from the beginning of all lines but the first.
func dedent(s string, n int) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines[1:] {
		spaces := len(line) - len(strings.TrimLeft(line, " \t"))
		lines[i+1] = line[min(n, spaces):]
	}
	return strings.Join(lines, "\n")
}

// members finds the items of the object by their tokens, as its values may be anything:
// references to configurations of providers, for one.
func (v nativeValue) members(yield func(string, value) bool) {
	if len(v.tokens) < 2 || v.tokens[0].Type != hclsyntax.TokenOBrace {
		return
	}
	tokens := v.tokens[1:lengthOfBlock(v.tokens)]
	for len(tokens) > 0 {
		n := lengthOfMember(tokens)
		member := withoutEnd(slices.Clip(tokens[:n]))
		tokens = tokens[min(n+1, len(tokens)):]
		key, used := parseKey(member)
		if used == 0 || len(member) < used+2 {
			continue
		}
		t := member[used].Type
		if t != hclsyntax.TokenEqual && t != hclsyntax.TokenColon {
			continue
		}
		inner := nativeValue{tokens: withoutEnd(member[used+1:]), at: member[0].Range.Start.Line, file: v.file}
		if !yield(key, inner) {
			return
		}
	}
}

// lengthOfMember is how many tokens there are before the comma or line's end after a
// member of an object.
func lengthOfMember(tokens hclsyntax.Tokens) int {
	var n nesting
	for i, t := range tokens {
		if len(n.open) == 0 && (t.Type == hclsyntax.TokenComma || endsLine(t)) {
			return i
		}
		n.add(t.Type)
	}
	return len(tokens)
}

// parseKey parses the key of an object's member, and returns how many tokens it has.
func parseKey(tokens hclsyntax.Tokens) (key string, length int) {
	if len(tokens) == 0 {
		return "", 0
	}
	switch tokens[0].Type {
	case hclsyntax.TokenIdent:
		return string(tokens[0].Bytes), 1
	case hclsyntax.TokenOQuote:
		return parseLabel(tokens)
	}
	return "", 0
}

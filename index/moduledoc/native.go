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

// HCL's native syntax is read from the tokens of HCL's lexer, one item of a file after
// another. HCL's parser is not used: it is recursive, and no Go program survives a stack
// overflow; and it takes more than a minute for some files of a megabyte. Reading item by
// item also finds the items after a broken one.

// Bounds of reading a file.
const (
	minChunk  = 8 << 10   // bytes given to the lexer at once…
	maxChunk  = 128 << 10 // …and at most, if no item ends before; longer items are not read
	maxBroken = 5         // number of items without an end
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

// nextItems returns the tokens of some whole items that content begins with, and their size
// in bytes, which is zero if the first item does not end.
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

// wholeItems returns the number of tokens up to the last line break outside of brackets,
// strings and heredocs. atEnd reports whether the tokens end with the end of the file.
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

// nextName returns where the next line begins with a name, as items at the top of a file do;
// the end if there is no such line.
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

// A nativeBody is a body in HCL's native syntax.
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
	tokens hclsyntax.Tokens // of the expression, or of the block's content
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

// lengthOfLine returns the number of tokens up to and including the end of the line. A line
// goes on inside of brackets and strings, unless the file ends.
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

// endsLine reports whether a token ends a line. The token of a one-line comment includes the
// line break.
func endsLine(t hclsyntax.Token) bool {
	return t.Type == hclsyntax.TokenNewline || t.Type == hclsyntax.TokenComment && bytes.HasSuffix(t.Bytes, []byte("\n")) || t.Type == hclsyntax.TokenEOF
}

// lengthOfBlock returns the index of the brace that closes the brace at the beginning of
// tokens, or the number of tokens if no brace does.
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

// withoutEnd removes the tokens after an expression.
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

// A nativeValue is an expression in HCL's native syntax.
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

// indentation returns the indentation of the last line.
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

// members finds the items of the object by their tokens, as values may be any expression,
// such as references to configurations of providers.
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

// references finds the references by their tokens: a comment may have a name with a dot in it, too.
func (v nativeValue) references() (found []string) {
	for i := 2; i < len(v.tokens); i++ {
		first, dot, second := v.tokens[i-2], v.tokens[i-1], v.tokens[i]
		if first.Type == hclsyntax.TokenIdent && dot.Type == hclsyntax.TokenDot && second.Type == hclsyntax.TokenIdent {
			found = append(found, string(first.Bytes)+"."+string(second.Bytes))
		}
	}
	return found
}

// lengthOfMember returns the number of tokens before the comma or line break after a member
// of an object.
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

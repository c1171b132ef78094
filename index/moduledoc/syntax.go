package moduledoc

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// Configuration is written in two syntaxes, HCL's own and JSON. A module is read from
// either through these interfaces. Nothing is ever evaluated: an expression can take
// any time and memory.

// A body is what is in a file or a block.
type body interface {
	// attribute returns the value of an argument, nil if there is none.
	attribute(name string) value

	// attributes yields all arguments, in order.
	attributes(yield func(name string, v value) bool)

	// blocks returns the blocks of a type, in order. Those with another number of
	// labels are left out.
	blocks(typ string, labels int) []block

	line() int
}

// A block is a block in a body.
type block struct {
	body
	labels []string
}

// A value is the expression of an argument.
type value interface {
	// literal returns the value as JSON; not ok if it is not a literal.
	literal() (text string, ok bool)

	// source is the expression as it is written.
	source() string

	// members yields what is in an object whose keys are literal; nothing of others.
	members(yield func(key string, v value) bool)

	line() int
}

// text is a value that should be a string: its content, or as it is written if it is
// no literal.
func text(v value) string {
	if v == nil {
		return ""
	}
	literal, ok := v.literal()
	if !ok {
		return v.source()
	}
	if literal == "null" {
		return ""
	}
	var s string
	if json.Unmarshal([]byte(literal), &s) == nil {
		return s
	}
	return literal
}

// isTrue is a value that should be true or false; if there is none, or none that can be
// told, it is otherwise.
func isTrue(v value, otherwise bool) bool {
	switch text(v) {
	case "true":
		return true
	case "false":
		return false
	}
	return otherwise
}

// sentence ends a text with a full stop, begins it in upper case, and bounds it.
func sentence(s string) string {
	s = shorten(strings.TrimSuffix(s, "."), 300)
	if s != "" && s[0] >= 'a' && s[0] <= 'z' {
		s = strings.ToUpper(s[:1]) + s[1:]
	}
	return s + "."
}

// shorten cuts a text that is longer than limit bytes, and makes it valid UTF-8
// without NUL, which not everything that text is written to can have.
func shorten(s string, limit int) string {
	cut := len(s) > limit
	if cut {
		s = s[:limit]
		for len(s) > 0 && !utf8.RuneStart(s[len(s)-1]) {
			s = s[:len(s)-1]
		}
		if r, size := utf8.DecodeLastRuneInString(s); r == utf8.RuneError && size == 1 {
			s = s[:len(s)-1]
		}
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = strings.ReplaceAll(s, "\x00", "\uFFFD")
	if cut {
		s += "…"
	}
	return strings.Clone(s) // which does not keep the file in memory
}

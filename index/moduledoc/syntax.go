package moduledoc

import (
	"encoding/json"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Configuration is written in two syntaxes, HCL's native one and JSON. These interfaces hide
// which one it is. Nothing is ever evaluated: an expression can take any time and memory.

// A body is the content of a file or a block.
type body interface {
	// attribute returns the value of an argument, or nil if the body does not have it.
	attribute(name string) value

	// attributes yields all arguments, in order.
	attributes(yield func(name string, v value) bool)

	// blocks returns the blocks of a type, in order. Blocks with another number of labels
	// are left out.
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
	// literal returns the value as JSON; ok is false if it is not a literal.
	literal() (text string, ok bool)

	// source returns the expression as written.
	source() string

	// members yields the members of an object whose keys are literals, and nothing for other
	// values.
	members(yield func(key string, v value) bool)

	// references returns the references in the value that have two names, such as aws.peer.
	references() []string

	line() int
}

// reference is a reference of two names, as expressions in JSON have it.
var reference = regexp.MustCompile(`\b[\pL_][\pL\pN_-]*\.[\pL_][\pL\pN_-]*`)

// text returns the content of a value that should be a string, or the value as written if it
// is not a literal.
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

// isTrue returns a value that should be true or false, or otherwise if it is missing or not
// a literal.
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

// shorten cuts a text that is longer than limit bytes, and makes it valid UTF-8 without NUL,
// which some destinations of texts cannot store.
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
	return strings.Clone(s) // a clone does not keep the file in memory
}

package snippet

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/dustin/go-humanize"
)

// A Value is a type or a default, as it is written.
type Value struct {
	Text    string
	Block   bool   // it has several lines
	Wide    bool   // it needs the whole width
	Folded  string // a short text for a long value, until it is opened
	Preview string // of a type that is folded
}

// A longer value is folded.
const (
	foldLines      = 24
	foldCharacters = 900
)

// A longer value does not stand beside another.
const inlineCharacters = 40

func newValue(text string) Value {
	v := Value{Text: text}
	lines, characters := strings.Count(text, "\n")+1, utf8.RuneCountInString(text)
	v.Block, v.Wide = lines > 1, lines > 1 || characters > inlineCharacters
	switch {
	case lines > foldLines:
		v.Folded = humanize.Comma(int64(lines)) + " lines"
	case characters > foldCharacters:
		v.Folded = humanize.Comma(int64(characters)) + " characters"
	}
	return v
}

// NewType returns a type as it is shown.
func NewType(text string) Value {
	v := newValue(text)
	if v.Folded != "" {
		v.Preview = typePreview(text)
	}
	return v
}

// NewDefault returns a default as it is shown. It indents a long list or object in JSON,
// unless that would make the text much longer: each value is indented once for every
// list and object around it.
func NewDefault(text string) Value {
	if len(text) <= inlineCharacters || (text[0] != '{' && text[0] != '[') || indentation(text) > 4*len(text)+1000 {
		return newValue(text)
	}
	var indented strings.Builder
	encoder := json.NewEncoder(&indented)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if !json.Valid([]byte(text)) || encoder.Encode(json.RawMessage(text)) != nil {
		return newValue(text) // an expression
	}
	return newValue(strings.TrimSuffix(indented.String(), "\n"))
}

// indentation returns how many bytes longer JSON becomes at most if every value stands
// on its own line, indented by two spaces.
func indentation(text string) int {
	depth, size := 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"': // a string, up to its end
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '[', '{':
			depth++
			size += 1 + 2*depth
		case ']', '}':
			depth = max(0, depth-1)
			size += 1 + 2*depth
		case ',':
			size += 1 + 2*depth
		case ':':
			size++
		}
	}
	return size
}

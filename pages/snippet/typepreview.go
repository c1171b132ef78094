package snippet

import (
	"strings"
	"unicode/utf8"
)

// maxPreview is how many characters the names of attributes have in a preview of a type.
const maxPreview = 44

// typePreview returns a type on one line, with the names of an object's first attributes:
// map(object({ enabled, instance, … })). A type without objects is shortened. The type is
// as its author wrote it, and may be no type at all.
func typePreview(typ string) string {
	before, rest, object := strings.Cut(typ, "{")
	before = strings.Join(strings.Fields(before), "")
	if !object || utf8.RuneCountInString(before) > maxPreview {
		line := strings.Join(strings.Fields(typ), " ")
		if utf8.RuneCountInString(line) > maxPreview {
			line = string([]rune(line)[:maxPreview]) + "…"
		}
		return line
	}
	var b strings.Builder
	b.WriteString(before + "{")
	separator, room := " ", maxPreview
	for _, name := range attributeNames(rest) {
		if room -= utf8.RuneCountInString(name) + 2; room < 0 {
			b.WriteString(separator + "…")
			break
		}
		b.WriteString(separator + name)
		separator = ", "
	}
	b.WriteString(" }" + strings.Repeat(")", max(strings.Count(before, "(")-strings.Count(before, ")"), 0)))
	return b.String()
}

// attributeNames returns the names before the first equals sign of each attribute, in no further
// brackets, up to the end of the object that the text is in. An author may write any number of
// equals signs, so each part of the text is looked at once.
func attributeNames(text string) (names []string) {
	depth, start, named := 0, 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '#', '/':
			if c == '#' || strings.HasPrefix(text[i:], "//") {
				for i < len(text) && text[i] != '\n' {
					i++
				}
				start, named = i, false
			} else if strings.HasPrefix(text[i:], "/*") {
				end := strings.Index(text[i:], "*/")
				if end < 0 {
					return names
				}
				i += end + 1
				start = i + 1
			}
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			if depth--; depth < 0 {
				return names
			}
		case '=', ':':
			if depth == 0 && start <= i && !named {
				named = true
				if words := strings.Fields(text[start:i]); len(words) > 0 {
					names = append(names, strings.Trim(words[len(words)-1], `",`))
				}
			}
		case ',', '\n':
			if depth == 0 {
				start, named = i+1, false
			}
		}
	}
	return names
}

package content

import (
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
)

// A frontMatter is the head of a page of documentation, before its text.
type frontMatter struct {
	title, subcategory, description string
}

// Bounds of what is kept of a page, in bytes.
const (
	maxDocTitle       = 200
	maxDocDescription = 500
)

// splitFrontMatter returns what a page says about itself and its text.
//
// Front matter is YAML, and often broken: a title with a colon in it, a quote that
// is not closed, a tab. A parser of YAML refuses all of it then. Three fields with
// texts are read here, each for itself, in the forms that documentation generators
// and people write: plain, quoted, and block scalars.
func splitFrontMatter(page string) (front frontMatter, text string) {
	page = strings.TrimPrefix(page, "\ufeff")
	lines := strings.SplitAfter(strings.ReplaceAll(page, "\r\n", "\n"), "\n")
	if strings.TrimRight(lines[0], " \t\n") != "---" {
		return front, page
	}
	end := 1
	for end < len(lines) && !isFrontMatterEnd(lines[end]) {
		end++
	}
	if end == len(lines) {
		return front, page
	}
	for at := 1; at < end; {
		key, value, ok := strings.Cut(lines[at], ":")
		at++
		if !ok || strings.ContainsAny(key, " \t#'\"") {
			continue
		}
		from := at
		for at < end && (strings.TrimSpace(lines[at]) == "" || lines[at][0] == ' ' || lines[at][0] == '\t') {
			at++
		}
		value = yamlText(strings.TrimSpace(value), lines[from:at])
		switch key {
		case "page_title":
			front.title = shortened(value, maxDocTitle)
		case "subcategory":
			front.subcategory = shortened(value, maxDocTitle)
		case "description":
			front.description = shortened(value, maxDocDescription)
		}
	}
	return front, strings.Join(lines[end+1:], "")
}

func isFrontMatterEnd(line string) bool {
	line = strings.TrimRight(line, " \t\n")
	return line == "---" || line == "..."
}

// yamlText is the text of a value that begins on the line of its key, with the
// indented lines that follow. Line breaks become spaces.
func yamlText(value string, following []string) string {
	switch {
	case value != "" && (value[0] == '|' || value[0] == '>'): // a block scalar
		return strings.Join(following, " ")
	case value != "" && (value[0] == '"' || value[0] == '\''):
		return unquoted(value + " " + strings.Join(following, " "))
	}
	value += " " + strings.Join(following, " ")
	if comment := strings.Index(value, " #"); comment >= 0 {
		value = value[:comment]
	}
	return value
}

// unquoted is the text in quotes, up to the end of value if they are not closed.
func unquoted(value string) string {
	quote, value := value[0], value[1:]
	var b strings.Builder
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case c == '\\' && quote == '"' && i+1 < len(value):
			i++
			if value[i] == 'n' || value[i] == 't' {
				b.WriteByte(' ')
			} else {
				b.WriteByte(value[i])
			}
		case c == quote && quote == '\'' && strings.HasPrefix(value[i+1:], "'"):
			i++
			b.WriteByte(quote)
		case c == quote:
			return b.String()
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// shortened is a text on one line, cut after a word if it is too long.
func shortened(text string, most int) string {
	return moduledoc.CutAtWord(strings.Join(strings.Fields(strings.ToValidUTF8(text, "\uFFFD")), " "), most)
}

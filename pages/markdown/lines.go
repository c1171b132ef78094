package markdown

import (
	"path"
	"slices"
	"strings"

	"github.com/yuin/goldmark/util"
)

// Lines returns each line of code as HTML, without line breaks, with its tokens in spans as
// Highlight writes them. A token of several lines has a span on each.
func Lines(language, code string) []string {
	lines := make([]string, 0, strings.Count(code, "\n")+1)
	var line strings.Builder
	for class, text := range tokens(language, code) {
		for i, part := range strings.Split(text, "\n") {
			if i > 0 {
				lines = append(lines, line.String())
				line.Reset()
			}
			part = strings.TrimSuffix(part, "\r")
			if part == "" {
				continue
			}
			if class != "" {
				line.WriteString(`<span class="` + class + `">`)
			}
			line.Write(util.EscapeHTML([]byte(part)))
			if class != "" {
				line.WriteString("</span>")
			}
		}
	}
	if line.Len() > 0 {
		lines = append(lines, line.String()) // the last line has no break
	}
	return lines
}

// LanguageOf returns the language of a file by its name, for Lines: empty if it is not
// known.
func LanguageOf(name string) string {
	name = strings.ToLower(path.Base(name))
	if name == "dockerfile" {
		return name
	}
	return strings.TrimPrefix(path.Ext(name), ".")
}

// IsDocument reports whether a file is Markdown, by its name.
func IsDocument(name string) bool {
	return slices.Contains([]string{"md", "markdown"}, LanguageOf(name))
}

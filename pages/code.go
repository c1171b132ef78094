package pages

import (
	"github.com/caddy-terraform/caddy-terraform-registry/pages/markdown"
	"html/template"
	"strings"
)

// A code is source text that is shown as it is and can be copied.
type code struct {
	Language string // a language that markdown.Highlight knows; empty: it is not highlighted
	Text     string
}

// HTML returns the text with its tokens in spans.
func (c code) HTML() template.HTML {
	var b strings.Builder
	markdown.Highlight(&b, c.Language, c.Text)
	return template.HTML(strings.TrimSuffix(b.String(), "\n"))
}

// Package markdown renders Markdown that others wrote as HTML for a page.
//
// READMEs and documentation come from anyone who may publish, so the package trusts no
// text:
//
//   - Render goes from Markdown to HTML, from HTML to a tree in which every element is
//     closed, and back to HTML (dialect.go, tree.go, links.go). The sanitiser is the last
//     step, so that nothing gets past it (sanitiser.go).
//   - Every step has a bound on its time and on the size of its result (limits.go). A text
//     beyond a bound is shown without the expensive part, or as it is written.
//   - A link within the package of a text leads where the caller resolves it to. No image
//     is loaded from another site.
//
// Highlight marks the tokens of code, in a text and elsewhere (highlight.go).
package markdown

import (
	"bytes"
	"html/template"
	"net/url"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// maxMarkdown is how much of a text is rendered, in bytes. The public registry accepts
// as much for one page. The rest of the text is left out.
const maxMarkdown = 512 << 10

// maxHTML is how long a rendered text may become, in bytes. A text that becomes longer
// is shown as it is written. A callout of two characters is fifty times as long in
// HTML, and several times longer still as a tree.
const maxHTML = 3 << 20

// A Text is Markdown that others wrote: a README, or a page of a provider's
// documentation. It is rendered as GitHub renders it, with the callouts of Terraform's
// documentation.
type Text struct {
	Source string

	// Folder is the folder of the file in its package, such as "modules/subnets".
	// Relative links start from it. It is empty for the root of the package.
	Folder string

	// Prefix comes before every id, such as "readme-" or "doc-", so that no id of the
	// text is an id of the page. Links to headings get it too.
	Prefix string

	// Quoted reports that the text is below a heading of a part of the page, and its headings
	// are below that. Otherwise they are below the heading of the page.
	Quoted bool

	// Resolve returns the URL of a link within the package. If Resolve is nil or the
	// URL is empty, the link leads nowhere, and only its text is shown.
	Resolve func(Reference) string
}

// A Reference is a link or image in a text that leads to a file of the same package.
type Reference struct {
	// Path is the path in the package, with slashes, clean and unescaped, such as
	// "examples/complete". It is empty for the root, and never leads out of the
	// package.
	Path string

	Image bool
}

// A Heading is a heading of a text.
type Heading struct {
	Level int // 2 to 4
	Text  string
	ID    string
}

// A Document is a rendered text.
type Document struct {
	HTML    template.HTML
	Outline []Heading

	// Cut reports that the text is too long and only its beginning is shown.
	Cut bool
}

// Render renders the text. It never fails: unknown syntax is shown as it is written, and
// HTML that is not allowed is left out.
func (m Text) Render() Document {
	source, cut := limited(m.Source)
	d := dialects().readme.render(m, source, newEffort(len(source)))
	d.Cut = cut
	return d
}

// Descriptions render the descriptions of inputs and outputs. They are Markdown without
// headings and HTML: tags are shown as they are written. All descriptions of a page together
// may cost as much as one README. The zero value is ready for use.
type Descriptions struct {
	effort *effort // nil before the first description
	left   int     // bytes of further descriptions; the others are shown as they are written
}

// HTML renders a description.
func (d *Descriptions) HTML(source string) template.HTML {
	if d.effort == nil {
		d.effort, d.left = newEffort(0), maxMarkdown
	}
	source, _ = limited(unindented(source))
	if d.left -= len(source); d.left < 0 {
		return asWritten(source)
	}
	d.effort.extend(len(source))
	return dialects().description.render(Text{}, source, d.effort).HTML
}

// A dialect is a parser and a renderer of Markdown, with the rules for its HTML.
type dialect struct {
	markdown goldmark.Markdown
	rules    sanitisers
}

// dialects returns the dialects, which are made once. All texts can use them at the
// same time.
var dialects = sync.OnceValue(func() (r struct{ readme, description dialect }) {
	rules := newSanitisers()
	r.readme = dialect{newReadmeDialect(rules.raw), rules}
	r.description = dialect{newDescriptionDialect(), rules}
	return r
})

// render goes from Markdown to HTML, from HTML to a tree, where it corrects ids,
// headings and links, and back to HTML. It sanitises last, so that nothing gets past
// the sanitiser.
func (d dialect) render(m Text, source string, budget *effort) Document {
	src := []byte(source)
	context := parser.NewContext()
	context.Set(effortKey, budget)
	root := d.markdown.Parser().Parse(text.NewReader(src), parser.WithContext(context))
	var b bytes.Buffer
	if err := d.markdown.Renderer().Render(&b, src, root); err != nil || b.Len() > maxHTML {
		return Document{HTML: asWritten(source)}
	}
	t := newMarkupTree(b.Bytes())
	outline := t.prepare(m)
	b.Reset()
	if err := t.write(&b); err != nil {
		return Document{HTML: asWritten(source)}
	}
	return Document{HTML: template.HTML(d.rules.final.SanitizeBytes(b.Bytes())), Outline: outline}
}

func asWritten(source string) template.HTML {
	return template.HTML(`<pre tabindex="0">` + template.HTMLEscapeString(source) + `</pre>`)
}

// limited returns the text up to the last whole line within maxMarkdown, as valid UTF-8
// and without bytes that HTML cannot have.
func limited(source string) (_ string, cut bool) {
	if len(source) > maxMarkdown {
		source, cut = source[:maxMarkdown], true
		if i := strings.LastIndexByte(source, '\n'); i >= 0 {
			source = source[:i+1]
		}
	}
	if !utf8.ValidString(source) {
		source = strings.ToValidUTF8(source, "\uFFFD")
	}
	source = strings.TrimPrefix(source, "\uFEFF") // some editors write a byte order mark first
	source = strings.ReplaceAll(source, "\x00", "\uFFFD")
	return strings.ReplaceAll(source, "\r\n", "\n"), cut
}

// unindented removes the indentation that all lines of a text share, such as a heredoc
// has. Markdown would take the lines for code.
func unindented(source string) string {
	lines := strings.Split(strings.Trim(source, "\n"), "\n")
	common := -1
	for _, l := range lines {
		if strings.TrimSpace(l) == "" {
			continue
		}
		if n := len(l) - len(strings.TrimLeft(l, " \t")); common < 0 || n < common {
			common = n
		}
	}
	if common <= 0 {
		return source
	}
	for i, l := range lines {
		lines[i] = l[min(common, len(l)):]
	}
	return strings.Join(lines, "\n")
}

// fragment returns an id as the last part of a URL.
func fragment(id string) string {
	return (&url.URL{Fragment: id}).String()
}

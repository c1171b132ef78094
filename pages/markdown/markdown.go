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

// maxMarkdown is how much of a text is rendered, in bytes: as much as the public
// registry accepts for one page. What is beyond is left out.
const maxMarkdown = 512 << 10

// maxHTML is how much a text may become, in bytes: what becomes more is shown as it is
// written. A callout of two characters is fifty times as long in HTML, and several
// times that as a tree.
const maxHTML = 3 << 20

// A markdown is a text in Markdown that others wrote: a README, or a page of a
// provider's documentation. It is rendered as GitHub does, with the callouts of
// Terraform's documentation.
type Text struct {
	Source string

	// Folder is the one of the file in its package, which relative links start from:
	// "modules/subnets". Empty: the package's root.
	Folder string

	// Prefix comes before every id, so that none of them can be one of the page's own:
	// "readme-" or "doc-". Links to a heading are changed with it.
	Prefix string

	// Resolve returns the URL that a link within the package leads to. Nil, or an
	// empty URL: it leads nowhere, and only its text is shown.
	Resolve func(Reference) string
}

// A reference is a link or image of a text that is in the text's own package.
type Reference struct {
	// Path in the package, with slashes, clean and unescaped: "examples/complete". It
	// is empty for the root, and never leads out of the package.
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

	// Cut: the text is too long, and only its beginning is shown.
	Cut bool
}

// render renders the text. It cannot fail: what is not understood is shown as it is
// written, and what is not allowed is left out.
func (m Text) Render() Document {
	source, cut := limited(m.Source)
	d := renderers().readme.render(m, source)
	d.Cut = cut
	return d
}

// renderDescription renders the description of an input or output: Markdown without
// headings and HTML, whose tags are shown as they are written.
func Description(source string) template.HTML {
	source, _ = limited(unindented(source))
	return renderers().description.render(Text{}, source).HTML
}

// A dialect renders one dialect.
type dialect struct {
	markdown goldmark.Markdown
	rules    sanitisers
}

// renderers are made once: they are the same for all texts, and safe for concurrent
// use.
var renderers = sync.OnceValue(func() (r struct{ readme, description dialect }) {
	rules := newSanitisers()
	r.readme = dialect{newReadmeDialect(rules.raw), rules}
	r.description = dialect{newDescriptionDialect(), rules}
	return r
})

// render goes from Markdown to HTML, from there to a tree in which ids, headings and
// links are put right, and back to HTML, which is sanitised last: whatever happens
// before, nothing gets past that.
func (r dialect) render(m Text, source string) Document {
	src := []byte(source)
	context := parser.NewContext()
	context.Set(effortKey, newEffort(len(src)))
	root := r.markdown.Parser().Parse(text.NewReader(src), parser.WithContext(context))
	var b bytes.Buffer
	if err := r.markdown.Renderer().Render(&b, src, root); err != nil || b.Len() > maxHTML {
		return Document{HTML: asWritten(source)}
	}
	t := newMarkupTree(b.Bytes())
	outline := t.prepare(m)
	b.Reset()
	if err := t.write(&b); err != nil {
		return Document{HTML: asWritten(source)}
	}
	return Document{HTML: template.HTML(r.rules.final.SanitizeBytes(b.Bytes())), Outline: outline}
}

func asWritten(source string) template.HTML {
	return template.HTML(`<pre tabindex="0">` + template.HTMLEscapeString(source) + `</pre>`)
}

// limited is the text up to the last whole line within the bound, as valid UTF-8 and
// without bytes that HTML cannot have.
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
	source = strings.ReplaceAll(source, "\x00", "\uFFFD")
	return strings.ReplaceAll(source, "\r\n", "\n"), cut
}

// unindented is the text without the indentation that all its lines have, as that of
// a heredoc has: it would make code of it.
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

// fragment is an id as the last part of a URL.
func fragment(id string) string {
	return (&url.URL{Fragment: id}).String()
}

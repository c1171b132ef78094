package markdown

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/marker"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/strikethrough"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// FromPage returns the content of a page as Markdown, without what is only of use in a
// browser: forms, menus and the outline. What is folded is unfolded. The content is the main
// element. link returns the URL for each link. The page may have text that others wrote,
// so its size is bounded.
func FromPage(ctx context.Context, page []byte, link func(url string) string) ([]byte, error) {
	document, err := html.Parse(bytes.NewReader(page))
	if err != nil {
		return nil, fmt.Errorf("reading a page: %w", err)
	}
	content := find(document, func(n *html.Node) bool { return n.DataAtom == atom.Main })
	if content == nil {
		return nil, fmt.Errorf("a page has no content")
	}
	if menu := find(content, func(n *html.Node) bool { return hasClass(n, "nav") && hasClass(n.Parent, "docs") }); menu != nil {
		menu.Parent.RemoveChild(menu) // a reader wants the text first
		content.AppendChild(menu)
	}
	simplify(content, link)
	bounds := pageBounds{text: maxWritten, cells: maxCells}
	bounds.apply(content, 0, 0)
	if bounds.cut {
		rest := element(atom.P)
		setText(rest, writtenInPart)
		content.AppendChild(rest)
	}
	text, err := toMarkdown().ConvertNode(content, converter.WithContext(ctx))
	if err = cmp.Or(ctx.Err(), err); err != nil {
		return nil, fmt.Errorf("writing a page as Markdown: %w", err)
	}
	return append(bytes.TrimSpace(text), '\n'), nil
}

var toMarkdown = sync.OnceValue(func() *converter.Converter {
	c := converter.NewConverter(converter.WithPlugins(
		base.NewBasePlugin(),
		commonmark.NewCommonmarkPlugin(commonmark.WithHeadingStyle(commonmark.HeadingStyleATX), commonmark.WithListEndComment(false)),
		strikethrough.NewStrikethroughPlugin(),
		table.NewTablePlugin(table.WithNewlineBehavior(table.NewlineBehaviorPreserve), table.WithHeaderPromotion(true), table.WithCellPaddingBehavior(table.CellPaddingBehaviorMinimal)),
	))
	c.Register.Renderer(func(ctx converter.Context, _ converter.Writer, _ *html.Node) converter.RenderStatus {
		if ctx.Err() != nil {
			return converter.RenderSuccess // the request has ended
		}
		return converter.RenderTryNext
	}, converter.PriorityEarly)
	c.Register.UnEscaper(isBracket, converter.PriorityEarly)
	c.Register.RendererFor(taskBox, converter.TagTypeInline, func(_ converter.Context, w converter.Writer, n *html.Node) converter.RenderStatus {
		box := "[ ] "
		if hasAttribute(n, "checked") {
			box = "[x] "
		}
		_, _ = w.WriteString(box)
		return converter.RenderSuccess
	}, converter.PriorityEarly)
	return c
})

// isBracket reports by a 1 that a bracket gets a backslash, and by a -1 that the converter finds out.
// The converter looks for the bracket that closes it, up to the end of the line, for each bracket of
// a line anew: that would take minutes for a README of nothing but opening brackets.
func isBracket(text []byte, at int) int {
	const most = 256 // bytes that the converter looks at
	if text[at] != '[' || at+most >= len(text) || bytes.ContainsAny(text[at:at+most], "]\n") {
		return -1
	}
	return 1
}

// taskBox is the element of the box of a task.
const taskBox = "task"

// simplify gives a page only elements that Markdown has.
func simplify(n *html.Node, link func(string) string) {
	for c := n.FirstChild; c != nil; {
		next := c.NextSibling
		switch {
		case c.Type == html.CommentNode || c.Type == html.ElementNode && ofBrowsers(c):
			n.RemoveChild(c)
		case c.Type == html.ElementNode:
			simplify(c, link)
			simplifyElement(c, link)
		}
		c = next
	}
}

// ofBrowsers reports whether an element is only of use in a browser.
func ofBrowsers(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Form, atom.Button, atom.Input, atom.Select, atom.Script, atom.Style, atom.Svg, atom.Wbr:
		return true
	case atom.Ul: // the other versions
		return hasClass(n.Parent, "menu")
	case atom.Summary: // of what is unfolded in a wide window, where it has a heading
		return hasClass(n.Parent, "unfold")
	case atom.A: // to the heading that it is in
		return hasClass(n, "anchor")
	}
	return hasAttribute(n, "hidden") || hasClass(n, "outline") || hasClass(n, "filter")
}

func simplifyElement(n *html.Node, link func(string) string) {
	switch n.DataAtom {
	case atom.A:
		to := attribute(n, "href")
		if to == "" || strings.HasPrefix(to, "#") {
			unwrap(n)
			return
		}
		n.Attr = []html.Attribute{{Key: "href", Val: link(to)}}
	case atom.Img:
		alt := attribute(n, "alt")
		if inCell(n) {
			alt = escapePipes(alt)
		}
		n.Attr = []html.Attribute{{Key: "src", Val: attribute(n, "src")}, {Key: "alt", Val: alt}}
	case atom.Td, atom.Th: // Markdown has no cells that span others
		n.Attr = []html.Attribute{{Key: "align", Val: attribute(n, "align")}}
	case atom.Code:
		// An abbreviated hash has the whole one as its title.
		if whole := attribute(n, "title"); whole != "" {
			setText(n, whole)
		}
		if language, ok := strings.CutPrefix(attribute(n, "class"), "language-"); !ok || !namesLanguage().MatchString(language) {
			n.Attr = nil // it would be more than a word in the line before the code
		}
		if inCell(n) {
			for c := range n.Descendants() {
				if c.Type == html.TextNode {
					c.Data = escapePipes(c.Data)
				}
			}
		}
	case atom.Pre:
		if inCell(n) {
			splitLines(n)
		}
	case atom.Span:
		switch {
		case hasClass(n, "tally"):
			setText(n, " ("+textOf(n)+")")
		case hasClass(n, "chip") && !hasClass(n.Parent, "flags"):
			setText(n, "("+textOf(n)+")")
		case hasClass(n, "task"):
			done := hasClass(n, "done")
			if n.DataAtom, n.Data, n.Attr = 0, taskBox, nil; done {
				n.Attr = []html.Attribute{{Key: "checked"}}
			}
		}
	case atom.Ul, atom.Ol:
		if hasClass(n.Parent, "tabs") || hasClass(n.Parent, "orders") || hasClass(n, "chips") || hasClass(n, "meta") || hasClass(n, "crumbs") {
			joinItems(n)
		}
		if len(attribute(n, "start")) > 9 {
			n.Attr = nil // no number of a list has more digits
		}
	case atom.Summary:
		rename(n, atom.P)
	case atom.Details, atom.Nav, atom.Section, atom.Aside, atom.Article:
		rename(n, atom.Div)
	case atom.Div:
		if hasClass(n, "callout") {
			rename(n, atom.Blockquote)
		}
	case atom.Dl:
		simplifyList(n)
	}
}

// inCell reports whether an element is in a cell of a table, where Markdown has no line breaks.
func inCell(n *html.Node) bool { return hasAncestor(n, atom.Td, atom.Th) }

// escapePipes marks each pipe in code, or in the text of a picture, as one that gets a backslash in
// a table, where it would end the cell. The converter marks pipes in other text by itself.
func escapePipes(text string) string {
	return strings.NewReplacer(string(marker.MarkerEscaping), "", "|", string(marker.MarkerEscaping)+"|").Replace(text)
}

// splitLines makes code of its own of each line of preformatted text.
func splitLines(n *html.Node) {
	var text strings.Builder
	for c := range n.Descendants() {
		switch {
		case c.Type == html.TextNode:
			text.WriteString(c.Data)
		case c.DataAtom == atom.Br:
			text.WriteByte('\n')
		}
	}
	removeChildren(n)
	rename(n, atom.Div)
	for line := range strings.Lines(strings.TrimSpace(text.String())) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if n.FirstChild != nil {
			n.AppendChild(element(atom.Br))
		}
		code := element(atom.Code)
		setText(code, escapePipes(line))
		n.AppendChild(code)
	}
}

// simplifyList makes headings of the terms of a list of entries, and items of the terms of
// other lists. A term may have no text or several, and a text may have no term.
func simplifyList(n *html.Node) {
	entries := hasClass(n, "entries")
	var parts []*html.Node
	var collect func(*html.Node)
	collect = func(in *html.Node) {
		for in.FirstChild != nil {
			c := in.FirstChild
			if in.RemoveChild(c); c.DataAtom == atom.Div {
				collect(c)
			} else {
				parts = append(parts, c)
			}
		}
	}
	collect(n)
	if rename(n, atom.Ul); entries {
		rename(n, atom.Div)
	}
	var item *html.Node // of the terms before
	described := false
	for _, p := range parts {
		switch {
		case p.Type == html.TextNode && strings.TrimSpace(p.Data) == "":
		case entries && p.DataAtom == atom.Dt:
			rename(p, atom.H3)
			n.AppendChild(p)
		case entries:
			rename(p, atom.Div)
			n.AppendChild(p)
		case p.DataAtom == atom.Dt && item != nil && !described:
			item.AppendChild(textNode(", "))
			moveChildren(p, item)
		case p.DataAtom == atom.Dt || item == nil:
			item = element(atom.Li)
			n.AppendChild(item)
			described = p.DataAtom != atom.Dt
			moveChildren(p, item)
		case described:
			rename(p, atom.Div)
			item.AppendChild(p)
		default:
			described = true
			item.AppendChild(textNode(": "))
			moveChildren(p, item)
		}
	}
}

// joinItems makes one line of short items.
func joinItems(n *html.Node) {
	var items []*html.Node
	for c := range n.ChildNodes() {
		if c.DataAtom == atom.Li {
			items = append(items, c)
		}
	}
	removeChildren(n)
	separator := " · "
	if hasClass(n, "crumbs") {
		separator = " / "
	}
	rename(n, atom.P)
	for i, item := range items {
		if i > 0 {
			n.AppendChild(textNode(separator))
		}
		moveChildren(item, n)
	}
}

// rename changes the name of an element, which loses its attributes.
func rename(n *html.Node, kind atom.Atom) {
	n.DataAtom, n.Data, n.Attr = kind, kind.String(), nil
}

func moveChildren(from, to *html.Node) {
	for from.FirstChild != nil {
		c := from.FirstChild
		from.RemoveChild(c)
		to.AppendChild(c)
	}
}

func removeChildren(n *html.Node) {
	for n.FirstChild != nil {
		n.RemoveChild(n.FirstChild)
	}
}

func setText(n *html.Node, text string) {
	removeChildren(n)
	n.AppendChild(textNode(text))
}

// find returns the first element in a node that is wanted, or nil.
func find(n *html.Node, wanted func(*html.Node) bool) *html.Node {
	for c := range n.Descendants() {
		if wanted(c) {
			return c
		}
	}
	return nil
}

func hasAttribute(n *html.Node, name string) bool {
	return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == name })
}

func hasClass(n *html.Node, class string) bool {
	if n == nil {
		return false
	}
	return slices.Contains(strings.Fields(attribute(n, "class")), class)
}

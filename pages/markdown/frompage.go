package markdown

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// FromPage returns the content of a page as Markdown, without what is only of use in a
// browser: forms, menus, the outline, and folded things unfolded. The content is the main
// element. link returns the URL for each link.
func FromPage(page []byte, link func(url string) string) ([]byte, error) {
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
	text, err := toMarkdown().ConvertNode(content)
	if err != nil {
		return nil, fmt.Errorf("writing a page as Markdown: %w", err)
	}
	return append(bytes.TrimSpace(text), '\n'), nil
}

var toMarkdown = sync.OnceValue(func() *converter.Converter {
	return converter.NewConverter(converter.WithPlugins(
		base.NewBasePlugin(),
		commonmark.NewCommonmarkPlugin(commonmark.WithHeadingStyle(commonmark.HeadingStyleATX), commonmark.WithListEndComment(false)),
		table.NewTablePlugin(table.WithSpanCellBehavior(table.SpanBehaviorMirror), table.WithNewlineBehavior(table.NewlineBehaviorPreserve), table.WithHeaderPromotion(true), table.WithCellPaddingBehavior(table.CellPaddingBehaviorMinimal)),
	))
})

// simplify changes the tree of a page to one of which each element has a form in Markdown.
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
	case atom.A: // to a heading itself
		return textOf(n) == "#"
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
		n.Attr = []html.Attribute{{Key: "src", Val: attribute(n, "src")}, {Key: "alt", Val: attribute(n, "alt")}}
	case atom.Code:
		// An abbreviated hash has the whole one as its title.
		if whole := attribute(n, "title"); whole != "" {
			setText(n, whole)
		}
	case atom.Span:
		if hasClass(n, "tally") {
			setText(n, " ("+textOf(n)+")")
		} else if hasClass(n, "chip") && !hasClass(n.Parent, "flags") {
			setText(n, "("+textOf(n)+")")
		}
	case atom.Ul, atom.Ol:
		if hasClass(n.Parent, "tabs") || hasClass(n, "chips") || hasClass(n, "meta") || hasClass(n, "crumbs") {
			joinItems(n)
		}
	case atom.Summary:
		rename(n, atom.P)
	case atom.Details, atom.Nav, atom.Section, atom.Aside, atom.Article:
		rename(n, atom.Div)
	case atom.Dl:
		simplifyList(n)
	}
}

// simplifyList makes headings of the terms of a list of entries, and items of the terms of
// other lists.
func simplifyList(n *html.Node) {
	entries := hasClass(n, "entries")
	var terms [][2]*html.Node
	var term *html.Node
	var collect func(*html.Node)
	collect = func(in *html.Node) {
		for c := in.FirstChild; c != nil; c = c.NextSibling {
			switch c.DataAtom {
			case atom.Dt:
				term = c
			case atom.Dd:
				if term != nil {
					terms = append(terms, [2]*html.Node{term, c})
				}
				term = nil
			case atom.Div:
				collect(c)
			}
		}
	}
	collect(n)
	for n.FirstChild != nil {
		n.RemoveChild(n.FirstChild)
	}
	kind := atom.Ul
	if entries {
		kind = atom.Div
	}
	rename(n, kind)
	for _, t := range terms {
		if entries {
			heading := element(atom.H3)
			moveChildren(t[0], heading)
			n.AppendChild(heading)
			moveChildren(t[1], n)
			continue
		}
		item := element(atom.Li)
		moveChildren(t[0], item)
		item.AppendChild(&html.Node{Type: html.TextNode, Data: ": "})
		moveChildren(t[1], item)
		n.AppendChild(item)
	}
}

// joinItems makes one line of short items.
func joinItems(n *html.Node) {
	var items []*html.Node
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.DataAtom == atom.Li {
			items = append(items, c)
		}
	}
	for n.FirstChild != nil {
		n.RemoveChild(n.FirstChild)
	}
	separator := " · "
	if hasClass(n, "crumbs") {
		separator = " / "
	}
	rename(n, atom.P)
	for i, item := range items {
		if i > 0 {
			n.AppendChild(&html.Node{Type: html.TextNode, Data: separator})
		}
		moveChildren(item, n)
	}
}

func element(kind atom.Atom) *html.Node {
	return &html.Node{Type: html.ElementNode, DataAtom: kind, Data: kind.String()}
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

func setText(n *html.Node, text string) {
	for n.FirstChild != nil {
		n.RemoveChild(n.FirstChild)
	}
	n.AppendChild(&html.Node{Type: html.TextNode, Data: text})
}

func find(n *html.Node, wanted func(*html.Node) bool) *html.Node {
	if wanted(n) {
		return n
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if found := find(c, wanted); found != nil {
			return found
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

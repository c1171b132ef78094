package markdown

import (
	"bytes"
	"io"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// maxDepth is how deep elements of a text are nested. Elements below it lose their
// tags, but not their content.
const maxDepth = 100

// A markupTree is HTML that others wrote, as a tree in which every element is closed
// and at a place where HTML allows it. Browsers read such HTML as the same tree, so
// that it cannot change the page around it. It is made in one pass over the tags. The
// algorithm that browsers use can make millions of elements of a few lines.
type markupTree struct {
	root *html.Node
	open []*html.Node // from the root to the element that is being filled
}

// newMarkupTree reads HTML.
func newMarkupTree(source []byte) *markupTree {
	t := &markupTree{root: element(atom.Div)}
	t.open = []*html.Node{t.root}
	z := html.NewTokenizer(bytes.NewReader(source))
	for z.Next() != html.ErrorToken {
		switch token := z.Token(); token.Type {
		case html.TextToken:
			t.text(token.Data)
		case html.StartTagToken, html.SelfClosingTagToken:
			t.start(token)
		case html.EndTagToken:
			t.end(token.DataAtom)
		}
	}
	return t
}

// write writes the tree as HTML.
func (t *markupTree) write(w io.Writer) error {
	for n := t.root.FirstChild; n != nil; n = n.NextSibling {
		if err := html.Render(w, n); err != nil {
			return err
		}
	}
	return nil
}

func (t *markupTree) current() *html.Node { return t.open[len(t.open)-1] }

func (t *markupTree) text(s string) {
	if strings.TrimSpace(s) != "" {
		t.place(0)
	} else if _, ok := onlyIn[t.current().DataAtom]; ok {
		return // space between the rows of a table
	}
	t.current().AppendChild(textNode(s))
}

func (t *markupTree) start(token html.Token) {
	t.closeBefore(token.DataAtom)
	if !t.place(token.DataAtom) || len(t.open) > maxDepth {
		return
	}
	n := &html.Node{Type: html.ElementNode, Data: token.Data, DataAtom: token.DataAtom, Attr: token.Attr}
	t.current().AppendChild(n)
	if !slices.Contains(voidElements, token.DataAtom) {
		t.open = append(t.open, n)
	}
}

var voidElements = []atom.Atom{atom.Br, atom.Hr, atom.Img}

func (t *markupTree) end(tag atom.Atom) {
	t.closeUpTo([]atom.Atom{tag}, cells)
}

// closeUpTo closes the innermost open element with one of the tags, and all open
// elements in it. It closes nothing if there is a boundary in between.
func (t *markupTree) closeUpTo(tags, boundaries []atom.Atom) {
	for i := len(t.open) - 1; i > 0; i-- {
		switch tag := t.open[i].DataAtom; {
		case slices.Contains(tags, tag):
			t.open = t.open[:i]
			return
		case slices.Contains(boundaries, tag):
			// The end of a table ends its cells.
			if !slices.ContainsFunc(tags, tablePart) {
				return
			}
		}
	}
}

var (
	cells    = []atom.Atom{atom.Td, atom.Th, atom.Caption}
	headings = []atom.Atom{atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6}
	blocks   = append([]atom.Atom{
		atom.P, atom.Hr, atom.Div, atom.Blockquote, atom.Pre, atom.Details, atom.Summary,
		atom.Ul, atom.Ol, atom.Li, atom.Dl, atom.Dt, atom.Dd, atom.Table,
	}, headings...)
)

func tablePart(a atom.Atom) bool {
	switch a {
	case atom.Table, atom.Caption, atom.Thead, atom.Tbody, atom.Tfoot, atom.Tr, atom.Td, atom.Th:
		return true
	}
	return false
}

// closeBefore closes the elements that a start tag closes in HTML: a paragraph before a
// block, an item before the next item, a link before a link.
func (t *markupTree) closeBefore(tag atom.Atom) {
	if slices.Contains(blocks, tag) {
		t.closeUpTo([]atom.Atom{atom.P}, cells)
	}
	switch tag {
	case atom.A:
		t.closeUpTo([]atom.Atom{atom.A}, cells)
	case atom.Li:
		t.closeUpTo([]atom.Atom{atom.Li}, append(cells, atom.Ul, atom.Ol))
	case atom.Dt, atom.Dd:
		t.closeUpTo([]atom.Atom{atom.Dt, atom.Dd}, append(cells, atom.Dl))
	case atom.Td, atom.Th:
		t.closeInTable(atom.Td, atom.Th)
	case atom.Tr:
		t.closeInTable(atom.Tr)
	case atom.Caption, atom.Thead, atom.Tbody, atom.Tfoot:
		t.closeInTable(atom.Caption, atom.Thead, atom.Tbody, atom.Tfoot, atom.Tr)
	default:
		if slices.Contains(headings, tag) {
			t.closeUpTo(headings, cells)
		}
	}
}

// closeInTable closes the outermost element with one of the tags that is open in the
// innermost table.
func (t *markupTree) closeInTable(tags ...atom.Atom) {
	at := 0
	for i := len(t.open) - 1; i > 0 && t.open[i].DataAtom != atom.Table; i-- {
		if slices.Contains(tags, t.open[i].DataAtom) {
			at = i
		}
	}
	if at > 0 {
		t.open = t.open[:at]
	}
}

// onlyIn are the elements that may contain only certain other elements, with the
// element to put in between if anything else comes.
var onlyIn = map[atom.Atom]struct {
	tags    []atom.Atom
	between atom.Atom
}{
	atom.Ul:    {[]atom.Atom{atom.Li}, atom.Li},
	atom.Ol:    {[]atom.Atom{atom.Li}, atom.Li},
	atom.Dl:    {[]atom.Atom{atom.Dt, atom.Dd}, atom.Dd},
	atom.Table: {[]atom.Atom{atom.Caption, atom.Thead, atom.Tbody, atom.Tfoot, atom.Tr}, atom.Tr},
	atom.Thead: {[]atom.Atom{atom.Tr}, atom.Tr},
	atom.Tbody: {[]atom.Atom{atom.Tr}, atom.Tr},
	atom.Tfoot: {[]atom.Atom{atom.Tr}, atom.Tr},
	atom.Tr:    {[]atom.Atom{atom.Td, atom.Th}, atom.Td},
}

// place opens the elements that have to be between the current one and an element with
// the tag, which is zero for text. It reports whether the element may be there.
func (t *markupTree) place(tag atom.Atom) bool {
	for {
		in, ok := onlyIn[t.current().DataAtom]
		if !ok || slices.Contains(in.tags, tag) {
			break
		}
		n := element(in.between)
		t.current().AppendChild(n)
		t.open = append(t.open, n)
	}
	switch parent := t.current().DataAtom; tag {
	case atom.Li:
		return parent == atom.Ul || parent == atom.Ol
	case atom.Dt, atom.Dd:
		return parent == atom.Dl
	case atom.Caption, atom.Thead, atom.Tbody, atom.Tfoot, atom.Tr, atom.Td, atom.Th:
		_, ok := onlyIn[parent]
		return ok
	}
	return true
}

// textOf returns the text of an element, with the alternative texts of its images.
func textOf(n *html.Node) string {
	var b strings.Builder
	for c := range n.Descendants() {
		switch {
		case c.Type == html.TextNode:
			b.WriteString(c.Data)
		case c.DataAtom == atom.Img:
			b.WriteString(attribute(c, "alt"))
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

func element(kind atom.Atom, attributes ...html.Attribute) *html.Node {
	return &html.Node{Type: html.ElementNode, DataAtom: kind, Data: kind.String(), Attr: attributes}
}

func textNode(text string) *html.Node { return &html.Node{Type: html.TextNode, Data: text} }

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// setAttribute sets an attribute, or removes it if the value is empty.
func setAttribute(n *html.Node, name, value string) {
	n.Attr = slices.DeleteFunc(n.Attr, func(a html.Attribute) bool { return a.Key == name })
	if value != "" {
		n.Attr = append(n.Attr, html.Attribute{Key: name, Val: value})
	}
}

// wrap puts an element between a node and its parent.
func wrap(n, in *html.Node) {
	n.Parent.InsertBefore(in, n)
	n.Parent.RemoveChild(n)
	in.AppendChild(n)
}

// unwrap replaces an element by its content.
func unwrap(n *html.Node) {
	for c := n.FirstChild; c != nil; c = n.FirstChild {
		n.RemoveChild(c)
		n.Parent.InsertBefore(c, n)
	}
	n.Parent.RemoveChild(n)
}

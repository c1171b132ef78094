package markdown

import (
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// A README can have a page for which writing Markdown would take minutes, or gigabytes:
// each line in nested lists and quotes repeats what they begin with, and each row of a table
// is filled up to the widest. Real pages stay far below these bounds.
const (
	// maxQuoted is how deep lists and quotes are nested. Deeper ones lose their marks.
	maxQuoted = 12

	// maxWritten is about how many bytes a page has as Markdown. The rest is left out, and
	// the page says so.
	maxWritten = 2 << 20
)

const writtenInPart = "The rest of this page is left out here, because it is too long. The HTML page has it."

// pageBounds are the room that is left for a page as Markdown.
type pageBounds struct {
	text, cells int
	cut         bool // something was left out
}

// apply removes from the tree of a page what goes beyond the bounds. Each line in n begins
// with so many bytes.
func (b *pageBounds) apply(n *html.Node, quoted, indent int) {
	for c := n.FirstChild; c != nil; {
		next := c.NextSibling
		if b.text -= written(c, indent); b.text < 0 {
			n.RemoveChild(c)
			b.cut = true
		} else if c.Type == html.ElementNode {
			b.element(c, quoted, indent)
		}
		c = next
	}
}

func (b *pageBounds) element(n *html.Node, quoted, indent int) {
	switch n.DataAtom {
	case atom.Blockquote, atom.Ul, atom.Ol:
		mark := len("> ")
		if n.DataAtom == atom.Ol {
			mark = len("123456789. ") // a number has no more digits
		}
		if quoted == maxQuoted {
			b.apply(n, quoted, indent)
			rename(n, atom.Div)
			for c := range n.ChildNodes() {
				if c.DataAtom == atom.Li {
					rename(c, atom.Div)
				}
			}
			return
		}
		quoted, indent = quoted+1, indent+mark
	case atom.Table:
		rows, columns := filledUp(n)
		if rows*columns > b.cells {
			defer withoutTable(n)
			break
		}
		b.cells -= rows * columns
	case atom.Td, atom.Th:
		indent += len("<br />")
	case atom.B, atom.Strong, atom.I, atom.Em, atom.S, atom.Strike, atom.Del:
		indent += len("****") // each line has them
	}
	b.apply(n, quoted, indent)
}

// written returns about how many bytes a node has without its children.
func written(n *html.Node, indent int) int {
	switch {
	case n.Type == html.TextNode:
		return len(n.Data) + strings.Count(n.Data, "\n")*indent
	case slices.Contains(blocks, n.DataAtom) || tablePart(n.DataAtom) || n.DataAtom == atom.Br:
		return 2 * (1 + indent) // lines
	}
	return len("[]()") + len(attribute(n, "href")) + len(attribute(n, "src")) + len(attribute(n, "alt"))
}

// filledUp returns how many cells a table has in each direction once it is filled up.
func filledUp(table *html.Node) (rows, columns int) {
	for n := range table.Descendants() {
		if n.DataAtom != atom.Tr {
			continue
		}
		rows++
		cells := 0
		for range n.ChildNodes() {
			cells++
		}
		columns = max(columns, cells)
	}
	return rows, columns
}

// withoutTable makes a line of each row.
func withoutTable(table *html.Node) {
	var parts []*html.Node
	for n := range table.Descendants() {
		if tablePart(n.DataAtom) {
			parts = append(parts, n)
		}
	}
	rename(table, atom.Div)
	for _, n := range parts {
		switch n.DataAtom {
		case atom.Td, atom.Th:
			rename(n, atom.Span)
			n.AppendChild(textNode(" "))
		default:
			rename(n, atom.Div)
		}
	}
}

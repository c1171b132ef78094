package markdown

import (
	"strings"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// hasRightToLeft reports whether a text has letters that are written from right to left.
// In most texts there are none, and nothing has to be said about direction.
func hasRightToLeft(source string) bool {
	return strings.IndexFunc(source, func(r rune) bool {
		return r >= 0x590 && unicode.In(r, unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana, unicode.Nko)
	}) >= 0
}

// direct lets the first letter of each block at the top of a text decide on its direction.
// Blocks in it follow, so that a list has its bullets on one side. An author may have said
// otherwise.
func direct(n *html.Node) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		switch {
		case c.Type != html.ElementNode || attribute(c, "dir") != "":
		case c.DataAtom == atom.Div:
			direct(c)
		default:
			setAttribute(c, "dir", "auto")
		}
	}
}

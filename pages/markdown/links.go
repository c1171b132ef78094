package markdown

import (
	"cmp"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// A preparation makes the tree of a text part of a page.
type preparation struct {
	Text
	ids      map[string]bool
	elements []*html.Node // all elements, in the order of the text
	outline  []Heading
}

// prepare corrects ids, headings, images, links and tables, and returns the outline.
func (t *markupTree) prepare(m Text) []Heading {
	p := &preparation{Text: m, ids: make(map[string]bool)}
	for n := range t.root.Descendants() {
		if n.Type == html.ElementNode {
			p.elements = append(p.elements, n)
		}
	}
	for _, n := range p.elements {
		p.explicitID(n)
	}
	p.headings()
	for _, n := range p.elements {
		switch n.DataAtom {
		case atom.Img:
			p.image(n)
		case atom.Table:
			p.table(n)
		case atom.Th:
			if textOf(n) == "" {
				n.DataAtom, n.Data = atom.Td, "td" // an empty head describes no column
			}
		case atom.Summary:
			if textOf(n) == "" {
				n.AppendChild(textNode("Details"))
			}
		case atom.Span:
			if strings.HasPrefix(attribute(n, "class"), "task") && n.Parent != nil {
				taskItem(n)
			}
		}
	}
	for _, n := range p.elements {
		if n.DataAtom == atom.A {
			p.link(n) // after the images in it, which may have become links
		}
	}
	if hasRightToLeft(m.Source) {
		direct(t.root)
	}
	return p.outline
}

// explicitID keeps the id that the text gives to an element, with the prefix, and makes
// an id of the name of an anchor. The first of several equal ids counts.
func (p *preparation) explicitID(n *html.Node) {
	id := cmp.Or(attribute(n, "id"), attribute(n, "name"))
	setAttribute(n, "name", "")
	setAttribute(n, "id", "")
	if id = p.Prefix + id; id != p.Prefix && p.Prefix != "" && !p.ids[id] {
		p.ids[id] = true
		setAttribute(n, "id", id)
	}
}

// headings gives the headings levels that follow each other, below the headings of the
// page, and ids like GitHub's. It collects the outline.
func (p *preparation) headings() {
	var above []atom.Atom // the headings that a heading is below, as they were written
	used := make(map[string]int)
	highest := 2
	if p.Quoted {
		highest = 3
	}
	for _, n := range p.elements {
		if !slices.Contains(headings, n.DataAtom) {
			continue
		}
		text := textOf(n)
		if text == "" {
			unwrap(n)
			continue
		}
		for len(above) > 0 && above[len(above)-1].String() >= n.Data {
			above = above[:len(above)-1]
		}
		above = append(above, n.DataAtom)
		level := min(highest+len(above)-1, 6)
		n.Data = "h" + strconv.Itoa(level)
		n.DataAtom = atom.Lookup([]byte(n.Data))
		if p.Prefix == "" || len(p.outline) == maxHeadings {
			continue
		}
		id := attribute(n, "id")
		if id == "" {
			id = p.uniqueID(p.Prefix+cmp.Or(slug(text), "section"), used)
			setAttribute(n, "id", id)
		}
		if !hasAncestor(n, atom.A) {
			n.AppendChild(textNode(" "))
			n.AppendChild(anchor(id))
		}
		p.outline = append(p.outline, Heading{Level: level, Text: text, ID: id})
	}
	p.outline = shownOutline(p.outline)
}

// uniqueID returns an id that is not used yet. Like GitHub, it counts equal ones.
func (p *preparation) uniqueID(id string, used map[string]int) string {
	next := id
	for p.ids[next] {
		used[id]++
		next = id + "-" + strconv.Itoa(used[id])
	}
	p.ids[next] = true
	return next
}

// shownOutline returns the part of the outline that is worth showing: two levels. It
// leaves out the title of the text if all other headings are below it.
func shownOutline(all []Heading) []Heading {
	top := 2
	if len(all) > 1 && !slices.ContainsFunc(all[1:], func(e Heading) bool { return e.Level == 2 }) {
		top = 3
	}
	var shown []Heading
	for _, e := range all {
		if e.Level == top || e.Level == top+1 {
			shown = append(shown, Heading{Level: e.Level - top + 2, Text: e.Text, ID: e.ID})
		}
	}
	return shown
}

// anchor returns the link to a heading that is shown beside it. Screen readers have the
// outline instead.
func anchor(id string) *html.Node {
	a := element(atom.A,
		html.Attribute{Key: "class", Val: "anchor"}, html.Attribute{Key: "href", Val: fragment(id)},
		html.Attribute{Key: "aria-hidden", Val: "true"}, html.Attribute{Key: "tabindex", Val: "-1"},
	)
	a.AppendChild(textNode("#"))
	return a
}

// slug returns the name that GitHub gives to a heading.
func slug(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.In(r, unicode.Letter, unicode.Mark, unicode.Nd, unicode.Pc):
			return r
		}
		return -1
	}, strings.ToLower(strings.TrimSpace(heading)))
}

// image keeps an image of the package. Another image would be loaded from another site,
// which a page never does: it becomes a link, or only a text if it is already in a
// link.
func (p *preparation) image(n *html.Node) {
	alt := strings.TrimSpace(attribute(n, "alt"))
	ref, external := p.reference(attribute(n, "src"))
	if external == "" {
		if src := p.resolve(ref, true); src != "" {
			setAttribute(n, "src", src)
			setAttribute(n, "loading", "lazy")
			setAttribute(n, "alt", "")
			n.Attr = append(n.Attr, html.Attribute{Key: "alt", Val: alt}) // even an empty one
			return
		}
	}
	if external != "" && !hasAncestor(n, atom.A) {
		a := element(atom.A, html.Attribute{Key: "href", Val: external})
		wrap(n, a)
		p.elements = append(p.elements, a)
		alt = cmp.Or(alt, "image")
	}
	n.Parent.InsertBefore(textNode(alt), n)
	n.Parent.RemoveChild(n)
}

func hasAncestor(n *html.Node, tags ...atom.Atom) bool {
	for a := range n.Ancestors() {
		if slices.Contains(tags, a.DataAtom) {
			return true
		}
	}
	return false
}

// link sets where a link leads, or makes text of a link that leads nowhere.
func (p *preparation) link(n *html.Node) {
	href := attribute(n, "href")
	setAttribute(n, "href", "")
	ref, external := p.reference(href)
	switch {
	case href == "":
	case external != "":
		setAttribute(n, "href", external)
		if !strings.HasPrefix(external, "mailto:") {
			setAttribute(n, "rel", externalLink)
		}
	case ref.fragment != "" && ref.path == "" && !ref.rooted:
		if p.Prefix != "" {
			setAttribute(n, "href", fragment(p.target(ref.fragment)))
		}
	default:
		if to := p.resolve(ref, false); to != "" {
			switch {
			case isLine(ref.fragment):
				to += fragment(ref.fragment)
			case ref.fragment != "":
				to += fragment(p.Prefix + ref.fragment)
			}
			setAttribute(n, "href", to)
		}
	}
	switch linked := attribute(n, "href") != ""; {
	case linked && textOf(n) == "" && n.Parent != nil:
		n.AppendChild(textNode(linkText(href)))
	case !linked && attribute(n, "id") == "":
		unwrap(n)
	case !linked: // another link may lead here
		setAttribute(n, "title", "")
		n.DataAtom, n.Data = atom.Span, "span"
	}
}

// isLine reports whether a fragment is of lines of a file, such as L12 or L3-L9.
func isLine(fragment string) bool {
	for part := range strings.SplitSeq(fragment, "-") {
		digits, ok := strings.CutPrefix(part, "L")
		if !ok || digits == "" || strings.Trim(digits, "0123456789") != "" {
			return false
		}
	}
	return true
}

// target returns the id that a link within the text means. It compares ids as they are
// written, and then in lower case, as GitHub's pages do.
func (p *preparation) target(name string) string {
	for _, id := range []string{p.Prefix + name, p.Prefix + strings.ToLower(name)} {
		if p.ids[id] {
			return id
		}
	}
	return p.Prefix + name
}

// linkText returns the text for a link that has none.
func linkText(href string) string {
	if u, err := url.Parse(href); err == nil && u.Host != "" {
		return u.Host
	}
	return "link"
}

// A relative is a parsed relative URL.
type relative struct {
	path     string
	fragment string
	rooted   bool // it begins with a slash
	outside  bool // a text may not have such a URL
}

// reference parses the URL of a link or image. It returns an external URL complete, and
// as our parser writes it, so that a browser cannot take it for something else.
func (p *preparation) reference(raw string) (_ relative, external string) {
	u, err := url.Parse(strings.TrimSpace(raw))
	if err != nil || strings.Contains(u.Path, "\\") {
		return relative{outside: true}, ""
	}
	switch scheme := strings.ToLower(u.Scheme); {
	case (scheme == "http" || scheme == "https") && u.Host != "":
		return relative{}, u.String()
	case scheme == "mailto" && u.Opaque != "":
		return relative{}, u.String()
	case scheme == "" && u.Host != "":
		u.Scheme = "https"
		return relative{}, u.String()
	case scheme != "" || u.Host != "":
		return relative{outside: true}, ""
	}
	return relative{path: u.Path, fragment: u.Fragment, rooted: strings.HasPrefix(u.Path, "/")}, ""
}

// resolve returns the URL for a relative one within the package. It is empty if the
// link leads nowhere.
func (p *preparation) resolve(r relative, image bool) string {
	if p.Resolve == nil || r.outside || r.path == "" {
		return ""
	}
	to := path.Clean(r.path)
	if !r.rooted {
		to = path.Join(p.Folder, r.path)
	}
	switch to = strings.TrimPrefix(to, "/"); {
	case to == "..", strings.HasPrefix(to, "../"):
		return ""
	case to == ".":
		to = ""
	}
	return p.Resolve(Reference{Path: to, Image: image})
}

// table puts a table into an element that scrolls, also by keyboard.
func (p *preparation) table(n *html.Node) {
	if !hasAncestor(n, atom.Table) {
		wrap(n, element(atom.Div, html.Attribute{Key: "class", Val: "scroll"}, html.Attribute{Key: "tabindex", Val: "0"}))
	}
}

// taskItem marks the list item that contains a box, so that it is shown without a
// bullet.
func taskItem(box *html.Node) {
	for a := range box.Ancestors() {
		if a.DataAtom == atom.Li {
			setAttribute(a, "class", "task-item")
			return
		}
	}
}

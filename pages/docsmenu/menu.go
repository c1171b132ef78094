// Package docsmenu decides to which pages of a provider's documentation a page leads, and how
// one of many pages is found.
package docsmenu

import (
	"slices"

	"github.com/caddy-terraform/caddy-terraform-registry/index/content"
)

// A Menu leads to all pages of the documentation: to each of them, or if there are too many
// for one page, to those near the page that is shown and to lists of the others.
type Menu struct {
	Overview Link
	Groups   []Group
	Pages    int
	LeftOut  int // the number of pages that are not shown, because there are too many

	// All is the list of all pages; empty if the menu has each of them.
	All string
}

// A Group has the pages that belong together: guides, one kind of page, or one
// subcategory.
type Group struct {
	Title    string
	Open     bool
	Count    int
	Sections []Section

	// List is the list of its pages; empty if the menu has each of them.
	List string

	// Current reports that the list of its pages is shown.
	Current bool

	pages []*content.DocPage
}

// A Section has the pages of one kind in a group. It may have no title if the group
// has only one kind.
type Section struct {
	Title string
	Links []Link
}

// A Link leads to a page of the documentation.
type Link struct {
	Text, URL string
	Current   bool
}

// URLs are the URLs of pages of documentation, and of the lists of the pages of a group, or of
// all of them if the group has no title.
type URLs struct {
	Page func(*content.DocPage) string
	List func(group string) string
}

// How much of a menu is shown at once.
const (
	maxOpen   = 40  // pages of a menu that is not folded
	maxPages  = 300 // pages of a menu that has all of them
	maxNear   = 100 // pages of the group of the page that is shown, if the menu has not all
	maxGroups = 200
)

// New arranges pages of documentation, which are already in the order of the menu. current is
// the page that is shown, or nil; then group is the title of the group whose pages are listed,
// if any.
func New(d *content.Docs, typ string, current *content.DocPage, group string, urls URLs) Menu {
	m := Menu{Overview: Link{Text: "Overview"}, Pages: len(d.Pages), LeftOut: d.LeftOut}
	link := func(p *content.DocPage) Link { return Link{Label(p, typ), urls.Page(p), p == current} }
	at := 0 // the group of the page that is shown
	for i := range d.Pages {
		p := &d.Pages[i]
		if p.Category == content.DocOverview {
			m.Overview = link(p)
			continue
		}
		title, _ := place(p)
		if len(m.Groups) == 0 || m.Groups[len(m.Groups)-1].Title != title {
			m.Groups = append(m.Groups, Group{Title: title, Open: len(d.Pages) <= maxOpen})
		}
		last := len(m.Groups) - 1
		g := &m.Groups[last]
		g.pages = append(g.pages, p)
		g.Count++
		if g.Current = current == nil && title == group; p == current || g.Current {
			at, g.Open = last, true
		}
	}
	whole := len(d.Pages) <= maxPages
	if !whole {
		m.All = urls.List("")
		m.Groups = near(m.Groups, at, maxGroups)
	}
	for i := range m.Groups {
		g := &m.Groups[i]
		shown := g.pages
		if !whole {
			g.List = urls.List(g.Title)
			shown = nil
			if at := slices.Index(g.pages, current); current != nil && at >= 0 {
				shown = near(g.pages, at, maxNear)
			}
		}
		for _, p := range shown {
			_, section := place(p)
			if len(g.Sections) == 0 || g.Sections[len(g.Sections)-1].Title != section {
				g.Sections = append(g.Sections, Section{Title: section})
			}
			s := &g.Sections[len(g.Sections)-1]
			s.Links = append(s.Links, link(p))
		}
	}
	return m
}

// near returns at most so many of a list, about the one with that index.
func near[T any](list []T, at, most int) []T {
	first := max(0, min(at-most/2, len(list)-most))
	return list[first:min(first+most, len(list))]
}

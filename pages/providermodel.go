package pages

import (
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/markdown"
)

// A providerPage is one tab of the page of a provider.
type providerPage struct {
	page
	heading
	sidebar

	// Tab is which of the following is shown, by its name in the URL.
	Tab string

	Packages  packages
	Signature signature
	Versions  []versionGroup[releaseRow]
}

// The tabs of a provider's page, by their names in URLs. Documentation has URLs of its
// own, and versions are tabVersions.
const (
	tabOverview = "overview"
	tabDocs     = "docs"
)

// packages are the files of a release that clients download.
type packages struct {
	Rows []packageRow

	// Missing are the platforms whose packages the publisher has, and this registry not.
	Missing []string

	// Checksums and Signature are the documents that vouch for them; Signature is
	// without a URL if there is none.
	Checksums, Signature link
}

// A packageRow is the package for one platform.
type packageRow struct {
	Platform   string
	File       link
	Size       string
	SHA256, H1 fact
}

// A signature says who vouches for a release.
type signature struct {
	Title string
	Text  string
	Facts []fact
}

// A releaseRow is a release in the list of all.
type releaseRow struct {
	Version, URL string
	Published    time.Time
	Platforms    int
	Signed       string
	Chips        []chip
	Reason       string // why it is deprecated or withdrawn
}

func (r releaseRow) number() string { return r.Version }

// A docsPage is a page of a provider's documentation.
type docsPage struct {
	page
	heading

	Content  prose
	Cut      bool // it is longer than what is shown
	Outline  []markdown.Heading
	Contents docsMenu
}

// A docsMenu leads to all pages of the documentation.
type docsMenu struct {
	Overview docLink
	Groups   []docGroup
	Pages    int
	LeftOut  int // pages beyond what a registry shows
}

// A docGroup is pages that belong together: guides, those of one kind, or those of a
// subcategory.
type docGroup struct {
	Title    string
	Open     bool
	Count    int
	Sections []docSection
}

// A docSection is the pages of one kind in a group. A group of only one kind may have
// no title.
type docSection struct {
	Title string
	Links []docLink
}

// A docLink leads to a page of the documentation.
type docLink struct {
	Text, URL string
	Current   bool
}

// docTitles are the titles of the categories in a menu.
var docTitles = map[index.DocCategory]string{
	index.DocGuides: "Guides", index.DocResources: "Resources", index.DocDataSources: "Data sources",
	index.DocEphemeralResources: "Ephemeral resources", index.DocListResources: "List resources",
	index.DocActions: "Actions", index.DocFunctions: "Functions",
}

// docLabel is the name of a page in a menu. Those of resources are as configurations
// have them.
func docLabel(p *index.DocPage, typ string) string {
	switch p.Category {
	case index.DocOverview:
		return "Overview"
	case index.DocFunctions:
		return p.Slug
	case index.DocGuides:
		if p.Title != "" {
			return p.Title
		}
		return p.Slug
	}
	return resourceName(p.Slug, typ)
}

// resourceName is the type of a resource whose page has a name, which may be with the
// provider's name before it or without.
func resourceName(slug, typ string) string {
	if slug == typ || len(slug) > len(typ) && slug[:len(typ)+1] == typ+"_" {
		return slug
	}
	return typ + "_" + slug
}

// maxOpenPages is how many pages a menu may have to be shown with all of them.
const maxOpenPages = 40

// newDocsMenu arranges the pages of a documentation, which are in the order of a menu
// already. url is that of a page; current is the one that is shown, or nil.
func newDocsMenu(d *index.Docs, typ string, current *index.DocPage, url func(*index.DocPage) string) docsMenu {
	m := docsMenu{Overview: docLink{Text: "Overview"}, Pages: len(d.Pages), LeftOut: d.LeftOut}
	for i := range d.Pages {
		p := &d.Pages[i]
		l := docLink{Text: docLabel(p, typ), URL: url(p), Current: p == current}
		kind := docTitles[p.Category]
		if p.Category == index.DocOverview {
			m.Overview = l
			continue
		}
		title, section := p.Subcategory, kind
		if p.Subcategory == "" || p.Category == index.DocGuides {
			title, section = kind, ""
		}
		if len(m.Groups) == 0 || m.Groups[len(m.Groups)-1].Title != title {
			m.Groups = append(m.Groups, docGroup{Title: title, Open: len(d.Pages) <= maxOpenPages})
		}
		g := &m.Groups[len(m.Groups)-1]
		if len(g.Sections) == 0 || g.Sections[len(g.Sections)-1].Title != section {
			g.Sections = append(g.Sections, docSection{Title: section})
		}
		s := &g.Sections[len(g.Sections)-1]
		s.Links = append(s.Links, l)
		g.Count++
		g.Open = g.Open || l.Current
	}
	return m
}

package pages

import (
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index/content"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/snippet"
)

// A providerPage is a tab of the page of a provider.
type providerPage struct {
	page
	heading
	sidebar

	// Tab selects one of the following fields, by its name in the URL.
	Tab string

	Packages  packages
	Signature signature
	Versions  []versionGroup[releaseRow]
	UsedBy    usedBy
}

// The tabs of a provider's page, by their names in URLs. The first one, which is
// documentation or else packages, has none. The tab for versions is tabVersions, and for
// modules that require the provider tabUsedBy.
const (
	tabDocs     = "docs"
	tabPackages = "packages"
)

// tabOverview was the first tab once, and is redirected.
const tabOverview = "overview"

// packages are the files of a release that clients download.
type packages struct {
	Rows []packageRow

	// Missing are the platforms whose packages the publisher has, but this registry has
	// not.
	Missing []string

	Lock snippet.Code // the block for a lock file

	// Checksums and Signature link to the documents that prove the packages. Signature
	// has no URL if there is no signature.
	Checksums, Signature link
}

// A packageRow is the package for one platform.
type packageRow struct {
	Platform   string
	File       link
	Size       string
	SHA256, H1 fact
}

// A signature says who signed a release.
type signature struct {
	Title string
	Text  string
	Facts []fact
}

// A releaseRow is a release in the list of all releases.
type releaseRow struct {
	Version, URL string
	Published    time.Time
	Platforms    int
	Signed       string
	Chips        []chip
	Reason       string // the reason for its deprecation or withdrawal
}

func (r releaseRow) number() string { return r.Version }

// A docsPage is a page of a provider's documentation.
type docsPage struct {
	page
	heading

	// On the overview, the side column has what to paste. Elsewhere it has no more than the
	// outline.
	sidebar

	Content  prose
	Cut      bool // only its beginning is shown
	Contents docsMenu
}

// A docsMenu leads to all pages of the documentation.
type docsMenu struct {
	Overview docLink
	Groups   []docGroup
	Pages    int
	LeftOut  int // the number of pages that are not shown, because there are too many
}

// A docGroup has the pages that belong together: guides, one kind of page, or one
// subcategory.
type docGroup struct {
	Title    string
	Open     bool
	Count    int
	Sections []docSection
}

// A docSection has the pages of one kind in a group. It may have no title if the group
// has only one kind.
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
var docTitles = map[content.DocCategory]string{
	content.DocGuides: "Guides", content.DocResources: "Resources", content.DocDataSources: "Data sources",
	content.DocEphemeralResources: "Ephemeral resources", content.DocListResources: "List resources",
	content.DocActions: "Actions", content.DocFunctions: "Functions",
}

// docLabel returns the name of a page in a menu. A resource has the name that
// configurations use.
func docLabel(p *content.DocPage, typ string) string {
	switch p.Category {
	case content.DocOverview:
		return "Overview"
	case content.DocFunctions:
		return p.Slug
	case content.DocGuides:
		if p.Title != "" {
			return p.Title
		}
		return p.Slug
	}
	return resourceName(p.Slug, typ)
}

// resourceName returns the type of a resource. The name of its page may have the
// provider's name before it or not.
func resourceName(slug, typ string) string {
	if slug == typ || len(slug) > len(typ) && slug[:len(typ)+1] == typ+"_" {
		return slug
	}
	return typ + "_" + slug
}

// maxOpenPages is how many pages a menu may have before it is folded.
const maxOpenPages = 40

// newDocsMenu arranges pages of documentation, which are already in the order of the
// menu. url returns the URL of a page. current is the page that is shown, or nil.
func newDocsMenu(d *content.Docs, typ string, current *content.DocPage, url func(*content.DocPage) string) docsMenu {
	m := docsMenu{Overview: docLink{Text: "Overview"}, Pages: len(d.Pages), LeftOut: d.LeftOut}
	for i := range d.Pages {
		p := &d.Pages[i]
		l := docLink{Text: docLabel(p, typ), URL: url(p), Current: p == current}
		kind := docTitles[p.Category]
		if p.Category == content.DocOverview {
			m.Overview = l
			continue
		}
		title, section := p.Subcategory, kind
		if p.Subcategory == "" || p.Category == content.DocGuides {
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

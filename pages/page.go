package pages

import (
	"html/template"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/pages/markdown"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/snippet"
)

// A page is the model of the frame. Every other model embeds it.
type page struct {
	Site  *identity
	Title string // the title of the document; the frame adds the site's name

	// Current is the entry of the navigation that the page belongs to: "modules",
	// "providers", "report", or none.
	Current string

	// Description, Canonical and Alternates are for search engines, previews of links, and
	// readers of feeds. Pages of errors have none.
	Description string
	Canonical   string // the URL of the page
	Alternates  []alternate

	// Unread reports that the page lacks something that has not been read yet.
	Unread bool

	Query string // the words of a search
	Home  bool   // the page has its own search field, and the frame has none
}

// An identity describes the registry to one visitor.
type identity struct {
	// Name is the name of the registry: its hostname, unless it has another.
	Name string

	// Hostname is the name by which clients use the registry.
	Hostname string

	// Logo is the URL of the picture beside the name, or empty.
	Logo string

	// Links are at the foot of the page.
	Links []Link

	// Base is the path of the pages, without a slash at the end. It comes before every
	// path of a page. It is empty if the pages are at the root.
	Base string

	// SignIn is the URL that asks a browser for credentials. It is empty if the visitor
	// needs none.
	SignIn string

	// User is the name of the user who is signed in, or empty.
	User string

	// Version is the version of the server, or empty if it is unknown.
	Version string

	// SignOut is the URL that signs the user out. It is empty if the user did not sign
	// in here.
	SignOut string

	// Report reports that the visitor may read the report for operators, and Log that there
	// is a page of the transparency log.
	Report, Log bool
}

// An alternate is the content of a page in another form.
type alternate struct{ Type, URL, Title string }

// A link leads to a page.
type link struct {
	Text string
	URL  string // empty: the link is only text
}

// A Link is a link that the operator of the registry adds to the pages.
type Link struct{ Text, URL string }

// A heading is the top of the page of a module or provider.
type heading struct {
	Crumbs  []link
	Before  string // less prominent parts of the name, before Name and after it
	Name    string
	After   string
	Lede    string // one paragraph
	Menu    versionMenu
	Chips   []chip
	Notices []notice
	Tabs    []tab
}

// A versionMenu leads to the other versions. If there are none, the page has no menu.
type versionMenu struct {
	Current  string
	Versions []versionLink
	All      link // the page of all versions, if the menu lacks some
}

// A versionLink is an entry of a versionMenu.
type versionLink struct {
	Version, URL string
	Chip         *chip
	Current      bool
}

// A chip is a short fact, such as "latest" or "terraform ≥ 1.3".
type chip struct {
	Label string
	Value string // set in bold after the label
	Tone  string // "good", "warn", "bad", "info", or none
	Time  time.Time
	URL   string // a link for the value; empty: the value has none
}

// A notice stands at the top of a page, where every visitor sees it.
type notice struct {
	Tone  string // the tone of a chip
	Title string
	Text  string
	Link  *link
}

// A tab leads to one of the pages about the same module or provider.
type tab struct {
	Text    string
	URL     string
	Count   int // not shown if it is zero
	Current bool
}

// A sidebar stands beside the content.
type sidebar struct {
	Use     *usage
	Facts   []fact
	Outline []markdown.Heading
}

// A usage is the configuration to paste.
type usage struct {
	Code snippet.Code
	Note string
}

// A fact is a term with its value.
type fact struct {
	Term string
	Text string
	URL  string    // a link for the text; empty: the text has none
	Of   link      // what the text is of, shown after it
	More string    // shown at the end
	Time time.Time // shown in place of the text

	// Full is the whole value of a text that is shortened. It can be copied. The text
	// is set as code.
	Full string
}

// A prose is text in Markdown, rendered and sanitised.
type prose = template.HTML

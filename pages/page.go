package pages

import (
	"github.com/caddy-terraform/caddy-terraform-registry/pages/markdown"
	"html/template"
	"time"
)

// A page is what the frame shows, and is embedded in every model.
type page struct {
	Site  *identity
	Title string // of the document; the site's name is added

	// Current is the entry of the navigation that the page belongs to: "modules",
	// "providers", "report", or none.
	Current string

	Query string // what was searched for
	Home  bool   // its search is on the page, not in the frame
}

// An identity is the registry as one visitor sees it.
type identity struct {
	// Name is the hostname by which clients use the registry.
	Name string

	// Base is the path of the pages, without a slash at the end: it comes before
	// every path of a page. Empty: they are at the root.
	Base string

	// SignIn is where a browser is asked for credentials; empty if it need not be.
	SignIn string

	// User is who is signed in; empty if nobody is.
	User string

	// Version of the server; empty if it is not known.
	Version string

	// SignOut is where the user signs out; empty if that is not done here.
	SignOut string

	// Report: the visitor may read the report for operators.
	Report bool
}

// A link leads to a page.
type link struct {
	Text string
	URL  string // empty: it is only text
}

// A heading begins the page of a module or provider.
type heading struct {
	Crumbs  []link
	Before  string // parts of the name that weigh less, before Name and after it
	Name    string
	After   string
	Lede    string // one paragraph
	Menu    versionMenu
	Chips   []chip
	Notices []notice
	Tabs    []tab
}

// A versionMenu leads to the other versions. Without any, there is none.
type versionMenu struct {
	Current  string
	Versions []versionLink
	All      link // to the page of all versions, if the menu does not have all
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
}

// A notice stands at the top of a page, where nobody overlooks it.
type notice struct {
	Tone  string // as of a chip
	Title string
	Text  string
	Link  *link
}

// A tab is one of the pages about the same module or provider.
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
	Code code
	Note string
}

// A fact is a term with its value.
type fact struct {
	Term string
	Text string
	URL  string    // of the text, if it leads somewhere
	More string    // after the text
	Time time.Time // in place of the text

	// Full is the whole value of a text that is shortened, and can be copied. The
	// text is set as code.
	Full string
}

// A prose is text in Markdown, rendered and sanitised.
type prose = template.HTML

package pages

import (
	"iter"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/pages/docsmenu"
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
	Versions  []versionGroup
	UsedBy    usedBy
}

// The tabs of a provider's page, by their names in URLs. The first one, which is
// documentation or else packages, has none. The tab for versions is tabVersions, and for
// modules that require the provider tabUsedBy.
const (
	tabDocs     = "docs"
	tabPages    = "pages" // lists of pages of the documentation
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
	Platform string
	File     link
	Size     string
	Hashes   []hash
}

// A hash is a hash of a package, with its scheme: "sha256", "h1".
type hash struct {
	Scheme string
	fact
}

// packageHashes returns the hashes of a package: its sha256, and the hashes of its files. The name of
// the package follows the scheme where a page has several packages.
func packageHashes(sum string, ofFiles iter.Seq[string], name string) []hash {
	if name != "" {
		name = " of " + name
	}
	list := []hash{{"sha256", fact{Term: "sha256" + name, Text: abbreviated(sum), Full: sum}}}
	for h := range ofFiles {
		scheme, _, _ := strings.Cut(h, ":")
		list = append(list, hash{scheme, fact{Term: scheme + name, Text: abbreviated(h), Full: h}})
	}
	return list
}

// A signature says who signed a release.
type signature struct {
	Title string
	Text  string
	Facts []fact
}

// A docsPage is a page of a provider's documentation.
type docsPage struct {
	page
	heading

	// On the overview, the side column has what to paste. Elsewhere it has no more than the
	// outline.
	sidebar

	Content  prose
	Cut      bool // only its beginning is shown
	List     docsList
	Contents docsmenu.Menu
	Find     docsForm
}

// A docsList lists pages of the documentation: of a group, or those that have words. It is
// empty on a page that shows one.
type docsList struct {
	Title string
	Total int
	Items []item
	All   string // the list of all pages; empty if this is it
	Pager pager
}

// A docsForm finds pages of the documentation.
type docsForm struct{ Action, Tab, Words string }

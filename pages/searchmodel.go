package pages

import "github.com/caddy-terraform/caddy-terraform-registry/index/catalog"

// A searchPage shows the results of a search: the first of all kinds, or all of one.
type searchPage struct {
	page

	// Blank reports that the query is empty.
	Blank bool

	// Similar reports that nothing has the words of the query, and that the results have
	// similar ones.
	Similar bool

	Kinds  []choice // the kinds, each with the number of its results
	Groups []searchGroup
	Facets []facet
	Clear  string // the page without filters; empty if there are none
}

// A searchGroup has the first of Total results of one kind.
type searchGroup struct {
	Title string
	Total int
	Items []foundItem
	All   string // the page with all results; empty if all are shown
	Pager pager
}

// A foundItem is a result. It says why it was found.
type foundItem struct {
	item
	MarkedName []catalog.Run
	Said       []catalog.Run // the description
	Why        []catalog.Reason
	Inner      []foundPart
	Of         link // the provider that a page of documentation is of
}

// A foundPart is a submodule that was found.
type foundPart struct {
	URL  string
	Name []catalog.Run
	Said []catalog.Run
	Why  []catalog.Reason
}

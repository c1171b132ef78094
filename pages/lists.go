package pages

import (
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index/catalog"
)

// An item is a module or provider in a list.
type item struct {
	Name        string // the address
	URL         string
	Version     string // the latest version
	Description string
	Owner       string
	Versions    int
	Published   time.Time
	Chips       []chip
}

// A browsePage lists all modules or all providers, or those that pass the filters.
type browsePage struct {
	page
	Heading string
	Total   int
	Items   []item
	Facets  []facet
	Clear   string // the list without filters; empty if there are no filters
	Pager   pager
	Empty   emptyTree
}

// A facet is a filter with its choices.
type facet struct {
	Title   string
	Choices []choice
	More    []choice // folded
}

// A choice leads to the list with a filter, or to the list without it if the choice is
// Current.
type choice struct {
	Text    string
	URL     string
	Count   int
	Current bool
}

// A pager leads to the other parts of a list.
type pager struct {
	Previous, Next string // empty at the ends of the list
	First, Last    int    // of the items shown, from 1
	Total          int
}

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

// An emptyTree says where the first file goes.
type emptyTree struct {
	Show      bool
	Modules   bool   // it says where modules go
	Providers bool   // it says where providers go
	SignIn    string // signing in may show more; empty if it does not
}

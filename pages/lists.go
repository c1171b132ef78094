package pages

import "time"

// An item is a module or provider in a list.
type item struct {
	Name        string // its address
	URL         string
	Version     string // the latest
	Description string
	Owner       string
	Versions    int
	Published   time.Time
	Chips       []chip

	// Parts are the submodules that a search found.
	Parts []part
}

// A browsePage lists all modules or all providers, or those that filters leave.
type browsePage struct {
	page
	Heading string
	Total   int
	Items   []item
	Facets  []facet
	Clear   string // the list without filters; empty if there are none
	Pager   pager
	Empty   emptyTree
}

// A facet is a filter with its choices.
type facet struct {
	Title   string
	Choices []choice
	More    []choice // folded
}

// A choice of a facet leads to the list with that filter, or without it if it is
// Current.
type choice struct {
	Text    string
	URL     string
	Count   int
	Current bool
}

// A pager leads to the other parts of a list.
type pager struct {
	Previous, Next string // empty at the ends
	First, Last    int    // of the items shown, from 1
	Total          int
}

// A searchPage has what a search found.
type searchPage struct {
	page
	Modules, Providers searchResults

	// Nothing was searched for.
	Blank bool
}

// searchResults are what a search found of one kind: the first of Total.
type searchResults struct {
	Items []item
	Total int
	All   string // the page with all of them; empty if these are all
	Pager pager
}

// An emptyTree says where the first file goes.
type emptyTree struct {
	Show      bool
	Modules   bool   // for modules
	Providers bool   // for providers
	SignIn    string // where there may be more to see; empty if there is not
}

package pages

import "time"

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

// An emptyTree says where the first file goes.
type emptyTree struct {
	Show      bool
	Modules   bool   // it says where modules go
	Providers bool   // it says where providers go
	SignIn    string // signing in may show more; empty if it does not
}

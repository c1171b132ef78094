package pages

import (
	"slices"
	"strconv"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/route"
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
	Orders  []choice
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

// How much a list shows at once.
const (
	pageItems     = 30
	maxChoices    = 10
	maxFurther    = 200 // choices that are folded
	foundAtOnce   = 10  // results on the page with all results, if they are of one kind
	foundAmongAll = 5   // results of each kind there, if they are of several
)

// hostedChoice is the value for hosted packages in the filter by registry.
const hostedChoice = "-"

// browse answers with a page of a list.
func (v *visit) browse() (*answer, error) {
	b := browsePage{Heading: "Modules"}
	list, current := v.view.Modules, "modules"
	if v.route.Kind == route.Providers {
		b.Heading, list, current = "Providers", v.view.Providers, "providers"
	}
	var err error
	if b.page, err = v.page(b.Heading); err != nil {
		return nil, err
	}
	b.Current = current
	all, err := list()
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		b.Empty = v.emptyTree(b.page, current == "modules", current == "providers")
		return v.orSignIn(pageAnswer("browse", b))
	}
	var chosen []handlers.Listed
	for _, l := range all {
		if v.query.matches(l.Address, "") {
			chosen = append(chosen, l)
		}
	}
	b.Total = len(chosen)
	if v.query.filters() {
		b.Clear = v.listURL(v.route, query{sort: v.query.sort})
	}
	b.Facets = v.facets(all)
	b.Orders = v.orders(len(chosen))
	chosen = v.query.ordered(chosen)
	first := min(v.query.offset, max(len(chosen)-1, 0))
	last := min(first+pageItems, len(chosen))
	for _, l := range chosen[first:last] {
		b.Items = append(b.Items, v.item(l))
	}
	b.Pager = v.pager(first, last, len(chosen), pageItems)
	return pageAnswer("browse", b)
}

// filters reports whether the query has a filter.
func (q query) filters() bool { return q.namespace != "" || q.system != "" || q.registry != "" }

// matches reports whether an address passes all filters except the one with that name.
func (q query) matches(a address.Address, but string) bool {
	return (but == "namespace" || q.namespace == "" || q.namespace == a.Namespace) &&
		(but == "provider" || q.system == "" || q.system == systemOf(a)) &&
		(but == "registry" || q.registry == "" || q.registry == registryOf(a))
}

func registryOf(a address.Address) string {
	if a.Hostname == "" {
		return hostedChoice
	}
	return string(a.Hostname)
}

// facets returns the filters, each with the choices that the other filters leave.
func (v *visit) facets(all []handlers.Listed) []facet {
	facetOf := func(title, name string, key func(address.Address) string) facet {
		counts := map[string]int{}
		for _, l := range all {
			if v.query.matches(l.Address, name) {
				counts[key(l.Address)]++
			}
		}
		return v.newFacet(title, name, counts, v.route)
	}
	facets := []facet{facetOf("Namespace", "namespace", namespaceOf)}
	if v.route.Kind == route.Modules {
		facets = append(facets, facetOf("System", "provider", systemOf))
	}
	return append(facets, facetOf("Registry", "registry", registryOf))
}

func namespaceOf(a address.Address) string { return a.Namespace }

// systemOf returns the system of a module. A provider is one itself, by its address.
func systemOf(a address.Address) string {
	if a.IsModule() {
		return a.System
	}
	return a.String()
}

// newFacet returns a filter by the parameter of that name, with what its values count. Its
// choices lead to a list.
func (v *visit) newFacet(title, name string, counts map[string]int, list route.Route) facet {
	f := facet{Title: title}
	current := *v.query.filter(name)
	if len(counts) < 2 && current == "" {
		return f // there is nothing to choose
	}
	values := byCount(counts)
	for i, value := range values[:min(len(values), maxChoices+maxFurther)] {
		c := choice{Text: value, Count: counts[value], Current: value == current}
		if name == "registry" && value == hostedChoice {
			c.Text = address.DisplayHostname(v.view.Hostname())
		}
		next := v.query
		next.offset = 0
		if *next.filter(name) = value; c.Current {
			*next.filter(name) = ""
		}
		c.URL = v.listURL(list, next)
		if i < maxChoices {
			f.Choices = append(f.Choices, c)
		} else {
			f.More = append(f.More, c)
		}
	}
	return f
}

// filter returns the filter of that name.
func (q *query) filter(name string) *string {
	switch name {
	case "namespace":
		return &q.namespace
	case "provider":
		return &q.system
	}
	return &q.registry
}

// listURL returns the URL of a list, or of another page, with a query.
func (v *visit) listURL(list route.Route, q query) string {
	offset := ""
	if q.offset > 0 {
		offset = strconv.Itoa(q.offset)
	}
	return withQuery(v.url(list), "tab", q.tab, "from", q.from, "group", q.group, "q", q.q, "namespace", q.namespace, "provider", q.system, "registry", q.registry, "sort", q.sort, "offset", offset)
}

func (v *visit) pager(first, last, total, step int) pager {
	p := pager{First: first + 1, Last: last, Total: total}
	q := v.query
	if first > 0 {
		q.offset = max(first-step, 0)
		p.Previous = v.listURL(v.route, q)
	}
	if last < total {
		q.offset = last
		p.Next = v.listURL(v.route, q)
	}
	return p
}

// newestFirst is the value of the parameter sort for a list by the date of the latest version.
// Without it, a list is by address.
const newestFirst = "newest"

// ordered returns entries in the order that the query asks for. They are by address already.
func (q query) ordered(all []handlers.Listed) []handlers.Listed {
	if q.sort != newestFirst {
		return all
	}
	all = slices.Clone(all) // the list is shared
	slices.SortStableFunc(all, func(a, b handlers.Listed) int { return b.Published.Compare(a.Published) })
	return all
}

// orders returns the orders of a list of that many entries: none if there is nothing to order.
func (v *visit) orders(entries int) []choice {
	if entries < 2 {
		return nil
	}
	q := v.query
	q.sort, q.offset = "", 0
	byName := choice{Text: "By name", URL: v.listURL(v.route, q), Current: v.query.sort == ""}
	q.sort = newestFirst
	return []choice{byName, {Text: "Newest first", URL: v.listURL(v.route, q), Current: !byName.Current}}
}

func (v *visit) item(l handlers.Listed) item {
	i := item{
		Name: l.Address.String(), URL: v.url(route.ForAddress(l.Address)), Version: l.Version, Description: l.Description,
		Owner: l.Owner, Versions: l.Versions, Published: l.Published,
	}
	i.Chips = versionChips(l.Version, false, l.Deprecated)
	return i
}

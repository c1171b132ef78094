package pages

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/index/catalog"
	"github.com/caddy-terraform/caddy-terraform-registry/index/content"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/assets"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/route"
)

// A searchPage shows the results of a search: the first of all kinds, or all of one.
type searchPage struct {
	page

	// Blank reports that the query is empty.
	Blank bool

	// Similar reports that nothing has the words of the query, and that the results have
	// similar ones. Partial reports that nothing has all of these either.
	Similar, Partial bool

	Heading string // the query, shortened

	// Extract is what was looked for of a longer text; empty if all of the text was.
	Extract string

	// IsHash reports that the query is a hash of a package.
	IsHash bool

	// DocsUnread reports that documentation is missing that has not been read yet.
	DocsUnread bool

	// Elsewhere reports that only other kinds have results.
	Elsewhere bool

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

// A searchKind is a kind of results.
type searchKind struct {
	title string
	route route.Kind
	list  handlers.FoundList
	item  func(v *visit, list handlers.FoundList, i int) foundItem
}

// searchKinds returns the kinds of the results of a search, in their order.
func searchKinds(found handlers.Search) []searchKind {
	return []searchKind{
		{"Modules", route.SearchModules, found.Modules, (*visit).foundModule},
		{"Providers", route.SearchProviders, found.Providers, (*visit).foundProvider},
		{"Documentation", route.SearchDocs, found.Pages, (*visit).foundDoc},
	}
}

// bestFirst returns the kinds with the one first that has the best result.
func bestFirst(kinds []searchKind) []searchKind {
	kinds = slices.Clone(kinds)
	slices.SortStableFunc(kinds, func(a, b searchKind) int { return cmp.Compare(a.list.Best(), b.list.Best()) })
	return kinds
}

// search answers with the results of a search. It asks an anonymous visitor who could
// find nothing for credentials instead.
func (v *visit) search() (*answer, error) {
	if nothing, err := v.seesNothing(); nothing || err != nil {
		return v.failedWith(http.StatusUnauthorized, ""), err
	}
	frame, err := v.page("Search")
	if err != nil {
		return nil, err
	}
	s := searchPage{page: frame}
	s.Query = v.query.q
	words := v.view.ParseQuery(v.query.q)
	if words.IsEmpty() {
		s.Blank = true
		return pageAnswer("search", s)
	}
	s.Heading = shortened(strings.Join(strings.Fields(v.query.q), " "), maxHeading)
	s.Title = s.Heading + " · Search"
	s.Extract, s.IsHash = words.Extract, words.IsHash
	if len(v.query.q) > maxValue {
		v.query.q = s.Extract // in each link
	}
	found, err := v.view.Search(words, 0)
	if err != nil {
		return nil, err
	}
	s.Similar, s.Partial, s.DocsUnread = found.Similar, found.Partial, found.DocsUnread
	if v.query.filters() {
		s.Clear = v.listURL(v.route, query{q: v.query.q})
	}
	kinds := searchKinds(found)
	groups := make(map[route.Kind]searchGroup)
	all := choice{Text: "All", Current: v.route.Kind == route.Search, URL: v.listURL(route.Route{Kind: route.Search}, v.query.without("provider"))}
	for i := range kinds {
		k := &kinds[i]
		chosen := v.chosen(k)
		all.Count += len(chosen)
		s.Kinds = append(s.Kinds, choice{
			Text: k.title, Count: len(chosen), Current: v.route.Kind == k.route, URL: v.listURL(route.Route{Kind: k.route}, v.query.without("provider")),
		})
		if len(chosen) > 0 && (all.Current || v.route.Kind == k.route) {
			groups[k.route] = v.group(k, chosen, found.Kinds())
		}
	}
	for _, k := range bestFirst(kinds) {
		if g, ok := groups[k.route]; ok {
			s.Groups = append(s.Groups, g)
		}
	}
	s.Elsewhere = len(s.Groups) == 0 && all.Count > 0
	s.Kinds = append([]choice{all}, s.Kinds...)
	s.Facets = v.searchFacets(kinds)
	return pageAnswer("search", s)
}

// without returns the query without a filter, from its beginning.
func (q query) without(filter string) query {
	*q.filter(filter), q.offset = "", 0
	return q
}

// chosen returns which results pass all filters. The filter by provider is of one kind.
func (v *visit) chosen(k *searchKind) (chosen []int) {
	but := ""
	if v.route.Kind != k.route {
		but = "provider"
	}
	passes := make(map[*handlers.Listed]bool) // pages are many, providers few
	for l := range k.list.Entries() {
		passes[l] = v.query.matches(l.Address, but)
	}
	for i := range k.list.Len() {
		if l, _ := k.list.Item(i); passes[l] {
			chosen = append(chosen, i)
		}
	}
	return chosen
}

// group returns the first results of a kind, or, on the page of the kind, the results from
// the offset on. kinds is how many kinds have results.
func (v *visit) group(k *searchKind, chosen []int, kinds int) searchGroup {
	g := searchGroup{Title: k.title, Total: len(chosen)}
	first, step := 0, foundAtOnce
	if kinds > 1 {
		step = foundAmongAll
	}
	own := v.route.Kind == k.route
	if own {
		first, step = min(v.query.offset, len(chosen)-1), pageItems
	}
	last := min(first+step, len(chosen))
	for _, i := range chosen[first:last] {
		g.Items = append(g.Items, k.item(v, k.list, i))
	}
	switch {
	case own:
		g.Pager = v.pager(first, last, len(chosen), step)
	case last < len(chosen):
		g.All = v.listURL(route.Route{Kind: k.route}, v.query.without("provider"))
	}
	return g
}

// searchFacets returns the filters of the results that are shown.
func (v *visit) searchFacets(kinds []searchKind) []facet {
	namespaces, registries := map[string]int{}, map[string]int{}
	systems, providers := map[string]int{}, map[string]int{}
	for i := range kinds {
		k := &kinds[i]
		if v.route.Kind != route.Search && v.route.Kind != k.route {
			continue
		}
		for l, count := range k.list.Entries() {
			if v.query.matches(l.Address, "namespace") {
				namespaces[l.Address.Namespace] += count
			}
			if v.query.matches(l.Address, "registry") {
				registries[registryOf(l.Address)] += count
			}
			switch {
			case !v.query.matches(l.Address, "provider"):
			case k.route == route.SearchModules:
				systems[systemOf(l.Address)] += count
			case k.route == route.SearchDocs:
				providers[systemOf(l.Address)] += count
			}
		}
	}
	return []facet{
		v.newFacet("Namespace", "namespace", namespaces, v.route),
		v.newFacet("System", "provider", systems, route.Route{Kind: route.SearchModules}),
		v.newFacet("Provider", "provider", providers, route.Route{Kind: route.SearchDocs}),
		v.newFacet("Registry", "registry", registries, v.route),
	}
}

func (v *visit) foundModule(list handlers.FoundList, i int) foundItem {
	l, _ := list.Item(i)
	f := v.foundEntry(list.Query, l)
	if part := list.NamedPart(); part != "" && v.hasPart(l, part) {
		f.Inner = []foundPart{{URL: v.url(route.ForAddress(l.Address).WithPart(part)), Name: []catalog.Run{{Text: part, Marked: true}}}}
	}
	x := list.Query.Explain(l.Entry)
	f.Said, f.Why = x.Description, x.Reasons
	for _, p := range x.Parts {
		f.Inner = append(f.Inner, foundPart{v.url(route.ForAddress(l.Address).WithPart(p.Path)), p.Name, p.Description, p.Reasons})
	}
	return f
}

func (v *visit) foundProvider(list handlers.FoundList, i int) foundItem {
	l, _ := list.Item(i)
	f := v.foundEntry(list.Query, l)
	f.Said = list.Query.Explain(l.Entry).Description
	return f
}

func (v *visit) foundEntry(q catalog.Query, l *handlers.Listed) foundItem {
	return foundItem{item: v.item(*l), MarkedName: q.MarkName(l.Address.String())}
}

// hasPart reports whether the latest version of a module has a submodule or an example. Where
// its summary does not tell, the package does. While the package cannot be read, it may have
// the part, whose page says so.
func (v *visit) hasPart(l *handlers.Listed, part string) bool {
	m, _ := v.view.Module(l.Address) // there is an error also if other versions are unread
	if m == nil || !m.Latest().Summary().MayHave(part) {
		return false
	}
	whole, err := v.view.Describe(m.Latest())
	return err != nil || whole.Module(part) != nil
}

func (v *visit) foundDoc(list handlers.FoundList, i int) foundItem {
	l, page := list.Item(i)
	title := l.Titles().Title(page)
	var f foundItem
	f.MarkedName, f.Said = list.Query.ExplainPage(&title, l.Address.Name)
	f.URL = v.docURLOf(l.Address, title)
	f.Chips = []chip{{Label: docKinds[title.Category]}}
	f.Of = link{l.Address.String(), v.url(route.ForAddress(l.Address))}
	if title.Category == content.DocGuides && title.Title != "" {
		f.MarkedName, f.Said = f.Said, nil // nobody knows the names of its file
	}
	return f
}

// docURLOf returns the URL of a page of the documentation of the latest release of a
// provider.
func (v *visit) docURLOf(a address.Address, t content.DocTitle) string {
	r := route.ForAddress(a)
	r.Rest = "docs/" + string(t.Category) + "/" + t.Slug
	return v.url(r)
}

// docKinds say what a page of documentation is about.
var docKinds = map[content.DocCategory]string{
	content.DocGuides: "guide", content.DocResources: "resource", content.DocDataSources: "data source",
	content.DocEphemeralResources: "ephemeral resource", content.DocListResources: "list resource",
	content.DocActions: "action", content.DocStateStores: "state store", content.DocFunctions: "function",
}

// maxHeading is how much of a query its page repeats above the results, in characters.
const maxHeading = 120

// A suggestion is a result of a search while the query is still being typed.
type suggestion struct {
	Text string `json:"text"`
	Of   string `json:"of"` // the kind of the result, and why it was found
	URL  string `json:"url"`
}

// Numbers of suggestions. A kind leaves room for the others.
const (
	maxSuggested     = 8
	maxSuggestedEach = 4
)

// suggestions answers with the first results of a search, as JSON. They are the results of
// the search page, by the same rules.
func (v *visit) suggestions() (*answer, error) {
	list := []suggestion{}
	words := v.view.ParseQuery(v.query.q)
	if !words.IsEmpty() {
		found, err := v.view.Search(words, maxSuggested)
		if err != nil {
			return nil, err
		}
		list = v.suggest(found)
	}
	body, err := json.Marshal(list)
	if err != nil {
		return nil, err
	}
	return &answer{status: http.StatusOK, contentType: "application/json", body: body, tag: assets.Tag(body)}, nil
}

func (v *visit) suggest(found handlers.Search) []suggestion {
	list := []suggestion{}
	kinds := bestFirst(searchKinds(found))
	for i, k := range kinds {
		most := maxSuggestedEach
		if k.route == route.SearchProviders {
			most /= 2
		}
		if i == len(kinds)-1 || !slices.ContainsFunc(kinds[i+1:], func(k searchKind) bool { return k.list.Len() > 0 }) {
			most = maxSuggested // no other kind needs the room
		}
		for at := range min(most, k.list.Len(), maxSuggested-len(list)) {
			list = append(list, v.suggestionOf(&k, at))
		}
	}
	return list
}

// suggestionOf returns one result as a suggestion.
func (v *visit) suggestionOf(k *searchKind, at int) suggestion {
	f := k.item(v, k.list, at)
	switch k.route {
	case route.SearchProviders:
		return suggestion{f.Name, "provider", f.URL}
	case route.SearchDocs:
		return suggestion{plain(f.MarkedName), f.Chips[0].Label + " of " + f.Of.Text, f.URL}
	}
	of := "module"
	switch {
	case len(f.Why) > 0:
		of += ", " + string(f.Why[0].Kind) + " " + plain(f.Why[0].Text)
	case len(f.Inner) > 0:
		of += ", " + plain(f.Inner[0].Name)
	}
	return suggestion{f.Name, of, f.URL}
}

// plain returns a text without its marks.
func plain(runs []catalog.Run) string {
	var b strings.Builder
	for _, r := range runs {
		b.WriteString(r.Text)
	}
	return b.String()
}

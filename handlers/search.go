package handlers

import (
	"context"
	"iter"
	"math"
	"slices"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/catalog"
	"github.com/caddy-terraform/caddy-terraform-registry/index/content"
)

// A Search has what the user may see of the results of a search.
type Search struct {
	// Similar reports that nothing has the words of the query: the results have similar ones.
	// Partial reports that nothing has all of these either: the results lack some.
	Similar, Partial bool

	// DocsUnread reports that documentation is missing that has not been read yet.
	DocsUnread bool

	Modules, Providers FoundList

	// Pages are pages of the documentation of the latest releases of providers.
	Pages FoundList
}

// A FoundList has the results of one kind, the best first.
type FoundList struct {
	// Query has the words that have been found, which may differ from those that were looked
	// for: see catalog.Query.Loosen.
	Query catalog.Query

	listed  []Listed
	results catalog.Results
	isNamed bool // the query names the only result
}

// Len returns the number of results.
func (f FoundList) Len() int { return f.results.Len() }

// Best says how good the first result is. The lowest of several lists is the best.
func (f FoundList) Best() int { return f.results.Best() }

// Item returns one result. Of a page of documentation, page is its place among the Titles of the
// provider.
func (f FoundList) Item(i int) (l *Listed, page int) {
	entry, page := f.results.Item(i)
	return &f.listed[entry], page
}

// Entries returns each entry with results, and how many it has.
func (f FoundList) Entries() iter.Seq2[*Listed, int] {
	return func(yield func(*Listed, int) bool) {
		counts := make([]int32, len(f.listed))
		for i := range f.results.Len() {
			entry, _ := f.results.Item(i)
			counts[entry]++
		}
		for entry, count := range counts {
			if count > 0 && !yield(&f.listed[entry], int(count)) {
				return
			}
		}
	}
}

// NamedPart returns the folder of a submodule or an example, as the query names it; empty if
// the one result is not what the query names.
func (f FoundList) NamedPart() string {
	if !f.isNamed {
		return ""
	}
	return f.Query.Named.Part
}

// ParseQuery reads a query for this view, in which the registry's own names say nothing.
func (v *View) ParseQuery(text string) catalog.Query {
	return catalog.ParseQuery(text, v.names()...)
}

// Search searches the modules and providers that the user may see, and the documentation of
// these providers. If nothing is found, it searches for similar words, and then for most of these. Of
// each kind it returns so many results at most; 0: all. Whoever wants only the first is still typing, and
// gets nothing that lacks words.
func (v *View) Search(q catalog.Query, most int) (s Search, err error) {
	l, err := v.listing()
	if err != nil || q.IsEmpty() {
		return s, err
	}
	ctx := v.request.Context()
	if s, err = l.search(ctx, q, most); err != nil {
		return Search{}, err
	}
	// The words of an address that is not here may be anywhere.
	if isWeak := q.Named != nil && s.best() > 0; isWeak || s.best() == nowhere {
		loose := q.Loosen()
		if most == 0 {
			loose = loose.Relax()
		}
		found, err := l.search(ctx, loose, most)
		if err != nil {
			return Search{}, err
		}
		if found.best() < s.best() {
			found.leaveOutWorse()
			found.Partial = found.lacking() > 0
			found.Similar = !found.Partial
			s = found
		}
	}
	s.DocsUnread = l.providers.searcher().PagesUnread
	return s, nil
}

// nowhere is worse than any result.
const nowhere = math.MaxInt

// best says how good the first result is; the lowest is the best.
func (s *Search) best() int { return min(s.Modules.Best(), s.Providers.Best(), s.Pages.Best()) }

// search searches for exactly the words of a query.
func (l *listing) search(ctx context.Context, q catalog.Query, most int) (s Search, err error) {
	if s.Modules, _, err = l.modules.search(ctx, q, anyEntry, most); err != nil {
		return Search{}, err
	}
	if s.Providers, s.Pages, err = l.providers.search(ctx, q, anyEntry, most); err != nil {
		return Search{}, err
	}
	if s.Pages.isNamed {
		s.Modules = FoundList{} // the URL of that page was pasted
	}
	return s, nil
}

// Kinds returns how many kinds have results.
func (s *Search) Kinds() (n int) {
	for _, list := range []FoundList{s.Modules, s.Providers, s.Pages} {
		if list.Len() > 0 {
			n++
		}
	}
	return n
}

// lacking returns how many words the results lack that lack the fewest.
func (s *Search) lacking() int {
	return min(s.Modules.results.Lacking(), s.Providers.results.Lacking(), s.Pages.results.Lacking())
}

// leaveOutWorse leaves out results that lack more words than others.
func (s *Search) leaveOutWorse() {
	least := s.lacking()
	for _, list := range []*FoundList{&s.Modules, &s.Providers, &s.Pages} {
		if list.results.Lacking() > least {
			*list = FoundList{}
		}
	}
}

func anyEntry(*Listed) bool { return true }

// search finds entries and pages. If the query names one that is visible and asked for, that
// is the only result; else its words count. It returns so many at most; 0: all.
func (l *listed) search(ctx context.Context, q catalog.Query, asked func(*Listed) bool, most int) (entries, pages FoundList, err error) {
	all := l.entries()
	entries, pages = FoundList{Query: q, listed: all}, FoundList{Query: q, listed: all}
	if entry, page, ok := l.findNamed(q.Named); ok && asked(&all[entry]) {
		found := catalog.OneResult(entry, page)
		if q.Named.Slug == "" {
			entries.results, entries.isNamed = found, true
			return entries, pages, nil
		}
		if page >= 0 {
			pages.results, pages.isNamed = found, true
			return entries, pages, nil
		}
	}
	entries.results, pages.results, err = l.searcher().Search(ctx, q, most)
	return entries, pages, err
}

// findNamed returns what a query names, if it is listed: an entry, and the page of its documentation, or -1. A
// name without a HOSTNAME may be hosted, or of a public registry.
func (l *listed) findNamed(r *catalog.Reference) (entry, page int, ok bool) {
	if r == nil {
		return 0, -1, false
	}
	entry, ok = l.find(r.Address)
	if !ok && r.Address.Hostname == "" && !r.Own {
		if entry, ok = l.find(r.Address.WithHostname(address.TerraformHost)); !ok {
			entry, ok = l.find(r.Address.WithHostname(address.OpenTofuHost))
		}
	}
	if !ok || r.Slug == "" {
		return entry, -1, ok
	}
	return entry, l.entries()[entry].Titles().Find(content.DocCategory(r.Category), r.Slug), true
}

// find returns the place of an address.
func (l *listed) find(a address.Address) (at int, ok bool) {
	return slices.BinarySearchFunc(l.entries(), a, func(l Listed, a address.Address) int { return l.Address.Compare(a) })
}

// DocTitles returns the titles of the documentation of the latest release of a provider; none
// if the user sees none.
func (v *View) DocTitles(a address.Address) (content.Titles, error) {
	l, err := v.listing()
	if err != nil {
		return nil, err
	}
	at, ok := l.providers.find(a)
	if !ok {
		return nil, nil
	}
	return l.providers.entries()[at].Titles(), nil
}

// Users are the modules that the user may see and that call a module or require a provider,
// in their latest versions.
type Users struct {
	catalog.Users
	listed []Listed
}

// A Caller is one of these modules.
type Caller struct {
	*Listed
	Part       string // the path of the submodule that does so; empty for the root
	Constraint string // on the version; empty if there is none
}

// UsedBy returns what uses a module or provider.
func (v *View) UsedBy(a address.Address) (Users, error) {
	l, err := v.listing()
	if err != nil {
		return Users{}, err
	}
	names := []address.Address{a}
	if a.Hostname == "" {
		names = nil
		for _, name := range v.names() {
			names = append(names, a.WithHostname(name))
		}
	}
	return Users{l.usedBy().Users(names...), l.modules.entries()}, nil
}

// Callers returns each use, by the address of the caller.
func (u Users) Callers() iter.Seq[Caller] {
	return func(yield func(Caller) bool) {
		for c := range u.Users.Callers() {
			if !yield(Caller{&u.listed[c.Entry], c.Part, c.Constraint}) {
				return
			}
		}
	}
}

// OtherSystems returns the modules of the same name for other systems that the user may see.
func (v *View) OtherSystems(a address.Address) ([]Listed, error) {
	l, err := v.listing()
	if err != nil {
		return nil, err
	}
	first := a
	first.System = ""
	at, _ := l.modules.find(first)
	var others []Listed
	for _, m := range l.modules.entries()[at:] {
		ofSystem := a
		if ofSystem.System = m.Address.System; m.Address != ofSystem {
			break // it has another name
		}
		if m.Address != a {
			others = append(others, m)
		}
	}
	return others, nil
}

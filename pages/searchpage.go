package pages

import (
	"net/http"
	"path"

	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/index/catalog"
)

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
	words := catalog.ParseQuery(v.query.q)
	if words.Empty() {
		s.Blank = true
		return pageAnswer("search", s)
	}
	s.Title = v.query.q
	if v.route.kind != searchProvidersRoute {
		found, err := v.view.SearchModules(words)
		if err != nil {
			return nil, err
		}
		s.Modules = v.results(found, searchModulesRoute)
	}
	if v.route.kind != searchModulesRoute {
		found, err := v.view.SearchProviders(words)
		if err != nil {
			return nil, err
		}
		s.Providers = v.results(found, searchProvidersRoute)
	}
	return pageAnswer("search", s)
}

// results returns the first results of a search, or, on the page of one kind, the
// results from the offset on. A submodule has its own entry, unless its module is right
// before it.
func (v *visit) results(found handlers.FoundList, of routeKind) searchResults {
	r := searchResults{Total: found.Len()}
	first, step := 0, foundAtOnce
	if v.route.kind == of {
		first, step = min(v.query.offset, max(found.Len()-1, 0)), pageItems
	}
	last := min(first+step, found.Len())
	for i := first; i < last; i++ {
		f := found.At(i)
		if f.Submodule == "" {
			r.Items = append(r.Items, v.item(f.Listed))
			continue
		}
		url := v.url(addressRoute(f.Address).withPart(f.Submodule))
		if n := len(r.Items); n > 0 && r.Items[n-1].Name == f.Address.String() && len(r.Items[n-1].Parts) < maxPartsShow {
			r.Items[n-1].Parts = append(r.Items[n-1].Parts, part{Name: f.Submodule, URL: url})
			continue
		}
		r.Items = append(r.Items, item{
			Name: f.Address.String() + "//" + f.Submodule, URL: url, Version: f.Version, Published: f.Published,
			Description: "Submodule " + path.Base(f.Submodule) + " of " + f.Address.String() + ".",
		})
	}
	switch {
	case v.route.kind == of:
		r.Pager = v.pager(first, last, found.Len(), step)
	case last < found.Len():
		all := v.route
		all.kind = of
		r.All = withQuery(v.url(all), "q", v.query.q)
	}
	return r
}

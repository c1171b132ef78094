package pages

import (
	"net/url"
	"strconv"
)

// A query is what a page depends on beside its path. Queries can be compared; what a
// page does not know of is not in it.
type query struct {
	tab, from                   string // of a module or provider
	namespace, system, registry string // filters of a list
	q                           string // what is searched for
	offset                      int
	to, signIn                  string // where a browser goes once it is known
	again                       bool   // as another user than before
}

// maxValue is how long a value is read: nothing that is offered has a longer name.
const maxValue = 300

// readQuery reads what the page of a route depends on.
func readQuery(rt route, raw string) (q query) {
	if raw == "" {
		return q
	}
	values, _ := url.ParseQuery(raw) // what can be read counts
	get := func(name string) string {
		if v := values.Get(name); len(v) <= maxValue {
			return v
		}
		return ""
	}
	switch rt.kind {
	case homeRoute:
		if values.Has("sign-in") {
			if q.signIn = values.Get("sign-in"); q.signIn == "" {
				q.signIn = "/"
			}
		}
	case loginRoute:
		q.to, q.again = values.Get("to"), values.Has("again")
	case modulesRoute, providersRoute:
		q.namespace, q.system, q.registry = get("namespace"), get("provider"), get("registry")
	case searchRoute, searchModulesRoute, searchProvidersRoute:
		q.q = get("q")
	case moduleRoute, providerRoute:
		if q.tab = get("tab"); q.tab == tabChanges {
			q.from = get("from")
		}
	}
	switch rt.kind {
	case modulesRoute, providersRoute, searchModulesRoute, searchProvidersRoute:
		if n, err := strconv.Atoi(get("offset")); err == nil && n > 0 {
			q.offset = n
		}
	}
	return q
}

// cacheable reports whether a page is worth being kept: there are any number of
// queries for a search.
func (q query) cacheable() bool { return q.q == "" && q.signIn == "" && q.to == "" }

package pages

import (
	"net/http"
	"net/url"
	"strconv"
)

// A query has the parameters that a page depends on. It leaves out parameters that the
// page does not know. Queries are comparable.
type query struct {
	tab, from                   string // pages of a module or provider
	group                       string // of pages of documentation
	namespace, system, registry string // filters of a list
	q                           string // the words of a search
	sort                        string // of a list; empty: by address
	offset                      int
	to, signIn                  string // where a browser goes after signing in
	again                       bool   // the browser asks for another user
	markdown                    bool   // the page is wanted as Markdown
}

// maxValue is the length of a value that is still read. No name of a package is longer.
const maxValue = 300

// readQuery reads the parameters that the page of a route depends on, and from the header the
// format, unless a parameter has it.
func readQuery(rt route, raw string, header http.Header) (q query) {
	if raw == "" {
		q.markdown = prefersMarkdown(header)
		return q
	}
	values, _ := url.ParseQuery(raw) // an unreadable parameter is skipped
	get := func(name string) string {
		if v := values.Get(name); len(v) <= maxValue {
			return v
		}
		return ""
	}
	switch values.Get("format") {
	case "md":
		q.markdown = true
	case "html":
	default:
		q.markdown = prefersMarkdown(header)
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
	case searchRoute, searchModulesRoute, searchProvidersRoute, searchDocsRoute:
		q.q, q.namespace, q.registry = get("q"), get("namespace"), get("registry")
		if rt.kind == searchModulesRoute || rt.kind == searchDocsRoute {
			q.system = get("provider")
		}
	case suggestionsRoute:
		q.q = get("q")
	case moduleRoute, providerRoute:
		if q.tab = get("tab"); q.tab == tabChanges {
			q.from = get("from")
		}
		if rt.kind == providerRoute && q.tab == tabPages {
			q.q, q.group = get("q"), get("group")
		}
	case moduleCodeRoute:
		if q.from = get("from"); q.from == "" {
			q.tab = get("tab")
		}
	}
	switch rt.kind {
	case modulesRoute, providersRoute, placeRoute:
		if get("sort") == newestFirst {
			q.sort = newestFirst
		}
	}
	switch {
	case rt.kind == modulesRoute, rt.kind == providersRoute, rt.kind == searchModulesRoute, rt.kind == searchProvidersRoute, rt.kind == searchDocsRoute, rt.kind == providerRoute && q.tab == tabPages:
		if n, err := strconv.Atoi(get("offset")); err == nil && n > 0 {
			q.offset = n
		}
	}
	return q
}

// cacheable reports whether a page is worth keeping. Pages of a search are not, since
// there is no end of queries.
func (q query) cacheable() bool { return q.q == "" && q.signIn == "" && q.to == "" }

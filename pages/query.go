package pages

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/pages/route"
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

// maxSearch is how much of a search is read, in bytes. People paste whole messages of clients.
const maxSearch = 4 << 10

// readQuery reads the parameters that the page of a route depends on, and from the header the
// format, unless a parameter has it.
func readQuery(rt route.Route, raw string, header http.Header) (q query) {
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
	switch rt.Kind {
	case route.Home:
		if values.Has("sign-in") {
			if q.signIn = values.Get("sign-in"); q.signIn == "" {
				q.signIn = "/"
			}
		}
	case route.Login:
		q.to, q.again = values.Get("to"), values.Has("again")
	case route.Modules, route.Providers:
		q.namespace, q.system, q.registry = get("namespace"), get("provider"), get("registry")
	case route.Search, route.SearchModules, route.SearchProviders, route.SearchDocs:
		q.q, q.namespace, q.registry = searched(values), get("namespace"), get("registry")
		if rt.Kind == route.SearchModules || rt.Kind == route.SearchDocs {
			q.system = get("provider")
		}
	case route.Suggestions:
		q.q = searched(values)
	case route.Module, route.Provider:
		if q.tab = get("tab"); q.tab == tabChanges {
			q.from = get("from")
		}
		if rt.Kind == route.Provider && q.tab == tabPages {
			q.q, q.group = get("q"), get("group")
		}
	case route.ModuleCode:
		if q.from = get("from"); q.from == "" {
			q.tab = get("tab")
		}
	}
	switch rt.Kind {
	case route.Modules, route.Providers, route.Place:
		if get("sort") == newestFirst {
			q.sort = newestFirst
		}
	}
	switch {
	case rt.Kind == route.Modules, rt.Kind == route.Providers, rt.Kind == route.SearchModules, rt.Kind == route.SearchProviders, rt.Kind == route.SearchDocs, rt.Kind == route.Provider && q.tab == tabPages:
		if n, err := strconv.Atoi(get("offset")); err == nil && n > 0 {
			q.offset = n
		}
	}
	return q
}

// searched returns what is searched for.
func searched(values url.Values) string {
	text := values.Get("q")
	return strings.ToValidUTF8(text[:min(len(text), maxSearch)], "")
}

// withQuery returns a URL with a query of names and values. Names with an empty value
// are left out.
func withQuery(to string, namesAndValues ...string) string {
	separator := "?"
	for i := 0; i+1 < len(namesAndValues); i += 2 {
		if namesAndValues[i+1] == "" {
			continue
		}
		to += separator + namesAndValues[i] + "=" + url.QueryEscape(namesAndValues[i+1])
		separator = "&"
	}
	return to
}

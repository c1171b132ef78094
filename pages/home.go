package pages

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"sort"
	"strings"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/clientconfig"
	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/snippet"
)

// A homePage is the page at the root.
type homePage struct {
	page
	Counts     []tally
	Newest     []item
	Namespaces facet
	Steps      []snippet.Step
	Empty      emptyTree
}

// A tally counts one kind of thing.
type tally struct {
	Count     int
	One, Many string
	URL       string
}

// An emptyTree says where the first file goes.
type emptyTree struct {
	Show      bool
	Modules   bool   // it says where modules go
	Providers bool   // it says where providers go
	SignIn    string // signing in may show more; empty if it does not
}

// How much the home page shows.
const (
	maxNewest     = 10
	maxNamespaces = 12
)

// home answers with the home page. It asks an anonymous visitor for credentials at once
// if the page would be empty without.
func (v *visit) home() (*answer, error) {
	frame, err := v.page("")
	if err != nil {
		return nil, err
	}
	modules, providers, err := v.visibleEntries()
	if err != nil {
		return nil, err
	}
	setup, err := v.setup(modules, providers)
	if err != nil {
		return nil, err
	}
	h := homePage{page: frame, Newest: v.newest(modules, providers), Namespaces: v.namespaces(modules, providers), Steps: setup.Steps()}
	h.Home, h.Title = true, h.Site.Name
	versions := 0
	for _, list := range [][]handlers.Listed{modules, providers} {
		for _, l := range list {
			versions += l.Versions
		}
	}
	if len(modules)+len(providers) > 0 {
		h.Counts = []tally{
			{len(modules), "module", "modules", v.site.Path + "/browse/modules"},
			{len(providers), "provider", "providers", v.site.Path + "/browse/providers"},
			{versions, "version", "versions", ""},
		}
		return pageAnswer("home", h)
	}
	h.Empty = v.emptyTree(h.page, true, true)
	return v.orSignIn(pageAnswer("home", h))
}

// emptyTree says where the first module or provider goes.
func (v *visit) emptyTree(p page, modules, providers bool) emptyTree {
	e := emptyTree{Show: !p.Unread, Modules: modules, Providers: providers}
	if !v.view.Public() {
		e.SignIn = p.Site.SignIn
	}
	return e
}

// orSignIn returns the answer, or one that asks for credentials if an anonymous visitor
// sees nothing. In that case the prompt hides nothing.
func (v *visit) orSignIn(a *answer, err error) (*answer, error) {
	if err != nil {
		return a, err
	}
	nothing, err := v.seesNothing()
	if nothing {
		a.status = http.StatusUnauthorized
	}
	return a, err
}

// seesNothing reports whether the visitor sees nothing because the visitor is anonymous.
func (v *visit) seesNothing() (bool, error) {
	outsider, err := v.isOutsider()
	if err != nil || !outsider {
		return false, err
	}
	modules, providers, err := v.visibleEntries()
	return err == nil && len(modules)+len(providers) == 0, err
}

// visibleEntries returns all modules and all providers that the visitor sees.
func (v *visit) visibleEntries() (modules, providers []handlers.Listed, err error) {
	if modules, err = v.view.Modules(); err != nil {
		return nil, nil, err
	}
	providers, err = v.view.Providers()
	return modules, providers, err
}

// newest returns the latest versions that were published last, with their kinds. Those of this
// registry come first: a mirror may get a hundred others a day.
func (v *visit) newest(lists ...[]handlers.Listed) []item {
	mirrored := func(l handlers.Listed) int { return min(len(l.Address.Hostname), 1) }
	newest := firsts(maxNewest, func(a, b handlers.Listed) int {
		return cmp.Or(cmp.Compare(mirrored(a), mirrored(b)), b.Published.Compare(a.Published), a.Address.Compare(b.Address))
	}, lists...)
	items := make([]item, len(newest))
	for i, l := range newest {
		kind := chip{Label: "provider"}
		if l.Address.IsModule() {
			kind.Label = "module"
		}
		items[i] = v.item(l)
		items[i].Chips = []chip{kind}
	}
	return items
}

// firsts returns the first entries of lists in an order. It looks at each entry once: there may be
// thousands of them for each page.
func firsts(most int, order func(a, b handlers.Listed) int, lists ...[]handlers.Listed) (found []handlers.Listed) {
	for _, list := range lists {
		for _, l := range list {
			if len(found) == most && order(found[most-1], l) <= 0 {
				continue
			}
			at := sort.Search(len(found), func(i int) bool { return order(l, found[i]) < 0 }) // after equal ones
			found = slices.Insert(found, at, l)
			found = found[:min(len(found), most)]
		}
	}
	return found
}

// namespaces returns the namespaces with the most modules and providers.
func (v *visit) namespaces(modules, providers []handlers.Listed) facet {
	counts := make(map[string]int)
	url := make(map[string]string)
	for _, list := range []struct {
		kind string
		of   []handlers.Listed
	}{{"modules", modules}, {"providers", providers}} {
		for _, l := range list.of {
			if l.Address.Hostname != "" {
				continue
			}
			name := l.Address.Namespace
			if counts[name]++; counts[name] == 1 {
				url[name] = v.url(namespaceRoute(l.Address, list.kind))
			}
		}
	}
	f := facet{Title: "Namespaces"}
	names := byCount(counts)
	for _, name := range names[:min(len(names), maxNamespaces)] {
		f.Choices = append(f.Choices, choice{Text: name, URL: url[name], Count: counts[name]})
	}
	return f
}

// byCount returns the keys in the order of their counts, the largest first.
func byCount(counts map[string]int) []string {
	return slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b))
	})
}

// setup returns the values that the configuration to paste depends on.
func (v *visit) setup(modules, providers []handlers.Listed) (snippet.Setup, error) {
	origins, err := v.origins(modules, providers)
	if err != nil {
		return snippet.Setup{}, err
	}
	s := snippet.Setup{Mirror: v.site.Registry.Upstream != nil, Registry: clientconfig.Registry{
		Hostnames: []string{address.DisplayHostname(v.view.Hostname())}, URL: v.view.ServicesURL(), Login: v.site.Login, Private: !v.view.Public(), Origins: origins,
	}}
	hosted := func(l handlers.Listed) bool { return l.Address.Hostname == "" }
	s.Modules, s.Providers = slices.ContainsFunc(modules, hosted), slices.ContainsFunc(providers, hosted)
	s.HostsProviders = s.Providers && !v.site.Unsigned
	s.Mirror = s.Mirror || slices.ContainsFunc(providers, func(l handlers.Listed) bool { return !hosted(l) })
	return s, nil
}

// origins returns the registries that this one can stand in for: registries with a
// package that the visitor sees, and registries that packages are fetched from. If the
// registry has private packages, only a known visitor is told the latter.
func (v *visit) origins(modules, providers []handlers.Listed) ([]clientconfig.Origin, error) {
	found := make(map[svchost.Hostname]clientconfig.Origin)
	add := func(hostname svchost.Hostname, providers, modules bool) {
		o := found[hostname]
		found[hostname] = clientconfig.Origin{
			Hostname: hostname, Providers: o.Providers || providers, Modules: o.Modules || modules, Private: !v.view.PublicUnder(hostname),
		}
	}
	for _, list := range [][]handlers.Listed{modules, providers} {
		for _, l := range list {
			if l.Address.Hostname != "" {
				add(l.Address.Hostname, !l.Address.IsModule(), l.Address.IsModule())
			}
		}
	}
	if filler := v.site.Registry.Upstream; filler != nil {
		outsider, err := v.isOutsider()
		if err != nil {
			return nil, err
		}
		for _, o := range filler.Origins() {
			if !outsider || v.view.PublicUnder(o.Hostname) {
				add(o.Hostname, true, o.Modules)
			}
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b clientconfig.Origin) int { return cmp.Compare(a.Hostname, b.Hostname) }), nil
}

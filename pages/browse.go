package pages

import (
	"strconv"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
)

// How much a list shows at once.
const (
	pageItems    = 30
	maxChoices   = 10
	maxFurther   = 200 // choices that are folded
	foundAtOnce  = 10  // results of each kind on the page with all results
	maxPartsShow = 5   // submodules under a module
)

// hostedChoice is the value for hosted packages in the filter by registry.
const hostedChoice = "-"

// browse answers with a page of a list.
func (v *visit) browse() (*answer, error) {
	b := browsePage{Heading: "Modules"}
	list, current := v.view.Modules, "modules"
	if v.route.kind == providersRoute {
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
		b.Clear = v.url(v.route)
	}
	b.Facets = v.facets(all)
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
		(but == "provider" || q.system == "" || q.system == a.System) &&
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
	make := func(title, name, current string, of func(address.Address) string) facet {
		counts := map[string]int{}
		for _, l := range all {
			if v.query.matches(l.Address, name) {
				counts[of(l.Address)]++
			}
		}
		f := facet{Title: title}
		if len(counts) < 2 && current == "" {
			return f // there is nothing to choose
		}
		for i, value := range byCount(counts) {
			c := choice{Text: value, Count: counts[value], Current: value == current}
			next := v.query
			next.offset = 0
			chosen := value
			if c.Current {
				chosen = ""
			}
			switch name {
			case "namespace":
				next.namespace = chosen
			case "provider":
				next.system = chosen
			case "registry":
				next.registry = chosen
				if value == hostedChoice {
					c.Text = address.DisplayHostname(v.view.Hostname())
				}
			}
			c.URL = v.listURL(next)
			switch {
			case i < maxChoices:
				f.Choices = append(f.Choices, c)
			case i < maxChoices+maxFurther:
				f.More = append(f.More, c)
			}
		}
		return f
	}
	facets := []facet{make("Namespace", "namespace", v.query.namespace, func(a address.Address) string { return a.Namespace })}
	if v.route.kind == modulesRoute {
		facets = append(facets, make("System", "provider", v.query.system, func(a address.Address) string { return a.System }))
	}
	return append(facets, make("Registry", "registry", v.query.registry, registryOf))
}

// listURL returns the URL of the same list with another query.
func (v *visit) listURL(q query) string {
	offset := ""
	if q.offset > 0 {
		offset = strconv.Itoa(q.offset)
	}
	return withQuery(v.url(v.route), "q", q.q, "namespace", q.namespace, "provider", q.system, "registry", q.registry, "offset", offset)
}

func (v *visit) pager(first, last, total, step int) pager {
	p := pager{First: first + 1, Last: last, Total: total}
	q := v.query
	if first > 0 {
		q.offset = max(first-step, 0)
		p.Previous = v.listURL(q)
	}
	if last < total {
		q.offset = last
		p.Next = v.listURL(q)
	}
	return p
}

func (v *visit) item(l handlers.Listed) item {
	i := item{
		Name: l.Address.String(), URL: v.url(addressRoute(l.Address)), Version: l.Version, Description: l.Description,
		Owner: l.Owner, Versions: l.Versions, Published: l.Published,
	}
	i.Chips = versionChips(l.Version, false, l.Deprecated)
	return i
}

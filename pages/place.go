package pages

import (
	"io/fs"
	"net/http"
	"slices"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/route"
)

// A placePage lists the modules and providers whose addresses begin alike: with a
// hostname, with a namespace, or, for modules, with a namespace and a name.
type placePage struct {
	page
	Crumbs  []link
	Heading string
	Orders  []choice
	Lists   []placeList
}

// A placeList has the first modules or providers of a place.
type placeList struct {
	Title string
	Total int
	Items []item
	All   string // the list of all; empty if all are shown
}

// placeAddress returns the address of the route, or its beginning, as lists have it: what the registry
// hosts has no HOSTNAME.
func (v *visit) placeAddress() address.Address {
	if a := v.route.Address; a.Hostname != v.view.Hostname() {
		return a
	}
	return v.route.Address.WithHostname("")
}

// place answers with the modules and providers below the beginning of an address. If the
// visitor sees none, there is no such page.
func (v *visit) place() (*answer, error) {
	at := v.placeAddress()
	p := placePage{Heading: at.Namespace, Crumbs: []link{{v.route.Rest, v.site.Path + "/browse/" + v.route.Rest}}}
	switch {
	case at.Namespace == "":
		p.Crumbs = nil
		p.Heading = address.DisplayHostname(at.Hostname)
	case at.Hostname != "":
		p.Crumbs = append(p.Crumbs, v.registryCrumb(at.Hostname))
	}
	if at.Name != "" {
		of := v.route
		of.Address.Name = ""
		p.Crumbs, p.Heading = append(p.Crumbs, link{at.Namespace, v.url(of)}), at.Namespace+"/"+at.Name
	}
	p.Crumbs = append(p.Crumbs, link{p.Heading[strings.LastIndexByte(p.Heading, '/')+1:], ""})
	modules, providers, err := v.visibleEntries()
	if err != nil {
		return nil, err
	}
	lists := []placeList{v.listAt("Modules", "/browse/modules", at, modules), v.listAt("Providers", "/browse/providers", at, providers)}
	if v.route.Rest == "providers" {
		slices.Reverse(lists)
	}
	entries := 0
	for _, l := range lists {
		entries += l.Total
		if l.Total > 0 {
			p.Lists = append(p.Lists, l)
		}
	}
	if len(p.Lists) == 0 {
		return v.nothingThere()
	}
	p.Orders = v.orders(entries)
	if p.page, err = v.page(p.Heading); err != nil {
		return nil, err
	}
	p.Current = v.route.Rest
	p.Unread = v.view.Unread(&at) != nil
	return pageAnswer("place", p)
}

// nothingThere answers for a place where the visitor sees nothing: who is not known is
// asked who it is, as for a module that is not there.
func (v *visit) nothingThere() (*answer, error) {
	at := v.placeAddress()
	if err := v.view.Unread(&at); err != nil {
		return nil, err
	}
	outsider, err := v.isOutsider()
	switch {
	case err != nil:
		return nil, err
	case outsider:
		return v.failedWith(http.StatusUnauthorized, ""), nil
	}
	return nil, fs.ErrNotExist
}

// listAt lists what is at a place. An address without a namespace is all that is mirrored
// from its hostname.
func (v *visit) listAt(title, browse string, at address.Address, all []handlers.Listed) placeList {
	there := listedAt(all, at)
	l := placeList{Title: title, Total: len(there)}
	for _, i := range v.query.ordered(there)[:min(len(there), pageItems)] {
		l.Items = append(l.Items, v.item(i))
	}
	if l.Total > len(l.Items) {
		l.All = withQuery(v.site.Path+browse, "namespace", at.Namespace, "registry", registryOf(at), "sort", v.query.sort)
	}
	return l
}

// listedAt returns the entries of a list that lie at a place.
func listedAt(all []handlers.Listed, at address.Address) (there []handlers.Listed) {
	for _, l := range all {
		if isAt(l.Address, at) {
			there = append(there, l)
		}
	}
	return there
}

// isAt reports whether an address lies at a place: a hostname, a namespace, or the modules of
// one name.
func isAt(a, at address.Address) bool {
	return a.Hostname == at.Hostname && (at.Namespace == "" || a.Namespace == at.Namespace) && (at.Name == "" || a.Name == at.Name && a.IsModule())
}

// noSuchPage answers for a path below a module or provider that is no page of it. Who sees the
// module or provider is led to it; for everyone else nothing is there.
func (v *visit) noSuchPage() (*answer, error) {
	a := v.route.Address
	if err := v.lookUp(a); err != nil {
		return nil, err
	}
	p, err := v.page(a.String())
	if err != nil {
		return nil, err
	}
	e := newErrorPage(p, http.StatusNotFound, a.String()+" has no page “"+v.route.Rest+"”.")
	to := v.url(route.ForAddress(a))
	e.Links = []link{{a.String(), to}, {"All versions", withQuery(to, "tab", tabVersions)}}
	return v.errorAnswer(e), nil
}

// maxNear is how many links lead on from a page that does not exist.
const maxNear = 5

// nearbyLinks returns links to what the visitor sees that comes near to an address that is not
// there: the same module for other systems, or else its namespace.
func (v *visit) nearbyLinks() []link {
	if v.view == nil || v.route.Address.Namespace == "" {
		return nil
	}
	a := v.placeAddress()
	modules, providers, err := v.visibleEntries()
	if err != nil {
		return nil // the page of the error does without
	}
	var links []link
	kind := ""
	for _, l := range modules {
		if l.Address.Hostname != a.Hostname || l.Address.Namespace != a.Namespace {
			continue
		}
		kind = "modules"
		if l.Address.Name == a.Name && a.IsModule() && len(links) < maxNear {
			links = append(links, link{l.Address.String(), v.url(route.ForAddress(l.Address))})
		}
	}
	for _, l := range providers {
		if l.Address.Hostname == a.Hostname && l.Address.Namespace == a.Namespace && (kind == "" || !a.IsModule()) {
			kind = "providers"
		}
	}
	if kind != "" && (a.Name != "" || v.route.Kind != route.Place) {
		links = append(links, link{"All of " + a.Namespace, v.url(namespaceRoute(a, kind))})
	}
	return links
}

// namespaceRoute returns the route of the namespace of an address.
func namespaceRoute(a address.Address, kind string) route.Route {
	return route.Route{Kind: route.Place, Address: address.Address{Hostname: a.Hostname, Namespace: a.Namespace}, Rest: kind}
}

// otherSystems returns the modules with the same name for other systems that the visitor sees.
func (v *visit) otherSystems() ([]link, error) {
	others, err := v.view.OtherSystems(v.route.Address)
	if err != nil {
		return nil, err
	}
	var links []link
	for _, o := range others[:min(len(others), maxNear)] {
		links = append(links, link{o.Address.System, v.url(route.ForAddress(o.Address))})
	}
	return links, nil
}

package handlers

import (
	"net/http"
	"net/url"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// resolveModuleList resolves a request for a list of modules, each with its latest
// version, by the segments of its path.
func (g *Registry) resolveModuleList(r *request, s []string) (answerer, error) {
	r.Kind, r.list = KindModuleList, new(listRequest)
	switch {
	case len(s) == 1 && s[0] == "":
		return (*Registry).answerModuleList, g.resolveList(r, "/modules")
	case len(s) == 1 && s[0] == "search":
		r.Kind = KindModuleSearch
		return (*Registry).answerModuleList, g.resolveSearch(r, "/modules/search")
	}
	path, name := "/modules/"+s[0], "x" // with any name
	if len(s) == 2 {
		name = s[1]
		path += "/" + name
	}
	a, err := address.ParseModule("", s[0], name, "x")
	if err != nil {
		return nil, fail(http.StatusNotFound, "this is not an address of modules: use NAMESPACE or NAMESPACE/NAME")
	}
	if r.list.namespace = a.Namespace; len(s) == 2 {
		r.list.name = a.Name
	}
	return (*Registry).answerModuleList, g.resolveList(r, path)
}

func (g *Registry) answerModuleList(w http.ResponseWriter, r *request) error {
	return g.answerList(w, r, func(l *listing) *listed { return &l.modules }, wire.EncodeModuleList)
}

// resolveProviderList resolves a request for a list of providers, each with its
// latest version, by the one segment of its path.
func (g *Registry) resolveProviderList(r *request, segment string) (answerer, error) {
	r.Kind, r.list = KindProviderList, new(listRequest)
	switch segment {
	case "":
		return (*Registry).answerProviderList, g.resolveList(r, "/providers")
	case "search":
		r.Kind = KindProviderSearch
		return (*Registry).answerProviderList, g.resolveSearch(r, "/providers/search")
	}
	a, err := address.ParseProvider("", segment, "x")
	if err != nil {
		return nil, fail(http.StatusNotFound, "this is not a namespace of providers: use letters, digits and -")
	}
	r.list.namespace = a.Namespace
	return (*Registry).answerProviderList, g.resolveList(r, "/providers/"+url.PathEscape(a.Namespace))
}

func (g *Registry) answerProviderList(w http.ResponseWriter, r *request) error {
	return g.answerList(w, r, func(l *listing) *listed { return &l.providers }, wire.EncodeProviderList)
}

// answerList answers with a page of a list.
func (g *Registry) answerList(w http.ResponseWriter, r *request, choose func(*listing) *listed, encode func(wire.Page, []wire.Listed) *wire.Document) error {
	return g.writeList(w, r, func(l *listing) (*wire.Document, error) {
		page, meta, err := r.list.page(r.Context(), choose(l))
		if err != nil {
			return nil, err
		}
		list := make([]wire.Listed, len(page))
		for i, e := range page {
			list[i] = wire.Listed{
				Namespace: e.Address.Namespace, Name: e.Address.Name, System: e.Address.System, Version: e.Version,
				Owner: e.Owner, Description: e.Description, Source: e.Source,
				Published: published(r.snapshot, e.Published), Downloads: (&View{g, r}).Downloads(e.Address),
			}
		}
		return encode(meta, list), nil
	})
}

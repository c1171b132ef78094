package handlers

import (
	"net/http"
	"net/url"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

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
	return g.writeList(w, r, func(l *listing) (*wire.Document, error) {
		page, meta, err := r.list.page(r.Context(), &l.providers)
		if err != nil {
			return nil, err
		}
		providers := make([]wire.ListedProvider, len(page))
		for i, e := range page {
			providers[i] = wire.ListedProvider{
				Namespace: e.Address.Namespace, Type: e.Address.Name, Version: e.Version,
				Owner: e.Owner, Description: e.Description, Source: e.Source,
				Published: published(r.snapshot, e.Published),
			}
		}
		return wire.EncodeProviderList(meta, providers), nil
	})
}

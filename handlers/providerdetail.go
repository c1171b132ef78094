package handlers

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/content"
	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// answerProviderDetail answers with the details of a release of a provider, or of the
// latest release.
func (g *Registry) answerProviderDetail(w http.ResponseWriter, r *request) error {
	p, release, err := g.findRelease(r, r.target.version)
	if err != nil {
		return err
	}
	r.Version = release.Version
	return g.writeDerived(w, r, derivedID{kind: r.Kind, address: p.Address, merged: r.target.place.Merged, version: release.Version}, func() (*wire.Document, error) {
		docs, err := (&View{g, r}).Docs(release)
		if err != nil {
			return nil, err
		}
		d := providerDetail(r.snapshot, p, release, docs)
		d.Downloads = g.Usage.Downloads(r.target.resource().Address)
		return wire.EncodeProviderDetail(d), nil
	})
}

// providerDetail describes a release and its documentation, which may be nil.
func providerDetail(s *index.Snapshot, p *index.Provider, release *index.Release, docs *content.Docs) *wire.ProviderDetail {
	said := cmp.Or(p.Metadata(), new(registryhcl.File))
	d := &wire.ProviderDetail{ListedProvider: wire.ListedProvider{
		Namespace: p.Address.Namespace, Type: p.Address.Name, Version: release.Version,
		Owner: said.Owner, Description: said.Description, Source: said.Source,
		Published: published(s, release.Published()),
	}}
	for _, r := range slices.Backward(p.Releases) {
		d.Versions = append(d.Versions, r.Version)
	}
	if docs == nil {
		return d
	}
	for i := range docs.Pages {
		page := &docs.Pages[i]
		d.Docs = append(d.Docs, wire.ProviderDoc{
			ID:    p.Address.At("").String() + "/" + release.Version + "/" + page.Path,
			Title: cmp.Or(page.Title, page.Slug), Path: page.Path, Slug: cmp.Or(page.Slug, "index"),
			Category: string(page.Category), Subcategory: page.Subcategory, Language: "hcl",
		})
	}
	return d
}

package handlers

import (
	"net/http"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

// serveProviders is the provider registry protocol:
//
//	:namespace/:type/versions
//	:namespace/:type/:version/download/:os/:arch
func (g *Registry) serveProviders(w http.ResponseWriter, r *request) error {
	s := r.segments
	switch {
	case len(s) == 3 && s[2] == "versions":
		r.Kind = KindProviderVersions
		p, err := g.ownProvider(r, s[0], s[1])
		if err != nil {
			return err
		}
		a := p.Address
		a.Hostname = r.self
		if g.listPending(r, a, true) {
			return pending
		}
		if p.Versions() == nil {
			return fail(http.StatusNotFound, "no release of %s is signed: the network mirror alone offers it", p.Address)
		}
		return g.writeDocument(w, r, p.Versions(), links{})

	case len(s) == 6 && s[3] == "download":
		r.Kind, r.asked = KindProviderDownload, s[2]
		p, err := g.ownProvider(r, s[0], s[1])
		if err != nil {
			return err
		}
		a := p.Address
		a.Hostname = r.self
		release := p.Release(s[2])
		if release == nil && g.pending(r, a, true) {
			return pending
		}
		if release == nil {
			return fail(http.StatusNotFound, "%s has no such version", p.Address)
		}
		pkg := release.Package(s[4], s[5])
		if pkg == nil || pkg.Download() == nil {
			return fail(http.StatusNotFound, "%s %s has no package for this platform", p.Address, release.Version)
		}
		r.Version, r.Platform = release.Version, pkg.File.Platform
		return g.writeDocument(w, r, pkg.Download(), g.downloadLinks(r, p, release))
	}
	return notFound
}

// downloadLinks are those of a download document: to the files where they are in
// the tree, so that they are the same whatever name the registry is asked by.
func (g *Registry) downloadLinks(r *request, p *index.Provider, release *index.Release) links {
	base := g.baseFor(r)
	a := p.Address
	a.Hostname = release.Hostname
	prefix := providerFiles(base+g.prefix, a)
	return links{prefix: prefix, folder: prefix[len(base)+len(g.prefix):], tag: g.tagOf(base)}
}

// ownProvider finds a provider of the registry itself that r may read.
func (g *Registry) ownProvider(r *request, namespace, typ string) (*index.Provider, error) {
	// Clients ask in the normal form; others may not (checklist 23).
	a, err := address.ParseProvider("", namespace, typ)
	a.Hostname = r.self
	if err != nil {
		return nil, fail(http.StatusNotFound, "that is not the address of a provider: use NAMESPACE/TYPE")
	}
	readable, err := g.mayRead(r, resource(a, true))
	if err != nil {
		return nil, err
	}
	if readable {
		if p := g.ownProviderAt(r, a); p != nil {
			r.provider = &p.Address
			return p, nil
		}
		if g.pending(r, a, true) {
			return nil, pending
		}
	}
	return nil, fail(http.StatusNotFound, "this registry has no provider %s/%s", a.Namespace, a.Name)
}

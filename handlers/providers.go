package handlers

import (
	"net/http"
	"net/url"

	svchost "github.com/hashicorp/terraform-svchost"

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
		p, err := r.ownProvider(s[0], s[1])
		if err != nil {
			return err
		}
		if p.Versions() == nil && r.snapshot.ProviderPending(p.Address) {
			return pending
		}
		if p.Versions() == nil {
			return fail(http.StatusNotFound, "no release of %s is signed: the network mirror alone offers it", p.Address)
		}
		return g.writeDocument(w, r, p.Versions(), "")

	case len(s) == 6 && s[3] == "download":
		r.Kind = KindProviderDownload
		p, err := r.ownProvider(s[0], s[1])
		if err != nil {
			return err
		}
		release := p.Release(s[2])
		if release == nil && r.snapshot.ProviderPending(p.Address) {
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
		return g.writeDocument(w, r, pkg.Download(), g.fileURL(r.self, p.Address))
	}
	return notFound
}

// fileURL is what comes before the name of a provider's file.
func (g *Registry) fileURL(host svchost.Hostname, a index.ProviderAddress) string {
	return g.base + "/mirror/" + string(host) + "/" + url.PathEscape(a.Namespace) + "/" + url.PathEscape(a.Type) + "/"
}

// ownProvider finds a provider of the registry itself.
func (r *request) ownProvider(namespace, typ string) (*index.Provider, error) {
	a := index.ProviderAddress{Hostname: r.self, Namespace: namespace, Type: typ}
	if p := r.snapshot.OwnProvider(a); p != nil {
		r.provider = &p.Address
		return p, nil
	}
	// Clients ask in the normal form; others may not (checklist 23).
	a, err := index.ParseProviderAddress("", namespace, typ)
	if err != nil {
		return nil, fail(http.StatusNotFound, "that is not the address of a provider: use NAMESPACE/TYPE")
	}
	a.Hostname = r.self
	if p := r.snapshot.OwnProvider(a); p != nil {
		r.provider = &p.Address
		return p, nil
	}
	if r.snapshot.ProviderPending(a) {
		return nil, pending
	}
	return nil, fail(http.StatusNotFound, "this registry has no provider %s/%s", a.Namespace, a.Type)
}

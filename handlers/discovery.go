package handlers

import (
	"net/http"

	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A discovery is the discovery document for a login.
type discovery struct {
	*wire.Document
	login *wire.Login
}

// serveDiscovery answers with or without credentials. Clients send their token here,
// and every status except 200 and 404 stops them (checklist 4).
func (g *Registry) serveDiscovery(w http.ResponseWriter, r *request) error {
	r.Kind = KindDiscovery
	var login *wire.Login
	if g.Login != nil {
		login = g.Login(r.Context())
	}
	d := g.discovery.Load()
	if d == nil || d.login != login {
		services := wire.Discovery{Login: login, Modules: g.base + "/modules/", Providers: g.base + "/providers/"}
		if g.Log != nil {
			services.Tlog = g.base + "/tlog/"
		}
		d = &discovery{services.Encode(), login}
		g.discovery.Store(d)
	}
	return g.writeDocument(w, r, d.Document, links{})
}

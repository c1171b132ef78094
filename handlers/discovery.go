package handlers

import (
	"encoding/json"
	"net/http"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

// discoveryPath is fixed by the remote service discovery protocol.
const discoveryPath = "/.well-known/terraform.json"

// A discovery is the document and what it was made of.
type discovery struct {
	*index.Document
	login *Login
}

// Login is what clients need to know for `terraform login`: login.v1 of the
// discovery document.
type Login struct {
	Client     string   `json:"client"`
	GrantTypes []string `json:"grant_types"`
	Authz      string   `json:"authz"`
	Token      string   `json:"token"`
	Ports      []int    `json:"ports,omitempty"`
	Scopes     []string `json:"scopes,omitempty"`
}

// serveDiscovery answers everybody: clients send their token here, and anything
// but 200 or 404 ends their work (checklist 4).
func (g *Registry) serveDiscovery(w http.ResponseWriter, r *request) error {
	r.Kind = KindDiscovery
	var login *Login
	if g.Login != nil {
		login = g.Login(r.Context())
	}
	d := g.discovery.Load()
	if d == nil || d.login != login {
		d = &discovery{discoveryDocument(g.base, login), login}
		g.discovery.Store(d)
	}
	return g.writeDocument(w, r, d.Document, links{})
}

// discoveryDocument names the services below base. Their URLs end in a slash:
// clients would drop the last segment of one that does not (checklist 7, 8).
// What is not offered is not in it (checklist 10).
func discoveryDocument(base string, login *Login) *index.Document {
	body, _ := json.Marshal(struct { // strings and numbers always encode
		Login     *Login `json:"login.v1,omitempty"`
		Modules   string `json:"modules.v1"`
		Providers string `json:"providers.v1"`
	}{login, base + "/modules/", base + "/providers/"})
	return &index.Document{Head: body, Tag: shortHash(string(body))}
}

package handlers

import (
	"encoding/json"
	"net/http"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

// discoveryPath is fixed by the remote service discovery protocol.
const discoveryPath = "/.well-known/terraform.json"

// serveDiscovery answers everybody: clients send their token here, and anything
// but 200 or 404 ends their work (checklist 4).
func (g *Registry) serveDiscovery(w http.ResponseWriter, r *request) error {
	r.Kind = KindDiscovery
	return g.writeDocument(w, r, g.discovery, "")
}

// discoveryDocument names the services below base. Their URLs end in a slash:
// clients would drop the last segment of one that does not (checklist 7, 8).
func discoveryDocument(base string) *index.Document {
	body, _ := json.Marshal(map[string]string{ // strings always encode
		"modules.v1":   base + "/modules/",
		"providers.v1": base + "/providers/",
	})
	return &index.Document{Head: body, Tag: shortHash(string(body))}
}

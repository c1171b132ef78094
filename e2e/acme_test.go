package e2e_test

import (
	"slices"
	"testing"
)

// Caddy's automatic HTTPS: the registry's site gets its certificate over ACME
// from another Caddy that is a certificate authority. The challenge is
// http-01, which the authority asks for through the network of the test.
func TestACME(t *testing.T) {
	t.Parallel()
	network := newProxy(t)
	authority := startRegistryOn(t, network, Site{
		Address: "ca.example.com",
		Directives: []string{
			"acme_server {",
			"challenges http-01",
			"}",
		},
	})

	acme := publisher(t, "acme")
	tree := newTree(t).
		Provider("acme/demo", "1.0.0", signedBy(acme)).
		Keys("acme", acme)
	s := site("registry.example.com", tree)
	s.TLS = `tls {
		issuer acme {
			dir https://ca.example.com/acme/local/directory
			trusted_roots "` + authority.CA + `"
		}
	}`
	registry := startRegistryOnPorts(t, network, s)
	registry.CA = authority.CA

	eachClient(t, func(t *testing.T, c Client) {
		// It trusts the authority only, so this is the certificate that it gets.
		ws := newWorkspace(t, registry, greeting("registry.example.com/acme/demo", "1.0.0"))
		c.Run(t, ws, "init")
	})

	if !slices.Contains(network.Asked(), "registry.example.com:80") {
		t.Error("the authority looked at no challenge")
	}
}

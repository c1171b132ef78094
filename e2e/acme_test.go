package e2e_test

import (
	"encoding/asn1"
	"slices"
	"testing"
)

// Caddy's automatic HTTPS: the registry's site gets its certificate over ACME
// from another Caddy that is a certificate authority. The challenge is http-01,
// which the authority requests through the network of the test.
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
	files := newTree(t).
		Provider("acme/demo", "1.0.0", signedBy(acme)).
		Keys("acme", acme)
	s := site("registry.example.com", files)
	s.TLS = `tls {
		issuer acme {
			dir https://ca.example.com/acme/local/directory
			trusted_roots "` + authority.CA + `"
		}
	}`
	s.HTTP1 = true
	registry := startRegistryOnPorts(t, network, s)
	registry.CA = authority.CA

	eachClient(t, func(t *testing.T, c Client) {
		// The client trusts only the authority, so it must get this
		// certificate.
		ws := newWorkspace(t, registry, greeting("registry.example.com/acme/demo", "1.0.0"))
		c.Run(t, ws, "init")
	})

	if !slices.Contains(network.Asked(), "registry.example.com:80") {
		t.Error("the authority requested no challenge")
	}
	answersTLSALPN(t, registry, "registry.example.com", "ca.example.com-acme-local-directory")
}

// answersTLSALPN verifies that a server limited to HTTP/1.1 still answers the
// other challenge, tls-alpn-01, which an authority requests on port 443. Here
// another instance with the same storage has started it.
func answersTLSALPN(t *testing.T, registry *Registry, host, issuer string) {
	t.Helper()
	writeFile(t, registry.path("data", "caddy", "acme", issuer, "challenge_tokens", host+".json"), `{
		"type": "tls-alpn-01", "status": "pending", "url": "https://ca.example.com/challenge",
		"token": "token", "keyAuthorization": "token.thumbprint",
		"identifier": {"type": "dns", "value": "`+host+`"}
	}`)
	// RFC 8737, section 3.
	const protocol = "acme-tls/1"
	identifier := asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 31}
	state := negotiated(t, registry.https, host, protocol)
	if state.NegotiatedProtocol != protocol {
		t.Errorf("the authority gets protocol %q, want %q", state.NegotiatedProtocol, protocol)
	}
	for _, extension := range state.PeerCertificates[0].Extensions {
		if extension.Id.Equal(identifier) {
			return
		}
	}
	t.Errorf("the certificate does not answer a challenge: it is for %q", state.PeerCertificates[0].DNSNames)
}

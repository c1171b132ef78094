// Package authenticate has the authentication providers of the registry, for the option
// auth and for Caddy's handler `authentication`.
package authenticate

import (
	"net/http"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp/caddyauth"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
)

// presentedToken returns the token of a request. It is empty if there is none, and
// if the client has an empty token (checklist 19).
func presentedToken(r *http.Request) string {
	if _, password, ok := r.BasicAuth(); ok {
		return password
	}
	scheme, secret, _ := strings.Cut(strings.TrimSpace(r.Header.Get("Authorization")), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(secret)
}

// User returns a subject in the form of Caddy's placeholders.
func User(s access.Subject) caddyauth.User {
	if s.Anonymous() {
		return caddyauth.User{}
	}
	return caddyauth.User{ID: s.ID, Metadata: map[string]string{"groups": strings.Join(s.Groups, ",")}}
}

// WorksInBrowser reports whether people can authenticate to a provider with a browser,
// unlike to a provider for the tokens of clients.
func WorksInBrowser(a caddyauth.Authenticator) bool {
	switch a.(type) {
	case *OpenID, *Tokens:
		return false
	}
	return true
}

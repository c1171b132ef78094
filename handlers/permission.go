package handlers

import (
	"errors"
	"net/http"
	"strings"
	"time"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
)

// mayRead tells whether the request may read what is at an address. A request
// without credentials that may not is an error, whether there is anything or
// not; one with credentials gets false, and an answer as if there was nothing:
// existence is not told.
func (g *Registry) mayRead(r *request, a access.Address) (bool, error) {
	if g.Rules == nil || g.Rules.Public(a) {
		return true, nil
	}
	r.private = true
	if g.Authenticate == nil {
		return false, g.unauthorized(r, a)
	}
	subject, err := g.Authenticate(r.Request)
	if err != nil {
		// Whoever finds out says so in the log, once: anybody can cause this answer.
		return false, unavailable("the credentials cannot be checked at the moment: try again in a moment", nil)
	}
	if g.Rules.Decide(subject, access.Read, a).Allowed {
		return true, nil
	}
	if subject.Anonymous() {
		return false, g.unauthorized(r, a)
	}
	return false, nil
}

// mayReadFile is mayRead for a file, which a signed link opens too: clients
// send no credentials when they download (clients' credentials, §3). The path
// is that of the file as it is signed.
func (g *Registry) mayReadFile(r *request, a access.Address, path string) (bool, error) {
	if g.Rules == nil || g.Rules.Public(a) {
		return true, nil
	}
	r.private = true
	link := g.Links.Verify(g.realm(r), path, r.URL.RawQuery, time.Now())
	if link == nil {
		return true, nil
	}
	readable, err := g.mayRead(r, a)
	if readable || errors.Is(link, access.ErrNoLink) {
		return readable, err
	}
	switch {
	case errors.Is(link, access.ErrNoLinkKeys):
		return false, unavailable("links cannot be checked at the moment: try again in a moment", nil)
	case errors.Is(link, access.ErrLinkExpired):
		return false, fail(http.StatusForbidden, "this link has expired: run the command again to be given a new one")
	}
	return false, fail(http.StatusForbidden, "this link is not one of this registry's for this file: run the command again to be given one")
}

// unauthorized says how to be somebody. Clients do not show it, but for where a
// module lies, before which they ask for its versions: it is for people who look
// with other tools.
func (g *Registry) unauthorized(r *request, a access.Address) error {
	name := a.Namespace + "/" + a.Name
	if a.System != "" {
		name += "/" + a.System
	}
	how := "give your client a token for " + svchost.ForDisplay(string(r.self))
	if g.Login != nil {
		how = "run terraform login " + svchost.ForDisplay(string(r.self)) + ", or " + how
	}
	if variable, ok := tokenVariable(r.self); ok {
		how += " in " + variable
	}
	if r.hasCredentials() {
		return fail(http.StatusUnauthorized, "the credentials for %s are not known here, expired or revoked: %s", name, how)
	}
	return fail(http.StatusUnauthorized, "%s is not for everybody: %s", name, how)
}

// tokenVariable is the environment variable in which clients look for a
// hostname's token; one with a port has none.
func tokenVariable(name svchost.Hostname) (string, bool) {
	if strings.ContainsRune(string(name), ':') {
		return "", false
	}
	return "TF_TOKEN_" + inVariable.Replace(string(name)), true
}

var inVariable = strings.NewReplacer("-", "__", ".", "_")

// hasCredentials tells whether somebody is named at all: some clients send
// `Bearer` without a token, which is nobody.
func (r *request) hasCredentials() bool {
	_, credentials, _ := strings.Cut(strings.TrimSpace(r.Header.Get("Authorization")), " ")
	return strings.TrimSpace(credentials) != ""
}

// challenge is the WWW-Authenticate of a 401 (RFC 6750 §3).
func (r *request) challenge() string {
	if r.hasCredentials() {
		return `Bearer realm="terraform registry", error="invalid_token"`
	}
	return `Bearer realm="terraform registry"`
}

// realm is what a link is good at: this registry, by a name that is the same
// when the link is used.
func (g *Registry) realm(r *request) string {
	switch {
	case g.PublicURL != "":
		return g.PublicURL
	case len(g.Hostnames) > 0:
		return string(g.Hostnames[0])
	}
	return string(r.self)
}

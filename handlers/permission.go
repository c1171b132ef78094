package handlers

import (
	"errors"
	"net/http"
	"strings"
	"time"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// mayRead tells whether the request may read what is at an address. A request
// without credentials that may not is an error, whether there is anything or
// not; one with credentials gets false, and an answer as if there was nothing:
// existence is not told.
func (g *Registry) mayRead(r *request, a access.Resource) (bool, error) {
	if g.Rules == nil || g.rules.Public(a) {
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
	if g.rules.Decide(subject, access.Read, a).Allowed {
		return true, nil
	}
	if subject.Anonymous() {
		return false, g.unauthorized(r, a)
	}
	return false, nil
}

// verifyLink tells what the link that r was made by says of a provider's file; the
// address is the true one. It is nil if the link opens the file.
func (g *Registry) verifyLink(r *request, a address.Address, name string) error {
	if g.Rules == nil || r.URL.RawQuery == "" {
		return access.ErrNoLink
	}
	return g.Links.Verify(g.Tree, providerFiles("", a)+name, r.URL.RawQuery, time.Now())
}

// verifyModuleLink is the same of a module's package.
func (g *Registry) verifyModuleLink(r *request, a address.Address, version, name string) error {
	if g.Rules == nil || r.URL.RawQuery == "" {
		return access.ErrNoLink
	}
	return g.Links.Verify(g.Tree, moduleFile("", a, version, name), r.URL.RawQuery, time.Now())
}

// moreTelling is the one of two reasons why a link opens neither of two files that
// says more to who has it: that it was good, or that this cannot be told.
func moreTelling(a, b error) error {
	if errors.Is(a, access.ErrLinkInvalid) {
		return b
	}
	return a
}

// mayReadFile is mayRead for a file, which clients download without credentials,
// by a link (clients' credentials, §3). That has not opened it, and link says why.
func (g *Registry) mayReadFile(r *request, a access.Resource, link error) (bool, error) {
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
func (g *Registry) unauthorized(r *request, a access.Resource) error {
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

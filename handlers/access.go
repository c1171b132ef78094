package handlers

import (
	"cmp"
	"errors"
	"net/http"
	"strings"
	"time"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// authorize asks the rules about the target of r. It returns an error if the request
// may not read the target and has no valid credentials, whether the target exists or
// not. With valid credentials, it marks the target as not readable.
func (g *Registry) authorize(r *request) error {
	resource := r.target.resource()
	if g.Rules == nil || g.rules.Public(resource) {
		r.target.readable = true
		return nil
	}
	r.target.private = true
	subject, err := g.subject(r)
	if err != nil {
		return err
	}
	r.target.readable = g.rules.Decide(subject, access.Read, resource).Allowed
	if !r.target.readable && subject.Anonymous() {
		return g.unauthorized(r, resource.Address.String())
	}
	return nil
}

// subject returns the user who makes a request. It authenticates at most once a
// request, and only if an answer depends on the user.
func (g *Registry) subject(r *request) (access.Subject, error) {
	authenticate := g.Authenticate
	if r.visit && g.AuthenticateVisitor != nil {
		authenticate = g.AuthenticateVisitor
	}
	if r.subject != nil || authenticate == nil {
		return r.knownSubject(), nil
	}
	r.waiting() // authentication may ask an issuer of tokens
	subject, err := authenticate(r.Request)
	if err != nil {
		// Authenticate logs the reason, once: any client can cause this answer.
		return access.Subject{}, unavailable("the credentials cannot be checked at the moment: try again in a moment", nil)
	}
	r.subject = &subject
	return subject, nil
}

// authorizeFile is authorize for a file. Clients download files without credentials, so
// a signed link authorizes them too (checklist 39, 40, 67, 91).
//
// A link opens only the file for which it was signed, under all names of the registry.
// A provider's file may be hosted although the path has a HOSTNAME: mirror documents
// name files by their bare names, and clients look for these beside the document.
func (g *Registry) authorizeFile(r *request) error {
	t, invalid := &r.target, access.ErrNoLink
	if g.Rules != nil && r.URL.RawQuery != "" {
		r.waiting() // Verify may load keys
		for _, a := range []address.Address{t.Address, t.WithHostname("")} {
			err := g.Links.Verify(g.Tree, filePath("", a, t.version, t.file), r.URL.RawQuery, time.Now())
			if err == nil {
				signed := g.located(a)
				signed.version, signed.file = t.version, t.file
				signed.readable, signed.private = true, !g.rules.Public(signed.resource())
				*t = signed
				return nil
			}
			// If one link has expired or cannot be checked, that says more than that
			// another is not for this file.
			if errors.Is(invalid, access.ErrNoLink) || errors.Is(invalid, access.ErrLinkInvalid) {
				invalid = err
			}
			if t.IsModule() || t.Hostname == "" {
				break
			}
		}
	}
	err := g.authorize(r)
	if t.readable || errors.Is(invalid, access.ErrNoLink) {
		return err
	}
	return linkRefused(invalid)
}

// unauthorized says which credentials to use for what has a name. Terraform and OpenTofu
// show this text only for the download of a module. It is also for people who ask with
// other tools.
func (g *Registry) unauthorized(r *request, name string) error {
	if r.hasCredentials() {
		return fail(http.StatusUnauthorized, "the credentials for %s are unknown, expired or revoked: %s", name, g.howToAuthenticate(r))
	}
	return fail(http.StatusUnauthorized, "%s is private: %s", name, g.howToAuthenticate(r))
}

// howToAuthenticate says where clients look for a token. For addresses of a registry
// that this one stands in for, clients use the token of that registry, and cannot log
// in to it here.
func (g *Registry) howToAuthenticate(r *request) string {
	name := cmp.Or(r.original, r.self)
	how := "give your client a token for " + svchost.ForDisplay(string(name))
	if g.Login != nil && r.original == "" {
		how = "run terraform login " + svchost.ForDisplay(string(name)) + ", or " + how
	}
	if variable, ok := TokenVariable(name); ok {
		how += " in " + variable
	}
	return how
}

// TokenVariable returns the environment variable in which clients look for a hostname's
// token (checklist 106). There is none for a hostname with a port.
func TokenVariable(name svchost.Hostname) (string, bool) {
	if strings.ContainsRune(string(name), ':') {
		return "", false
	}
	return "TF_TOKEN_" + inVariable.Replace(string(name)), true
}

var inVariable = strings.NewReplacer("-", "__", ".", "_")

// hasCredentials reports whether the request has credentials. Some clients send
// `Bearer` with an empty token (checklist 19), which does not count.
func (r *request) hasCredentials() bool {
	_, credentials, _ := strings.Cut(strings.TrimSpace(r.Header.Get("Authorization")), " ")
	return strings.TrimSpace(credentials) != ""
}

// challenge returns the WWW-Authenticate of a 401 (RFC 6750 §3).
func (r *request) challenge() string {
	if r.hasCredentials() {
		return `Bearer realm="terraform registry", error="invalid_token"`
	}
	return `Bearer realm="terraform registry"`
}

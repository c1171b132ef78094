package module

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/access/oidc"
	"github.com/caddy-terraform/caddy-terraform-registry/access/signin"
	"github.com/caddy-terraform/caddy-terraform-registry/module/authenticate"
)

// provisionSignIn lets people sign in to the pages with the issuer of the login, if
// providers in auth accept its tokens. The options of these providers determine the
// subject.
func (h *Handler) provisionSignIn(sealer *access.Sealer) {
	if h.UI == nil || h.login == nil || h.login.issuer == nil {
		return
	}
	var verifiers []*oidc.Verifier
	scope := []any{h.registry.Tree}
	for _, a := range h.authenticators {
		if o, ok := a.(*authenticate.OpenID); ok && o.Issuer == h.login.issuer.URL() {
			verifiers = append(verifiers, o.Verifier())
			scope = append(scope, o.Audience, o.SubjectClaim, o.GroupsClaims, o.Require)
		}
	}
	if len(verifiers) == 0 {
		return
	}
	text, _ := json.Marshal(scope) // strings always encode
	client := &oidc.Client{
		Issuer: h.login.issuer, ID: h.Login.Client, Secret: h.login.secret,
		Authorization: h.Login.Authz, Scopes: h.Login.Scopes, Verifiers: verifiers,
	}
	// A path is on this host, under any name: the secret is not sent there.
	if !strings.HasPrefix(h.Login.Token, "/") {
		client.Token = h.Login.Token
	}
	h.signIn = &signin.SignIn{Client: client, Sealer: sealer, Rules: h.registry.Rules, AllGroups: h.groups != defaultGroups, Scope: string(text)}
	h.registry.AuthenticateVisitor = h.authenticateVisitor
}

// authenticateVisitor is like authenticate, for a request for a page: without
// credentials, the request may belong to a session.
func (h *Handler) authenticateVisitor(r *http.Request) (access.Subject, error) {
	subject, err := h.authenticate(r)
	if err != nil || !subject.Anonymous() {
		return subject, err
	}
	if subject, err = h.signIn.Subject(r); err != nil || subject.Anonymous() {
		return subject, err
	}
	if repl, ok := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer); ok {
		return h.subjectOfUser(repl, authenticate.User(subject)), nil
	}
	return subject, nil
}

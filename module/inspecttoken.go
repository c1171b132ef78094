package module

import (
	"context"
	"fmt"
	"slices"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/caddyauth"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
)

// A TokenVerdict is the verdict of a provider of the option auth on a token.
type TokenVerdict struct {
	// Root is the root of the registry, absolute on the local disk.
	Root string

	// Provider is the provider in the form of a Caddyfile, without its block.
	Provider string

	// Err says why the token is not accepted. If it wraps oidc.ErrUnavailable, it is
	// not known whether the token is valid.
	Err error

	// Subject is the subject that an accepted token identifies.
	Subject access.Subject

	// Rules are the rules about the subject, with their numbers. The first rule that
	// covers an address decides.
	Rules []string
}

// A tokenProvider is a provider of the option auth that accepts tokens.
type tokenProvider interface {
	Identify(ctx context.Context, token string) (caddyauth.User, error)
	Caddyfile() string // the provider in the form of a Caddyfile, without its block
}

// InspectToken returns the verdicts of the registries of the configuration on a token:
// one verdict for each provider that accepts tokens. The providers are asked in the
// same way as for a request.
func (a *App) InspectToken(ctx context.Context, token string) (verdicts []TokenVerdict) {
	for _, h := range a.handlers {
		for _, authenticator := range h.authenticators {
			provider, ok := authenticator.(tokenProvider)
			if !ok {
				continue
			}
			user, err := provider.Identify(ctx, token)
			v := TokenVerdict{Root: h.source.tree.root(), Provider: provider.Caddyfile(), Err: err}
			if err == nil {
				v.Subject = h.subjectOfUser(caddy.NewReplacer(), user)
				v.Rules = h.rulesAbout(v.Subject)
			}
			if !slices.ContainsFunc(verdicts, v.equal) {
				verdicts = append(verdicts, v)
			}
		}
	}
	return verdicts
}

// equal reports whether both verdicts are the same for users. A site that is served by
// two servers has its registry twice.
func (v TokenVerdict) equal(other TokenVerdict) bool {
	return v.Root == other.Root && v.Provider == other.Provider && fmt.Sprint(v.Err) == fmt.Sprint(other.Err) &&
		v.Subject.ID == other.Subject.ID && slices.Equal(v.Subject.Groups, other.Subject.Groups) && slices.Equal(v.Rules, other.Rules)
}

func (h *Handler) rulesAbout(s access.Subject) (rules []string) {
	number := 0
	for r := range h.registry.Rules.All() {
		if number++; !r.About(s) {
			continue
		}
		if h.Access == nil {
			rules = append(rules, fmt.Sprintf("%s, which auth implies without access", r))
		} else {
			rules = append(rules, fmt.Sprintf("rule %d: %s", number, r))
		}
	}
	return rules
}

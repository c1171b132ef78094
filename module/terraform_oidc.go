package module

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/caddyauth"

	"github.com/caddy-terraform/caddy-terraform-registry/access/oidc"
)

func init() {
	caddy.RegisterModule(new(OpenID))
}

// OpenID authenticates requests by tokens of an OpenID Connect issuer: those of
// users who logged in, and those that CI services give to their jobs. They have
// to be JSON Web Tokens.
//
// Clients send the token as `Authorization: Bearer`, or as the password of basic
// authentication, which is what a `.netrc` file is for; the user name does not
// matter then. A request with no token, or with one of another kind, is left to
// other providers.
//
// A token is good if one of the issuer's keys signed it, with an asymmetric
// algorithm that the issuer names; if it has an expiry that is not over; and if
// it is meant for this registry, which `audience` says. Who it is for is in
// `{http.auth.user.id}`, the groups, separated by commas, in
// `{http.auth.user.groups}`.
//
// The issuer is asked for its configuration and its keys with the first token,
// not when the configuration is loaded; both are kept across reloads. While it
// is down, tokens signed with known keys remain good. A certificate that is not
// of a public authority has to be trusted by the system.
//
// Tokens of two issuers, or of one with a different audience, take two of these
// providers. Nothing is put before the names of subjects: choose issuers and
// claims so that a name means the same one everywhere.
//
// Tokens of GitHub Actions, limited to the repositories of one owner, as all of
// GitHub shares the issuer:
//
//	{
//		"issuer": "https://token.actions.githubusercontent.com",
//		"audience": ["registry.example.com"],
//		"require": {"repository_owner": ["acme"]}
//	}
type OpenID struct {
	// The issuer's URL, exactly as it calls itself in the claim `iss` of its
	// tokens, with or without a slash at the end. Its scheme is https; http is
	// for `localhost` and loopback addresses. Required. Placeholders work that
	// are known when the configuration is loaded, such as `{env.*}`, here and in
	// all other options but for the names of required claims.
	Issuer string `json:"issuer,omitempty"`

	// What the issuer calls this registry, one of which a token must have in its
	// claim `aud`. Required: without, a token that was given to any other service
	// could be used here by that service.
	Audience []string `json:"audience,omitempty"`

	// The claim that names the subject. It has to be a text. Choose one that
	// users cannot change themselves, as they often can their e-mail address and
	// their name. A claim within another is named with a dot. Default: `sub`.
	SubjectClaim string `json:"subject_claim,omitempty"`

	// The claims that name the groups, each a text or a list of texts; whatever
	// else they hold is ignored. A claim within another is named with a dot, such
	// as `realm_access.roles`. Groups whose names have a comma, or a space at
	// either end, are left out: in a list separated by commas they could be taken
	// for others. Default: `groups`.
	GroupsClaims []string `json:"groups_claims,omitempty"`

	// Claims a token must have, each with the values that are allowed. A `*`
	// stands for any characters. A claim that is a list must have one of the
	// values in it. This is for issuers that many share. Default: none.
	Require map[string][]string `json:"require,omitempty"`

	logger   *slog.Logger
	issuer   *oidc.Issuer
	verifier *oidc.Verifier
}

// CaddyModule returns the Caddy module information.
func (*OpenID) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.authentication.providers.terraform_oidc",
		New: func() caddy.Module { return new(OpenID) },
	}
}

// Provision checks the options. It asks the issuer for nothing, so that
// configurations can be validated anywhere.
func (o *OpenID) Provision(ctx caddy.Context) error {
	o.logger = ctx.Slogger()
	if err := o.replace(caddy.NewReplacer()); err != nil {
		return err
	}
	if o.Issuer == "" {
		return errors.New("issuer: it is missing: set it to the URL of the OpenID Connect issuer")
	}
	issuer, err := acquireIssuer(o.Issuer)
	if err != nil {
		return err
	}
	o.issuer = issuer
	o.verifier, err = oidc.NewVerifier(issuer, oidc.Options{
		Audience:     o.Audience,
		SubjectClaim: o.SubjectClaim,
		GroupsClaims: o.GroupsClaims,
		Require:      o.Require,
	})
	return err
}

func (o *OpenID) replace(repl *caddy.Replacer) error {
	for _, option := range []struct {
		name   string
		values []*string
	}{
		{"issuer", []*string{&o.Issuer}},
		{"audience", pointers(o.Audience)},
		{"subject_claim", []*string{&o.SubjectClaim}},
		{"groups_claims", pointers(o.GroupsClaims)},
	} {
		if err := expand(repl, option.name, option.values); err != nil {
			return err
		}
	}
	for _, claim := range slices.Sorted(maps.Keys(o.Require)) {
		if err := expand(repl, "require: "+claim, pointers(o.Require[claim])); err != nil {
			return err
		}
	}
	return nil
}

// expand replaces the placeholders in the values of an option.
func expand(repl *caddy.Replacer, option string, values []*string) error {
	for _, value := range values {
		replaced, err := repl.ReplaceOrErr(*value, true, true)
		if err != nil {
			return fmt.Errorf("%s: %w", option, err)
		}
		*value = replaced
	}
	return nil
}

func pointers(values []string) []*string {
	p := make([]*string, len(values))
	for i := range values {
		p[i] = &values[i]
	}
	return p
}

// Cleanup gives back the issuer.
func (o *OpenID) Cleanup() error {
	return releaseIssuer(o.issuer)
}

// Authenticate implements caddyauth.Authenticator. The error wraps
// oidc.ErrUnavailable: it is not the client's fault that it cannot be
// told who asks.
func (o *OpenID) Authenticate(_ http.ResponseWriter, r *http.Request) (caddyauth.User, bool, error) {
	token := presentedToken(r)
	if token == "" {
		return caddyauth.User{}, false, nil
	}
	subject, err := o.verifier.Verify(r.Context(), token)
	switch {
	case err == nil:
		return caddyauth.User{
			ID:       subject.ID,
			Metadata: map[string]string{"groups": strings.Join(subject.Groups, ",")},
		}, true, nil
	case errors.Is(err, oidc.ErrUnavailable):
		return caddyauth.User{}, false, err
	case errors.Is(err, oidc.ErrRefused):
		o.logger.Debug("token refused", "issuer", o.Issuer, "reason", err.Error())
	}
	return caddyauth.User{}, false, nil
}

// UnmarshalCaddyfile sets up the provider from Caddyfile tokens. Syntax:
//
//	terraform_oidc <issuer> {
//	    audience <value...>
//	    subject  <claim>
//	    groups   <claim...>
//	    require  <claim> <value...>
//	}
//
// All but subject may be repeated and add up.
func (o *OpenID) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the provider's name
	if !d.AllArgs(&o.Issuer) || o.Issuer == "" {
		return d.Err("terraform_oidc takes one argument, the URL of the issuer")
	}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		option, args := d.Val(), d.RemainingArgs()
		switch option {
		case "audience", "groups", "subject":
			if len(args) == 0 {
				return d.ArgErr()
			}
		case "require":
			if len(args) < 2 {
				return d.Err("require takes a claim and the values it may have")
			}
		default:
			return d.Errf("unrecognized subdirective '%s', the allowed ones are: audience, subject, groups, require", option)
		}
		switch option {
		case "audience":
			o.Audience = append(o.Audience, args...)
		case "groups":
			o.GroupsClaims = append(o.GroupsClaims, args...)
		case "subject":
			if o.SubjectClaim != "" {
				return d.Err("subject is already specified")
			}
			if len(args) != 1 || args[0] == "" {
				return d.Err("subject takes one claim")
			}
			o.SubjectClaim = args[0]
		case "require":
			if o.Require == nil {
				o.Require = make(map[string][]string)
			}
			o.Require[args[0]] = append(o.Require[args[0]], args[1:]...)
		}
		if d.NextBlock(d.Nesting()) {
			return d.Errf("%s does not have a block", option)
		}
	}
	if len(o.Audience) == 0 {
		return d.Err("the audience is missing: add 'audience <value>' to the block, with what the issuer calls this registry")
	}
	return nil
}

// Interface guards
var (
	_ caddy.Provisioner       = (*OpenID)(nil)
	_ caddy.CleanerUpper      = (*OpenID)(nil)
	_ caddyauth.Authenticator = (*OpenID)(nil)
	_ caddyfile.Unmarshaler   = (*OpenID)(nil)
)

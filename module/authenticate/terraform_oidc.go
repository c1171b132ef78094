package authenticate

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/caddyauth"

	"github.com/caddy-terraform/caddy-terraform-registry/access/oidc"
	"github.com/caddy-terraform/caddy-terraform-registry/module/option"
)

func init() {
	caddy.RegisterModule(new(OpenID))
}

// OpenID authenticates requests by tokens of an OpenID Connect issuer: tokens of users
// who logged in, and tokens that CI services issue to their jobs. They must be JSON Web
// Tokens.
//
// Clients send the token as `Authorization: Bearer`, or as the password of basic
// authentication with any user name, as with a `.netrc` file. A request without a
// token, or with a token of another kind, is left to other providers.
//
// A token is accepted if one of the issuer's keys signed it, with an asymmetric
// algorithm that the issuer supports, if it has an expiry and has not expired, and
// if it is meant for this registry, as configured with `audience`. Its subject is
// in `{http.auth.user.id}`, and the groups, separated by commas, are in
// `{http.auth.user.groups}`.
//
// The issuer's configuration and keys are fetched for the first token, not when
// the configuration is loaded, and stay cached across reloads. While the issuer is
// down, tokens signed with cached keys are still accepted. If its certificate is
// not of a public authority, the system must trust that authority.
//
// Two issuers, or two audiences with different options, need two of these
// providers. Names of subjects get no prefix: choose issuers and claims so that a
// name always means the same subject.
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
	// tokens, with or without a slash at the end. Its scheme is https, or http for
	// `localhost` and loopback addresses. Required. Placeholders known when the
	// configuration is loaded, such as `{env.*}`, are replaced here and in all other
	// options, except in the names of required claims.
	Issuer string `json:"issuer,omitempty"`

	// The names of this registry at the issuer. A token must have one of these names in
	// its claim `aud`. Required: otherwise any other service could use the tokens
	// that clients send to it.
	Audience []string `json:"audience,omitempty"`

	// The claim that names the subject. It must be a string. Choose one that users
	// cannot change themselves; they often can change their e-mail address and their
	// name. A claim within another is named with a dot. Default: `sub`.
	SubjectClaim string `json:"subject_claim,omitempty"`

	// The claims that name the groups, each a string or a list of strings; other
	// values are ignored. A claim within another is named with a dot, such as
	// `realm_access.roles`. Groups whose names have a comma, or a space at either
	// end, are left out: in a list separated by commas they could be taken for
	// others. Default: `groups`.
	GroupsClaims []string `json:"groups_claims,omitempty"`

	// Claims that a token must have, each with the accepted values. A `*` stands for
	// any characters. A claim that is a list must contain one of the values. This is
	// for issuers that are shared with others. Default: none.
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

// Provision checks the options. It fetches nothing from the issuer, so that
// configurations can be validated anywhere.
func (o *OpenID) Provision(ctx caddy.Context) error {
	o.logger = ctx.Slogger()
	if err := o.expand(caddy.NewReplacer()); err != nil {
		return err
	}
	if o.Issuer == "" {
		return errors.New("issuer: it is missing: set it to the URL of the OpenID Connect issuer")
	}
	issuer, err := AcquireIssuer(o.Issuer)
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

func (o *OpenID) expand(repl *caddy.Replacer) error {
	options := []option.Values{
		option.Scalar("issuer", &o.Issuer),
		option.List("audience", o.Audience),
		option.Scalar("subject_claim", &o.SubjectClaim),
		option.List("groups_claims", o.GroupsClaims),
	}
	for _, claim := range slices.Sorted(maps.Keys(o.Require)) {
		options = append(options, option.List("require: "+claim, o.Require[claim]))
	}
	return option.Expand(repl, options...)
}

// Cleanup releases the issuer.
func (o *OpenID) Cleanup() error {
	return ReleaseIssuer(o.issuer)
}

// Authenticate implements caddyauth.Authenticator. The error wraps
// oidc.ErrUnavailable: the token cannot be verified, which is not the client's
// fault.
func (o *OpenID) Authenticate(_ http.ResponseWriter, r *http.Request) (caddyauth.User, bool, error) {
	token := presentedToken(r)
	if token == "" {
		return caddyauth.User{}, false, nil
	}
	user, err := o.Identify(r.Context(), token)
	switch {
	case err == nil:
		return user, true, nil
	case errors.Is(err, oidc.ErrUnavailable):
		return caddyauth.User{}, false, err
	case errors.Is(err, oidc.ErrRefused):
		o.logger.Debug("token refused", "issuer", o.Issuer, "reason", err.Error())
	}
	return caddyauth.User{}, false, nil
}

// Identify returns the user of a token. The error comes from oidc.Verifier.Verify.
func (o *OpenID) Identify(ctx context.Context, token string) (caddyauth.User, error) {
	subject, err := o.verifier.Verify(ctx, token)
	return User(subject), err
}

// Verifier returns the verifier of tokens, which has the options of the provider.
func (o *OpenID) Verifier() *oidc.Verifier { return o.verifier }

// Caddyfile returns the provider in the form of a Caddyfile, without its block.
func (o *OpenID) Caddyfile() string { return "terraform_oidc " + o.Issuer }

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
		name, args := d.Val(), d.RemainingArgs()
		if len(args) == 0 && slices.Contains([]string{"audience", "groups", "subject"}, name) {
			return d.ArgErr()
		}
		switch name {
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
			if len(args) < 2 {
				return d.Err("require takes a claim and the values it may have")
			}
			if o.Require == nil {
				o.Require = make(map[string][]string)
			}
			o.Require[args[0]] = append(o.Require[args[0]], args[1:]...)
		default:
			return d.Errf("unrecognized subdirective '%s', the allowed ones are: audience, subject, groups, require", name)
		}
		if d.NextBlock(d.Nesting()) {
			return d.Errf("%s does not have a block", name)
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

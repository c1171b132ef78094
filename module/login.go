package module

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-terraform/caddy-terraform-registry/access/oidc"
	"github.com/caddy-terraform/caddy-terraform-registry/module/authenticate"
	"github.com/caddy-terraform/caddy-terraform-registry/module/option"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// Login tells `terraform login` and `tofu login` where users get a token. The OAuth
// server is not part of the registry.
//
// It has to support the authorization code grant with PKCE (S256) for a client
// without a secret, and to accept `http://localhost:PORT/login` as redirect URI
// for every port in `ports`. Clients keep only the access token and never renew it.
// To be checked by `terraform_oidc`, it has to be a JSON Web Token with the registry
// as audience. The server should show errors on a page of its own: if an error is
// sent to the redirect URI, clients keep waiting.
//
// People sign in to the pages with the same client, if there is an `issuer` and one of
// the `terraform_oidc` providers in `auth` has the same issuer. The options of this
// provider determine the subject. The server has to accept the redirect URI
// `/_registry/callback` of this site, below the path of `ui` if that has one.
//
// Placeholders known when the configuration is loaded, such as `{env.*}`, are
// replaced.
type Login struct {
	// The ID of the OAuth client for Terraform and OpenTofu. Required.
	Client string `json:"client,omitempty"`

	// The secret of the client, for issuers that want one when people sign in to the
	// pages. Terraform and OpenTofu never have it. Keep it out of the configuration with
	// a placeholder: `{env.REGISTRY_SECRET}` or `{file./run/secrets/registry}`. Default:
	// none; PKCE is used in any case.
	Secret string `json:"secret,omitempty"`

	// Where users log in: a URL with https, or http for `localhost` and loopback
	// addresses, or a path on this registry's host that starts with a slash. A
	// query is kept. Default: the endpoint of the issuer.
	Authz string `json:"authz,omitempty"`

	// Where clients get the token, like `authz`. Default: the endpoint of the issuer.
	Token string `json:"token,omitempty"`

	// The URL of an OpenID Connect issuer whose discovery document provides `authz`
	// and `token`, if they are not set. As long as it cannot be fetched, no login is
	// offered; everything else works. Default: none; then `authz` and `token` are
	// required.
	Issuer string `json:"issuer,omitempty"`

	// The lowest and the highest of the ports on which a client waits for the redirect
	// after the login. It tries some at random, but never the highest: allow at least
	// ten. Default: `[10000, 10010]`.
	Ports []int `json:"ports,omitempty"`

	// The scopes that clients request. An OpenID Connect issuer may require `openid`,
	// and one that adds the registry to the audience. When people sign in to the pages,
	// `openid` is added. Default: none.
	Scopes []string `json:"scopes,omitempty"`
}

const (
	defaultMinLoginPort = 10000
	defaultMaxLoginPort = 10010
)

// loginTimeout is how long discovery waits for the issuer. Clients can do everything
// else without a login.
const loginTimeout = 2 * time.Second

// login provides the part of the discovery document about `terraform login`.
type login struct {
	configured wire.Login   // without the endpoints of the issuer
	secret     string       // of the client
	issuer     *oidc.Issuer // nil: both endpoints are configured
	logger     *slog.Logger

	mutex       sync.Mutex
	last        *wire.Login
	unavailable bool // the issuer was unavailable the last time
}

// read checks the options. It returns nil if no login is configured, otherwise a login
// to be closed. It fetches nothing from the issuer.
func (l *Login) read(repl *caddy.Replacer, logger *slog.Logger) (*login, error) {
	if l == nil {
		return nil, nil
	}
	if err := l.expand(repl); err != nil {
		return nil, fmt.Errorf("login: %w", err)
	}
	if err := l.validate(); err != nil {
		return nil, fmt.Errorf("login: %w", err)
	}
	provisioned := &login{
		configured: wire.Login{
			Client:     l.Client,
			GrantTypes: []string{"authz_code"},
			Authz:      l.Authz,
			Token:      l.Token,
			Ports:      l.Ports,
			Scopes:     l.Scopes,
		},
		secret: l.Secret,
		logger: logger,
	}
	// The secret must not get into the configuration.
	if err := option.Expand(repl, option.Scalar("login: secret", &provisioned.secret)); err != nil {
		return nil, err
	}
	if len(l.Ports) == 0 {
		provisioned.configured.Ports = []int{defaultMinLoginPort, defaultMaxLoginPort}
	}
	if l.Issuer != "" {
		issuer, err := authenticate.AcquireIssuer(l.Issuer)
		if err != nil {
			return nil, fmt.Errorf("login: %w", err)
		}
		provisioned.issuer = issuer
	}
	return provisioned, nil
}

// close releases the issuer.
func (l *login) close() error {
	if l == nil {
		return nil
	}
	return authenticate.ReleaseIssuer(l.issuer)
}

// document returns login.v1 of the discovery document, the same pointer as long as it
// does not change; nil if the endpoints of the issuer are not known.
func (l *login) document(ctx context.Context) *wire.Login {
	if l.issuer == nil {
		return &l.configured
	}
	bounded, cancel := context.WithTimeout(ctx, loginTimeout)
	defer cancel()
	authz, token, err := l.issuer.Endpoints(bounded)

	l.mutex.Lock()
	defer l.mutex.Unlock()
	if err != nil {
		// If the client has left, this is not an error of the issuer.
		if !l.unavailable && ctx.Err() == nil {
			l.unavailable = true
			l.logger.Warn("clients are not told of a login, as its issuer is unavailable", "issuer", l.issuer.URL(), "error", err.Error())
		}
		return nil
	}
	if l.unavailable {
		l.unavailable = false
		l.logger.Info("clients are told of a login again", "issuer", l.issuer.URL())
	}
	if l.configured.Authz != "" {
		authz = l.configured.Authz
	}
	if l.configured.Token != "" {
		token = l.configured.Token
	}
	if l.last == nil || l.last.Authz != authz || l.last.Token != token {
		document := l.configured
		document.Authz, document.Token = authz, token
		l.last = &document
	}
	return l.last
}

func (l *Login) expand(repl *caddy.Replacer) error {
	return option.Expand(repl,
		option.Scalar("client", &l.Client),
		option.Scalar("authz", &l.Authz),
		option.Scalar("token", &l.Token),
		option.Scalar("issuer", &l.Issuer),
		option.List("scopes", l.Scopes),
	)
}

func (l *Login) validate() error {
	switch {
	case l.Client == "":
		return errors.New("client: it is missing: set it to the ID of the OAuth client")
	case l.Issuer == "" && l.Secret != "":
		return errors.New("a secret has no effect without an issuer, as people cannot sign in to the pages then: add the issuer, or remove the secret")
	case l.Issuer == "" && (l.Authz == "" || l.Token == ""):
		return errors.New("authz and token are required, or an issuer that provides them")
	case l.Issuer != "" && l.Authz != "" && l.Token != "":
		return errors.New("an issuer has no effect if authz and token are both set: remove the issuer, or one of them")
	}
	for _, e := range []struct{ name, url string }{{"authz", l.Authz}, {"token", l.Token}} {
		if e.url == "" {
			continue
		}
		if err := validateEndpoint(e.url); err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
	}
	if err := l.CheckPorts(); err != nil {
		return err
	}
	for _, scope := range l.Scopes {
		if !isScope(scope) {
			return fmt.Errorf("scopes: %q is not a scope: list each separately, without spaces, quotes and backslashes", scope)
		}
	}
	return nil
}

// validateEndpoint accepts a URL, or a path, which clients resolve against the URL of
// the discovery document.
func validateEndpoint(s string) error {
	if strings.HasPrefix(s, "/") && !strings.HasPrefix(s, "//") {
		u, err := url.Parse(s)
		if err != nil {
			return fmt.Errorf("%q is not a path", s)
		}
		if u.Fragment != "" || strings.HasSuffix(s, "#") {
			return fmt.Errorf("%q must not have a fragment", s)
		}
		return nil
	}
	if !strings.Contains(s, "://") {
		return fmt.Errorf("%q is neither a URL that begins with https:// nor a path that begins with a slash", s)
	}
	_, err := oidc.SecureURL(s)
	return err
}

// CheckPorts accepts ports that all clients accept and can use: they choose ports from the
// lowest to the one below the highest (checklist 99).
func (l *Login) CheckPorts() error {
	if len(l.Ports) == 0 {
		return nil
	}
	if len(l.Ports) != 2 {
		return fmt.Errorf("ports: there are %d: give two, the lowest and the highest", len(l.Ports))
	}
	low, high := l.Ports[0], l.Ports[1]
	switch {
	case low < 1024 || high > 65535:
		return fmt.Errorf("ports: %d and %d are not both between 1024 and 65535", low, high)
	case low >= high:
		return fmt.Errorf("ports: %d is not lower than %d, and clients never use the highest: allow several, such as %d and %d",
			low, high, defaultMinLoginPort, defaultMaxLoginPort)
	}
	return nil
}

// isScope reports whether s is a scope of OAuth (RFC 6749, section 3.3).
func isScope(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool {
		return c <= ' ' || c > '~' || c == '"' || c == '\\'
	})
}

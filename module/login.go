package module

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddy-terraform/caddy-terraform-registry/access/oidc"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// Login is what clients are told for `terraform login`, and `tofu login`: where
// a user gets a token. The OAuth server is not part of the registry.
//
// It has to support the authorization code grant with PKCE (S256) for a client
// without a secret, and to accept `http://localhost:PORT/login` as redirect URI
// for every port in `ports`. Clients keep the access token, no other, and never
// renew it; to be checked by `terraform_oidc` it has to be a JSON Web Token with
// the registry as audience. An error should be shown on the server's own page:
// clients wait on when it is sent back to them.
//
// Placeholders work that are known when the configuration is loaded, such as
// `{env.*}`.
type Login struct {
	// The ID of the OAuth client that stands for Terraform and OpenTofu. Required.
	Client string `json:"client,omitempty"`

	// Where users log in: a URL with https, http for `localhost` and loopback
	// addresses, or a path on this registry's host that starts with a slash. A
	// query is kept. Default: what the issuer names.
	Authz string `json:"authz,omitempty"`

	// Where clients get the token, like `authz`. Default: what the issuer names.
	Token string `json:"token,omitempty"`

	// The URL of an OpenID Connect issuer that is asked for `authz` and `token`,
	// or the one of them that is not set. While it cannot be asked, and was not
	// before, clients are not told of a login; everything else works. Default:
	// none, and `authz` and `token` are required.
	Issuer string `json:"issuer,omitempty"`

	// The lowest and the highest of the ports on which a client waits for users to
	// come back from the login. It tries some at random, the highest never: leave
	// it a choice of ten or more. Default: `[10000, 10010]`.
	Ports []int `json:"ports,omitempty"`

	// The scopes clients ask for. An OpenID Connect issuer may want `openid` among
	// them, and one that gives them the registry as audience. Default: none.
	Scopes []string `json:"scopes,omitempty"`
}

// The ports by default.
const (
	minLoginPort = 10000
	maxLoginPort = 10010
)

// loginPatience is how long discovery waits for the issuer. A client that is not
// told of a login can do everything else.
const loginPatience = 2 * time.Second

// login is a Login worked out.
type login struct {
	fixed  wire.Login   // without what the issuer is asked for
	issuer *oidc.Issuer // nil: nothing is
	logger *slog.Logger

	mutex sync.Mutex
	last  *wire.Login
	out   bool // the issuer was unavailable when it was last asked
}

// read checks the options. It returns nil if there is no login, otherwise one
// to be closed. It asks the issuer for nothing.
func (l *Login) read(repl *caddy.Replacer, logger *slog.Logger) (*login, error) {
	if l == nil {
		return nil, nil
	}
	if err := l.replace(repl); err != nil {
		return nil, fmt.Errorf("login: %w", err)
	}
	if err := l.validate(); err != nil {
		return nil, fmt.Errorf("login: %w", err)
	}
	worked := &login{
		fixed: wire.Login{
			Client:     l.Client,
			GrantTypes: []string{"authz_code"},
			Authz:      l.Authz,
			Token:      l.Token,
			Ports:      l.Ports,
			Scopes:     l.Scopes,
		},
		logger: logger,
	}
	if len(l.Ports) == 0 {
		worked.fixed.Ports = []int{minLoginPort, maxLoginPort}
	}
	if l.Issuer != "" {
		issuer, err := acquireIssuer(l.Issuer)
		if err != nil {
			return nil, fmt.Errorf("login: %w", err)
		}
		worked.issuer = issuer
	}
	return worked, nil
}

// close gives back the issuer.
func (l *login) close() error {
	if l == nil {
		return nil
	}
	return releaseIssuer(l.issuer)
}

// document returns login.v1 of the discovery document, the same pointer as long
// as it is the same; nil when the issuer cannot be asked for its part.
func (l *login) document(ctx context.Context) *wire.Login {
	if l.issuer == nil {
		return &l.fixed
	}
	patience, cancel := context.WithTimeout(ctx, loginPatience)
	defer cancel()
	authz, token, err := l.issuer.Endpoints(patience)

	l.mutex.Lock()
	defer l.mutex.Unlock()
	if err != nil {
		// A client that went away says nothing of the issuer.
		if !l.out && ctx.Err() == nil {
			l.out = true
			l.logger.Warn("clients are not told of a login, as its issuer is unavailable", "issuer", l.issuer.URL(), "error", err.Error())
		}
		return nil
	}
	if l.out {
		l.out = false
		l.logger.Info("clients are told of a login again", "issuer", l.issuer.URL())
	}
	if l.fixed.Authz != "" {
		authz = l.fixed.Authz
	}
	if l.fixed.Token != "" {
		token = l.fixed.Token
	}
	if l.last == nil || l.last.Authz != authz || l.last.Token != token {
		document := l.fixed
		document.Authz, document.Token = authz, token
		l.last = &document
	}
	return l.last
}

func (l *Login) replace(repl *caddy.Replacer) error {
	for _, option := range []struct {
		name   string
		values []*string
	}{
		{"client", []*string{&l.Client}},
		{"authz", []*string{&l.Authz}},
		{"token", []*string{&l.Token}},
		{"issuer", []*string{&l.Issuer}},
		{"scopes", pointers(l.Scopes)},
	} {
		if err := expand(repl, option.name, option.values); err != nil {
			return err
		}
	}
	return nil
}

func (l *Login) validate() error {
	switch {
	case l.Client == "":
		return errors.New("client: it is missing: set it to the ID of the OAuth client")
	case l.Issuer == "" && (l.Authz == "" || l.Token == ""):
		return errors.New("authz and token are needed, or an issuer that names them")
	case l.Issuer != "" && l.Authz != "" && l.Token != "":
		return errors.New("the issuer is not asked for anything when authz and token are set: leave it out, or one of them")
	}
	for _, e := range []struct{ name, url string }{{"authz", l.Authz}, {"token", l.Token}} {
		if e.url == "" {
			continue
		}
		if err := validateEndpoint(e.url); err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
	}
	if err := validateLoginPorts(l.Ports); err != nil {
		return err
	}
	for _, scope := range l.Scopes {
		if !plainScope(scope) {
			return fmt.Errorf("scopes: %q is not one: name each by itself, without spaces, quotes and backslashes", scope)
		}
	}
	return nil
}

// validateEndpoint accepts a URL, or a path that clients resolve against that of
// discovery.
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

// validateLoginPorts wants what all clients accept and can use: they draw from
// the lowest to the one below the highest (checklist 99).
func validateLoginPorts(ports []int) error {
	if len(ports) == 0 {
		return nil
	}
	if len(ports) != 2 {
		return fmt.Errorf("ports: there are %d: give two, the lowest and the highest", len(ports))
	}
	low, high := ports[0], ports[1]
	switch {
	case low < 1024 || high > 65535:
		return fmt.Errorf("ports: %d and %d are not both between 1024 and 65535", low, high)
	case low >= high:
		return fmt.Errorf("ports: %d is not lower than %d, and clients never use the highest: leave them a choice, such as %d and %d",
			low, high, minLoginPort, maxLoginPort)
	}
	return nil
}

// plainScope tells whether s is a scope as OAuth writes it (RFC 6749, 3.3).
func plainScope(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool {
		return c <= ' ' || c > '~' || c == '"' || c == '\\'
	})
}

// UnmarshalCaddyfile reads the option `login`, on which the dispenser stands.
// Syntax:
//
//	login {
//	    client <id>
//	    issuer <url>
//	    authz  <url>
//	    token  <url>
//	    ports  <min> <max>
//	    scopes <scope...>
//	}
//
// Scopes may be repeated and add up.
func (l *Login) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	if d.NextArg() {
		return d.Errf("unexpected argument '%s': login has a block", d.Val())
	}
	texts := map[string]*string{"client": &l.Client, "issuer": &l.Issuer, "authz": &l.Authz, "token": &l.Token}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		option := d.Val()
		switch text := texts[option]; {
		case text != nil && *text != "", option == "ports" && l.Ports != nil:
			return d.Errf("%s is already specified", option)
		case text != nil:
			if !d.AllArgs(text) {
				return d.ArgErr()
			}
			if *text == "" {
				return d.Errf("%s is empty", option)
			}
		case option == "ports":
			if err := l.unmarshalPorts(d); err != nil {
				return err
			}
		case option == "scopes":
			scopes := d.RemainingArgs()
			if len(scopes) == 0 {
				return d.ArgErr()
			}
			l.Scopes = append(l.Scopes, scopes...)
		default:
			return d.Errf("unrecognized subdirective '%s', the allowed ones are: client, issuer, authz, token, ports, scopes", option)
		}
		if d.NextBlock(d.Nesting()) {
			return d.Errf("%s does not have a block", option)
		}
	}
	if l.Client == "" {
		return d.Err("the client is missing: add 'client <id>' to the block of login, with the ID of the OAuth client")
	}
	return nil
}

func (l *Login) unmarshalPorts(d *caddyfile.Dispenser) error {
	args := d.RemainingArgs()
	if len(args) != 2 {
		return d.Err("ports takes two numbers, the lowest and the highest")
	}
	l.Ports = make([]int, len(args))
	for i, arg := range args {
		port, err := strconv.Atoi(arg)
		if err != nil {
			return d.Errf("ports: '%s' is not a number", arg)
		}
		l.Ports[i] = port
	}
	if err := validateLoginPorts(l.Ports); err != nil {
		return d.WrapErr(err)
	}
	return nil
}

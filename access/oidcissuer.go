package access

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
)

// ErrIssuerUnavailable means that an issuer could not be asked, and that it
// cannot be told without it what a token is worth. Asking again later may help.
var ErrIssuerUnavailable = errors.New("the issuer of tokens is unavailable")

const (
	// issuerTimeout is for one answer of an issuer, to its last byte.
	issuerTimeout = 5 * time.Second

	// maxIssuerDocument is far beyond what issuers say of themselves.
	maxIssuerDocument = 1 << 20
)

// An Issuer is an OpenID provider: who signs tokens, and where users log in.
//
// It is asked for its configuration and its keys when they are first needed,
// never before. Both are kept, so an issuer that goes down later takes nothing
// with it but what it changes in the meantime. It is safe for concurrent use.
type Issuer struct {
	url           string
	client        *http.Client
	now           func() time.Time
	configuration kept[oidc.ProviderConfig]
	keys          kept[[]jose.JSONWebKey]
}

// IssuerOptions are what an Issuer needs of the world. The zero value is good.
type IssuerOptions struct {
	// Client asks the issuer. Nil: one of its own. Without a timeout it gets one
	// of five seconds.
	Client *http.Client

	// Now is the clock. Nil: time.Now.
	Now func() time.Time
}

// NewIssuer returns the issuer with the URL, which is exactly what the claim
// `iss` of its tokens says. Nothing is asked of it yet.
func NewIssuer(address string, o IssuerOptions) (*Issuer, error) {
	u, err := SecureURL(address)
	if err != nil {
		return nil, fmt.Errorf("issuer: %w", err)
	}
	if u.RawQuery != "" || u.ForceQuery {
		return nil, fmt.Errorf("issuer: %q must not have a query", address)
	}
	i := &Issuer{url: address, client: issuerClient(o.Client), now: o.Now}
	if i.now == nil {
		i.now = time.Now
	}
	i.configuration = kept[oidc.ProviderConfig]{fetch: i.fetchConfiguration, now: i.now}
	i.keys = kept[[]jose.JSONWebKey]{fetch: i.fetchKeys, now: i.now}
	return i, nil
}

// URL returns the issuer's URL.
func (i *Issuer) URL() string {
	return i.url
}

// Endpoints returns the URLs at which users log in and clients get their token.
// The error is an ErrIssuerUnavailable.
func (i *Issuer) Endpoints(ctx context.Context) (authorization, token string, err error) {
	c, err := i.configured(ctx)
	if err != nil {
		return "", "", err
	}
	for _, e := range []struct{ name, url string }{
		{"authorization_endpoint", c.AuthURL},
		{"token_endpoint", c.TokenURL},
	} {
		if _, err := SecureURL(e.url); err != nil {
			return "", "", unavailable(fmt.Errorf("the %s in the configuration of %s: %w", e.name, i.url, err))
		}
	}
	return c.AuthURL, c.TokenURL, nil
}

func (i *Issuer) configured(ctx context.Context) (oidc.ProviderConfig, error) {
	c, err := i.configuration.get(ctx)
	if err != nil {
		return c, unavailable(err)
	}
	return c, nil
}

func (i *Issuer) fetchConfiguration() (oidc.ProviderConfig, error) {
	var c oidc.ProviderConfig
	if err := i.fetch(strings.TrimSuffix(i.url, "/")+"/.well-known/openid-configuration", &c); err != nil {
		return c, err
	}
	// The document vouches for keys. Whoever controls another issuer's address
	// must not vouch for this one's; and a slash too many, here or there, would
	// have every token refused.
	if c.IssuerURL != i.url {
		return c, fmt.Errorf("the issuer configured as %q calls itself %q: configure it as it calls itself", i.url, c.IssuerURL)
	}
	if _, err := SecureURL(c.JWKSURL); err != nil {
		return c, fmt.Errorf("the jwks_uri in the configuration of %s: %w", i.url, err)
	}
	return c, nil
}

// fetch gets a JSON document of the issuer.
func (i *Issuer) fetch(address string, document any) error {
	r, err := http.NewRequest(http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Accept", "application/json")
	response, err := i.client.Do(r)
	if err != nil {
		return err // has the method and the URL
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %d", address, response.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxIssuerDocument+1))
	if err != nil {
		return fmt.Errorf("reading %s: %w", address, err)
	}
	if len(body) > maxIssuerDocument {
		return fmt.Errorf("%s is longer than %d bytes", address, maxIssuerDocument)
	}
	if err := json.Unmarshal(body, document); err != nil {
		return fmt.Errorf("%s is not the JSON that it should be: %w", address, err)
	}
	return nil
}

// issuerClient returns a copy of the client, or of a new one, that does not
// wait forever and is not led to where others can listen in.
func issuerClient(client *http.Client) *http.Client {
	c := new(http.Client)
	if client != nil {
		*c = *client
	}
	if c.Timeout == 0 {
		c.Timeout = issuerTimeout
	}
	c.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		if len(via) > 3 {
			return errors.New("it redirects too often")
		}
		_, err := SecureURL(r.URL.String())
		return err
	}
	return c
}

// SecureURL parses a URL that is to be trusted with keys or credentials: its
// scheme is https. Plain http is good enough where nobody listens in, on the
// machine itself.
func SecureURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil {
		return nil, errors.New("it is not a URL") // the error would quote a password
	}
	switch {
	case u.User != nil:
		return nil, errors.New("it must not have a user name or password")
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, fmt.Errorf("%q does not begin with https://", s)
	case u.Hostname() == "":
		return nil, fmt.Errorf("%q has no host", s)
	case u.Scheme == "http" && !loopback(u.Hostname()):
		return nil, fmt.Errorf("%q must begin with https://: plain http is for localhost, 127.0.0.1 and ::1 only", s)
	case u.Fragment != "" || strings.HasSuffix(s, "#"):
		return nil, fmt.Errorf("%q must not have a fragment", s)
	}
	return u, nil
}

func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.IsLoopback()
}

func unavailable(cause error) error {
	return fmt.Errorf("%w: %w", ErrIssuerUnavailable, cause)
}

package oidc

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

// ErrUnavailable means that the issuer could not be reached, or did not answer as an
// issuer does, and that the token cannot be verified without the issuer. A later
// attempt may succeed.
var ErrUnavailable = errors.New("the issuer of tokens is unavailable")

const (
	// issuerTimeout limits the time for one answer of an issuer, up to its last byte.
	issuerTimeout = 5 * time.Second

	// maxDocument bounds a document, in bytes. Issuers' documents are far smaller.
	maxDocument = 1 << 20
)

// An Issuer is an OpenID provider: it signs tokens, and users log in there.
//
// The configuration and the keys of an issuer are fetched when they are first needed,
// and stay cached: if the issuer goes down later, the registry misses only changes made
// meanwhile. An Issuer is safe for concurrent use.
type Issuer struct {
	url           string
	client        *http.Client
	now           func() time.Time
	configuration document[configuration]
	keys          document[[]jose.JSONWebKey]
}

// A configuration is the discovery document of an issuer.
type configuration struct {
	oidc.ProviderConfig

	// EndSessionURL is the URL at which a browser ends the session of its user at the
	// issuer.
	EndSessionURL string `json:"end_session_endpoint"`

	// AuthMethods are the ways in which clients may present a secret at the token
	// endpoint.
	AuthMethods []string `json:"token_endpoint_auth_methods_supported"`
}

// NewIssuer returns the issuer with the URL, which must be equal to the claim `iss` of
// its tokens. The error is about the URL: nothing is fetched yet.
func NewIssuer(url string) (*Issuer, error) {
	return newIssuer(url, new(http.Client), time.Now)
}

func newIssuer(address string, client *http.Client, now func() time.Time) (*Issuer, error) {
	u, err := SecureURL(address)
	if err != nil {
		return nil, fmt.Errorf("issuer: %w", err)
	}
	if u.RawQuery != "" || u.ForceQuery {
		return nil, fmt.Errorf("issuer: %q must not have a query", address)
	}
	i := &Issuer{url: address, client: secureClient(client), now: now}
	i.configuration = document[configuration]{fetch: i.fetchConfiguration, now: now}
	i.keys = document[[]jose.JSONWebKey]{fetch: i.fetchKeys, now: now}
	return i, nil
}

// URL returns the issuer's URL.
func (i *Issuer) URL() string { return i.url }

// Endpoints returns the URLs at which users log in and clients get their token.
// The error is an ErrUnavailable.
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

func (i *Issuer) configured(ctx context.Context) (configuration, error) {
	c, err := i.configuration.get(ctx)
	if err != nil {
		return c, unavailable(err)
	}
	return c, nil
}

// fetchConfiguration performs the discovery. oidc.NewProvider of go-oidc neither limits
// the size of the answer nor checks the scheme of jwks_uri.
func (i *Issuer) fetchConfiguration() (configuration, error) {
	var c configuration
	if err := i.fetch(strings.TrimSuffix(i.url, "/")+"/.well-known/openid-configuration", &c); err != nil {
		return c, err
	}
	// The document names the keys to trust, so the document of another issuer must not
	// be accepted. With one slash more or less, every token would be refused.
	if c.IssuerURL != i.url {
		return c, fmt.Errorf("the issuer configured as %q calls itself %q: configure it as it calls itself", i.url, c.IssuerURL)
	}
	if _, err := SecureURL(c.JWKSURL); err != nil {
		return c, fmt.Errorf("the jwks_uri in the configuration of %s: %w", i.url, err)
	}
	return c, nil
}

// fetch gets a JSON document of the issuer and decodes it into v.
func (i *Issuer) fetch(address string, v any) error {
	r, err := http.NewRequest(http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Accept", "application/json")
	response, err := i.client.Do(r)
	if err != nil {
		return err // names the method and the URL
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %d", address, response.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxDocument+1))
	if err != nil {
		return fmt.Errorf("reading %s: %w", address, err)
	}
	if len(body) > maxDocument {
		return fmt.Errorf("%s is longer than %d bytes", address, maxDocument)
	}
	if err := json.Unmarshal(body, v); err != nil {
		return fmt.Errorf("%s is not the expected JSON: %w", address, err)
	}
	return nil
}

// secureClient returns a copy of the client that has a timeout and follows
// redirects to secure URLs only.
func secureClient(client *http.Client) *http.Client {
	c := *client
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
	return &c
}

// SecureURL parses a URL to which keys or credentials are entrusted. Its scheme is
// https, or http for the machine itself, where the connection cannot be intercepted.
// The error is a sentence about the URL, and does not quote a password.
func SecureURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil {
		return nil, errors.New("it is not a URL") // the parser's error would quote a password
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

func unavailable(cause error) error { return fmt.Errorf("%w: %w", ErrUnavailable, cause) }

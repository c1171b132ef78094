package upstream

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/net/http/httpproxy"
)

// maxRedirects is where clients of a registry end.
const maxRedirects = 10

var errRedirects = errors.New("it redirects too often")

func checkRedirect(_ *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return errRedirects
	}
	return nil
}

// A connector dials with a dialer that was chosen for the host.
type connector func(ctx context.Context, d *net.Dialer, network, address string) (net.Conn, error)

func connect(ctx context.Context, d *net.Dialer, network, address string) (net.Conn, error) {
	return d.DialContext(ctx, network, address)
}

// A transport sends each request of a Client, redirected ones among them, or
// refuses to.
type transport struct {
	guard           guard
	proxy           func(*url.URL) (*url.URL, error)
	direct, proxied *http.Transport
}

// newTransport has a second one for proxies: theirs are the only connections
// that may go anywhere. Documents are many and small, which HTTP/2 is for;
// packages are few and large, and Go receives those faster without.
func newTransport(g guard, timeout time.Duration, roots *x509.CertPool, connect connector, http2 bool) *transport {
	t := &transport{guard: g, proxy: httpproxy.FromEnvironment().ProxyFunc()}
	t.direct = &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			host, _, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			return connect(ctx, g.dialer(host), network, address)
		},
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
		TLSHandshakeTimeout:    timeout,
		ForceAttemptHTTP2:      http2, // which a dialer and a TLS configuration of one's own turn off
		MaxIdleConnsPerHost:    8,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		// A connection that died unnoticed is shared by all requests to its host.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: timeout},
	}
	t.proxied = t.direct.Clone()
	t.proxied.Proxy = func(r *http.Request) (*url.URL, error) { return t.proxy(r.URL) }
	t.proxied.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		return connect(ctx, &net.Dialer{}, network, address)
	}
	return t
}

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" {
		return nil, &unsafeAddress{"it is without TLS, which an origin must not link to"}
	}
	if err := t.guard.checkName(r.URL.Hostname()); err != nil {
		return nil, err
	}
	if r.Response != nil {
		r = redirected(r)
	}
	proxy, err := t.proxy(r.URL)
	switch {
	case err != nil:
		return nil, errors.New("the proxy in the environment is not a URL")
	case proxy != nil:
		return t.proxied.RoundTrip(r)
	}
	return t.direct.RoundTrip(r)
}

// CloseIdleConnections is what http.Client calls.
func (t *transport) CloseIdleConnections() {
	t.direct.CloseIdleConnections()
	t.proxied.CloseIdleConnections()
}

// redirected takes from a request what net/http copies from the one before. The
// token is for one host and port, where net/http passes it on to other ports
// and to subdomains; once away, it does not come back. The URL before may be a
// signed one and is nobody's business.
func redirected(r *http.Request) *http.Request {
	stays := true
	for q := r; q.Response != nil && q.Response.Request != nil; q = q.Response.Request {
		stays = stays && sameHost(q.URL, q.Response.Request.URL)
	}
	r = r.Clone(r.Context())
	r.Header.Del("Referer")
	if !stays {
		r.Header.Del("Authorization")
	}
	return r
}

// sameHost compares host and port.
func sameHost(a, b *url.URL) bool {
	return bareHost(a.Hostname()) == bareHost(b.Hostname()) && port(a) == port(b)
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	return "443"
}

package upstream

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/hashicorp/go-retryablehttp"
	"golang.org/x/net/http/httpproxy"
)

var errRedirects = errors.New("it redirects too often")

func checkRedirect(_ *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return errRedirects
	}
	return nil
}

// A connector dials with the dialer that was chosen for the host.
type connector func(ctx context.Context, d *net.Dialer, network, address string) (net.Conn, error)

func connect(ctx context.Context, d *net.Dialer, network, address string) (net.Conn, error) {
	return d.DialContext(ctx, network, address)
}

// A transport sends every request of a Client, even after redirects, or refuses to.
type transport struct {
	guard     guard
	proxy     func(*url.URL) (*url.URL, error)
	direct    *http.Transport
	untrusted *http.Transport // for untrusted locations, since connections are reused
	proxied   *http.Transport
}

// newTransport makes three transports: only connections to a proxy may go to any
// address.
func newTransport(g guard, timeout time.Duration, roots *x509.CertPool, connect connector, http2 bool) *transport {
	t := &transport{guard: g, proxy: httpproxy.FromEnvironment().ProxyFunc()}
	dial := func(g guard) func(context.Context, string, string) (net.Conn, error) {
		return func(ctx context.Context, network, address string) (net.Conn, error) {
			host, _, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			return connect(ctx, g.dialer(host), network, address)
		}
	}
	t.direct = &http.Transport{
		DialContext:            dial(g),
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
		TLSHandshakeTimeout:    timeout,
		ForceAttemptHTTP2:      http2, // which is off by default with DialContext or TLSClientConfig
		MaxIdleConnsPerHost:    8,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		// All requests to a host share a connection, which may have died unnoticed.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: timeout},
	}
	t.untrusted = t.direct.Clone()
	t.untrusted.DialContext = dial(g.withoutExemptions())
	t.proxied = t.direct.Clone()
	t.proxied.Proxy = func(r *http.Request) (*url.URL, error) { return t.proxy(r.URL) }
	t.proxied.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		return connect(ctx, &net.Dialer{}, network, address)
	}
	return t
}

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" {
		return nil, &unsafeAddress{"its URL is without TLS"}
	}
	p := privilegesOf(r).redirected(r, t.guard)
	direct, g := t.direct, t.guard
	if p.trust < reachable {
		direct, g = t.untrusted, t.guard.withoutExemptions()
	}
	if err := g.checkName(r.URL.Hostname()); err != nil {
		return nil, err
	}
	if r.Response != nil {
		r = redirected(r, p.keepsCredentials(r.URL))
	}
	proxy, err := t.proxy(r.URL)
	switch {
	case err != nil:
		return nil, errors.New("the proxy in the environment is not a URL")
	case proxy != nil:
		return t.proxied.RoundTrip(r)
	}
	return direct.RoundTrip(r)
}

// CloseIdleConnections is called by retryablehttp after a request has failed.
func (t *transport) CloseIdleConnections() {
	t.direct.CloseIdleConnections()
	t.untrusted.CloseIdleConnections()
	t.proxied.CloseIdleConnections()
}

// redirected removes headers that net/http copies from the previous request.
// Credentials are for one host and port, but net/http passes them on to other ports and
// to subdomains. Referer is removed because the previous URL may be a signed one.
func redirected(r *http.Request, keepsCredentials bool) *http.Request {
	r = r.Clone(r.Context())
	r.Header.Del("Referer")
	if !keepsCredentials {
		r.Header.Del("Authorization")
	}
	return r
}

// sameHost reports whether two URLs have the same host and port.
func sameHost(a, b *url.URL) bool {
	return bareHost(a.Hostname()) == bareHost(b.Hostname()) && port(a) == port(b)
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	return "443"
}

// bareHost returns the normal form of a host for comparisons.
func bareHost(host string) string {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().String()
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// newRetrying retries by the clients' own rules: after a broken connection, a 429 or a
// server error, but not after a certificate that does not verify. Unlike clients, it
// does not wait as long as a server says.
func newRetrying(client *http.Client, timeout time.Duration) *retryablehttp.Client {
	longest := min(maxWait, timeout/4)
	backoff := func(shortest, longest time.Duration, attempt int, answer *http.Response) time.Duration {
		return min(longest, max(min(shortest, longest), retryablehttp.DefaultBackoff(shortest, longest, attempt, answer)))
	}
	return &retryablehttp.Client{
		HTTPClient:   client,
		RetryMax:     maxRetries,
		RetryWaitMin: minWait,
		RetryWaitMax: longest,
		Backoff:      backoff,
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
		CheckRetry: func(ctx context.Context, answer *http.Response, err error) (bool, error) {
			var unsafe *unsafeAddress
			deadline, limited := ctx.Deadline()
			switch {
			case errors.As(err, &unsafe), errors.Is(err, errRedirects):
				return false, nil
			case limited && time.Until(deadline) <= longest:
				return false, nil // this answer says more than a timeout would
			case answer != nil && retryAfter(answer) > longest:
				return false, nil // the server refuses earlier requests
			}
			return retryablehttp.DefaultRetryPolicy(ctx, answer, err)
		},
	}
}

// retryAfter returns the time that a server says to wait.
func retryAfter(answer *http.Response) time.Duration {
	wait := retryablehttp.DefaultBackoff(0, 0, 0, answer)
	if wait < 0 { // an overflow
		return math.MaxInt64
	}
	return wait
}

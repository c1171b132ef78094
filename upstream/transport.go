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
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"

	"github.com/hashicorp/go-retryablehttp"
	"github.com/sony/gobreaker/v2"
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

// A guard keeps an origin from reaching into the server's private network by a link,
// a redirect, or a name that resolves to a private address.
type guard struct {
	named map[string]bool // hosts that the operator configured

	// Configured hosts may be anywhere, unless another host than the origin leads
	// there.
	exemptions bool
}

// An unsafeAddress is the error of a request that is not sent.
type unsafeAddress struct{ detail string }

func (u *unsafeAddress) Error() string { return u.detail }

func newGuard(named []string) guard {
	g := guard{named: make(map[string]bool), exemptions: true}
	for _, host := range named {
		g.named[bareHost(host)] = true
	}
	return g
}

// withoutExemptions returns the guard for locations that others than the origin have
// named.
func (g guard) withoutExemptions() guard { return guard{named: g.named} }

// isNamed reports whether the operator has configured a host.
func (g guard) isNamed(host string) bool { return g.named[bareHost(host)] }

// exempts reports whether a host may have any address.
func (g guard) exempts(host string) bool { return g.exemptions && g.isNamed(host) }

// bareHost returns the normal form of a host for comparisons.
func bareHost(host string) string {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().String()
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// checkName refuses hosts that are known to be private without resolving them. With a
// proxy, which resolves and dials itself, nothing else can be checked.
func (g guard) checkName(host string) error {
	if g.exempts(host) {
		return nil
	}
	return g.explained(host, checkName(bareHost(host)))
}

func checkName(host string) error {
	if ip, err := netip.ParseAddr(host); err == nil {
		return checkIP(ip)
	}
	if strings.ContainsFunc(host, func(r rune) bool { return r > unicode.MaxASCII }) {
		// IDNA turns full-width digits and dots into an address before dialling.
		return &unsafeAddress{"its name has characters beyond ASCII: link to it by its xn-- name, or configure the host by name to allow it"}
	}
	last := host[strings.LastIndexByte(host, '.')+1:]
	switch {
	case last == "localhost":
		return &unsafeAddress{"it is the server itself: configure the host by name to allow it"}
	case host == "" || strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x"):
		// Some resolvers read 127.1, 2130706433 and 0x7f.1 as 127.0.0.1. No top-level
		// domain is a number.
		return &unsafeAddress{"it is neither a name nor an IP address"}
	}
	return nil
}

// explained adds the reason why a configured host is refused nevertheless.
func (g guard) explained(host string, refused error) error {
	if refused == nil || !g.isNamed(host) {
		return refused
	}
	return &unsafeAddress{"it is in a private network, and neither the registry itself nor a configured host leads there"}
}

// dialer returns the dialer for a host. It checks the address that it is about to dial,
// so that a name which resolves differently the next time (DNS rebinding) cannot bypass
// the guard.
func (g guard) dialer(host string) *net.Dialer {
	if g.exempts(host) {
		return &net.Dialer{}
	}
	return &net.Dialer{Control: func(_, address string, _ syscall.RawConn) error {
		ip, err := netip.ParseAddrPort(address)
		if err != nil {
			return &unsafeAddress{"it is not an IP address"}
		}
		return g.explained(host, checkIP(ip.Addr()))
	}}
}

// specialNetworks are networks that the methods of netip.Addr do not know.
var specialNetworks = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),     // this network
	netip.MustParsePrefix("100.64.0.0/10"), // carrier-grade NAT
	netip.MustParsePrefix("192.0.0.0/24"),  // protocol assignments
	netip.MustParsePrefix("198.18.0.0/15"), // benchmarks
	netip.MustParsePrefix("240.0.0.0/4"),   // reserved, and broadcast
	netip.MustParsePrefix("::/96"),         // deprecated IPv4-compatible addresses
	netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("2001::/23"), // protocol assignments, such as Teredo
	netip.MustParsePrefix("fec0::/10"), // deprecated site-local addresses
}

var (
	nat64     = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour = netip.MustParsePrefix("2002::/16")
)

// checkIP refuses addresses that hosts on the internet cannot have.
func checkIP(ip netip.Addr) error {
	ip = ip.Unmap().WithZone("")
	bytes := ip.As16()
	switch {
	case nat64.Contains(ip): // a network without IPv4 reaches IPv4 hosts in this way
		ip = netip.AddrFrom4([4]byte(bytes[12:16]))
	case sixToFour.Contains(ip):
		ip = netip.AddrFrom4([4]byte(bytes[2:6]))
	}
	if !ip.IsGlobalUnicast() || ip.IsPrivate() || slices.ContainsFunc(specialNetworks, func(p netip.Prefix) bool { return p.Contains(ip) }) {
		// The address is left out: clients must not learn what private names resolve to.
		return &unsafeAddress{"it is in a private network: configure the host by name to allow it"}
	}
	return nil
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

// breakers keep a host of an origin that is down from costing every client a timeout. While the breaker of a
// host is open, requests fail at once. Then one request is sent as a test. The services of an origin may be on
// a few hosts, and one host may be down while the others are not. The zero value is ready for use.
type breakers struct {
	mutex sync.Mutex
	hosts map[string]*gobreaker.CircuitBreaker[struct{}] // by name and port
}

// forURL returns the breaker of a URL's host.
func (b *breakers) forURL(u *url.URL) *gobreaker.CircuitBreaker[struct{}] {
	host := net.JoinHostPort(bareHost(u.Hostname()), port(u))
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if known, ok := b.hosts[host]; ok {
		return known
	}
	if b.hosts == nil {
		b.hosts = make(map[string]*gobreaker.CircuitBreaker[struct{}])
	}
	b.hosts[host] = gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Name:        host,
		Timeout:     breakerPause,
		ReadyToTrip: func(n gobreaker.Counts) bool { return n.ConsecutiveFailures >= failuresInARow },
		// An origin that refuses a request is up.
		IsSuccessful: func(err error) bool { return !IsKind(err, ErrUnavailable, ErrTimeout) },
		// A caller who cancels says nothing about the origin.
		IsExcluded: func(err error) bool {
			return IsKind(err, errOptional, context.Canceled, context.DeadlineExceeded)
		},
	})
	return b.hosts[host]
}

type optionalKey struct{}

// optional returns the context of requests for documents that an origin may lack. Some
// registries fail on all such requests, which must not open the breaker.
func optional(ctx context.Context) context.Context {
	return context.WithValue(ctx, optionalKey{}, true)
}

// errOptional replaces the failure of an optional request.
var errOptional = errors.New("an optional request failed")

// run sends a request to a URL, unless the breaker of its host is open.
func (b *breakers) run(ctx context.Context, u *url.URL, request func() error) error {
	var failed error
	_, err := b.forURL(u).Execute(func() (struct{}, error) {
		failed = request()
		if failed != nil && ctx.Value(optionalKey{}) != nil {
			return struct{}{}, errOptional
		}
		return struct{}{}, failed
	})
	if errors.Is(err, errOptional) {
		return failed
	}
	isTested := errors.Is(err, gobreaker.ErrTooManyRequests)
	if !isTested && !errors.Is(err, gobreaker.ErrOpenState) {
		return err
	}
	refused := &Failure{Host: u.Host, Kind: ErrUnavailable, Detail: "it has failed several times in a row and gets no requests for a while"}
	if isTested {
		refused.Cause = ErrTested
	}
	return refused
}

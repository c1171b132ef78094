package upstream

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/hashicorp/go-retryablehttp"
	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

const userAgent = "caddy-terraform-registry"

// A Client asks one origin. It is safe for concurrent use.
type Client struct {
	origin   Origin
	home     *url.URL
	http     *retryablehttp.Client
	packages *retryablehttp.Client // see newTransport
	breaker  breaker
	service  service
	protocol protocol

	documents *slots
	downloads *slots // one origin that is slow does not delay others

	readKeyring func(armored []byte) (*signing.Keyring, []error)
}

// A protocol is how an origin is asked: as a registry or as a mirror.
type protocol interface {
	versions(context.Context, address.Address) (Listing, error)
	published(ctx context.Context, a address.Address, version string) (time.Time, error)
	release(ctx context.Context, a address.Address, v wire.ProviderVersion, pinned *signing.Keyring) (*Release, error)
	locate(context.Context, *Release, Package) (link, error)
}

type settings struct {
	roots   *x509.CertPool
	connect connector
}

// An Option changes how a Client connects.
type Option func(*settings)

// Connect makes connections by f, which is given the dialer that the client chose
// for them. It is for tests, which have no network.
func Connect(f func(ctx context.Context, d *net.Dialer, network, address string) (net.Conn, error)) Option {
	return func(s *settings) { s.connect = f }
}

// Trust verifies certificates against these authorities in place of the
// system's.
func Trust(roots *x509.CertPool) Option { return func(s *settings) { s.roots = roots } }

// NewClient makes the client of an origin. It reads the proxies from the
// environment and sends nothing yet.
func NewClient(o Origin, options ...Option) (*Client, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	home, err := o.home()
	if err != nil {
		return nil, err
	}
	s := settings{connect: connect}
	for _, option := range options {
		option(&s)
	}
	over := func(http2 bool) *retryablehttp.Client {
		return newRetrying(&http.Client{
			Transport:     newTransport(newGuard(home, o.Private), o.Timeout, s.roots, s.connect, http2),
			CheckRedirect: checkRedirect,
		}, o.Timeout)
	}
	c := &Client{
		origin: o, home: home, http: over(true), packages: over(false), breaker: newBreaker(home.Host, o.Pause), documents: newSlots(MaxDocuments), downloads: newSlots(MaxDownloads),
		readKeyring: func(armored []byte) (*signing.Keyring, []error) { return signing.ReadKeyring(armored) },
	}
	if c.protocol = (registry{c}); o.Mirror != "" {
		c.protocol = mirror{c}
	}
	return c, nil
}

// Close ends the connections that are idle. Requests under way go on.
func (c *Client) Close() {
	c.http.HTTPClient.CloseIdleConnections()
	c.packages.HTTPClient.CloseIdleConnections()
}

// Versions lists the versions of a provider, newest first.
func (c *Client) Versions(ctx context.Context, a address.Address) (Listing, error) {
	if err := c.check(a); err != nil {
		return Listing{}, err
	}
	return c.protocol.versions(ctx, a)
}

// Published tells when a version was published. The public registry's API says
// so; ErrNotFound means that this origin does not.
func (c *Client) Published(ctx context.Context, a address.Address, version string) (time.Time, error) {
	if err := c.checkVersion(a, version); err != nil {
		return time.Time{}, err
	}
	return c.protocol.published(ctx, a, version)
}

// Release fetches what vouches for the packages of a version, and verifies it.
// With pinned keys only those count; nil leaves it to the keys the origin sends.
// Of v only the version must be there: platforms save asking for those that
// there are not.
func (c *Client) Release(ctx context.Context, a address.Address, v wire.ProviderVersion, pinned *signing.Keyring) (*Release, error) {
	if err := c.checkVersion(a, v.Version); err != nil {
		return nil, err
	}
	a.Hostname = c.origin.Hostname
	return c.protocol.release(ctx, a, v, pinned)
}

// check keeps addresses from being asked of the wrong origin, and from
// being more than two segments of a path.
func (c *Client) check(a address.Address) error {
	if a.Hostname != "" && a.Hostname != c.origin.Hostname {
		return fmt.Errorf("%s is not of %s", a, c.origin)
	}
	if normal, err := address.ParseProvider(string(a.Hostname), a.Namespace, a.Name); err != nil || normal != a {
		return fail(c.home, ErrNotFound, "that is not the address of a provider")
	}
	return nil
}

func (c *Client) checkVersion(a address.Address, version string) error {
	if err := c.check(a); err != nil {
		return err
	}
	if _, err := address.ParseProviderVersion(version); err != nil {
		return fail(c.home, ErrNotFound, "that is not a version")
	}
	return nil
}

// own tells the hosts of the origin, which its token is for and which its
// breaker is about, from those it links to.
func (c *Client) own(u *url.URL) bool {
	if sameHost(u, c.home) {
		return true
	}
	base, _ := c.service.known()
	return base != nil && sameHost(u, base)
}

// A document is the body of an answer, and where it came from in the end:
// links in it are relative to that.
type document struct {
	body []byte
	url  *url.URL
}

// read gets a document as a whole, within the origin's timeout from when it is
// its turn.
func (c *Client) read(ctx context.Context, u *url.URL, limit int64) (d document, err error) {
	free, ok, err := c.documents.take(ctx)
	switch {
	case err != nil:
		return d, transportFailure(ctx, u, err)
	case !ok:
		return d, busy(c.home.Host)
	}
	defer free()
	ctx, cancel := context.WithTimeoutCause(ctx, c.origin.Timeout, errSlow)
	defer cancel()
	err = c.guarded(u, func() error {
		answer, err := c.open(ctx, c.http, u, nil)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		body, tooLarge, err := readBounded(answer, limit)
		// A server that notices how we give up may end its answer in good order.
		if err != nil || ctx.Err() != nil {
			return transportFailure(ctx, answer.Request.URL, err)
		}
		if tooLarge {
			return fail(answer.Request.URL, ErrTooLarge, "the limit is %d bytes", limit)
		}
		d = document{body, answer.Request.URL}
		return nil
	})
	return d, err
}

// guarded runs a request to the origin's own hosts through the breaker. That
// another host is down says nothing about the origin.
func (c *Client) guarded(u *url.URL, ask func() error) error {
	if !c.own(u) {
		return ask()
	}
	return c.breaker.run(u.Host, ask)
}

// open sends a request until it succeeds or fails for good. The body of a
// success is the caller's to close.
func (c *Client) open(ctx context.Context, over *retryablehttp.Client, u *url.URL, header http.Header) (*http.Response, error) {
	r, err := retryablehttp.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, fail(u, ErrMalformed, "it is linked to by what is not a URL")
	}
	r.Header.Set("User-Agent", userAgent)
	if c.origin.Token != "" && c.own(u) {
		r.Header.Set("Authorization", "Bearer "+c.origin.Token)
	}
	for name, values := range header {
		r.Header[name] = values
	}
	answer, err := over.Do(r)
	if err != nil {
		return nil, transportFailure(ctx, u, err)
	}
	if f := c.statusFailure(answer, r.Header.Get("Range") != ""); f != nil {
		answer.Body.Close()
		return nil, f
	}
	return answer, nil
}

// isKind tells a failure of one of these kinds.
func IsKind(err error, kinds ...error) bool {
	for _, kind := range kinds {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// ReserveDownload waits for the origin's turn to send a package: only so many are
// received at once, shared out among the clients that wait (ForClient). The
// reservation ends with release. The error is that of ctx, or a Failure that is
// ErrBusy when too many wait already.
func (c *Client) ReserveDownload(ctx context.Context) (release func(), err error) {
	free, ok, err := c.downloads.take(ctx)
	if err == nil && !ok {
		err = busy(c.origin.Hostname.ForDisplay())
	}
	return free, err
}

// Hostname is that of the origin's providers.
func (c *Client) Hostname() svchost.Hostname { return c.origin.Hostname }

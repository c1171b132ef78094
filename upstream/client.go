package upstream

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
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

// A Client sends requests to one origin. It is safe for concurrent use.
type Client struct {
	origin     Origin
	base       *url.URL // nil: there is no origin, see NewCodeHosts
	modulesURL *url.URL // nil: discovered, if the origin has modules
	guard      guard
	breakers   breakers
	protocol   protocol

	providers, modules service // as they were discovered

	documents *connections
	packages  *connections

	repositories *slots // of git

	maxPackage, maxModule, maxRepository, maxRefs, maxUnpacked int64 // bytes
}

// connections are the connections to an origin for one purpose. Documents and packages
// have separate connections, so that neither waits for the other.
type connections struct {
	http  *retryablehttp.Client
	slots *slots
}

// A protocol is spoken by a registry or by a mirror.
type protocol interface {
	versions(context.Context, address.Address) ([]wire.ProviderVersion, error)
	published(ctx context.Context, a address.Address, version string) (time.Time, error)
	release(ctx context.Context, a address.Address, v wire.ProviderVersion, pinned *signing.Keyring) (*Release, error)

	// packageLink requests the link for each download, since a link may be valid for
	// minutes only.
	packageLink(context.Context, *Release, Package) (link, error)
}

// A Network determines how clients connect. The zero Network is the network of the
// machine; tests use others.
type Network struct {
	// Roots are the authorities with which certificates are verified. Nil means the
	// system's.
	Roots *x509.CertPool

	// Connect makes connections with the dialer that the client chose for them. Nil
	// means the dialer's DialContext.
	Connect func(ctx context.Context, d *net.Dialer, network, address string) (net.Conn, error)
}

// NewClient returns the client of an origin. It reads the proxies from the environment
// and sends no request yet. The error describes what is wrong with the origin.
func NewClient(o Origin, n Network) (*Client, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	base, err := o.baseURL()
	if err != nil {
		return nil, err
	}
	modulesURL, err := o.modulesBaseURL()
	if err != nil {
		return nil, err
	}
	c := newClient(o, newGuard(o.namedHosts(base, modulesURL)), n)
	c.base, c.modulesURL = base, modulesURL
	if c.protocol = (registry{c}); o.Mirror != "" {
		c.protocol = mirror{c}
	}
	return c, nil
}

// newClient returns a client that has no origin yet.
func newClient(o Origin, g guard, n Network) *Client {
	if n.Connect == nil {
		n.Connect = connect
	}
	newConnections := func(http2 bool, size int) *connections {
		return &connections{newRetrying(&http.Client{
			Transport:     newTransport(g, o.Timeout, n.Roots, n.Connect, http2),
			CheckRedirect: checkRedirect,
		}, o.Timeout), newSlots(size)}
	}
	return &Client{
		origin:    o,
		guard:     g,
		documents: newConnections(true, maxDocuments),
		// Go receives large bodies faster without HTTP/2.
		packages:      newConnections(false, MaxDownloads),
		maxPackage:    MaxPackage,
		maxModule:     maxModule,
		maxRefs:       maxRefs,
		maxUnpacked:   maxUnpacked,
		repositories:  newSlots(maxRepositories),
		maxRepository: maxRepository,
	}
}

// Hostname returns the hostname of the origin's providers and modules.
func (c *Client) Hostname() svchost.Hostname { return c.origin.Hostname }

// HasModules reports whether the origin can be asked for modules. A mirror has none. If
// the origin's URL is the provider service itself, the module service is unknown. Both
// need Origin.ModulesURL.
func (c *Client) HasModules() bool { return c.modulesURL != nil || c.origin.needsDiscovery(c.base) }

// Versions returns the versions of a provider or a module, newest first and without
// duplicates. Versions of a module have only the field Version. Nothing about them is
// verified. The error is a Failure, or says that the address belongs to another origin.
func (c *Client) Versions(ctx context.Context, a address.Address) ([]wire.ProviderVersion, error) {
	if err := c.check(a); err != nil {
		return nil, err
	}
	if a.IsModule() {
		return modules{c}.versions(ctx, a)
	}
	return c.protocol.versions(ctx, a)
}

// Published returns the time at which a version was published, according to the public
// registry's API. ErrNotFound means that this origin does not say.
func (c *Client) Published(ctx context.Context, a address.Address, version string) (time.Time, error) {
	if err := c.checkVersion(a, version); err != nil {
		return time.Time{}, err
	}
	if a.IsModule() {
		return modules{c}.published(ctx, a, version)
	}
	return c.protocol.published(ctx, a, version)
}

// Release fetches and verifies the documents that authenticate the packages of a
// version. If pinned is not nil, only its keys count, otherwise the keys that the
// origin sends. v needs only the version, but its platforms save requests for other
// platforms.
func (c *Client) Release(ctx context.Context, a address.Address, v wire.ProviderVersion, pinned *signing.Keyring) (*Release, error) {
	if err := c.checkVersion(a, v.Version); err != nil {
		return nil, err
	}
	a.Hostname = c.origin.Hostname
	return c.protocol.release(ctx, a, v, pinned)
}

// check refuses addresses of other origins, and addresses that would not be segments of
// a path.
func (c *Client) check(a address.Address) error {
	if a.Hostname != "" && a.Hostname != c.origin.Hostname {
		return fmt.Errorf("%s is not of %s", a, c.origin)
	}
	parse, what := address.ParseProvider, "provider"
	if a.IsModule() {
		parse = func(hostname, namespace, name string) (address.Address, error) {
			return address.ParseModule(hostname, namespace, name, a.System)
		}
		what = "module"
	}
	if normal, err := parse(string(a.Hostname), a.Namespace, a.Name); err != nil || normal != a {
		return fail(c.base, ErrNotFound, "that is not the address of a %s", what)
	}
	return nil
}

func (c *Client) checkVersion(a address.Address, version string) error {
	if err := c.check(a); err != nil {
		return err
	}
	// A module's version in normal form is also a valid version of a provider.
	if _, err := address.ParseProviderVersion(version); err != nil {
		return fail(c.base, ErrNotFound, "that is not a version")
	}
	return nil
}

// isOriginHost reports whether a URL is on one of the origin's own hosts, which receive
// its token and have a breaker. Hosts that the origin links to do not.
func (c *Client) isOriginHost(u *url.URL) bool {
	for _, base := range []*url.URL{c.base, c.modulesURL, c.providers.last(), c.modules.last()} {
		if base != nil && sameHost(u, base) {
			return true
		}
	}
	return false
}

// A document is the body of an answer, and its URL after redirects. Links in the body
// are relative to the URL.
type document struct {
	body []byte
	url  *url.URL
}

// read reads a whole document of the origin, or a document that the origin links to.
func (c *Client) read(ctx context.Context, u *url.URL, limit int64) (document, error) {
	a, err := c.ask(ctx, location{u, trusted}, limit)
	if err == nil && a.status == http.StatusNoContent {
		return document{}, &Failure{Host: a.url.Host, Status: a.status, Kind: ErrMalformed}
	}
	return a.document, err
}

// An answer is an answer with its header. It has a document or the status 204.
type answer struct {
	document
	trust  trust // in its URL, after redirects
	status int
	header http.Header
}

// ask reads a whole answer. The origin's timeout starts when the request gets its slot.
func (c *Client) ask(ctx context.Context, l location, limit int64) (a answer, err error) {
	u := l.url
	release, err := c.documents.slots.take(ctx, c.base.Host)
	switch {
	case errors.Is(err, ErrBusy):
		return a, err
	case err != nil:
		return a, transportFailure(ctx, u, err)
	}
	defer release()
	ctx, cancel := context.WithTimeoutCause(ctx, c.origin.Timeout, errTimeout)
	defer cancel()
	err = c.guarded(ctx, u, func() error {
		r, err := c.open(ctx, c.documents.http, l, Host{}, nil)
		if err != nil {
			return err
		}
		defer r.Body.Close()
		body, tooLarge, err := readBounded(r, limit)
		// A server may end its answer properly when this side cancels.
		if err != nil || ctx.Err() != nil {
			return transportFailure(ctx, r.Request.URL, err)
		}
		if tooLarge {
			return fail(r.Request.URL, ErrTooLarge, "the limit is %d bytes", limit)
		}
		a = answer{document{body, r.Request.URL}, c.answeredAt(r).trust, r.StatusCode, r.Header}
		return nil
	})
	return a, err
}

// readBounded reads the body of an answer, which net/http decompresses.
func readBounded(answer *http.Response, limit int64) (body []byte, tooLarge bool, err error) {
	if answer.ContentLength > limit {
		return nil, true, nil
	}
	body, err = io.ReadAll(io.LimitReader(answer.Body, limit+1))
	return body, err == nil && int64(len(body)) > limit, err
}

// guarded runs a request to one of the origin's own hosts through the breaker of that
// host. The state of other hosts says nothing about the origin.
func (c *Client) guarded(ctx context.Context, u *url.URL, request func() error) error {
	if !c.isOriginHost(u) {
		return request()
	}
	return c.breakers.run(ctx, u, request)
}

// open requests a location, with retries. The caller closes the body of a successful
// answer.
func (c *Client) open(ctx context.Context, client *retryablehttp.Client, l location, h Host, header http.Header) (*http.Response, error) {
	return c.send(ctx, client, http.MethodGet, l, h, nil, header)
}

// send sends a request, with retries, and with the credentials of h unless it is zero.
// The caller closes the body of a successful answer.
func (c *Client) send(ctx context.Context, client *retryablehttp.Client, method string, l location, h Host, body []byte, header http.Header) (*http.Response, error) {
	u := l.url
	r, err := retryablehttp.NewRequestWithContext(privileges{l.trust, h}.context(ctx), method, u.String(), body)
	if err != nil {
		return nil, fail(u, ErrMalformed, "the link to it is not a URL")
	}
	r.Header.Set("User-Agent", userAgent)
	switch authorization := h.authorization(); {
	case authorization != "":
		r.Header.Set("Authorization", authorization)
	case c.origin.Token != "" && l.trust == trusted && c.isOriginHost(u):
		r.Header.Set("Authorization", "Bearer "+c.origin.Token)
	}
	for name, values := range header {
		r.Header[name] = values
	}
	answer, err := client.Do(r)
	if err != nil {
		return nil, transportFailure(ctx, u, err)
	}
	if f := c.statusFailure(answer, r.Header.Get("Range") != ""); f != nil {
		answer.Body.Close()
		return nil, f
	}
	return answer, nil
}

// ReserveDownload waits for one of the slots for the origin's packages. Clients take
// turns (ForClient). The caller ends the reservation with release. The error is the
// error of ctx, or a Failure that is ErrBusy if too many requests wait already.
func (c *Client) ReserveDownload(ctx context.Context) (release func(), err error) {
	return c.packages.slots.take(ctx, c.origin.Hostname.ForDisplay())
}

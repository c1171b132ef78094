package upstream

import (
	"context"
	"errors"
	"net/url"
	"sync"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// discoveryLife is how long it is taken for granted where a registry has its
// provider service.
const discoveryLife = time.Hour

// A service is where the origin's provider registry was found, and when.
type service struct {
	mutex sync.Mutex
	base  *url.URL
	found time.Time
}

// known is the last base found, and whether it is still to be relied on.
func (s *service) known() (base *url.URL, fresh bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.base, s.base != nil && time.Since(s.found) < discoveryLife
}

func (s *service) set(base *url.URL) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.base, s.found = base, time.Now()
}

// base is what the URLs of the provider registry are resolved against.
func (c *Client) base(ctx context.Context) (*url.URL, error) {
	if !c.origin.discovers(c.home) {
		return c.home, nil
	}
	last, fresh := c.service.known()
	if fresh {
		return last, nil
	}
	base, err := c.discover(ctx)
	switch {
	case err == nil:
		c.service.set(base)
		return base, nil
	case last != nil && IsKind(err, ErrUnavailable, ErrTimeout):
		return last, nil // it may well be where it was
	}
	return nil, err
}

func (c *Client) discover(ctx context.Context) (*url.URL, error) {
	d, err := c.read(ctx, c.home.JoinPath(wire.DiscoveryPath), maxDiscovery)
	var f *Failure
	if errors.As(err, &f) && f.Kind == ErrNotFound {
		// Not that the provider does not exist: there is nobody to know.
		return nil, &Failure{Host: f.Host, Status: f.Status, Kind: ErrMalformed, Detail: "it is not a registry: configure its URL or a mirror"}
	}
	if err != nil {
		return nil, err
	}
	base, err := parseDiscovery(d.body, d.url)
	if err != nil {
		return nil, fail(d.url, ErrMalformed, "%v", err)
	}
	return base, nil
}

// parseDiscovery follows the clients' rules for the URL of a service, except
// that it must be one with TLS. It is not given a slash at its end, since
// clients do not either.
func parseDiscovery(body []byte, from *url.URL) (*url.URL, error) {
	text, err := wire.DecodeProvidersService(body)
	if err != nil {
		return nil, err
	}
	base, err := resolve(from, text)
	if err != nil {
		return nil, err
	}
	base.Fragment, base.RawFragment = "", ""
	return base, nil
}

// resolve reads a URL in a document.
func resolve(from *url.URL, text string) (*url.URL, error) {
	u, err := from.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New("it links to what is not a URL")
	case u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return nil, errors.New("it links to what is not on a web server")
	case u.User != nil:
		return nil, errors.New("it links to a URL with a user name or password in it, which clients refuse")
	}
	return u, nil
}

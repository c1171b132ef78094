package upstream

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A service is the URL of one of the origin's services, and the time of its discovery.
type service struct {
	mutex      sync.Mutex
	base       *url.URL
	discovered time.Time
}

// last returns the last discovered URL; nil if there is none.
func (s *service) last() *url.URL {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.base
}

// fresh returns the last discovered URL if it may be reused.
func (s *service) fresh() *url.URL {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if time.Since(s.discovered) < discoveryLifetime {
		return s.base
	}
	return nil
}

func (s *service) set(base *url.URL) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.base, s.discovered = base, time.Now()
}

// providersBase returns the base for the URLs of the provider service.
func (c *Client) providersBase(ctx context.Context) (*url.URL, error) {
	if !c.origin.needsDiscovery(c.base) {
		return c.base, nil
	}
	return c.discovered(ctx, wire.ProvidersService, &c.providers)
}

// modulesBase returns the base for the URLs of the module service.
func (c *Client) modulesBase(ctx context.Context) (*url.URL, error) {
	switch {
	case c.modulesURL != nil:
		return c.modulesURL, nil
	case !c.HasModules():
		return nil, fail(c.base, ErrMalformed, "where its modules are is not known: configure the URL of its module service")
	}
	return c.discovered(ctx, wire.ModulesService, &c.modules)
}

// discovered returns the URL of a service, and discovers it if necessary.
func (c *Client) discovered(ctx context.Context, id wire.Service, s *service) (*url.URL, error) {
	if base := s.fresh(); base != nil {
		return base, nil
	}
	base, err := c.discover(ctx, id)
	if err == nil {
		s.set(base)
	} else if last := s.last(); last != nil && IsKind(err, ErrUnavailable, ErrTimeout) {
		return last, nil // probably still right
	}
	return base, err
}

func (c *Client) discover(ctx context.Context, id wire.Service) (*url.URL, error) {
	d, err := c.read(ctx, c.base.JoinPath(wire.DiscoveryPath), maxDiscovery)
	var f *Failure
	if errors.As(err, &f) && f.Kind == ErrNotFound {
		// This says nothing about the address, so it must not become ErrNotFound.
		return nil, &Failure{Host: f.Host, Status: f.Status, Kind: ErrMalformed, Detail: "it is not a registry: configure its URL or a mirror"}
	}
	if err != nil {
		return nil, err
	}
	base, err := parseDiscovery(d.body, d.url, id)
	if err != nil {
		return nil, fail(d.url, ErrMalformed, "%v", err)
	}
	return base, nil
}

// parseDiscovery follows the clients' rules for the URL of a service: they append a
// missing slash for the module service, but not for the provider service.
func parseDiscovery(body []byte, from *url.URL, id wire.Service) (*url.URL, error) {
	text, err := wire.DecodeService(body, id)
	if err != nil {
		return nil, err
	}
	base, err := resolve(from, text)
	if err != nil {
		return nil, err
	}
	base.Fragment, base.RawFragment = "", ""
	if id == wire.ModulesService && !strings.HasSuffix(base.Path, "/") {
		base = base.JoinPath("/")
	}
	return base, nil
}

// resolve reads a URL in a document.
func resolve(from *url.URL, text string) (*url.URL, error) {
	u, err := from.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New("it has a link that is not a URL")
	case u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return nil, errors.New("it has a link that is not on a web server")
	case u.User != nil:
		return nil, errors.New("it links to a URL with a user name or password in it, which clients refuse")
	}
	return u, nil
}

// below returns the URL of a document of a service for the segments of its path.
func below(base *url.URL, segments ...string) *url.URL {
	return base.ResolveReference(&url.URL{Path: strings.Join(segments, "/")})
}

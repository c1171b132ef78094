package upstream

import (
	"context"
	"errors"
	"net/http"
	"net/url"
)

// A trust determines how much of the operator's configuration may be used to fetch from
// a location. It depends on who named the location, see the comment of the package.
type trust int

const (
	// untrusted: anyone may have named the location. It gets no credentials, and must
	// not be in a private network.
	untrusted trust = iota

	// reachable: a trusted location has led to it, but it gets no credentials.
	reachable

	// trusted: the location may be in a private network, and gets the credentials of
	// its host.
	trusted
)

// A location is a URL, and the trust in it.
type location struct {
	url   *url.URL
	trust trust
}

// location returns the location of the files of a module.
func (s ModuleSource) location() location { return location{s.URL, s.trust} }

// credentials returns the host whose credentials are used for a location. ok is false
// if none are used.
func (c *Client) credentials(l location) (h Host, ok bool) {
	if h, ok = c.host(l.url); !ok || l.trust < trusted || !h.allows(l.url) {
		return Host{}, false
	}
	return h, true
}

// withholds reports whether a location gets no credentials although its host has some.
func (c *Client) withholds(l location) bool {
	_, used := c.credentials(l)
	h, known := c.host(l.url)
	return known && !used && h.Token != ""
}

// useOfCredentials says for which locations credentials are used.
const useOfCredentials = "they are for what the registry itself names, and with allow for submodules of what is allowed"

// advised says what to do about a location to which access is refused: what else may be the reason than
// missing credentials, and what to do if it has got some.
func (c *Client) advised(err error, l location, perhaps, withCredentials string) error {
	f, is := errors.AsType[*Failure](err)
	if !is || f.Kind != ErrRefused {
		return err
	}
	changed := *f
	h, _ := c.credentials(l)
	switch {
	case h.Token != "":
		changed.Detail = withCredentials
	case c.withholds(l):
		changed.Detail = perhaps + ", or it needs the credentials of this host, which are not for it: " + useOfCredentials
	default:
		changed.Detail = perhaps + ", or it needs a token: configure one for this host"
	}
	return &changed
}

// trustOf returns the trust in a location that an answer from another location names.
// Only the answers of the origin itself may name other hosts. The caller checks this.
func (c *Client) trustOf(from location, to *url.URL) trust {
	if !sameHost(from.url, to) {
		return untrusted
	}
	if h, known := c.host(from.url); known && !h.allows(from.url) {
		return min(from.trust, reachable) // otherwise it could choose among the allowed repositories
	}
	return from.trust
}

// submodule returns the trust in the repository of a submodule. Anyone who may write to
// a repository of a host can name any other repository of it, so credentials are used
// only between repositories that the operator has named.
func (c *Client) submodule(of location, to *url.URL) trust {
	t := c.trustOf(of, to)
	if h, _ := c.host(to); len(h.Allow) == 0 {
		t = min(t, reachable)
	}
	return t
}

// privileges determine what a request may use, wherever redirects lead it.
type privileges struct {
	trust trust
	host  Host // whose credentials it has; zero if it has none, or the origin's token
}

type privilegesKey struct{}

// privilegesOf returns the privileges of a request. A request without any is not
// trusted.
func privilegesOf(r *http.Request) privileges {
	p, _ := r.Context().Value(privilegesKey{}).(privileges)
	return p
}

func (p privileges) context(ctx context.Context) context.Context {
	return context.WithValue(ctx, privilegesKey{}, p)
}

// redirected returns the privileges that are left after the redirects that led to a
// request. They are for one host. From a configured host, a redirect may lead to
// another host in a private network, without credentials, as from code hosts to their
// object store.
func (p privileges) redirected(r *http.Request, g guard) privileges {
	for to := r.URL; r.Response != nil && r.Response.Request != nil; to = r.URL {
		r = r.Response.Request
		switch {
		case sameHost(r.URL, to):
		case g.isNamed(r.URL.Hostname()):
			p.trust = min(p.trust, reachable)
		default:
			return privileges{}
		}
	}
	return p
}

// keepsCredentials reports whether the credentials of a request are sent after
// redirects to a URL, too.
func (p privileges) keepsCredentials(at *url.URL) bool {
	return p.trust == trusted && (p.host.Name == "" || p.host.allows(at))
}

// answeredAt returns the location of an answer, after redirects.
func (c *Client) answeredAt(a *http.Response) location {
	return location{a.Request.URL, privilegesOf(a.Request).redirected(a.Request, c.guard).trust}
}

package upstream

import (
	"context"
	"net/http"
	"net/url"
)

// A trust says what may be used of the operator's configuration to fetch from a location.
// Who named the location decides, as the comment of the package has it.
type trust int

const (
	// untrusted: anybody may have named it. It gets no credentials, and must not be in a
	// private network.
	untrusted trust = iota

	// reachable: it is where something trusted leads, but gets no credentials.
	reachable

	// trusted: it may be in a private network, and gets the credentials of its host.
	trusted
)

// A location is a URL, and what may be used to fetch from it.
type location struct {
	url   *url.URL
	trust trust
}

// location is where the files of a module are.
func (s ModuleSource) location() location { return location{s.URL, s.trust} }

// credentials returns the host whose credentials are used for a location; not ok: none.
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
	return known && !used && (h.Token != "" || h.SSHKey != "")
}

// useOfCredentials says for what credentials of a host are used.
const useOfCredentials = "they are for what the registry itself names, and with allow for submodules of what is allowed"

// named is the trust in a location that an answer from another location names. Only the
// answers of the origin itself may name other hosts, which the caller decides.
func (c *Client) named(from location, to *url.URL) trust {
	if !sameHost(from.url, to) {
		return untrusted
	}
	if h, known := c.host(from.url); known && !h.allows(from.url) {
		return min(from.trust, reachable) // or it would choose among what is allowed
	}
	return from.trust
}

// submodule is the trust in the repository of a submodule. Whoever may write to any
// repository of a host can name any other of it, so that credentials are used among
// those that the operator has named.
func (c *Client) submodule(of location, to *url.URL) trust {
	t := c.named(of, to)
	if h, _ := c.host(to); len(h.Allow) == 0 {
		t = min(t, reachable)
	}
	return t
}

// An errand is what a request may use, wherever redirects lead it.
type errand struct {
	trust trust
	host  Host // whose credentials it has; the zero Host if it has none, or the origin's token
}

type errandKey struct{}

// errandOf is that of a request. One that has none is not trusted.
func errandOf(r *http.Request) errand {
	e, _ := r.Context().Value(errandKey{}).(errand)
	return e
}

func (e errand) in(ctx context.Context) context.Context {
	return context.WithValue(ctx, errandKey{}, e)
}

// redirected is what is left of an errand after the redirects that led to a request. It
// is for one host. From a host that the operator has configured it may be to another one
// in a private network, as from code hosts to their object store, without credentials.
func (e errand) redirected(r *http.Request, g guard) errand {
	for to := r.URL; r.Response != nil && r.Response.Request != nil; to = r.URL {
		r = r.Response.Request
		switch {
		case sameHost(r.URL, to):
		case g.isNamed(r.URL.Hostname()):
			e.trust = min(e.trust, reachable)
		default:
			return errand{}
		}
	}
	return e
}

// keepsCredentials reports whether the credentials of a request are sent after redirects
// to a URL, too.
func (e errand) keepsCredentials(at *url.URL) bool {
	return e.trust == trusted && (e.host.Name == "" || e.host.allows(at))
}

// answeredAt is where an answer is from, after redirects.
func (c *Client) answeredAt(a *http.Response) location {
	return location{a.Request.URL, errandOf(a.Request).redirected(a.Request, c.guard).trust}
}

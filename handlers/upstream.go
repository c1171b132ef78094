package handlers

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/fill"
)

// fetches reports whether an Upstream can fetch files of the target that the tree does
// not have. It can for mirrored packages only.
func (g *Registry) fetches(r *request) bool {
	return g.Upstream != nil && !r.target.place.Hosted && g.Upstream.Mirrors(r.target.Address)
}

// forClient returns the context for asking an Upstream on behalf of r, with the address
// of the client.
func (g *Registry) forClient(r *request) context.Context {
	r.waiting()
	client, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		client = r.RemoteAddr
	}
	if g.ClientAddress != nil {
		client = cmp.Or(g.ClientAddress(r.Request), client)
	}
	return upstream.ForClient(r.Context(), client)
}

// setAge tells the age of a list that could not be renewed in time.
func setAge(w http.ResponseWriter, age time.Duration) {
	if age > 0 {
		set(w, "Age", strconv.FormatInt(int64(age/time.Second), 10))
	}
}

// neitherHas answers a request for something that neither the tree nor the origin has,
// with the error of the origin. Without an error, the origin has versions, but none may
// be fetched.
func neitherHas(r *request, err error) error {
	a := r.target.Address
	switch {
	case errors.Is(err, fill.ErrNoneLeft):
		return fail(http.StatusNotFound, "this registry has no version of %s, and those that its origin lists are withdrawn here or too young", a)
	case r.Kind == KindMirrorIndex:
		return fail(http.StatusNotFound, "this mirror has no provider %s, nor has its registry", a)
	case a.IsModule():
		return fail(http.StatusNotFound, "this registry has no module %s, nor has its origin", a)
	}
	return fail(http.StatusNotFound, "this registry has no provider %s, nor has its origin", a)
}

// knowsH1Only reports whether the client does not know zh: hashes, like Terraform
// before 0.14 (checklist 68).
func (r *request) knowsH1Only() bool { return strings.Contains(r.UserAgent(), "Terraform/0.13.") }

package handlers

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/fill"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// An Upstream gets what a mirror does not hold; see fill.Filler.
type Upstream interface {
	Mirrors(address.Address) bool
	Versions(context.Context, address.Address) (fill.Offering, error)
	Available(ctx context.Context, a address.Address, version string) ([]wire.Archive, error)
	MayHaveMore(a address.Address, version string, held func(address.Platform) bool) bool
	Held(a address.Address, file string) *fill.Filled
	Fill(ctx context.Context, a address.Address, file string) (*fill.Filled, error)
}

// mirrors tells whether what is not held of another registry's provider may be
// had.
func (g *Registry) mirrors(a address.Address) bool {
	return g.Upstream != nil && g.Upstream.Mirrors(a)
}

// serveJoinedIndex answers with index.json of what is held, if anything is, and
// of what the origin offers. A failed origin takes nothing away.
func (g *Registry) serveJoinedIndex(w http.ResponseWriter, r *request, a address.Address, held *index.Provider) error {
	of := joinedID{address: a}
	if d, ok := g.joined.get(of, held); ok {
		return g.writeJoinedIndex(w, r, d)
	}
	ctx, cancel := g.patient(r, held != nil)
	defer cancel()
	offering, err := g.Upstream.Versions(ctx, a)
	switch {
	case err == nil:
		d := joinedDocument{held: held, Document: index.MirrorIndex(releasesOf(held), versionsOf(offering.Listing))}
		if offering.Stale {
			d.age = min(offering.Age, maxAge) // a clock may have been set
		}
		g.joined.put(of, d, min(joinedIndexLife, offering.Age))
		return g.writeJoinedIndex(w, r, d)
	case held != nil:
		return g.writeDocument(w, r, held.Index(), links{})
	case g.pending(r, a, false):
		return pending
	case errors.Is(err, upstream.ErrNotFound):
		return fail(http.StatusNotFound, "this mirror has no provider %s, nor has its registry", a)
	}
	return upstreamFailure(err)
}

// writeJoinedIndex says how old the list is if it should have been renewed.
func (g *Registry) writeJoinedIndex(w http.ResponseWriter, r *request, d joinedDocument) error {
	if d.age > 0 {
		set(w, "Age", strconv.FormatInt(int64(d.age/time.Second), 10))
	}
	return g.writeDocument(w, r, d.Document, links{})
}

// heldPatience is how long a client that can be told of what is held, or will be
// when that has been read, waits for the rest. It gives us ten seconds, and some ask once only.
const heldPatience = 3 * time.Second

// maxAge is what RFC 9111 §1.2.2 has caches understand.
const maxAge = (1<<31 - 1) * time.Second

// patient is how long the request waits for an origin. What is asked for goes on.
func (g *Registry) patient(r *request, held bool) (context.Context, context.CancelFunc) {
	ctx := g.forClient(r)
	if !held {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, heldPatience)
}

// forClient is the request's context, with the address of its client.
func (g *Registry) forClient(r *request) context.Context {
	address, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		address = r.RemoteAddr
	}
	if g.ClientAddress != nil {
		address = cmp.Or(g.ClientAddress(r.Request), address)
	}
	return upstream.ForClient(r.Context(), address)
}

func releasesOf(p *index.Provider) []*index.Release {
	if p == nil {
		return nil
	}
	return p.Releases
}

func versionsOf(l *upstream.Listing) []string {
	versions := make([]string, len(l.Versions))
	for i, v := range l.Versions {
		versions[i] = v.Version
	}
	return versions
}

// serveJoinedArchives answers with VERSION.json of the packages that are held
// and of those that can be had.
func (g *Registry) serveJoinedArchives(w http.ResponseWriter, r *request, a address.Address, held *index.Provider, release *index.Release, version string) error {
	l, of := g.archiveLinks(r, a), joinedID{a, version, r.knowsH1Only()}
	if d, ok := g.joined.get(of, release); ok {
		return g.writeDocument(w, r, d.Document, l)
	}
	if release != nil && release.Signature.By == index.ByPublisher && len(held.Missing(release)) == 0 && !g.mayHaveMore(a, release) {
		g.joined.put(of, joinedDocument{held: release, Document: release.Archives()}, joinedLife)
		return g.writeDocument(w, r, release.Archives(), l)
	}
	ctx, cancel := g.patient(r, release != nil || g.pending(r, a, false))
	defer cancel()
	available, err := g.Upstream.Available(ctx, a, version)
	switch {
	case err == nil:
		d := index.MirrorArchives(release, available, of.h1Only)
		g.joined.put(of, joinedDocument{held: release, Document: d}, joinedLife)
		return g.writeDocument(w, r, d, l)
	case release != nil:
		return g.writeDocument(w, r, release.Archives(), l)
	case g.pending(r, a, false):
		return pending
	case errors.Is(err, upstream.ErrNotFound):
		return g.writeDocument(w, r, emptyArchives, links{}) // as of whatever is not held (checklist 66)
	}
	return upstreamFailure(err)
}

// mayHaveMore reports whether the registry of a provider may have added platforms
// to a release since it came in.
func (g *Registry) mayHaveMore(a address.Address, r *index.Release) bool {
	return g.Upstream.MayHaveMore(a, r.Version, func(p address.Platform) bool { return r.Package(p.OS, p.Arch) != nil })
}

// knowsH1Only reports whether the client is one of those that know no zh: hashes,
// which Terraform does since 0.14.
func (r *request) knowsH1Only() bool { return strings.Contains(r.UserAgent(), "Terraform/0.13.") }

// serveFilled answers with a file that is not held, once it is.
func (g *Registry) serveFilled(w http.ResponseWriter, r *request, a address.Address, name string) error {
	filled := g.Upstream.Held(a, name)
	if filled == nil {
		var err error
		filled, err = g.Upstream.Fill(g.forClient(r), a, name)
		switch {
		case err != nil && g.pending(r, a, false):
			return pending // it may well be in the tree
		case errors.Is(err, fill.ErrNotMirrored):
			return fail(http.StatusNotFound, "this mirror has no such file of %s, and does not get it from its registry", a)
		case errors.Is(err, fill.ErrTooYoung):
			return fail(http.StatusNotFound, "this version of %s has been published too short a time ago to be mirrored: try again later", a)
		case errors.Is(err, upstream.ErrNotFound):
			return fail(http.StatusNotFound, "neither this mirror nor the registry of %s has such a file: see which platforms the version has", a)
		case err != nil:
			return upstreamFailure(err)
		}
		if filled.Platform != "" { // what vouches for packages comes in with them only
			g.changed()
		}
	}
	r.provider, r.Version, r.Platform = &a, filled.Version, filled.Platform
	return g.write(w, r, content{
		open: func() (io.ReadSeekCloser, error) { return filled.Open() },
		size: filled.Size, tag: filled.SHA256.String(), mediaType: index.ContentTypeOf(name), immutable: filled.Platform != "",
	})
}

// upstreamFailure is an origin that failed, or a tree that cannot take what it
// gave. What it says names hosts and statuses only.
func upstreamFailure(err error) error {
	status := http.StatusBadGateway
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return unavailable("the request took too long: try again", nil)
	case errors.Is(err, upstream.ErrBusy):
		return unavailable("the mirror is asked for more than it can get at once: try again in a moment", nil)
	case errors.Is(err, fill.ErrDiskFull), errors.Is(err, fill.ErrNotWritable):
		// The Upstream has logged it, once, where here it would be for each request.
		return unavailable("the mirror cannot keep what it fetches: tell its operator", nil)
	case errors.Is(err, upstream.ErrTimeout):
		status = http.StatusGatewayTimeout
	}
	return fail(status, "the mirror could not get it: %v", err)
}

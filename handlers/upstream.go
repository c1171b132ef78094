package handlers

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

// An Upstream gets what a mirror does not hold; see upstream.Filler.
type Upstream interface {
	Mirrors(index.ProviderAddress) bool
	Versions(context.Context, index.ProviderAddress) (upstream.Offering, error)
	Obtainable(ctx context.Context, a index.ProviderAddress, version string) ([]index.Obtainable, error)
	Held(a index.ProviderAddress, file string) *upstream.Filled
	Fill(ctx context.Context, a index.ProviderAddress, file string) (*upstream.Filled, error)
}

// mirrors tells whether what is not held of another registry's provider may be
// had.
func (g *Registry) mirrors(a index.ProviderAddress) bool {
	return g.Upstream != nil && g.Upstream.Mirrors(a)
}

// serveJoinedIndex answers with index.json of what is held, if anything is, and
// of what the origin offers. A failed origin takes nothing away.
func (g *Registry) serveJoinedIndex(w http.ResponseWriter, r *request, a index.ProviderAddress, held *index.Provider) error {
	ctx, cancel := r.patient(held != nil)
	defer cancel()
	offering, err := g.Upstream.Versions(ctx, a)
	switch {
	case err == nil:
		if offering.Stale {
			age := min(offering.Age, maxAge) // a clock may have been set
			set(w, "Age", strconv.FormatInt(int64(age/time.Second), 10))
		}
		of := joinedID{address: a}
		d := g.joined.get(of, held, offering.Listing)
		if d == nil {
			d = index.MirrorIndex(held, versionsOf(offering.Listing))
			g.joined.put(of, held, offering.Listing, d)
		}
		return g.writeDocument(w, r, d, links{})
	case held != nil:
		return g.writeDocument(w, r, held.Index(), links{})
	case g.providerPending(r, a, false):
		return pending
	case errors.Is(err, upstream.ErrNotFound):
		return fail(http.StatusNotFound, "this mirror has no provider %s, nor has its registry", a)
	}
	return upstreamFailure(err)
}

// heldPatience is how long a client that can be told of what is held waits for
// the rest. It gives us ten seconds, and some ask once only.
const heldPatience = 3 * time.Second

// maxAge is what RFC 9111 §1.2.2 has caches understand.
const maxAge = (1<<31 - 1) * time.Second

// patient is how long the request waits for an origin. What is asked for goes on.
func (r *request) patient(held bool) (context.Context, context.CancelFunc) {
	if !held {
		return r.Context(), func() {}
	}
	return context.WithTimeout(r.Context(), heldPatience)
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
func (g *Registry) serveJoinedArchives(w http.ResponseWriter, r *request, a index.ProviderAddress, held *index.Provider, release *index.Release, version string) error {
	l, of := g.archiveLinks(r, a), joinedID{a, version}
	if d := g.joined.get(of, release, nil); d != nil {
		return g.writeDocument(w, r, d, l)
	}
	if release != nil && release.SignedByPublisher() && len(held.Missing(release)) == 0 {
		g.joined.put(of, release, nil, release.Archives())
		return g.writeDocument(w, r, release.Archives(), l)
	}
	ctx, cancel := r.patient(release != nil)
	defer cancel()
	obtainable, err := g.Upstream.Obtainable(ctx, a, version)
	switch {
	case err == nil:
		d := index.MirrorArchives(release, obtainable)
		g.joined.put(of, release, nil, d)
		return g.writeDocument(w, r, d, l)
	case release != nil:
		return g.writeDocument(w, r, release.Archives(), l)
	case g.providerPending(r, a, false):
		return pending
	case errors.Is(err, upstream.ErrNotFound):
		return g.writeDocument(w, r, emptyArchives, links{}) // as of whatever is not held (checklist 66)
	}
	return upstreamFailure(err)
}

// serveFilled answers with a file that is not held, once it is.
func (g *Registry) serveFilled(w http.ResponseWriter, r *request, a index.ProviderAddress, name string) error {
	filled := g.Upstream.Held(a, name)
	if filled == nil {
		var err error
		filled, err = g.Upstream.Fill(r.Context(), a, name)
		switch {
		case errors.Is(err, upstream.ErrNotFound):
			return fail(http.StatusNotFound, "%s has no such file, nor has its registry", a)
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
		tag:  filled.SHA256.String(), mediaType: mediaTypeOf(name), immutable: strings.HasSuffix(name, ".zip"),
	})
}

// mediaTypeOf is that of a file of a release.
func mediaTypeOf(name string) string {
	switch {
	case strings.HasSuffix(name, ".zip"):
		return "application/zip"
	case strings.HasSuffix(name, ".sig"):
		return "application/pgp-signature"
	case strings.HasSuffix(name, ".json"):
		return "application/json"
	}
	return "text/plain; charset=utf-8"
}

// upstreamFailure is an origin that failed, or a tree that cannot take what it
// gave. What it says names hosts and statuses only.
func upstreamFailure(err error) error {
	status := http.StatusBadGateway
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return unavailable("the request took too long: try again", nil)
	case errors.Is(err, upstream.ErrDiskFull), errors.Is(err, upstream.ErrNotWritable):
		// The Upstream has logged it, once, where here it would be for each request.
		return unavailable("the mirror cannot keep what it fetches: tell its operator", nil)
	case errors.Is(err, upstream.ErrTimeout):
		status = http.StatusGatewayTimeout
	}
	return fail(status, "the mirror could not get it: %v", err)
}

// joinedDocuments are documents that were made of what is held and of what can
// be had. They are good while what is held is the same, for a minute.
type joinedDocuments struct {
	mutex sync.RWMutex
	made  map[joinedID]joinedDocument
}

// A joinedID is index.json of a provider, or VERSION.json of a version.
type joinedID struct {
	address index.ProviderAddress
	version string
}

type joinedDocument struct {
	held    any // *index.Provider or *index.Release
	listing *upstream.Listing
	until   time.Time
	*index.Document
}

// joinedLife is for how long a VERSION.json is not looked at again. What can be
// had of a version does not change.
const joinedLife = time.Minute

// mostJoined bounds them. They are made again in microseconds.
const mostJoined = 4096

func (j *joinedDocuments) get(of joinedID, held any, listing *upstream.Listing) *index.Document {
	j.mutex.RLock()
	d, ok := j.made[of]
	j.mutex.RUnlock()
	if !ok || d.held != held || d.listing != listing || time.Now().After(d.until) {
		return nil
	}
	return d.Document
}

func (j *joinedDocuments) put(of joinedID, held any, listing *upstream.Listing, d *index.Document) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	if j.made == nil || len(j.made) >= mostJoined {
		j.made = make(map[joinedID]joinedDocument)
	}
	j.made[of] = joinedDocument{held, listing, time.Now().Add(joinedLife), d}
}

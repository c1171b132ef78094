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

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/fill"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// An Upstream gets what a mirror does not have from its origins. Usually it is a
// *fill.Filler, whose errors fileNotFilled and upstreamFailed know.
type Upstream interface {
	// Mirrors reports whether there is an origin for a provider.
	Mirrors(address.Address) bool

	// Versions returns the versions of a provider that its origin offers.
	Versions(context.Context, address.Address) (fill.Offering, error)

	// Available returns the packages of a version that the origin offers. The release
	// is what the snapshot has of it; nil if it has nothing.
	Available(ctx context.Context, a address.Address, version string, present *index.Release) ([]wire.Archive, error)

	// MayHaveMore reports whether the origin may offer a platform of the release
	// other than those the tree has. It does not ask the origin.
	MayHaveMore(a address.Address, present *index.Release) bool

	// Fill returns a file of a provider once it is in the tree. The provider is what
	// the snapshot has of it; nil if it has nothing.
	Fill(ctx context.Context, a address.Address, file string, present *index.Provider) (*fill.Filled, error)
}

// presentPatience is how long a request waits for an origin if it can be answered
// from the tree, now or once that has been read. Clients give an attempt ten
// seconds, and OpenTofu asks a mirror only once (checklist 25, 72).
const presentPatience = 3 * time.Second

// maxAge is the largest Age that caches understand (RFC 9111 §1.2.2).
const maxAge = (1<<31 - 1) * time.Second

// fills reports whether an Upstream can get what the tree does not have of the
// target. It does for mirrored providers only.
func (g *Registry) fills(r *request) bool {
	return g.Upstream != nil && !r.target.hosted && g.Upstream.Mirrors(r.target.Address)
}

// forClient is the context in which an Upstream is asked for r, with the address
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

// impatient is forClient with a limit if the tree has an answer too. What the
// Upstream has begun goes on after that.
func (g *Registry) impatient(r *request, present bool) (context.Context, context.CancelFunc) {
	if !present {
		return g.forClient(r), func() {}
	}
	return context.WithTimeout(g.forClient(r), presentPatience)
}

// A mergedID names a merged document: index.json of a provider, or VERSION.json of
// a version, which has a separate form for clients that know h1: only.
type mergedID struct {
	address address.Address
	version string
	h1Only  bool
}

// A mergedDocument is made of what the tree has and of what the origin offers. It
// is valid for a while, as long as the tree has the same.
type mergedDocument struct {
	present any           // *index.Provider or *index.Release; may be a nil one
	age     time.Duration // of a stale list of versions; otherwise zero
	until   time.Time
	*wire.Document
}

func (d mergedDocument) size() int { return len(d.Head) + len(d.Tail) }

// What an origin offers of a version does not change, so VERSION.json is cached for
// a minute. Lists of versions do, and requests have the Upstream renew them in the
// background: index.json is cached for a second only, so that such requests reach
// it, and not for longer than the list is old, so that an Upstream which renews its
// lists on every request gets every request.
const (
	mergedLife      = time.Minute
	mergedIndexLife = time.Second
)

// maxMerged bounds the merged documents, in bytes. Making one again takes
// microseconds.
const maxMerged = 32 << 20

func (g *Registry) mergedDocument(id mergedID, present any) (mergedDocument, bool) {
	d, ok := g.merged.get(id)
	return d, ok && d.present == present && time.Now().Before(d.until)
}

func (g *Registry) keepMerged(id mergedID, d mergedDocument, life time.Duration) {
	// The parts may share their memory with the request line, which is larger.
	id.address.Hostname = svchost.Hostname(strings.Clone(string(id.address.Hostname)))
	id.address.Namespace, id.address.Name = strings.Clone(id.address.Namespace), strings.Clone(id.address.Name)
	id.version = strings.Clone(id.version)
	d.until = time.Now().Add(life)
	g.merged.put(id, d)
}

// writeMergedIndex answers with index.json of p, which may be nil, and of what the
// origin offers. If the origin fails, it is that of p.
func (g *Registry) writeMergedIndex(w http.ResponseWriter, r *request, p *index.Provider) error {
	id := mergedID{address: r.target.Address}
	if d, ok := g.mergedDocument(id, p); ok {
		return g.writeAgedIndex(w, r, d)
	}
	ctx, cancel := g.impatient(r, p != nil)
	defer cancel()
	offering, err := g.Upstream.Versions(ctx, r.target.Address)
	switch {
	case err == nil:
		var releases []*index.Release
		if p != nil {
			releases = p.Releases
		}
		d := mergedDocument{present: p, Document: index.MirrorIndex(releases, versionsOf(offering.Versions))}
		if offering.Stale {
			d.age = min(offering.Age, maxAge) // larger if the clock has been set
		}
		g.keepMerged(id, d, min(mergedIndexLife, offering.Age))
		return g.writeAgedIndex(w, r, d)
	case p != nil:
		return g.writeDocument(w, r, p.Index(), links{})
	case r.pending():
		return errPending
	case errors.Is(err, upstream.ErrNotFound):
		return fail(http.StatusNotFound, "this mirror has no provider %s, nor has its registry", r.target.Address)
	}
	return upstreamFailed(err)
}

// writeAgedIndex tells the age of the list of versions if it could not be renewed
// in time.
func (g *Registry) writeAgedIndex(w http.ResponseWriter, r *request, d mergedDocument) error {
	if d.age > 0 {
		set(w, "Age", strconv.FormatInt(int64(d.age/time.Second), 10))
	}
	return g.writeDocument(w, r, d.Document, links{})
}

func versionsOf(list []wire.ProviderVersion) []string {
	versions := make([]string, len(list))
	for i, v := range list {
		versions[i] = v.Version
	}
	return versions
}

// writeMergedArchives answers with VERSION.json of the release of p, both of which
// may be nil, and of the packages that the origin offers. If the origin fails, it
// is that of the release.
func (g *Registry) writeMergedArchives(w http.ResponseWriter, r *request, p *index.Provider, release *index.Release) error {
	a, version := r.target.Address, r.target.version
	l, id := g.archiveLinks(r, a), mergedID{a, version, r.knowsH1Only()}
	if d, ok := g.mergedDocument(id, release); ok {
		return g.writeDocument(w, r, d.Document, l)
	}
	if release != nil && release.Signature.By == index.ByPublisher && len(p.Missing(release)) == 0 && !g.Upstream.MayHaveMore(a, release) {
		g.keepMerged(id, mergedDocument{present: release, Document: release.Archives()}, mergedLife)
		return g.writeDocument(w, r, release.Archives(), l)
	}
	ctx, cancel := g.impatient(r, release != nil || r.pending())
	defer cancel()
	available, err := g.Upstream.Available(ctx, a, version, release)
	switch {
	case err == nil:
		d := index.MirrorArchives(release, available, id.h1Only)
		g.keepMerged(id, mergedDocument{present: release, Document: d}, mergedLife)
		return g.writeDocument(w, r, d, l)
	case release != nil:
		return g.writeDocument(w, r, release.Archives(), l)
	case r.pending():
		return errPending
	case errors.Is(err, upstream.ErrNotFound):
		return g.missing(w, r)
	}
	return upstreamFailed(err)
}

// knowsH1Only reports whether the client does not know zh: hashes, as Terraform
// before 0.14 (checklist 68).
func (r *request) knowsH1Only() bool { return strings.Contains(r.UserAgent(), "Terraform/0.13.") }

// writeFilled answers with a file that the snapshot does not have, once the
// Upstream has it.
func (g *Registry) writeFilled(w http.ResponseWriter, r *request) error {
	a := r.target.Address
	filled, err := g.Upstream.Fill(g.forClient(r), a, r.target.file, r.provider())
	switch {
	case err != nil && r.pending():
		return errPending // the tree may have it
	case err != nil:
		return fileNotFilled(a, err)
	case filled.New:
		g.changed()
	}
	r.address, r.Version, r.Platform = &r.target.Address, filled.Version, filled.Platform
	return g.writeOpened(w, r, filled.File, filled.Open)
}

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

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/fill"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// fetches reports whether an Upstream can fetch files of the target that the tree does
// not have. It can for mirrored packages only.
func (g *Registry) fetches(r *request) bool {
	return g.Upstream != nil && !r.target.place.Hosted && g.Upstream.Mirrors(r.target.Address)
}

// mayFetchVersion reports whether to ask an Upstream for the version that r names,
// which is not in the tree. The version has to be written as in lists, and must not be
// withdrawn.
func (g *Registry) mayFetchVersion(r *request) bool {
	text := r.target.version
	v, err := address.ParseProviderVersion(text)
	return err == nil && v.String() == text && g.withdrawn(r, text) == nil
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

// impatient is forClient, with a limit if the tree has an answer too. The Upstream
// continues its work after the limit.
func (g *Registry) impatient(r *request, present bool) (context.Context, context.CancelFunc) {
	if !present {
		return g.forClient(r), func() {}
	}
	return context.WithTimeout(g.forClient(r), fill.PresentPatience)
}

// A mergedID identifies a merged document: a list of versions, or the description of a
// version or of its package for a platform. VERSION.json has a separate form for
// clients that know only h1:.
type mergedID struct {
	kind     Kind
	address  address.Address
	version  string
	platform address.Platform
	h1Only   bool
}

// A mergedDocument merges a list or description of the tree with the origin's. It is
// valid for a while, as long as the tree does not change.
type mergedDocument struct {
	present any // presentProvider or *index.Release, which may be nil
	// A presentProvider is a provider in the tree, and its metadata. Both may be nil.
	age time.Duration // of a stale list of versions; otherwise zero
	*wire.Document
}

type presentProvider struct {
	*index.Provider
	Metadata *registryhcl.File
}

// releases returns the releases in the tree.
func (p presentProvider) releases() []*index.Release {
	if p.Provider == nil {
		return nil
	}
	return p.Releases
}

// withdrawn returns the versions in the tree that are not offered.
func (p presentProvider) withdrawn() []index.WithdrawnVersion {
	if p.Provider == nil {
		return nil
	}
	return p.Provider.Withdrawn()
}

func (d mergedDocument) size() int { return len(d.Head) + len(d.Tail) }

// An origin's description of a version does not change, so VERSION.json is cached for a
// minute. Lists of versions change, and the Upstream renews them in the background when
// requests use them. So they are cached only for a second, in order that the requests
// reach the Upstream. They are also not cached for longer than their own age: if an
// Upstream renews its lists on every request, it gets every request.
const (
	mergedLife     = time.Minute
	mergedListLife = fill.ListLife
)

// maxMerged bounds the merged documents, in bytes. Making one again takes
// microseconds.
const maxMerged = 32 << 20

func (g *Registry) mergedDocument(id mergedID, present any) (mergedDocument, bool) {
	d, ok := g.merged.Get(id)
	return d, ok && d.present == present
}

func (g *Registry) keepMerged(id mergedID, d mergedDocument, life time.Duration) {
	id.address, id.version = id.address.Clone(), strings.Clone(id.version)
	id.platform.OS, id.platform.Arch = strings.Clone(id.platform.OS), strings.Clone(id.platform.Arch)
	g.merged.Put(id, d, life)
}

// answerMergedIndex answers with index.json for the versions of p, which may be nil,
// and of the origin. If the origin fails, it answers with the index.json of p.
func (g *Registry) answerMergedIndex(w http.ResponseWriter, r *request, p *index.Provider) error {
	present := presentProvider{p, g.metadata(r)}
	d, err := g.mergedList(r, KindMirrorIndex, present, p != nil, func(further []wire.ProviderVersion) mergedDocument {
		return mergedDocument{Document: index.MirrorIndex(present.releases(), versionsOf(withoutWithdrawn(further, present.Metadata)))}
	})
	if err != nil && p != nil {
		return g.writeDocument(w, r, p.Index(), links{})
	}
	return g.writeMergedList(w, r, d, err)
}

// answerMergedVersions does the same with the provider registry's list.
func (g *Registry) answerMergedVersions(w http.ResponseWriter, r *request, p *index.Provider) error {
	present := presentProvider{p, g.metadata(r)}
	d, err := g.mergedList(r, KindProviderVersions, present, p != nil, func(further []wire.ProviderVersion) mergedDocument {
		return mergedDocument{Document: index.ProviderVersions(present.releases(), present.withdrawn(), further, present.Metadata)}
	})
	if err != nil && p != nil {
		return g.writeProviderVersions(w, r, p)
	}
	return g.writeMergedList(w, r, d, err)
}

// mergedList passes the origin's versions to merge, and returns the merged list.
// present is the provider or module in the tree. have reports whether the tree has any
// of it.
func (g *Registry) mergedList(r *request, kind Kind, present any, have bool, merge func([]wire.ProviderVersion) mergedDocument) (mergedDocument, error) {
	id := mergedID{kind: kind, address: r.target.Address}
	if d, ok := g.mergedDocument(id, present); ok {
		return d, nil
	}
	ctx, cancel := g.impatient(r, have)
	defer cancel()
	offering, err := g.Upstream.Versions(ctx, r.target.Address)
	if err != nil {
		return mergedDocument{}, err
	}
	d := merge(offering.Versions)
	if d.present = present; offering.Stale {
		d.age = min(offering.Age, fill.MaxAge) // larger if the clock has been set
	}
	if d.Document != nil {
		g.keepMerged(id, d, min(mergedListLife, offering.Age))
	}
	return d, nil
}

// writeMergedList answers with a list of versions, or the error of the origin. It tells
// the age of the list if it could not be renewed in time.
func (g *Registry) writeMergedList(w http.ResponseWriter, r *request, d mergedDocument, err error) error {
	switch {
	case err != nil && r.pending():
		return errPending
	case errors.Is(err, upstream.ErrNotFound), err == nil && d.Document == nil:
		return neitherHas(r, err)
	case err != nil:
		return upstreamFailed(err)
	}
	setAge(w, d.age)
	return g.writeDocument(w, r, d.Document, links{})
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
	case err == nil, errors.Is(err, fill.ErrNoneLeft):
		return fail(http.StatusNotFound, "this registry has no version of %s, and those that its origin lists are withdrawn here or too young", a)
	case r.Kind == KindMirrorIndex:
		return fail(http.StatusNotFound, "this mirror has no provider %s, nor has its registry", a)
	case a.IsModule():
		return fail(http.StatusNotFound, "this registry has no module %s, nor has its origin", a)
	}
	return fail(http.StatusNotFound, "this registry has no provider %s, nor has its origin", a)
}

func versionsOf(list []wire.ProviderVersion) []string {
	versions := make([]string, len(list))
	for i, v := range list {
		versions[i] = v.Version
	}
	return versions
}

// answerMergedArchives answers with VERSION.json for the packages of the release, and
// of the origin. p and release may be nil. If the origin fails, it answers with the
// VERSION.json of the release.
func (g *Registry) answerMergedArchives(w http.ResponseWriter, r *request, p *index.Provider, release *index.Release) error {
	a, version := r.target.Address, r.target.version
	l, id := g.archiveLinks(r, a), mergedID{kind: r.Kind, address: a, version: version, h1Only: r.knowsH1Only()}
	if d, ok := g.mergedDocument(id, release); ok {
		return g.writeDocument(w, r, d.Document, l)
	}
	if g.complete(a, p, release) {
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
		return g.notFound(w, r)
	}
	return upstreamFailed(err)
}

// knowsH1Only reports whether the client does not know zh: hashes, like Terraform
// before 0.14 (checklist 68).
func (r *request) knowsH1Only() bool { return strings.Contains(r.UserAgent(), "Terraform/0.13.") }

// writeFetched answers with a file that the snapshot does not have, once the Upstream
// has fetched it.
func (g *Registry) writeFetched(w http.ResponseWriter, r *request) error {
	a := r.target.Address
	filled, err := g.Upstream.Fill(g.forClient(r), a, r.target.file, r.provider())
	switch {
	case err != nil && r.pending():
		return errPending // the tree may have it
	case err != nil:
		return fileNotFetched(a, err)
	case filled.New:
		g.fetched(a)
	}
	r.about(r.target.Address)
	r.Version, r.Platform = filled.Version, filled.Platform
	return g.writeOpened(w, r, filled.File, filled.Open)
}

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
	// Origins returns the registries that there are origins for.
	Origins() []fill.Origin

	// Mirrors reports whether there is an origin for a provider.
	Mirrors(address.Address) bool

	// Versions returns the versions of a provider that its origin offers.
	Versions(context.Context, address.Address) (fill.Offering, error)

	// Available returns the packages of a version that the origin offers. The
	// release is the one in the snapshot; nil if there is none.
	Available(ctx context.Context, a address.Address, version string, present *index.Release) ([]wire.Archive, error)

	// MayHaveMore reports whether the origin may offer a platform of the release
	// other than those the tree has. It does not ask the origin.
	MayHaveMore(a address.Address, present *index.Release) bool

	// Fill returns a file of a provider once it is in the tree. The provider is
	// the one in the snapshot; nil if there is none.
	Fill(ctx context.Context, a address.Address, file string, present *index.Provider) (*fill.Filled, error)

	// ReleaseFor returns a release as clients verify it, as the tree or else the origin
	// has it. The release that is present is the one in the snapshot; nil if there is none.
	ReleaseFor(ctx context.Context, a address.Address, version string, p address.Platform, present *index.Release) (*upstream.Release, error)

	// FillModule returns the package of a version of a module once it is in the tree. The
	// module is the one in the snapshot; nil if there is none.
	FillModule(ctx context.Context, a address.Address, version string, present *index.Module) (*fill.FilledModule, error)

	// ModuleFolder returns the folder in which the module lies in the package that
	// FillModule gets, without waiting for that; empty for the package's root.
	ModuleFolder(ctx context.Context, a address.Address, version string) (string, error)
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

// mayFetch reports whether an Upstream is asked for the version that r names, which is
// not in the tree: it is written as in lists, and not withdrawn.
func (g *Registry) mayFetch(r *request) bool {
	t := &r.target
	parse := address.ParseProviderVersion
	if t.IsModule() {
		parse = address.ParseModuleVersion
	}
	v, err := parse(t.version)
	return err == nil && v.String() == t.version && g.withdrawn(r, t.version) == nil
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

// A mergedID names a merged document: a list of versions, or what is said about one of
// them or about its package for a platform. VERSION.json has a separate form for clients
// that know h1: only.
type mergedID struct {
	kind     Kind
	address  address.Address
	version  string
	platform address.Platform
	h1Only   bool
}

// A mergedDocument is made of what the tree has and of what the origin offers. It
// is valid for a while, as long as the tree has the same.
type mergedDocument struct {
	present any           // presentProvider, presentModule or *index.Release, which may be nil
	age     time.Duration // of a stale list of versions; otherwise zero
	latest  string        // of a list of a module's versions: the one to use
	*wire.Document
}

// A presentProvider is a provider in the tree, with its registry.hcl. Both may be nil.
type presentProvider struct {
	*index.Provider
	*index.Metadata
}

// releases are those in the tree.
func (p presentProvider) releases() []*index.Release {
	if p.Provider == nil {
		return nil
	}
	return p.Releases
}

// withdrawn returns the versions in the tree that are withdrawn.
func (p presentProvider) withdrawn() []index.WithdrawnVersion {
	if p.Provider == nil {
		return nil
	}
	return p.Provider.Withdrawn()
}

func (d mergedDocument) size() int { return len(d.Head) + len(d.Tail) }

// The packages of a version do not change at an origin, so VERSION.json is cached for a
// minute. Lists of versions do change, and requests have the Upstream renew them in the
// background. A list is cached for a second only, so that such requests reach the Upstream,
// and not for longer than the list is old, so that an Upstream which renews its lists on
// every request gets every request.
const (
	mergedLife     = time.Minute
	mergedListLife = time.Second
)

// maxMerged bounds the merged documents, in bytes. Making one again takes
// microseconds.
const maxMerged = 32 << 20

func (g *Registry) mergedDocument(id mergedID, present any) (mergedDocument, bool) {
	d, ok := g.merged.Get(id)
	return d, ok && d.present == present
}

func (g *Registry) keepMerged(id mergedID, d mergedDocument, life time.Duration) {
	id.address, id.version = cloneAddress(id.address), strings.Clone(id.version)
	id.platform.OS, id.platform.Arch = strings.Clone(id.platform.OS), strings.Clone(id.platform.Arch)
	g.merged.Put(id, d, life)
}

// cloneAddress returns an address to be kept. The parts of one that was requested may
// share their memory with the request line, which is larger.
func cloneAddress(a address.Address) address.Address {
	a.Hostname = svchost.Hostname(strings.Clone(string(a.Hostname)))
	a.Namespace, a.Name, a.System = strings.Clone(a.Namespace), strings.Clone(a.Name), strings.Clone(a.System)
	return a
}

// answerMergedIndex answers with index.json of p, which may be nil, and of the versions that
// the origin offers. If the origin fails, the answer is the index.json of p.
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

// mergedList returns the list that merge makes of the versions which the origin offers
// beside what is present. have reports whether there is anything.
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
		d.age = min(offering.Age, maxAge) // larger if the clock has been set
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
	case d.age > 0:
		set(w, "Age", strconv.FormatInt(int64(d.age/time.Second), 10))
	}
	return g.writeDocument(w, r, d.Document, links{})
}

// neitherHas answers a request for what neither the tree nor the origin has, with the
// error of the origin. Without an error it has versions, and none that may be fetched.
func neitherHas(r *request, err error) error {
	a := r.target.Address
	switch {
	case err == nil:
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

// answerMergedArchives answers with VERSION.json of the release of p and of the packages
// that the origin offers. Both p and its release may be nil. If the origin fails, the answer
// is the VERSION.json of the release.
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
		g.filled(a)
	}
	r.about(r.target.Address)
	r.Version, r.Platform = filled.Version, filled.Platform
	return g.writeOpened(w, r, filled.File, filled.Open)
}

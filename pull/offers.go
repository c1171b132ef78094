package pull

import (
	"context"
	"errors"
	"strings"
	"time"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/cache"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// An Upstream fetches files that a mirror does not have from its origins. Usually it is
// a *Filler, and has the errors of a Filler.
type Upstream interface {
	// Origins returns the registries that have an origin.
	Origins() []Origin

	// Mirrors reports whether a provider has an origin.
	Mirrors(address.Address) bool

	// Versions returns the versions of a provider that its origin offers.
	Versions(context.Context, address.Address) (Offering, error)

	// Available returns the packages of a version that the origin offers. present is
	// the release in the snapshot, or nil. The list is not complete if the origin may have
	// further packages, and could not be asked for them.
	Available(ctx context.Context, a address.Address, version string, present *index.Release) (list []wire.Archive, complete bool, err error)

	// MayHaveMore reports whether the origin may offer platforms of the release that
	// the tree does not have. It does not ask the origin.
	MayHaveMore(a address.Address, present *index.Release) bool

	// Fill returns a file of a provider once it is in the tree, or, to a client that follows,
	// while it arrives, unverified: see Offers.Follow. present is the provider in the snapshot,
	// or nil.
	Fill(ctx context.Context, a address.Address, file string, present *index.Provider, o FillOptions) (*Filled, error)

	// Misled reports whether clients may have a wrong beginning of a package with this sha256,
	// since an answer was broken off before the package was verified.
	Misled(wire.SHA256) bool

	// ReleaseFor returns a release in the form that clients verify, from the tree or
	// else from the origin. present is the release in the snapshot, or nil.
	ReleaseFor(ctx context.Context, a address.Address, version string, p address.Platform, present *index.Release) (*upstream.Release, error)

	// FillModule returns the package of a version of a module once it is in the tree.
	// present is the module in the snapshot, or nil.
	FillModule(ctx context.Context, a address.Address, version string, present *index.Module) (*FilledModule, error)

	// ModuleFolder returns the folder of the module in the package that FillModule
	// fetches, without waiting for the package. It is empty for the package's root.
	ModuleFolder(ctx context.Context, a address.Address, version string) (string, error)
}

// The errors of Offers, in addition to the errors of the Upstream.
var (
	// ErrNotOffered: the tree does not have it, and it may not be fetched.
	ErrNotOffered = errors.New("it is not offered")

	// ErrNoneLeft: the origin has versions, but none may be fetched.
	ErrNoneLeft = errors.New("all versions of the origin are withdrawn here or too young")

	// ErrNoneListed: the origin lists no version.
	ErrNoneListed = errors.New("the origin lists no version that clients accept")

	// ErrNotYet: the tree has it, or may have it, and the next snapshot will tell.
	ErrNotYet = errors.New("the tree may have it in a moment")

	// ErrNoPackage: the release has no package for the platform.
	ErrNoPackage = errors.New("there is no package for the platform")

	// ErrNoneFetched: no package for the platform may be fetched.
	ErrNoneFetched = errors.New("no package for the platform may be fetched")

	// ErrNotSigned: the release has no signature, so that only the network mirror offers it.
	ErrNotSigned = errors.New("the release is not signed")

	// ErrOtherIssuer: SHA256SUMS is there, but with the signature of another key.
	ErrOtherIssuer = errors.New("another key has signed it")

	// ErrUnfinished: the package is still being fetched, and the client waits no longer.
	ErrUnfinished = errors.New("it is still being fetched")
)

// presentPatience is how long a request waits for an origin if the tree has an answer. Clients
// give an attempt ten seconds, and OpenTofu asks a mirror only once (checklist 25, 72).
const presentPatience = 3 * time.Second

// For hangingLife after a request has waited for an origin in vain, the next ones that the tree has an answer for
// wait only hangingPatience. What they begin goes on without them, so that later ones get it.
const (
	hangingLife     = shortLifetime
	hangingPatience = time.Second
)

// An origin's description of a version does not change, so VERSION.json is kept for a minute,
// unless packages may be missing in it that the origin could not be asked for. Lists of versions
// are kept only for a second. An Upstream renews its lists in the background when requests use
// them, so the requests have to reach it. A list is kept no longer than its own age either: if an
// Upstream renews its lists on every request, it gets every request.
const (
	mergedLife     = time.Minute
	mergedListLife = time.Second
)

// maxAge is the largest Age that caches understand (RFC 9111 §1.2.2).
const maxAge = (1<<31 - 1) * time.Second

// maxMerged bounds the merged lists of modules and of providers, and the merged
// descriptions of releases, in bytes each. Making one again takes microseconds.
const maxMerged = 32 << 20

// A PullThrough offers what its Upstream has together with what is in a tree.
type PullThrough struct {
	upstream   Upstream
	added      func(address.Address) // called when a package has come into the tree
	modules    cache.Cache[address.Address, merged[*index.Module]]
	providers  cache.Cache[address.Address, merged[*index.Provider]]
	documents  cache.Cache[documentID, mergedDocument]
	signatures cache.Cache[signatureID, *index.SignedChecksums]
	hanging    cache.Cache[svchost.Hostname, struct{}] // origins that a request has waited for in vain
}

// NewPullThrough makes a PullThrough. It calls added with the address of a package that
// has come into the tree.
func NewPullThrough(u Upstream, added func(address.Address)) *PullThrough {
	return &PullThrough{
		upstream: u, added: added,
		modules:    cache.Cache[address.Address, merged[*index.Module]]{MaxBytes: maxMerged, Size: merged[*index.Module].weigh},
		providers:  cache.Cache[address.Address, merged[*index.Provider]]{MaxBytes: maxMerged, Size: merged[*index.Provider].weigh},
		documents:  cache.Cache[documentID, mergedDocument]{MaxBytes: maxMerged, Size: mergedDocument.size},
		signatures: cache.Cache[signatureID, *index.SignedChecksums]{MaxBytes: maxSignatures, Size: signatureSize},
	}
}

// Around returns the offers of a snapshot and of the Upstream for one request about a
// mirrored package. ask returns the context for asking the Upstream, and the time when
// the client stops waiting for an answer. It is called only if the Upstream is asked.
func (p *PullThrough) Around(s *index.Snapshot, ask func() (client context.Context, until time.Time)) *Offers {
	return &Offers{PullThrough: p, tree: s, ask: ask}
}

// Offers are the content of the tree together with all that the Upstream can fetch, for one
// request.
type Offers struct {
	*PullThrough
	tree    *index.Snapshot
	ask     func() (client context.Context, until time.Time)
	fetched *Filled // the file that was fetched, which no snapshot has yet; nil: none

	fetchedFor address.Address // whose file it is
}

// A merged provider or module has the versions of the tree and of the origin in its lists. It is valid
// for a while, as long as the tree does not change.
type merged[T comparable] struct {
	present  T                 // in the tree; may be nil
	metadata *registryhcl.File // of the tree; may be nil
	all      T
	size     int // of its lists in bytes, about
}

func (m merged[T]) weigh() int { return m.size }

// mergedLists returns a provider or module that is kept, or that merge makes of the origin's offering.
// If the origin fails, it may be the one in the tree. kept are those of its kind.
func mergedLists[T comparable](o *Offers, p index.Place, kept *cache.Cache[address.Address, merged[T]], present T, merge func(metadata *registryhcl.File, origin Offering) (all T, size int)) (none T, err error) {
	metadata := o.tree.Metadata(p)
	if m, ok := kept.Get(p.Address); ok && m.present == present && m.metadata == metadata {
		return m.all, nil
	}
	offering, err := o.further(p, present != none)
	switch {
	case err != nil && present != none:
		return present, nil
	case err != nil:
		return none, err
	}
	all, size := merge(metadata, offering)
	if all == none {
		return none, offering.noneLeft()
	}
	kept.Put(p.Address, merged[T]{present, metadata, all, size}, min(mergedListLife, offering.Age))
	return all, nil
}

// further returns the versions that the origin lists. have reports whether the tree has
// versions.
func (o *Offers) further(p index.Place, have bool) (Offering, error) {
	ctx, done := o.askContext(p, have)
	defer done()
	offering, err := o.upstream.Versions(ctx, originAddress(p))
	if err != nil {
		return offering, o.failed(ctx, p, "", err)
	}
	offering.Age = min(offering.Age, maxAge) // larger if the clock has been set
	return offering, nil
}

// noneLeft returns why neither the tree nor the origin has a version.
func (o Offering) noneLeft() error {
	if o.Empty {
		return ErrNoneListed
	}
	return ErrNoneLeft
}

// originAddress returns the address under which the Upstream knows what is at a place. Hosted modules
// come into the folder without HOSTNAME, under whatever name of the registry they are requested.
func originAddress(p index.Place) address.Address {
	if p.Hosted {
		return p.WithHostname("")
	}
	return p.Address
}

// askContext returns a context for asking the Upstream, with a limit if the tree has an
// answer too. The Upstream continues its work after the limit. The caller calls done when it
// has its answer.
func (o *Offers) askContext(p index.Place, present bool) (ctx context.Context, done func()) {
	if !present {
		client, _ := o.ask()
		return client, func() {}
	}
	if p.Hosted { // the repositories of hosted modules are at many hosts
		return o.within(presentPatience)
	}
	if _, hangs := o.hanging.Get(p.Hostname); hangs {
		return o.within(hangingPatience)
	}
	began := time.Now()
	ctx, cancel := o.within(presentPatience)
	return ctx, func() {
		if time.Since(began) >= presentPatience {
			o.hanging.Put(svchost.Hostname(strings.Clone(string(p.Hostname))), struct{}{}, hangingLife)
		}
		cancel()
	}
}

// within returns a context for asking the Upstream that ends with ErrNotYet after the limit.
func (o *Offers) within(limit time.Duration) (context.Context, context.CancelFunc) {
	client, _ := o.ask()
	return context.WithTimeoutCause(client, limit, ErrNotYet)
}

// waitContext returns a context for asking the Upstream that ends when the client stops
// waiting.
func (o *Offers) waitContext() (context.Context, context.CancelFunc) {
	client, until := o.ask()
	return context.WithDeadlineCause(client, until, ErrUnfinished)
}

// failed returns the error if the Upstream has failed: because ctx ended, while the tree
// may have the version, or by itself.
func (o *Offers) failed(ctx context.Context, p index.Place, version string, err error) error {
	switch {
	case ctx.Err() != nil:
		if cause := context.Cause(ctx); errors.Is(cause, ErrNotYet) || errors.Is(cause, ErrUnfinished) {
			return cause
		}
		return ctx.Err() // whatever else has ended the request
	case o.tree.Pending(p, version):
		return ErrNotYet
	}
	return err
}

// mayFetch reports whether to ask the Upstream for a version that is not in the tree. The
// version has to be written as in lists, and must not be withdrawn.
func (o *Offers) mayFetch(p index.Place, text string) bool {
	parse := address.ParseProviderVersion
	if p.IsModule() {
		parse = address.ParseModuleVersion
	}
	v, err := parse(text)
	return err == nil && v.String() == text && o.tree.Metadata(p).WithdrawnVersion(v) == nil
}

// Open opens a file that was returned. If it was fetched, it is opened in the present
// tree: the snapshot's may be a root that has been replaced since.
func (o *Offers) Open(f *index.File) (*index.OpenFile, error) {
	if o.isFetched(f) {
		return o.fetched.Open()
	}
	return o.tree.Open(f)
}

// OpenRange opens a file to read a part of it.
func (o *Offers) OpenRange(f *index.File) (*index.OpenFile, error) {
	if o.isFetched(f) {
		return o.fetched.Open()
	}
	return o.tree.OpenRange(f)
}

// Grows reports whether a file that was returned is still being received.
func (o *Offers) Grows(f *index.File) bool { return o.isFetched(f) && o.fetched.growing != nil }

// Misled reports whether a client may have a wrong beginning of a file, which it must not continue.
func (o *Offers) Misled(f *index.File) bool { return o.upstream.Misled(f.SHA256) }

// Follow sends the beginning of a file that grows. When the whole file has been verified, it
// returns how many bytes it has sent, and the file to open for the rest. The error is the
// follower's, or of ctx, or says why the file has not come.
func (o *Offers) Follow(ctx context.Context, f *index.File, to Follower) (sent int64, verified *index.File, err error) {
	sent, filled, err := o.fetched.growing.follow(ctx, to)
	if err != nil {
		return sent, nil, err
	}
	o.fetched = filled
	o.added(o.fetchedFor)
	return sent, filled.File, nil
}

// CanRedirect reports whether clients can fetch a file from the store that has it.
func (o *Offers) CanRedirect(f *index.File) bool { return !o.isFetched(f) && o.tree.CanRedirect(f) }

func (o *Offers) isFetched(f *index.File) bool { return o.fetched != nil && o.fetched.File == f }

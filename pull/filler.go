package pull

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/cache"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/keys"
	"github.com/caddy-terraform/caddy-terraform-registry/pull/checkout"
	"github.com/caddy-terraform/caddy-terraform-registry/pull/flight"
	"github.com/caddy-terraform/caddy-terraform-registry/pull/quota"
	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A Source is the origin of a hostname's providers and modules, and the policy for
// mirroring them. The empty hostname is that of hosted modules whose registry.hcl names a
// git repository.
type Source struct {
	// Client of the origin; of upstream.NewCodeHosts for hosted modules.
	Client *upstream.Client
	Policy Policy

	// Quota limits the size of the mirrored files, together with other sources that
	// have the same Quota. If it is nil, only the disk limits it.
	Quota *quota.Quota
}

// Options of a Filler.
type Options struct {
	// Sources by the hostname of their addresses.
	Sources map[svchost.Hostname]Source

	// Open opens the tree. It is called again for work that begins more than a second
	// later, so that the Filler follows a root that is replaced by a rename.
	Open func() (tree.Tree, error)

	// Digests returns the digests of the tree's indexes, so that these need not read
	// new files again. Nil: there are none.
	Digests func() []*index.Digests

	// Snapshots returns the latest snapshots of the tree's indexes. Nothing is fetched into a part
	// of the tree that is empty although one of them has versions there. Nil: there are none.
	Snapshots func() []*index.Snapshot

	// KeyCopies are the copies of keys of the tree's indexes. Nothing is fetched for a
	// namespace that had keys and has no keys file. Nil: there are none.
	KeyCopies keys.Copies

	// Replaces returns since when a package is on record with other bytes only, in a
	// transparency log; zero if it may be offered. The platform of a module is zero. h1 is the
	// hash of the files. Nil: there is no record.
	Replaces func(a address.Address, version string, on address.Platform, h1 string, sum wire.SHA256) time.Time

	// Await waits until a package in the tree is on record, or for the end of ctx. It reports
	// whether the package may be handed out. Nil: there is no record.
	Await func(ctx context.Context, a address.Address, version string, on address.Platform) (allowed bool)

	// FreeSpace returns the free bytes on the disk of a provider or module. Nil: the
	// Filler does not know before the disk is full.
	FreeSpace func(address.Address) (int64, error)

	// Lock makes one of several instances that share a tree do something. It waits for
	// the lock with that name, or the end of ctx. Nil: this is the only instance.
	Lock func(ctx context.Context, name string) (unlock func(), err error)

	// ReadOnly means that nothing is written. A fill of a missing package ends with
	// ErrWouldFill before it begins.
	ReadOnly bool

	// Observe receives events, from several goroutines. May be nil.
	Observe func(Event)

	// Logger logs outages, refusals, and files that cannot be written. May be nil.
	Logger *slog.Logger
}

// A Filler fills a tree from origins when packages are requested. It is safe for
// concurrent use.
type Filler struct {
	options Options
	sources map[svchost.Hostname]Source
	opener  *tree.Opener

	ctx    context.Context // ends with Close
	cancel context.CancelFunc

	lists    cache.Cache[address.Address, *originList]
	opening  openingLists
	reading  flight.Group[address.Address, registryhcl.Git] // of hosted modules
	unlisted cache.Cache[address.Address, failedList]

	releases   cache.Cache[releaseID, *approved]
	approving  flight.Group[releaseID, *approved]
	unapproved failures[releaseID]
	extending  flight.Group[releaseID, *approved]
	unextended failures[releaseID]

	filled   cache.Cache[fileID, *Filled]
	filling  flight.Group[fileID, *Filled]
	unfilled failures[fileID]
	writing  flight.KeyedMutex // of documents, by namespace
	misled   cache.Cache[wire.SHA256, struct{}]

	modules        cache.Cache[releaseID, *FilledModule]
	fillingModules flight.Group[releaseID, *FilledModule]
	folders        cache.Cache[releaseID, string] // of modules
	locating       flight.Group[releaseID, string]
	tagLists       *checkout.TagLists
	failing        cache.Cache[address.Address, failedList] // lists of hosted modules
	unpublishable  cache.Cache[string, error]               // by version, commit and folder of a module
	checkouts      *checkout.Checkouts

	outages       outages
	originOutages originOutages
	refusals      refusals
}

// A releaseID names a release, a fileID names a file of a release.
type (
	releaseID struct {
		address.Address
		version string
	}
	fileID struct {
		address.Address
		name string
	}
)

// Limits of memory. A provider's list takes some ten kilobytes, a release less. Everything else
// takes little, and has the limit of a cache without any other. Names that do not exist are
// remembered separately, so that a flood of them does not evict real ones.
const (
	maxLists        = 4096
	maxListBytes    = 64 << 20
	maxReleases     = 1024
	maxReleaseBytes = 64 << 20
)

// New makes a Filler. It sends no requests yet.
func New(o Options) (*Filler, error) {
	sources := maps.Clone(o.Sources)
	for hostname, s := range sources {
		// The index distinguishes hostnames from namespaces in this way.
		if name := hostname.ForDisplay(); hostname != "" && name != "localhost" && !strings.ContainsAny(name, ".:") {
			return nil, fmt.Errorf("%s: a tree has no folder for a hostname without a dot", name)
		}
		if s.Client == nil || s.Client.Hostname() != hostname {
			return nil, fmt.Errorf("%s: there is no client for its origin", hostname.ForDisplay())
		}
		var err error
		if s.Policy, err = s.Policy.withDefaults(); err != nil {
			return nil, fmt.Errorf("%s: %w", hostname.ForDisplay(), err)
		}
		sources[hostname] = s
	}
	if o.Open == nil {
		return nil, errors.New("there is no tree to fill")
	}
	ctx, cancel := context.WithCancel(context.Background())
	f := &Filler{
		options: o, sources: sources, opener: tree.NewOpener(index.Guarded(o.Open, o.Snapshots)), ctx: ctx, cancel: cancel,
		lists:    cache.Cache[address.Address, *originList]{MaxEntries: maxLists, MaxBytes: maxListBytes, Size: (*originList).weigh},
		opening:  openingLists{lists: make(map[address.Address]*originList)},
		releases: cache.Cache[releaseID, *approved]{MaxEntries: maxReleases, MaxBytes: maxReleaseBytes, Size: (*approved).Weigh},
	}
	f.approving.Panicked, f.extending.Panicked, f.filling.Panicked = f.notePanic, f.notePanic, f.notePanic
	f.reading.Panicked, f.fillingModules.Panicked, f.locating.Panicked = f.notePanic, f.notePanic, f.notePanic
	f.checkouts, f.tagLists = checkout.New(ctx, f.notePanic), checkout.NewTagLists(ctx, f.notePanic)
	return f, nil
}

// digests returns the digests of the tree's indexes.
func (f *Filler) digests() []*index.Digests {
	if f.options.Digests == nil {
		return nil
	}
	return f.options.Digests()
}

// Close ends all work in progress without waiting for it. Interrupted fills leave
// nothing behind.
func (f *Filler) Close() {
	f.cancel()
	f.checkouts.RemoveIdle()
}

// An Origin is a registry from which a Filler fetches packages.
type Origin struct {
	Hostname svchost.Hostname
	Modules  bool // modules, too, and not only providers
}

// Origins returns the registries from which packages are fetched, by hostname. The repositories of
// hosted modules are none.
func (f *Filler) Origins() []Origin {
	var origins []Origin
	for _, hostname := range slices.Sorted(maps.Keys(f.sources)) {
		if hostname == "" {
			continue
		}
		origins = append(origins, Origin{hostname, f.sources[hostname].Policy.Modules})
	}
	return origins
}

// Mirrors reports whether the Filler fetches packages of a provider or module.
func (f *Filler) Mirrors(a address.Address) bool {
	_, err := f.source(a)
	return err == nil
}

// source returns the source of a provider or module, or ErrNotMirrored, or ErrExcluded.
func (f *Filler) source(a address.Address) (*Source, error) {
	s, ok := f.sources[a.Hostname]
	switch {
	case !ok || a.IsModule() && !s.Policy.Modules, a.Hostname == "" && !a.IsModule():
		return nil, ErrNotMirrored
	case !s.Policy.includes(a):
		return nil, ErrExcluded
	}
	return &s, nil
}

// locks begins the names of the locks of a Filler.
const locks = "terraform_registry/upstream/"

// How long a lock is waited for, since its storage may hang. Another instance may rightly have the lock of a
// package while it downloads the package, and other locks for a moment.
const (
	packagePatience = 5 * time.Minute
	lockPatience    = 30 * time.Second
)

// lock waits for other instances. Without the lock the work is done nevertheless, since
// the lock only avoids doing it twice.
func (f *Filler) lock(name string, patience time.Duration) (unlock func(), err error) {
	if f.options.Lock == nil {
		return func() {}, nil
	}
	unlock, err = flight.Lock(f.ctx, patience, func(ctx context.Context) (func(), error) { return f.options.Lock(ctx, name) })
	switch {
	case err == nil:
		return unlock, nil
	case f.ctx.Err() != nil:
		return nil, f.ctx.Err()
	}
	f.log(slog.LevelWarn, "the lock that instances share is not available, going on without", "lock", name, "error", err.Error())
	return func() {}, nil
}

// reserve begins the reservation of space for a package of a provider or module.
func (f *Filler) reserve(s *Source, files tree.Tree, a address.Address) *quota.Reservation {
	var free func() (int64, error)
	if f.options.FreeSpace != nil {
		free = func() (int64, error) { return f.options.FreeSpace(a) }
	}
	return s.Quota.Reserve(free, files.Providers, files.Modules)
}

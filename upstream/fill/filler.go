package fill

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

// A Source is where the providers of a hostname come from, and which.
type Source struct {
	Client *upstream.Client
	Policy Policy

	// Quota bounds what is held, together with other sources that have the same
	// one. Nil: nothing does but the disk.
	Quota *Quota
}

// Options say what a Filler fills, and from where.
type Options struct {
	// Sources by the hostname of their providers.
	Sources map[svchost.Hostname]Source

	// Open opens the tree, when something is looked for or written there and it has
	// not been opened within a second, so that a root replaced by a rename is seen.
	Open func() (index.Tree, error)

	// Path is the path on the local disk of a file of the tree's providers. The
	// empty one, or no Path, is for file systems without locks of files; there, a
	// fill that died is told from one under way by its age only.
	Path func(name string) string

	// FreeSpace returns how many bytes there is room for on the disk of the
	// providers. Nil: it is not known before the disk is full.
	FreeSpace func() (int64, error)

	// Lock has one instance do what several share a tree for. It waits until it
	// has the lock of that name, or ctx ends. Nil: this is the only one.
	Lock func(ctx context.Context, name string) (unlock func(), err error)

	// ReadOnly has nothing written: a fill of what is not there ends in ErrWouldFill
	// before it would begin.
	ReadOnly bool

	// Observe hears of what is done, from several goroutines. May be nil.
	Observe func(Event)

	// Logger hears of outages, and of files that cannot be kept. May be nil.
	Logger *slog.Logger
}

// A Filler fills a tree from origins, as its packages are asked for. What it has
// written is a tree like any other, that needs no Filler. It is safe for
// concurrent use.
type Filler struct {
	options Options
	sources map[svchost.Hostname]Source
	tree    *trees

	ctx    context.Context // ends with Close
	cancel context.CancelFunc

	catalogs *memory[address.Address, *catalog] // of what is listed
	opening  catalogsInProgress
	unlisted *memory[address.Address, error] // why there is no list
	releases *memory[releaseID, *vouched]
	vouching flights[releaseID, *vouched]
	unproven *memory[releaseID, error]
	growing  flights[releaseID, *vouched]
	ungrown  *memory[releaseID, error]
	filling  flights[fileID, *Filled]
	unfilled *memory[fileID, error]
	held     *memory[fileID, *Filled]
	watchers watchers
	writing  keyed // what vouches for packages, by namespace
	outages  outages
	refusals refusals
}

// A releaseID names a release, a fileID a file of one.
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

// How much is remembered. A provider's list has some ten kilobytes, a release
// less; the rest is small. What is not there is remembered apart from what is: a
// flood of names that somebody made up is no reason to forget a real one.
const (
	mostCatalogs = 4096
	mostListings = 64 << 20 // bytes of them
	mostUnlisted = 4096
	mostReleases = 1024
	mostVouching = 64 << 20 // bytes of them
	mostFiles    = 8192
)

// New makes a Filler. It does nothing until it is asked.
func New(o Options) (*Filler, error) {
	sources := maps.Clone(o.Sources)
	for hostname, s := range sources {
		// The index tells a hostname from a namespace by this.
		if name := hostname.ForDisplay(); name != "localhost" && !strings.ContainsAny(name, ".:") {
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
		options: o, sources: sources, tree: &trees{open: o.Open}, ctx: ctx, cancel: cancel,
		catalogs: newMemory[address.Address, *catalog](mostCatalogs),
		opening:  catalogsInProgress{of: make(map[address.Address]*catalog)},
		unlisted: newMemory[address.Address, error](mostUnlisted),
		releases: newMemory[releaseID, *vouched](mostReleases),
		unproven: newMemory[releaseID, error](mostFiles),
		ungrown:  newMemory[releaseID, error](mostFiles),
		unfilled: newMemory[fileID, error](mostFiles),
		held:     newMemory[fileID, *Filled](mostFiles),
	}
	f.catalogs.room, f.catalogs.weigh = mostListings, (*catalog).weigh
	f.releases.room, f.releases.weigh = mostVouching, (*vouched).weigh
	return f, nil
}

// Close ends all that is under way, and waits for none of it. Fills that are
// cut off leave nothing behind.
func (f *Filler) Close() { f.cancel() }

// Mirrors tells whether a provider is one that the Filler would get.
func (f *Filler) Mirrors(a address.Address) bool {
	s, ok := f.sources[a.Hostname]
	return ok && s.Policy.takes(a)
}

// source finds where a provider comes from.
func (f *Filler) source(a address.Address) (*Source, error) {
	s, ok := f.sources[a.Hostname]
	if !ok || !s.Policy.takes(a) {
		return nil, ErrNotMirrored
	}
	return &s, nil
}

// lock waits for other instances. A lock that is not to be had is no reason to
// be without the package: what it saves is work.
func (f *Filler) lock(name string) (unlock func(), err error) {
	if f.options.Lock == nil {
		return func() {}, nil
	}
	unlock, err = f.options.Lock(f.ctx, "terraform_registry/upstream/"+name)
	switch {
	case err == nil:
		return unlock, nil
	case f.ctx.Err() != nil:
		return nil, f.ctx.Err()
	}
	f.log(slog.LevelWarn, "the lock that instances share is not to be had, going on without", "lock", name, "error", err.Error())
	return func() {}, nil
}

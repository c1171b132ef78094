package module

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/module/storage"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
	"github.com/caddy-terraform/caddy-terraform-registry/pull/follow"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

var fillerPool = newPool[fillerKey, *pooledFiller]()

// A fillerKey is everything that a filler depends on. It must not be logged, as the
// options contain tokens.
type fillerKey struct {
	source   source.Source // as in an indexKey
	identity string        // of the tree
	options  string        // in JSON
}

// closeDelay is how long a filler that no configuration uses any more may go on
// fetching for requests that are still being served.
const closeDelay = 10 * time.Minute

// A pooledFiller is a filler and the apps that use it.
type pooledFiller struct {
	*pull.Filler
	users[recordRule]

	identity string           // of the tree
	follower *follow.Follower // nil: no repositories are followed

	beginning sync.Once

	// context ends when no configuration uses the filler any more. Then the live configuration
	// stands in: downloads under way need a storage, and the log of the tree, until they are
	// complete. For a filler that no configuration uses yet none stands in, since the live
	// configuration may be about to be replaced.
	context context.Context
	end     context.CancelFunc

	// recordIsOptional: by the recordRule of the newest app, or of the last one that there was.
	recordIsOptional atomic.Bool

	counting sync.Mutex
	counters map[fillEvent]*fillCounter
}

// A recordRule says whether a package must be on record before it is handed out.
type recordRule int

const (
	noRecordRule recordRule = iota // there is no app
	recordOptional
	recordRequired
)

// recordRule returns the rule for a tree.
func (a *App) recordRule(from source.Source) recordRule {
	if key, log := a.logOn(from); log != nil && key.recorded {
		return recordRequired
	}
	return recordOptional
}

// acquireFiller returns the filler with a key, whose options have git, which may be nil. The app
// holds one reference to it, however many of its handlers use it.
func (a *App) acquireFiller(key fillerKey, git *Git, options func() (pull.Options, error)) (*pooledFiller, error) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if acquired := a.fillers[key]; acquired != nil {
		return acquired, nil
	}
	pooled, _, err := fillerPool.acquire(key, func() (*pooledFiller, error) {
		o, err := options()
		if err != nil {
			return nil, err
		}
		p := &pooledFiller{identity: key.identity, counters: make(map[fillEvent]*fillCounter)}
		p.context, p.end = context.WithCancel(context.Background())
		p.standIn = func() *App { return successor(p.context) }
		p.use = func(rule recordRule) {
			if rule != noRecordRule {
				p.recordIsOptional.Store(rule == recordOptional)
			}
		}
		o.Lock, o.Observe, o.Logger = p.lock, p.observe, slog.New(fillLog{p})
		o.KeyCopies = storage.NewKeyCopies(p.storage, key.identity)
		o.Replaces, o.Await, o.Digests, o.Snapshots = p.replaces, p.await, p.digests, p.snapshots
		if p.Filler, err = pull.New(o); err == nil && git != nil {
			p.follower = p.newFollower(git.poll())
		}
		return p, err
	})
	if err != nil {
		return nil, err
	}
	a.fillers[key] = pooled
	return pooled, nil
}

// attach has the filler use this app from now on. The first time, it also begins to remove
// what processes that were killed have left behind, and to follow repositories.
func (p *pooledFiller) attach(a *App, rule recordRule) {
	p.users.attach(a, rule)
	p.beginning.Do(func() {
		go p.removeLeftovers()
		if p.follower != nil {
			go p.follower.Run()
		}
	})
}

// cleanInterval is how often leftovers are looked for. What was written to lately may
// belong to an instance that goes on.
const cleanInterval = time.Hour

func (p *pooledFiller) removeLeftovers() {
	interval := time.NewTicker(cleanInterval)
	defer interval.Stop()
	for {
		p.RemoveLeftovers(p.context)
		select {
		case <-interval.C:
		case <-p.context.Done():
			return
		}
	}
}

// Destruct implements caddy.Destructor. Downloads under way may be completed.
func (p *pooledFiller) Destruct() error {
	p.end()
	time.AfterFunc(closeDelay, p.Close)
	return nil
}

// served returns the newest app, and the source from which that app serves the tree; nil if it
// does not. A configuration may read the same tree with other credentials.
func (p *pooledFiller) served() (app *App, from source.Source) {
	if app = p.newest(); app != nil {
		if s := app.sourceOf(p.identity); s != nil {
			return app, s.tree.source
		}
	}
	return nil, source.Source{}
}

// replaces is App.replaces of the newest app.
func (p *pooledFiller) replaces(a address.Address, version string, on address.Platform, h1 string, sum wire.SHA256) time.Time {
	app, from := p.served()
	if app == nil {
		return time.Time{}
	}
	return app.replaces(from, a, version, on, h1, sum)
}

// await is App.awaitRecord of the newest app. If the tree is not served any more, nothing is
// entered in its log: a package that had to be on record is not handed out.
func (p *pooledFiller) await(ctx context.Context, a address.Address, version string, on address.Platform) (allowed bool) {
	app, from := p.served()
	if app == nil {
		return p.recordIsOptional.Load()
	}
	return app.awaitRecord(ctx, from, a, version, on)
}

// indexes returns the indexes of the tree.
func (p *pooledFiller) indexes() []*index.Index {
	app, from := p.served()
	if app == nil {
		return nil
	}
	return app.indexesOf(from)
}

// digests returns the digests of the indexes of the tree.
func (p *pooledFiller) digests() (digests []*index.Digests) {
	for _, x := range p.indexes() {
		digests = append(digests, x.Digests())
	}
	return digests
}

// snapshots returns the latest snapshots of the tree; those of indexes that have none yet are nil.
func (p *pooledFiller) snapshots() (latest []*index.Snapshot) {
	for _, x := range p.indexes() {
		latest = append(latest, x.Snapshot())
	}
	return latest
}

// A fillLog writes to the log of the newest configuration.
type fillLog struct{ *pooledFiller }

func (l fillLog) handler() slog.Handler {
	if app := l.newest(); app != nil {
		return app.logger.Handler()
	}
	return slog.DiscardHandler
}

// Enabled implements slog.Handler.
func (l fillLog) Enabled(ctx context.Context, level slog.Level) bool {
	return l.handler().Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (l fillLog) Handle(ctx context.Context, r slog.Record) error { return l.handler().Handle(ctx, r) }

// WithAttrs implements slog.Handler.
func (l fillLog) WithAttrs(attrs []slog.Attr) slog.Handler { return l.handler().WithAttrs(attrs) }

// WithGroup implements slog.Handler.
func (l fillLog) WithGroup(name string) slog.Handler { return l.handler().WithGroup(name) }

// Interface guards
var _ slog.Handler = fillLog{}

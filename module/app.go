package module

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
)

func init() {
	caddy.RegisterModule(new(App))
}

// App keeps the indexes of all the trees that the `terraform_registry` handlers
// of a configuration serve. Handlers with the same tree and the same options
// share one index, and an index stays in memory over a reload.
//
// It has no options and does not have to be configured: the first handler
// brings it to life.
type App struct {
	ctx        caddy.Context
	logger     *slog.Logger
	events     *caddyevents.App
	traffic    traffic
	sources    []*Source
	registries []*Handler // that are provisioned
	holding    sync.Mutex // guards what follows, which scrapes and admin calls read
	held       map[poolKey]*pooledIndex
	filling    map[fillerKey]*pooledFiller
	started    chan struct{}
	generate   func() (*signing.Key, error)
	links      *access.RotatingLinkKeys // nil when no handler signs links
}

// CaddyModule returns the Caddy module information.
func (*App) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "terraform_registry",
		New: func() caddy.Module { return new(App) },
	}
}

// Provision sets up the app. It scans nothing: `caddy validate` gets this far.
func (a *App) Provision(ctx caddy.Context) error {
	a.ctx = ctx
	a.logger = ctx.Slogger()
	a.held = make(map[poolKey]*pooledIndex)
	a.filling = make(map[fillerKey]*pooledFiller)
	a.started = make(chan struct{})
	a.generate = signing.Generate
	if err := a.provisionEvents(); err != nil {
		return err
	}
	return a.registerMetrics()
}

// tree is what one handler wants served, and how.
type tree struct {
	fsys        fs.FS  // nil: the local disk
	fsName      string // of fsys
	directories index.Directories
	require     bool
	rescan      time.Duration
	signing     signingPolicy
	filled      bool // from upstreams, as clients ask
}

// Acquire promises the handler an index of the tree from when the app has
// started. It is for handlers that are being provisioned.
func (a *App) Acquire(t tree) *Source {
	s := &Source{tree: t, started: a.started}
	a.sources = append(a.sources, s)
	return s
}

// signsLinks promises the handler the keys of signed links from when the app has
// started. It is for handlers that are being provisioned.
func (a *App) signsLinks() *access.RotatingLinkKeys {
	if a.links == nil {
		a.links = access.NewRotatingLinkKeys(a.ctx, linkKeyStore{a.ctx.Storage()}, a.logger.With("name", linkKeysName), time.Now)
	}
	return a.links
}

// Start takes the indexes from the pool and has the new ones scan. Only now is
// the registry's own signing key needed, which may have to be generated first.
func (a *App) Start() error {
	// Also when this fails, so that no request waits for what never comes.
	defer close(a.started)

	if a.links != nil {
		if err := a.links.Load(); err != nil {
			return fmt.Errorf("the keys of signed links, %s in Caddy's storage: %w", linkKeysName, err)
		}
	}
	var own *signing.Key
	for _, s := range a.sources {
		signer := s.tree.signing.signer
		if s.tree.signing.own {
			if own == nil {
				var err error
				if own, err = a.ownKey(); err != nil {
					return err
				}
			}
			signer = own
		}
		s.index.Store(a.hold(s.tree, signer))
	}
	a.holding.Lock()
	defer a.holding.Unlock()
	for _, p := range a.filling {
		p.attach(a)
	}
	return nil
}

// hold returns the index of a tree, which this app then holds one reference to
// however many of its handlers ask.
func (a *App) hold(t tree, signer index.Signer) *index.Index {
	key := poolKey{fsys: t.fsys, directories: t.directories, require: t.require, rescan: t.rescan}
	if signer != nil {
		key.signer = signer.PublicKey().Armor
	}
	a.holding.Lock()
	defer a.holding.Unlock()
	if held := a.held[key]; held != nil {
		return held.Index
	}
	value, loaded, _ := indexes.LoadOrNew(key, func() (caddy.Destructor, error) {
		return &pooledIndex{Index: index.New(t.options(signer))}, nil // never an error
	})
	pooled := value.(*pooledIndex)
	if loaded {
		// A reload is how an operator asks for a fresh look. It reads no archive
		// again, and the snapshot at hand serves meanwhile.
		pooled.Hint()
	}
	a.held[key] = pooled
	pooled.attach(a, &index.Observer{
		Logger: a.logger,
		Scanned: func(before, now *index.Snapshot, took time.Duration) {
			a.warnOfRoot(t, before, now)
			a.emitScanned(t, now, took)
		},
		Withheld: func(p index.Problem) { a.emitWithheld(t, p) },
	})
	pooled.Start()
	return pooled.Index
}

// options are those of the index of a tree. They must not hold anything of the
// configuration but the file system, which the pool tells apart by.
func (t tree) options(signer index.Signer) index.Options {
	var paths []string
	if t.fsys == nil {
		paths = t.directories.Paths()
	}
	return index.Options{
		Open:              t.open,
		Signer:            signer,
		RequireSignatures: t.require,
		Rescan:            max(t.rescan, 0),
		Watch:             true,
		Paths:             paths,
		Store:             t.store(),
		Identity:          t.identity(),
	}
}

func (t tree) open() (index.Tree, error) {
	if t.fsys != nil {
		return t.directories.OpenIn(t.fsys)
	}
	return t.directories.Open()
}

// Stop does nothing: requests may still be answered from the indexes, and the
// next configuration may already use them. See Cleanup.
func (a *App) Stop() error { return nil }

// Cleanup gives back the indexes and fillers this app took, and no others: Caddy calls it
// after a failed start as well, when some or all were not taken yet.
func (a *App) Cleanup() error {
	if a.links != nil {
		a.links.Close()
	}
	a.holding.Lock()
	defer a.holding.Unlock()
	var errs []error
	for key, pooled := range a.held {
		pooled.detach(a)
		if _, err := indexes.Delete(key); err != nil {
			errs = append(errs, fmt.Errorf("closing the index: %w", err))
		}
	}
	for key, p := range a.filling {
		p.detach(a)
		if _, err := fillers.Delete(key); err != nil {
			errs = append(errs, fmt.Errorf("closing an upstream: %w", err))
		}
	}
	a.held, a.filling = nil, nil
	return errors.Join(errs...)
}

// A Source is where a handler gets its snapshots from.
type Source struct {
	tree    tree
	started <-chan struct{}
	index   atomic.Pointer[index.Index]
}

// Index returns the index; nil before the app has started.
func (s *Source) Index() *index.Index {
	select {
	case <-s.started:
		return s.index.Load()
	default:
		return nil
	}
}

// Snapshot returns what the registry offers now; nil if that is not known in
// time. Caddy starts apps in any order, so the HTTP server may be listening
// first; and some clients make one attempt only.
func (s *Source) Snapshot() *index.Snapshot {
	if x := s.index.Load(); x != nil {
		if snapshot := x.Snapshot(); snapshot != nil {
			return snapshot
		}
	}
	enough := time.NewTimer(handlers.Patience)
	defer enough.Stop()
	select {
	case <-s.started:
	case <-enough.C:
		return nil
	}
	x := s.index.Load()
	if x == nil {
		return nil // the app failed to start
	}
	select {
	case <-x.Ready():
	case <-enough.C:
	}
	return x.Snapshot()
}

// Next waits for a snapshot other than the one given; see index.Index.
func (s *Source) Next(ctx context.Context, after *index.Snapshot, wanted ...index.Wanted) *index.Snapshot {
	if x := s.index.Load(); x != nil {
		return x.Next(ctx, after, wanted...)
	}
	return nil
}

// Changed has the tree scanned soon.
func (s *Source) Changed() {
	if x := s.index.Load(); x != nil {
		x.Hint()
	}
}

// Interface guards
var (
	_ caddy.App          = (*App)(nil)
	_ caddy.Provisioner  = (*App)(nil)
	_ caddy.CleanerUpper = (*App)(nil)
)

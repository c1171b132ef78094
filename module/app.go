// Package module implements the registry's Caddy modules: the app that owns the
// indexes, the HTTP handler that answers from them, authenticators and the admin API.
//
// It only connects other packages to Caddy. The index package determines the content of
// a tree, the handlers package the form of an answer, and the signing package the
// validity of a signature. None of them knows Caddy.
//
// # Life of an index
//
// Reading a tree may take minutes. So neither a reload nor `caddy validate` may read
// it, and two sites with the same tree must not read it twice:
//
//   - a handler is provisioned: it checks its options and registers its tree with
//     the app, which gives it a source of snapshots;
//   - the app starts: for each tree it takes the index from a pool that outlives
//     configurations, or creates it, and has it scan;
//   - the app is cleaned up: it returns its references. When the last reference
//     is returned, the index is closed.
//
// While Caddy replaces one configuration with another, both are alive. The new
// app takes its references before the old one returns its own, so an index that
// both use is never closed in between.
package module

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"golang.org/x/sync/semaphore"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/module/authenticate"
	"github.com/caddy-terraform/caddy-terraform-registry/module/storage"
	"github.com/caddy-terraform/caddy-terraform-registry/publish"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
)

func init() {
	caddy.RegisterModule(new(App))
}

// App keeps the indexes of all trees that the `terraform_registry` handlers of a
// configuration serve. Handlers with the same tree and the same options share one
// index, and an index stays in memory across reloads.
//
// It has no options and does not have to be configured: it is created for the
// first handler.
type App struct {
	ctx        caddy.Context
	logger     *slog.Logger
	version    Version
	events     events
	traffic    traffic
	sources    []*snapshotSource
	logged     []*loggedTree        // of the handlers, each with another key
	handlers   []*Handler           // provisioned handlers
	publishers []*publish.Publisher // of the handlers
	locks      storage.Locks
	started    chan struct{}            // closed after Start, even if it failed
	links      *access.RotatingLinkKeys // nil: no handler signs links
	generate   func() (*signing.Key, error)
	passwords  *semaphore.Weighted // limits how many are compared at once

	mutex   sync.Mutex // guards what follows: metrics and the admin API read it
	indexes map[indexKey]*pooledIndex
	changes map[*index.Index]*storage.ChangeLog // of those that look for other instances
	fillers map[fillerKey]*pooledFiller
	usage   map[usageKey]*pooledUsage

	keepUsage map[usageKey]time.Duration // for how long its counts are kept

	logging sync.Mutex // guards what follows: scans read it, for which closing an index waits
	logs    map[tlogKey]*pooledTlog
	entered map[*index.Index]*pooledTlog // by the index whose offers are entered
}

// CaddyModule returns the Caddy module information.
func (*App) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "terraform_registry",
		New: func() caddy.Module { return new(App) },
	}
}

// ConfiguredApp returns the registry's app of a configuration. The error wraps
// caddy.ErrNotConfigured if the configuration has no registry.
func ConfiguredApp(ctx caddy.Context) (*App, error) {
	app, err := ctx.AppIfConfigured("terraform_registry")
	if err != nil {
		return nil, err
	}
	return app.(*App), nil
}

// Provision sets up the app. It scans nothing, since `caddy validate` calls it, too.
func (a *App) Provision(ctx caddy.Context) error {
	a.ctx = ctx
	a.logger, a.version = ctx.Slogger(), BuildVersion()
	a.indexes = make(map[indexKey]*pooledIndex)
	a.changes = make(map[*index.Index]*storage.ChangeLog)
	a.fillers = make(map[fillerKey]*pooledFiller)
	a.usage, a.keepUsage = make(map[usageKey]*pooledUsage), make(map[usageKey]time.Duration)
	a.logs = make(map[tlogKey]*pooledTlog)
	a.entered = make(map[*index.Index]*pooledTlog)
	a.started = make(chan struct{})
	a.generate = signing.Generate
	a.passwords = authenticate.NewPasswordSlots()
	if err := a.provisionEvents(); err != nil {
		return err
	}
	return registerMetrics(ctx) // for sites: the admin API may be off
}

// addSource returns the source of a tree's snapshots, which has an index as soon as
// the app has started. It is for handlers that are being provisioned.
func (a *App) addSource(t servedTree) *snapshotSource {
	s := &snapshotSource{tree: t, started: a.started}
	a.sources = append(a.sources, s)
	return s
}

// sourceOf returns a source of the snapshots of a tree; nil if the configuration does not serve
// the tree.
func (a *App) sourceOf(identity string) *snapshotSource {
	for _, s := range a.sources {
		if s.tree.identity() == identity {
			return s
		}
	}
	return nil
}

// linkKeys returns the keys of signed links, which are loaded when the app starts.
// It is for handlers that are being provisioned.
func (a *App) linkKeys() *access.RotatingLinkKeys {
	if a.links == nil {
		a.links = access.NewRotatingLinkKeys(a.ctx, storage.NewLinkKeys(a.storage, a.lock), a.logger.With("name", storage.LinkKeysName), time.Now)
	}
	return a.links
}

// Start takes the indexes from the pool and makes the new ones scan. The registry's
// signing key is not needed before, and may have to be generated first.
func (a *App) Start() error {
	// Close it even if Start fails, so that no request keeps waiting for an index.
	defer close(a.started)

	if a.links != nil {
		if err := a.links.Load(); err != nil {
			return fmt.Errorf("the keys of signed links, %s in Caddy's storage: %w", storage.LinkKeysName, err)
		}
	}
	for _, t := range a.logged {
		if err := a.acquireTlog(t); err != nil {
			return err
		}
	}
	var stored *signing.Key
	if slices.ContainsFunc(a.sources, func(s *snapshotSource) bool { return s.tree.signing.stored }) {
		var err error
		if stored, err = a.signingKey(); err != nil {
			return err
		}
	}
	// From here on nothing fails: an index that the present configuration serves, too, compares
	// its versions with this one's log from now on, and would offer what the present one withholds.
	for _, s := range a.sources {
		signer := s.tree.signing.signer
		if s.tree.signing.stored {
			signer = stored
		}
		t := s.tree
		t.poll = a.shortestPoll(t)
		s.index.Store(a.acquireIndex(t, signer))
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	for key, p := range a.fillers {
		p.attach(a, a.recordRule(key.source))
	}
	for key, p := range a.usage {
		p.attach(a, a.keepUsage[key])
	}
	for _, p := range a.publishers {
		go p.Run(a.ctx)
	}
	v := a.version
	a.logger.Info("the registry starts", "version", v.Registry, "commit", v.Commit, "caddy", v.Caddy, "go", v.Go)
	storage.WarnOfLostData(a.logger, a.ctx.Storage(), a.localLogs())
	return nil
}

// shortestPoll returns the shortest interval at which to look for changes in a tree.
// Several handlers may serve it.
func (a *App) shortestPoll(t servedTree) time.Duration {
	shortest := t.poll
	for _, s := range a.sources {
		if s.tree.identity() == t.identity() && s.tree.poll > 0 && (shortest == 0 || s.tree.poll < shortest) {
			shortest = s.tree.poll
		}
	}
	return shortest
}

// Stop writes to Caddy's storage what is otherwise written later, if no configuration goes on with it:
// the counts of downloads, and what other instances are told. After Stop, Caddy cleans up all modules
// in any order, so the storage may be closed before Cleanup, which tries again. A storage
// that hangs delays the end by some seconds only.
//
// Nothing else ends: requests may still be answered from the indexes, and the next configuration may
// already use them.
func (a *App) Stop() error {
	if liveApp() == nil {
		a.flush()
	}
	return nil
}

func (a *App) flush() {
	var flushing sync.WaitGroup
	a.mutex.Lock()
	for _, x := range a.indexes {
		changes := a.changes[x.Index]
		flushing.Go(func() {
			x.Flush() // which announces changes
			if changes != nil {
				changes.Flush()
			}
		})
	}
	for _, counts := range a.usage {
		flushing.Go(func() { _ = counts.Close() }) // a download that ends after that is written at once
	}
	a.mutex.Unlock()
	flushing.Wait()
}

// Cleanup returns only the references to indexes and fillers that this app has taken:
// Caddy also calls it after a failed start, before some or all were taken.
func (a *App) Cleanup() error {
	if a.links != nil {
		a.links.Close()
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	var errs []error
	if err := indexPool.release(a, a.indexes); err != nil {
		errs = append(errs, fmt.Errorf("closing the index: %w", err))
	}
	for _, changes := range a.changes {
		changes.Close()
	}
	if err := fillerPool.release(a, a.fillers); err != nil {
		errs = append(errs, fmt.Errorf("closing an upstream: %w", err))
	}
	if err := usagePool.release(a, a.usage); err != nil {
		errs = append(errs, fmt.Errorf("closing the counts of downloads: %w", err))
	}
	a.logging.Lock()
	logs := a.logs
	a.logs, a.entered = nil, nil
	a.logging.Unlock()
	if err := tlogPool.release(a, logs); err != nil {
		errs = append(errs, fmt.Errorf("closing a transparency log: %w", err))
	}
	a.indexes, a.fillers, a.usage = nil, nil, nil
	return errors.Join(errs...)
}

// A snapshotSource provides a handler with snapshots of its tree.
type snapshotSource struct {
	tree    servedTree
	started <-chan struct{}
	index   atomic.Pointer[index.Index] // nil before the app has started
}

// snapshot returns the registry's present snapshot; nil if there is none within
// handlers.Patience.
func (s *snapshotSource) snapshot() *index.Snapshot {
	if snapshot := s.present(); snapshot != nil {
		return snapshot
	}
	return s.await(context.Background(), func(ctx context.Context, x *index.Index) *index.Snapshot {
		select {
		case <-x.Ready():
		case <-ctx.Done():
		}
		return x.Snapshot()
	})
}

// snapshotOf returns a snapshot that has at least what is offered at a place; nil if there is none
// within handlers.Patience.
func (s *snapshotSource) snapshotOf(ctx context.Context, p index.Place) *index.Snapshot {
	if snapshot := s.present(); snapshot != nil {
		return snapshot
	}
	return s.await(ctx, func(ctx context.Context, x *index.Index) *index.Snapshot { return x.SnapshotOf(ctx, p) })
}

// present returns the snapshot that there is, or nil.
func (s *snapshotSource) present() *index.Snapshot {
	if x := s.index.Load(); x != nil {
		return x.Snapshot()
	}
	return nil
}

// await waits for the index, and for a snapshot of it. It waits because Caddy starts apps in any
// order, so that the HTTP server may be listening first, and some clients make a single attempt.
func (s *snapshotSource) await(ctx context.Context, first func(context.Context, *index.Index) *index.Snapshot) *index.Snapshot {
	ctx, cancel := context.WithTimeout(ctx, handlers.Patience)
	defer cancel()
	select {
	case <-s.started:
	case <-ctx.Done():
		return nil
	}
	x := s.index.Load()
	if x == nil {
		return nil // the app failed to start
	}
	return first(ctx, x)
}

// ready reports whether there is a snapshot, without waiting for it.
func (s *snapshotSource) ready() bool { return s.present() != nil }

// current returns the index that scans the tree; nil before the app has started. A reload may
// have replaced the index while a request was under way: the live one has to be told of changes.
func (s *snapshotSource) current() *index.Index {
	x := s.index.Load()
	if x == nil || !x.IsClosed() {
		return x
	}
	app, err := ConfiguredApp(caddy.ActiveContext())
	if err != nil {
		return x
	}
	for _, live := range app.sources {
		if live.tree.identity() != s.tree.identity() {
			continue
		}
		x = live.index.Load()
		if live.tree.require == s.tree.require { // it offers what the request expects
			break
		}
	}
	return x
}

// next waits for a snapshot other than the given one; see index.Index.
func (s *snapshotSource) next(ctx context.Context, after *index.Snapshot, wanted ...index.Selection) *index.Snapshot {
	if x := s.current(); x != nil {
		return x.Next(ctx, after, wanted...)
	}
	return nil
}

// changed makes the index scan the tree soon. With folders, this instance has changed
// them, and others are told.
func (s *snapshotSource) changed(folders ...string) {
	x := s.current()
	switch {
	case x == nil:
	case len(folders) > 0:
		x.Changed(folders...)
	default:
		x.Refresh()
	}
}

// Interface guards
var (
	_ caddy.App          = (*App)(nil)
	_ caddy.Provisioner  = (*App)(nil)
	_ caddy.CleanerUpper = (*App)(nil)
)

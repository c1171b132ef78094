// Package checkout has the tags and the commits that several modules in a repository share. The tags are
// listed once for all of them. A release of a repository with forty modules is often one commit with a tag
// for each of them. Such a commit is fetched once, as a whole, and kept for the other modules for a moment.
// Of a repository with one module only the files that the module needs are fetched.
package checkout

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/cache"
	"github.com/caddy-terraform/caddy-terraform-registry/pull/flight"
	"github.com/caddy-terraform/caddy-terraform-registry/pull/scratch"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

const (
	// lifetime is how long a commit is kept after its last use.
	lifetime = time.Minute

	// maxCheckouts is how many commits are kept that are not in use, and maxIdle how many bytes of them.
	// The last one is kept whatever its size: others wait for it.
	maxCheckouts = 4
	maxIdle      = 512 << 20

	// modulesLifetime is how long a module counts that was in a repository.
	modulesLifetime = 24 * time.Hour

	// maxRepositories and maxUnchecked limit what is remembered.
	maxRepositories = 1024
	maxUnchecked    = 1024

	// uncheckedLifetime is how long a commit that could not be fetched as a whole is not tried again.
	// Its modules are fetched one by one.
	uncheckedLifetime = 10 * time.Minute
)

// Checkouts are the commits that are kept. They are safe for concurrent use.
type Checkouts struct {
	ctx       context.Context                 // in which commits are kept and fetched
	fetching  flight.Group[string, struct{}]  // by commit
	unchecked cache.Cache[string, bool]       // commits that cannot be fetched as a whole
	modules   cache.Cache[string, *oneModule] // by repository

	mutex sync.Mutex
	kept  map[string]*checkout // by commit
}

// oneModule is the module in a repository, unless there are several.
type oneModule struct {
	address address.Address
	several bool
}

type checkout struct {
	*upstream.Checkout
	folder *scratch.Folder
	users  int
	used   time.Time   // when the last user has left
	idle   *time.Timer // removes it
}

// New returns checkouts that end with ctx. panicked is called when a fetch has panicked.
func New(ctx context.Context, panicked func(err error, stack []byte)) *Checkouts {
	return &Checkouts{
		ctx: ctx, fetching: flight.Group[string, struct{}]{Panicked: panicked}, kept: make(map[string]*checkout),
		unchecked: cache.Cache[string, bool]{MaxEntries: maxUnchecked}, modules: cache.Cache[string, *oneModule]{MaxEntries: maxRepositories},
	}
}

// NoteModule notes that a module is in the repository of a source.
func (c *Checkouts) NoteModule(s upstream.ModuleSource, a address.Address) {
	switch known, ok := c.modules.Get(s.URL.String()); {
	case !ok:
		c.modules.Put(s.URL.String(), &oneModule{address: a}, modulesLifetime)
	case known.address != a && !known.several:
		c.modules.Put(s.URL.String(), &oneModule{several: true}, modulesLifetime)
	}
}

// CheckOut returns a source with a checkout if several modules are in its repository, and what to call
// when the checkout is no longer used. Without a checkout, the source is fetched for itself.
func (c *Checkouts) CheckOut(ctx context.Context, from *upstream.Client, s upstream.ModuleSource) (with upstream.ModuleSource, returned func()) {
	commit := s.URL.String() + " " + s.Ref
	if module, ok := c.modules.Get(s.URL.String()); s.Tag == "" || !ok || !module.several {
		return s, func() {}
	}
	for range 2 { // the first may be removed before it is taken
		if k := c.take(commit); k != nil {
			return s.From(k.Checkout), func() { c.giveBack(commit, k) }
		}
		if _, fails := c.unchecked.Get(commit); fails {
			break
		}
		if _, err := c.fetching.Do(ctx, commit, func(clients *upstream.Clients) (struct{}, error) {
			return struct{}{}, c.fetch(clients.Context(c.ctx), from, s, commit)
		}); err != nil {
			break // fetching the module will tell
		}
	}
	return s, func() {}
}

// fetch fetches a commit.
func (c *Checkouts) fetch(ctx context.Context, from *upstream.Client, s upstream.ModuleSource, commit string) error {
	c.mutex.Lock()
	_, there := c.kept[commit]
	c.mutex.Unlock()
	if there {
		return nil
	}
	in, err := scratch.New()
	if err != nil {
		return err
	}
	files, err := from.FetchCommit(ctx, s, in.Files())
	if err != nil {
		in.Remove()
		if _, is := errors.AsType[*upstream.Failure](err); is && ctx.Err() == nil {
			c.unchecked.Put(commit, true, uncheckedLifetime)
		}
		return err
	}
	c.keep(commit, &checkout{Checkout: files, folder: in, users: 1})
	return nil
}

// take returns a commit that is kept, for the caller to give back; nil if it is not kept.
func (c *Checkouts) take(commit string) *checkout {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	k := c.kept[commit]
	if k != nil {
		k.users++
	}
	return k
}

// keep keeps a commit, and drops others that are not in use.
func (c *Checkouts) keep(commit string, k *checkout) {
	c.mutex.Lock()
	c.kept[commit] = k
	c.mutex.Unlock()
	c.giveBack(commit, k)
}

// giveBack ends a use of a commit. Without further ones it is removed after a while, or at once when the
// checkouts have ended, or when too many are kept.
func (c *Checkouts) giveBack(commit string, k *checkout) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	k.users--
	k.used = time.Now()
	if k.users > 0 {
		return
	}
	if c.ctx.Err() != nil {
		c.remove(commit, k)
		return
	}
	if k.idle != nil {
		k.idle.Stop()
	}
	k.idle = time.AfterFunc(lifetime, func() {
		c.mutex.Lock()
		defer c.mutex.Unlock()
		if k.users == 0 && time.Since(k.used) >= lifetime {
			c.remove(commit, k)
		}
	})
	c.dropOldest()
}

// dropOldest removes commits that are not in use until few enough are kept. The caller holds the mutex.
func (c *Checkouts) dropOldest() {
	for {
		idle, size, oldest := 0, int64(0), ""
		for commit, k := range c.kept {
			if k.users > 0 {
				continue
			}
			size += k.Size
			if idle++; oldest == "" || k.used.Before(c.kept[oldest].used) {
				oldest = commit
			}
		}
		if idle <= 1 || idle <= maxCheckouts && size <= maxIdle {
			return
		}
		c.remove(oldest, c.kept[oldest])
	}
}

// remove removes a commit that is not in use. The caller holds the mutex.
func (c *Checkouts) remove(commit string, k *checkout) {
	if c.kept[commit] != k {
		return
	}
	delete(c.kept, commit)
	if k.idle != nil {
		k.idle.Stop()
	}
	k.folder.Remove()
}

// RemoveIdle removes all commits that are not in use.
func (c *Checkouts) RemoveIdle() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for commit, k := range c.kept {
		if k.users == 0 {
			c.remove(commit, k)
		}
	}
}

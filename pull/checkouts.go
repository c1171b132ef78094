package pull

import (
	"context"
	"sync"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/cache"
	"github.com/caddy-terraform/caddy-terraform-registry/pull/flight"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

// A release of a repository with forty modules is often one commit with a tag for each of them. Such a
// commit is fetched once, as a whole, and kept for the other modules for a moment. Of a repository with
// one module only the files that the module needs are fetched.

const (
	// checkoutLifetime is how long a commit is kept after its last use.
	checkoutLifetime = time.Minute

	// maxCheckouts is how many commits are kept that are not in use.
	maxCheckouts = 4

	// modulesLifetime is how long a module counts that was in a repository.
	modulesLifetime = 24 * time.Hour

	// uncheckedLifetime is how long a commit that could not be fetched as a whole is not tried again.
	// Its modules are fetched one by one.
	uncheckedLifetime = 10 * time.Minute
)

// Checkouts are the commits that are kept. They are safe for concurrent use.
type checkouts struct {
	fetching  flight.Group[struct{}]          // by commit
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
	scratch *scratch
	users   int
	used    time.Time   // when the last user has left
	idle    *time.Timer // removes it
}

func newCheckouts() checkouts {
	return checkouts{
		unchecked: cache.Cache[string, bool]{MaxEntries: maxFiles}, modules: cache.Cache[string, *oneModule]{MaxEntries: maxTagLists},
		kept: make(map[string]*checkout),
	}
}

// noteModule notes that a module is in the repository of a source.
func (c *checkouts) noteModule(s upstream.ModuleSource, a address.Address) {
	switch known, ok := c.modules.Get(s.URL.String()); {
	case !ok:
		c.modules.Put(s.URL.String(), &oneModule{address: a}, modulesLifetime)
	case known.address != a && !known.several:
		c.modules.Put(s.URL.String(), &oneModule{several: true}, modulesLifetime)
	}
}

// checkedOut returns a source with a checkout if several modules are in its repository, and what to call
// when the checkout is no longer used. Without a checkout, the source is fetched for itself.
func (f *Filler) checkedOut(ctx context.Context, of *Source, s upstream.ModuleSource) (with upstream.ModuleSource, returned func()) {
	c, commit := &f.checkouts, s.URL.String()+" "+s.Ref
	if module, ok := c.modules.Get(s.URL.String()); s.Tag == "" || !ok || !module.several {
		return s, func() {}
	}
	for range 2 { // the first may be removed before it is taken
		if k := c.take(commit); k != nil {
			return s.From(k.Checkout), func() { c.giveBack(f.ctx, commit, k) }
		}
		if _, fails := c.unchecked.Get(commit); fails {
			break
		}
		if _, err := c.fetching.Do(ctx, commit, func(clients *upstream.Clients) (struct{}, error) {
			return struct{}{}, f.checkOut(clients.Context(f.ctx), of, s, commit)
		}); err != nil {
			break // fetching the module will tell
		}
	}
	return s, func() {}
}

// checkOut fetches a commit.
func (f *Filler) checkOut(ctx context.Context, of *Source, s upstream.ModuleSource, commit string) error {
	c := &f.checkouts
	c.mutex.Lock()
	_, there := c.kept[commit]
	c.mutex.Unlock()
	if there {
		return nil
	}
	in, err := newScratch()
	if err != nil {
		return err
	}
	files, err := of.Client.FetchCommit(ctx, s, in.files())
	if err != nil {
		in.remove()
		if !isForgotten(err) {
			c.unchecked.Put(commit, true, uncheckedLifetime)
		}
		return err
	}
	c.keep(f.ctx, commit, &checkout{Checkout: files, scratch: in, users: 1})
	return nil
}

// take returns a commit that is kept, for the caller to give back; nil if it is not kept.
func (c *checkouts) take(commit string) *checkout {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	k := c.kept[commit]
	if k != nil {
		k.users++
	}
	return k
}

// keep keeps a commit, and drops others that are not in use.
func (c *checkouts) keep(ctx context.Context, commit string, k *checkout) {
	c.mutex.Lock()
	c.kept[commit] = k
	c.mutex.Unlock()
	c.giveBack(ctx, commit, k)
}

// giveBack ends a use of a commit. Without further ones it is removed after a while, or at once when ctx
// has ended, or when too many are kept.
func (c *checkouts) giveBack(ctx context.Context, commit string, k *checkout) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	k.users--
	k.used = time.Now()
	if k.users > 0 {
		return
	}
	if ctx.Err() != nil {
		c.remove(commit, k)
		return
	}
	if k.idle != nil {
		k.idle.Stop()
	}
	k.idle = time.AfterFunc(checkoutLifetime, func() {
		c.mutex.Lock()
		defer c.mutex.Unlock()
		if k.users == 0 && time.Since(k.used) >= checkoutLifetime {
			c.remove(commit, k)
		}
	})
	c.dropOldest()
}

// dropOldest removes a commit if too many that are not in use are kept. The caller holds the mutex.
func (c *checkouts) dropOldest() {
	idle, oldest := 0, ""
	for commit, k := range c.kept {
		if k.users > 0 {
			continue
		}
		if idle++; oldest == "" || k.used.Before(c.kept[oldest].used) {
			oldest = commit
		}
	}
	if idle > maxCheckouts {
		c.remove(oldest, c.kept[oldest])
	}
}

// remove removes a commit that is not in use. The caller holds the mutex.
func (c *checkouts) remove(commit string, k *checkout) {
	if c.kept[commit] != k {
		return
	}
	delete(c.kept, commit)
	if k.idle != nil {
		k.idle.Stop()
	}
	k.scratch.remove()
}

// removeIdle removes all commits that are not in use.
func (c *checkouts) removeIdle() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for commit, k := range c.kept {
		if k.users == 0 {
			c.remove(commit, k)
		}
	}
}

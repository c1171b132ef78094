package fill

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// patience is how long a client waits for a list to be renewed that is long out
// of date, before it is given that one.
const patience = 3 * time.Second

// An Offering is the versions of a provider that may be had from its origin.
type Offering struct {
	// The Listing is the same one as long as nothing in it changes.
	*upstream.Listing

	// Age is how long ago the origin gave it.
	Age time.Duration

	// Stale: it should have been renewed by now.
	Stale bool
}

// Versions are those of a provider that its origin lists and that are old
// enough. The origin is asked once for all who ask, and goes on being asked when
// they have left. A list that is known is given at once, also when the
// origin fails; one that is more than twice as old as it should be, after trying
// for a moment.
func (f *Filler) Versions(ctx context.Context, a address.Address) (Offering, error) {
	c, err := f.catalog(a)
	if err != nil {
		return Offering{}, err
	}
	if err := c.wait(ctx); err != nil {
		return Offering{}, err
	}
	return c.offering()
}

// listed finds a version in the list. A version too young to be taken is an
// ErrTooYoung.
func (f *Filler) listed(ctx context.Context, a address.Address, version string) (v wire.ProviderVersion, ok bool, err error) {
	c, err := f.catalog(a)
	if err != nil {
		return v, false, err
	}
	if err := c.wait(ctx); err != nil {
		return v, false, err
	}
	if err := c.date(ctx, version); err != nil {
		return v, false, err
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, d := range c.record.Versions {
		switch {
		case d.Version != version:
		case c.record.matures(d, c.source.Policy.MinAge).After(time.Now()):
			return v, false, ErrTooYoung
		default:
			return d.ProviderVersion, true, nil
		}
	}
	return v, false, nil
}

func (f *Filler) catalog(a address.Address) (*catalog, error) {
	s, err := f.source(a)
	if err != nil {
		return nil, err
	}
	f.opening.mutex.Lock() // what is no longer in progress is in one of the others
	defer f.opening.mutex.Unlock()
	if c := f.opening.of[a]; c != nil {
		return c, nil
	}
	if c, ok := f.catalogs.get(a); ok {
		return c, nil
	}
	if err, ok := f.unlisted.get(a); ok {
		return nil, err
	}
	c := &catalog{Filler: f, source: s, address: a}
	f.opening.of[a] = c
	return c, nil
}

// catalogsInProgress are those of which nothing is known yet. They take up no
// room among those that are listed until they are.
type catalogsInProgress struct {
	mutex sync.Mutex
	of    map[address.Address]*catalog
}

func (p *catalogsInProgress) end(c *catalog) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.of[c.address] == c {
		delete(p.of, c.address)
	}
}

// opened puts a catalog among those that are listed, or remembers why it is not.
func (c *catalog) opened(listed bool, err error) {
	switch {
	case listed:
		c.catalogs.put(c.address, c, 0)
	case err != nil && !givenUp(err):
		c.unlisted.put(c.address, err, lifeOf(err))
	}
	c.opening.end(c)
}

// weigh is about how many bytes a catalog has in memory.
func (c *catalog) weigh() int { return int(c.bytes.Load()) }

// A catalog is what is known of a provider's versions.
type catalog struct {
	*Filler
	source  *Source
	address address.Address

	mutex   sync.Mutex
	looked  bool    // in the tree, for what was known before
	record  *record // nil: nothing is known
	undated bool    // dates are missing that the origin would tell
	failure error   // of the last refresh
	retry   time.Time
	running chan struct{}     // closed at the end of the refresh that runs
	by      *upstream.Clients // for whom it runs
	bytes   atomic.Int64      // of record

	dating flights[string, struct{}]
	told   map[string]time.Time // dates that were asked for one by one; zero: the origin does not tell

	kept atomic.Bool // there is a record in the tree

	offered *upstream.Listing // of record, good until then
	until   time.Time
}

// wait returns when there is a record to be used, or the failure to get one.
func (c *catalog) wait(ctx context.Context) error {
	c.mutex.Lock()
	if !c.looked {
		c.looked = true
		c.record = c.readRecord()
		c.undated = c.unsettled(c.record)
		if c.record != nil {
			c.bytes.Store(c.record.weigh())
			c.opened(true, nil)
		}
	}
	now := time.Now()
	known := c.record != nil
	age := c.age(now)
	ttl := c.source.Policy.VersionsTTL
	switch {
	case known && age <= ttl && !c.undated:
		c.mutex.Unlock()
		return nil
	case c.failure != nil && now.Before(c.retry):
		defer c.mutex.Unlock()
		if known {
			return nil
		}
		return c.failure
	}
	running := c.refresh(ctx)
	usable := known && age <= 2*ttl && !c.undated
	c.mutex.Unlock()
	var enough <-chan time.Time
	switch {
	case usable:
		return nil
	case known:
		timer := time.NewTimer(patience)
		defer timer.Stop()
		enough = timer.C
	}
	select {
	case <-running:
	case <-enough:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.record != nil {
		return nil
	}
	return c.failure
}

// age is how old the record is. One from the future is as old as can be: some
// clock was wrong, and nothing tells how much.
func (c *catalog) age(now time.Time) time.Duration {
	if c.record == nil || c.record.Fetched.After(now) {
		return 1<<63 - 1
	}
	return now.Sub(c.record.Fetched)
}

// offering is what there is, after wait.
func (c *catalog) offering() (Offering, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	now := time.Now()
	if c.offered == nil || !c.until.IsZero() && !now.Before(c.until) {
		c.offered, c.until = c.mature(now)
	}
	if len(c.offered.Versions) == 0 && c.undated { // rather than that there are none
		if c.failure != nil {
			return Offering{}, c.failure
		}
		return Offering{}, &upstream.Failure{Host: c.address.Hostname.ForDisplay(), Kind: upstream.ErrTimeout, Detail: "it is still being asked for the dates of the versions"}
	}
	o := Offering{Listing: c.offered, Age: c.age(now)}
	if o.Stale = o.Age > c.source.Policy.VersionsTTL; o.Stale {
		c.observe(Event{Kind: VersionsStale, Hostname: c.address.Hostname}, nil)
	}
	return o, nil
}

// refresh begins to ask the origin, unless that is under way. The mutex is held.
func (c *catalog) refresh(ctx context.Context) <-chan struct{} {
	if c.running == nil {
		c.running, c.by = make(chan struct{}), upstream.NewClients(ctx)
		before, by := c.record, c.by
		go func() {
			r, err := c.fetch(by.In(c.ctx), before)
			c.mutex.Lock()
			running := c.running
			c.running = nil
			if r != nil {
				c.record, c.offered = r.with(c.told), nil
				c.undated = err != nil
				c.bytes.Store(c.record.weigh())
			}
			if c.failure = err; err != nil && !givenUp(err) {
				c.retry = time.Now().Add(lifeOf(err))
			}
			listed := c.record != nil
			c.mutex.Unlock()
			c.opened(listed, err)
			c.noteRefresh(c.address, before != nil, err)
			close(running)
		}()
		return c.running
	}
	c.by.Join(ctx)
	return c.running
}

// unsettled tells whether a record has to be asked about at once.
func (c *catalog) unsettled(r *record) bool {
	return r != nil && c.source.Policy.MinAge > 0 && !r.Unsettled.IsZero()
}

// fetch asks the origin, or takes what another instance has been told. It may
// return both a record and an error, when dates are missing.
func (c *catalog) fetch(ctx context.Context, before *record) (*record, error) {
	if kept := c.readRecord(); kept != nil && (before == nil || kept.Fetched.After(before.Fetched)) {
		since := time.Since(kept.Fetched)
		if before = kept; since >= 0 && since <= c.source.Policy.VersionsTTL && !c.unsettled(kept) {
			return kept, nil
		}
	}
	began := time.Now()
	list, err := c.source.Client.Versions(ctx, c.address)
	c.observe(Event{Kind: VersionsFetched, Hostname: c.address.Hostname, Took: time.Since(began)}, err)
	if err != nil {
		return nil, err
	}
	r, err := c.dated(ctx, list, before)
	c.keep(r)
	return r, err
}

// keep is keepRecord, which nothing depends on.
func (c *catalog) keep(r *record) {
	if err := c.keepRecord(r); err != nil && c.outages.begin("keeping") {
		c.log(slog.LevelWarn, "lists of versions cannot be kept, they will be asked for again after a restart", "error", err.Error())
	}
}

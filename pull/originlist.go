package pull

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/cache"
	"github.com/caddy-terraform/caddy-terraform-registry/pull/flight"
	"github.com/caddy-terraform/caddy-terraform-registry/pull/versionlist"
	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// An originList has the versions of a provider or module that its origin has listed, with the dates that
// are known of them.
type originList struct {
	*Filler
	source  *Source
	address address.Address
	git     registryhcl.Git // of a hosted module; zero for others

	mutex   sync.Mutex
	loaded  bool                // the record in the tree has been read, or there is no usable one
	record  *versionlist.Record // nil: nothing is known
	failure error               // of the last refresh, or request for a date
	retry   time.Time
	wanted  time.Time  // a list that was asked for before this is out of date
	asked   time.Time  // when the list was asked for that this process got last; zero: it has none
	checked time.Time  // when the record in the tree was compared with this one
	stamp   tree.Stamp // of the record in the tree at that time
	refresh flight.Group[struct{}, struct{}]
	reading flight.Group[struct{}, struct{}] // of the record in the tree
	dating  flight.Group[string, struct{}]   // by version

	keeping sync.Mutex // while the record in the tree is written

	size atomic.Int64 // of record, in bytes
	kept atomic.Bool  // the tree has a record

	settled atomic.Bool // no record of a source is pending although its package is there, as far as is known
}

// originList returns the list of a provider or module. The error says why it has none. A known
// list counts while the tree does not say which repository a module is in.
func (f *Filler) originList(ctx context.Context, a address.Address) (*originList, error) {
	s, err := f.source(a)
	if err != nil {
		return nil, err
	}
	var g registryhcl.Git
	if a.Hostname == "" {
		g, err = readOnce(ctx, &f.reading, a, func() (registryhcl.Git, error) { return f.repository(a) })
		if err != nil && !errors.Is(err, ErrUnread) {
			return nil, err
		}
	}
	f.opening.mutex.Lock() // a list that is no longer opening is in one of the caches
	defer f.opening.mutex.Unlock()
	if c := f.opening.lists[a]; c != nil && (c.git == g || err != nil) {
		return c, nil
	}
	if c, ok := f.lists.Get(a); ok && (c.git == g || err != nil) {
		return c, nil
	}
	if err != nil {
		return nil, err
	}
	if failed, ok := f.unlisted.Get(a); ok && failed.git == g {
		return nil, failed.failure
	}
	c := &originList{Filler: f, source: s, address: a, git: g}
	f.opening.lists[a] = c
	return c, nil
}

// openingLists are the lists that no origin has sent so far. They are kept separately so that
// requests for names that do not exist evict no list.
type openingLists struct {
	mutex sync.Mutex
	lists map[address.Address]*originList
}

func (o *openingLists) remove(c *originList) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.lists[c.address] == c {
		delete(o.lists, c.address)
	}
}

// opened moves a list to the known ones, or remembers why there is none.
func (c *originList) opened(listed bool, err error) {
	switch {
	case listed:
		c.lists.Put(c.address, c, cache.UntilEvicted)
	case err != nil:
		c.unlisted.Put(c.address, failedList{c.git, err}, lifetimeOf(err))
	}
	c.opening.remove(c)
}

// weigh estimates how many bytes a list takes in memory.
func (c *originList) weigh() int { return int(c.size.Load()) }

// set replaces the record. The caller holds the mutex.
func (c *originList) set(r *versionlist.Record) {
	before := c.record
	c.record = r
	c.size.Store(r.Weigh())
	for _, d := range r.Versions { // a client may have asked for one before it was listed
		if c.address.IsModule() {
			c.unfilled.forgetUnlisted(fileID{c.address, d.Version})
			continue
		}
		id := releaseID{c.address, d.Version}
		c.unapproved.forgetUnlisted(id)
		c.forgetNoAdditions(id, d.Platforms, before)
	}
}

// version finds a version in the record.
func (c *originList) version(text string) (versionlist.DatedVersion, bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.record == nil {
		return versionlist.DatedVersion{}, false
	}
	return c.record.Find(text)
}

// wait returns when there is a usable record or, if it must be current, when there is one that
// need not be renewed. If the record lacks the needed version, wait looks for a newer record in the tree, and
// waits a moment for a renewal; no version is needed if it is empty. Otherwise the error is the failure to get
// a record, or one that may have the needed version.
func (c *originList) wait(ctx context.Context, current bool, needed string) error {
	c.mutex.Lock()
	first, lacks := c.record == nil && !c.loaded, c.lacks(needed)
	c.mutex.Unlock()
	switch {
	case first, lacks:
		c.takeOver(ctx, 0)
	case c.address.Hostname == "": // its repository tells one instance of a new tag, and clients ask any
		c.takeOver(ctx, checkEvery)
	}
	c.mutex.Lock()
	now := time.Now()
	known, age, ttl := c.record != nil, c.age(now), c.source.Policy.VersionsTTL
	switch {
	case known && age <= ttl && !c.lacksDates(c.record, now) && !c.outdated():
		c.mutex.Unlock()
		return nil
	case c.failure != nil && now.Before(c.retry):
		defer c.mutex.Unlock()
		if known && !current {
			return c.mayLack(needed, c.failure)
		}
		return c.failure
	}
	wanted := c.wanted
	refreshed := c.refresh.Start(ctx, struct{}{}, func(clients *upstream.Clients) (struct{}, error) { return c.fetchRecord(clients, wanted) })
	usable := known && !current && age <= 2*ttl && len(c.matureVersions(now)) > 0 && !c.outdated() && !c.lacks(needed)
	c.mutex.Unlock()
	var enough <-chan time.Time
	switch {
	case usable:
		return nil
	case known && !current:
		timer := time.NewTimer(patience)
		defer timer.Stop()
		enough = timer.C
	}
	var failure error
	select {
	case <-refreshed.Landed():
	case <-enough:
		failure = c.stillAsked("it is still being asked for its versions")
	case <-ctx.Done():
		if failure = context.Cause(ctx); !known || current {
			return failure
		}
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if failure == nil {
		failure = c.failure
	}
	if c.record != nil && (!current || c.age(time.Now()) <= ttl) {
		return c.mayLack(needed, failure)
	}
	return failure
}

// mayLack returns nil if the record has the needed version, or if the version does not exist because the record
// lacks it: there has been no failure to get a newer one, the record need not be renewed, or the origin has no such
// provider or module any more. The caller holds the mutex.
func (c *originList) mayLack(needed string, failure error) error {
	upToDate := c.age(time.Now()) <= c.source.Policy.VersionsTTL && !c.outdated()
	if failure == nil || !c.lacks(needed) || upToDate || errors.Is(failure, upstream.ErrNotFound) {
		return nil
	}
	return fmt.Errorf("%w: %w", errNotListedYet, failure)
}

// stillAsked returns the failure of an origin that has not answered yet.
func (c *originList) stillAsked(detail string) error {
	return &upstream.Failure{Host: hostOf(c.address, c.git), Kind: upstream.ErrTimeout, Detail: detail}
}

// lacks reports whether a version is needed that the record lacks. The caller holds the mutex.
func (c *originList) lacks(needed string) bool {
	if needed == "" || c.record == nil {
		return false
	}
	_, ok := c.record.Find(needed)
	return !ok
}

// checkEvery is how often the record in the tree is compared with the one in memory.
const checkEvery = time.Second

// takeOver takes over a newer list that another instance has kept in the tree, or the first one. It looks for
// one if that is longer ago than every.
func (c *originList) takeOver(ctx context.Context, every time.Duration) {
	c.mutex.Lock()
	recent := time.Since(c.checked) < every
	c.mutex.Unlock()
	if !recent {
		readOnce(ctx, &c.reading, struct{}{}, c.compare)
	}
}

// compare reads the record in the tree if it is not the one that was read last.
func (c *originList) compare() (none struct{}, err error) {
	c.mutex.Lock()
	first, stamp := c.record == nil, c.stamp
	c.mutex.Unlock()
	_, in, dir, err := c.folder(c.address)
	if err != nil {
		return none, err
	}
	var r *versionlist.Record
	info, err := in.Stat(path.Join(dir, tree.VersionsName))
	changed := err == nil && tree.StampOf(info) != stamp
	if first || changed {
		r, err = c.readRecord()
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.checked = time.Now()
	switch {
	case c.record == nil:
		if c.loaded = !errors.Is(err, ErrUnread); r != nil {
			c.set(r)
			c.opened(true, nil)
		}
	case r != nil && r.NewerThan(c.record, c.checked):
		c.set(r.WithPastOf(c.record))
	}
	if changed && err == nil {
		c.stamp = tree.StampOf(info)
	}
	return none, err
}

// readOnce reads something of the tree once for all callers. They wait for it until ctx ends, and no longer than
// patience after it began: a tree may hang, and what is in memory is served meanwhile. The error is then ErrUnread.
func readOnce[K comparable, V any](ctx context.Context, reads *flight.Group[K, V], key K, read func() (V, error)) (V, error) {
	under := reads.Join(ctx, key, func(*flight.Flight[V]) (V, error) { return read() })
	waits, cancel := context.WithDeadlineCause(ctx, under.Began.Add(patience), tree.ErrNotWritable)
	defer cancel()
	value, err := under.Wait(waits)
	if err != nil && waits.Err() != nil {
		err = fmt.Errorf("%w: %w", ErrUnread, err)
	}
	return value, err
}

// outdated reports whether the origin has told of a change since the list was asked for. The caller
// holds the mutex.
func (c *originList) outdated() bool { return c.asked.Before(c.wanted) }

// age returns the age of the record. A record from the future is infinitely old: a
// clock was wrong, and the difference is unknown.
func (c *originList) age(now time.Time) time.Duration {
	if c.record == nil || c.record.Fetched.After(now) {
		return 1<<63 - 1
	}
	return now.Sub(c.record.Fetched)
}

// fetchRecord asks the origin for its list, unless another instance has done so after wanted.
func (c *originList) fetchRecord(clients *upstream.Clients, wanted time.Time) (struct{}, error) {
	c.mutex.Lock()
	before := c.record
	c.mutex.Unlock()
	r, err := c.fetch(clients.Context(c.ctx), before, wanted)
	c.mutex.Lock()
	if r != nil {
		c.asked = r.Fetched
		if c.record != nil {
			r = r.WithPastOf(c.record) // dates may have been requested meanwhile
		}
		c.set(r)
	}
	if c.failure = err; err != nil {
		c.retry = time.Now().Add(lifetimeOf(err))
	}
	listed := c.record != nil
	c.mutex.Unlock()
	c.opened(listed, err)
	c.noteListed(err)
	c.noteRefresh(hostOf(c.address, c.git), c.address, before != nil, err)
	if before != nil {
		go c.settleSources() // clients wait for the list alone
	}
	return struct{}{}, err
}

// fetch fetches a list that is asked for after wanted. If dates are missing, it returns both a record
// and an error.
func (c *originList) fetch(ctx context.Context, before *versionlist.Record, wanted time.Time) (*versionlist.Record, error) {
	kept, err := c.readRecord()
	if errors.Is(err, versionlist.ErrDamaged) && before == nil {
		before, err = c.provenRecord()
	}
	if err != nil && before == nil && c.source.Policy.MinAge > 0 {
		return nil, err // without the record all versions would count as first seen today
	}
	switch {
	case kept != nil && before != nil && before.NewerThan(kept, time.Now()):
		before = before.WithPastOf(kept)
	case kept != nil && before != nil:
		before = kept.WithPastOf(before)
	case kept != nil:
		before = kept
	}
	if kept != nil && before.Fetched.Equal(kept.Fetched) { // another instance may have asked
		now := time.Now()
		since := now.Sub(kept.Fetched)
		if since >= 0 && since <= c.source.Policy.VersionsTTL && !c.lacksDates(before, now) && kept.Fetched.After(wanted) {
			return before, nil
		}
	}
	began := time.Now()
	list, asked, err := c.ask(ctx, wanted)
	c.observe(Event{Kind: VersionsFetched, Hostname: c.address.Hostname, Took: time.Since(began)}, err)
	if err != nil {
		return nil, err
	}
	r := versionlist.New(list, before, asked)
	r.Of = tagsOf(c.git)
	err = c.fetchDates(ctx, r)
	c.keep(r)
	return r, err
}

// ask asks the origin for its list, and returns when it was asked: what is new since then may be missing.
func (c *originList) ask(ctx context.Context, wanted time.Time) (list []wire.ProviderVersion, asked time.Time, err error) {
	if c.address.Hostname == "" {
		return c.taggedVersions(ctx, wanted)
	}
	asked = time.Now()
	list, err = c.source.Client.Versions(ctx, c.address)
	return list, asked, err
}

// keep writes a record. Nothing depends on its success.
func (c *originList) keep(r *versionlist.Record) {
	if err := c.keepRecord(r); err != nil && c.outages.begin("keeping") {
		c.log(slog.LevelWarn, "lists of versions cannot be kept, they will be requested again after a restart", "error", err.Error())
	}
}

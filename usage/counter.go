package usage

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// A Storage has the segments of the instances that serve a tree: a folder of values that never
// change.
type Storage interface {
	// List returns the names of the segments.
	List(ctx context.Context) ([]string, error)
	// Load returns a segment. The error wraps fs.ErrNotExist if it has been removed.
	Load(ctx context.Context, name string) ([]byte, error)
	// Store adds a segment, which may exist already.
	Store(ctx context.Context, name string, segment []byte) error
	// Delete removes a segment. The error may wrap fs.ErrNotExist.
	Delete(ctx context.Context, name string) error
	// Lock lets a single instance merge segments.
	Lock(ctx context.Context) (unlock func(), err error)
}

// Options of a Counter.
type Options struct {
	Storage Storage

	// Keep is for how long counts are kept.
	Keep time.Duration

	// Warn is called when the storage begins to fail, and when something is not counted. May
	// be nil.
	Warn func(message string, err error)

	// Now is the clock. Nil: time.Now.
	Now func() time.Time
}

const (
	// interval is how often segments are written and read, and so the most that a crash loses.
	interval = time.Minute

	// syncPatience is how long one Sync may take, and closePatience the last one.
	syncPatience  = 5 * time.Minute
	closePatience = 10 * time.Second
)

// A Counter counts downloads, and knows the counts of all instances. It is safe for concurrent
// use. A nil *Counter counts nothing.
type Counter struct {
	options Options
	most    int // bytes of a segment
	start   sync.Once
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	ended   chan struct{} // closed when run has returned

	syncing sync.Mutex // one Sync at a time; guards the segments that are known
	read    map[Day]*readDay
	written []written // not in the storage yet

	mutex      sync.Mutex // guards what follows
	counts     counts
	pending    map[Day]map[Use]uint64 // not in a segment yet
	changed    bool                   // since the generation began
	generation uint64
	counted    []Day // see CountedDays
	failing    bool
}

// A written segment is stored again until that succeeds. As its bytes stay the same, it is added
// once.
type written struct {
	segmentName
	content []byte
	counts  map[Use]uint64
}

// NewCounter returns a Counter, which reads and writes segments once it runs.
func NewCounter(o Options) *Counter {
	if o.Now == nil {
		o.Now = time.Now
	}
	c := &Counter{options: o, most: maxSegment, ended: make(chan struct{}), read: make(map[Day]*readDay), pending: make(map[Day]map[Use]uint64)}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// Run begins to read and write segments, unless it has begun already.
func (c *Counter) Run() { c.start.Do(func() { go c.run() }) }

func (c *Counter) run() {
	defer close(c.ended)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		c.sync(c.ctx, syncPatience)
		select {
		case <-tick.C:
		case <-c.ctx.Done():
			return
		}
	}
}

// Close writes what has not been written yet. It does not wait long for a storage that hangs.
func (c *Counter) Close() {
	c.cancel()
	c.start.Do(func() { close(c.ended) })
	timeout := time.NewTimer(closePatience)
	defer timeout.Stop()
	select {
	case <-c.ended:
		ctx, cancel := context.WithTimeout(context.Background(), closePatience)
		defer cancel()
		c.syncing.Lock()
		defer c.syncing.Unlock()
		c.report(ctx, c.write(ctx))
	case <-timeout.C:
	}
}

func (c *Counter) sync(ctx context.Context, patience time.Duration) {
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c.report(ctx, c.Sync(within))
}

// Sync writes what has been counted, reads what others have, and merges segments. Run does it
// every minute.
func (c *Counter) Sync(ctx context.Context) error {
	c.syncing.Lock()
	defer c.syncing.Unlock()
	defer c.renew()
	if err := c.write(ctx); err != nil {
		return err
	}
	days, err := c.readSegments(ctx)
	if err != nil {
		return err
	}
	return c.mergeSegments(ctx, days)
}

// Add counts one use, today.
func (c *Counter) Add(u Use) {
	if c == nil {
		return
	}
	day := DayOf(c.options.Now())
	c.mutex.Lock()
	defer c.mutex.Unlock()
	u, ok := c.counts.add(day, u.normal(), 1)
	if !ok {
		return
	}
	c.changed = true
	today := c.pending[day]
	if today == nil {
		today = make(map[Use]uint64)
		c.pending[day] = today
	}
	if _, ok := today[u]; !ok {
		u = u.clone()
	}
	today[u]++
}

// write stores what has been counted since the last time. What fails is kept for the next time.
func (c *Counter) write(ctx context.Context) error {
	if len(c.written) == 0 {
		c.mutex.Lock()
		pending := c.pending
		c.pending = make(map[Day]map[Use]uint64)
		c.mutex.Unlock()
		for day, of := range pending {
			for s := range split(of, c.most) {
				content, sum := s.encode(), make(map[Use]uint64)
				s.sumInto(sum)
				c.written = append(c.written, written{nameSegment(day, ofMinute, content), content, sum})
			}
		}
	}
	for len(c.written) > 0 {
		w := c.written[0]
		if err := c.options.Storage.Store(ctx, w.text, w.content); err != nil {
			return err
		}
		c.readDay(w.day).have[w.text] = true
		c.written = c.written[1:]
	}
	return nil
}

// renew begins the next generation if something has changed.
func (c *Counter) renew() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.changed {
		c.changed = false
		c.generation++
	}
}

// report tells when the storage begins to fail, and when there is too much to count.
func (c *Counter) report(ctx context.Context, err error) {
	c.mutex.Lock()
	begins := err != nil && !c.failing && !errors.Is(context.Cause(ctx), context.Canceled)
	c.failing = err != nil
	refused := c.counts.refused
	c.counts.refused = false
	c.mutex.Unlock()
	if c.options.Warn == nil {
		return
	}
	if begins {
		c.options.Warn("the counts of downloads cannot be shared with other instances, and are lost if this one ends: it is tried again every minute", err)
	}
	if refused {
		c.options.Warn("there are too many different downloads to count them all: count without by, or keep counts for a shorter time", nil)
	}
}

// Generation changes at most once a minute, and only if a count has. Answers with counts can be
// kept as long.
func (c *Counter) Generation() uint64 {
	if c == nil {
		return 0
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.generation
}

// Downloads returns how often an address was downloaded, in all days that are kept.
func (c *Counter) Downloads(a address.Address) uint64 {
	if c == nil {
		return 0
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if of := c.counts.addresses[a]; of != nil {
		return of.downloads
	}
	return 0
}

// Versions returns how often each version of an address was downloaded, and under "" all.
func (c *Counter) Versions(a address.Address) map[string]Summary {
	if c == nil {
		return nil
	}
	today := DayOf(c.options.Now())
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.counts.versions(a, today)
}

// Of returns the counts of an address, newest day first.
func (c *Counter) Of(a address.Address) []Count {
	if c == nil {
		return nil
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.counts.of(a)
}

// Addresses returns all that has been counted, by address.
func (c *Counter) Addresses() (all []address.Address) {
	if c == nil {
		return nil
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for a := range c.counts.addresses {
		all = append(all, a)
	}
	slices.SortFunc(all, address.Address.Compare)
	return all
}

// CountedDays returns the days on which downloads were counted, even if there were none, oldest
// first. It is empty until the segments have been read for the first time. On all other days, it
// is not known what was downloaded.
func (c *Counter) CountedDays() []Day {
	if c == nil {
		return nil
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return slices.Clone(c.counted)
}

package usage

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"
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

	// Keep is for how long counts are kept; see Counter.Keep.
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

	// lateTries is how often it is tried, once a minute, to write what Close has not written.
	lateTries = 10
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
	wrote   time.Time // when this was tried last

	mutex      sync.Mutex // guards what follows
	keep       time.Duration
	counts     counts
	pending    map[Day]*dayTally // not in a segment yet
	generation uint64
	known      bool         // the segments were read once
	counted    []Day        // whose segments were all read
	partial    map[Day]bool // days on which more was downloaded than is counted
	failing    bool
	told       Day  // when it was said last that there is too much to count
	closed     bool // Close has been called
	late       bool // writeLate is at work
}

// A written segment is stored again until that succeeds. As its bytes stay the same, it is added
// once.
type written struct {
	segmentName
	content []byte
	counts  *dayTally
}

// NewCounter returns a Counter, which reads and writes segments once it runs.
func NewCounter(o Options) *Counter {
	if o.Now == nil {
		o.Now = time.Now
	}
	c := &Counter{options: o, keep: o.Keep, most: maxSegment, ended: make(chan struct{}), read: make(map[Day]*readDay), pending: make(map[Day]*dayTally), partial: make(map[Day]bool)}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// Keep changes for how long counts are kept.
func (c *Counter) Keep(d time.Duration) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.keep = d
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

// Close writes what has not been written yet. It does not wait long for a storage that hangs: after an
// error, that is tried again for some minutes, and is lost if the process ends. A download may end
// after Close. It is counted, and written at once.
func (c *Counter) Close() error {
	c.mutex.Lock()
	c.closed = true
	c.mutex.Unlock()
	c.cancel()
	c.start.Do(func() { close(c.ended) })
	err := c.writeLast()
	if err != nil {
		c.mutex.Lock()
		c.beginLate()
		c.mutex.Unlock()
	}
	return err
}

// writeLast writes what has been counted, when run has ended.
func (c *Counter) writeLast() error {
	timeout := time.NewTimer(closePatience)
	defer timeout.Stop()
	select {
	case <-c.ended:
		ctx, cancel := context.WithTimeout(context.Background(), closePatience)
		defer cancel()
		c.syncing.Lock()
		defer c.syncing.Unlock()
		return c.write(ctx)
	case <-timeout.C:
		return errHangs
	}
}

// beginLate has what has been counted written in the background. The mutex is locked.
func (c *Counter) beginLate() {
	if !c.late {
		c.late = true
		go c.writeLate()
	}
}

func (c *Counter) writeLate() {
	for failed := 0; ; {
		err := c.writeLast()
		c.report(context.Background(), err)
		if err != nil {
			failed++
		}
		c.mutex.Lock()
		c.late = failed < lateTries && (err != nil || len(c.pending) > 0)
		again := c.late
		c.mutex.Unlock()
		if !again {
			return
		}
		if err != nil {
			time.Sleep(interval)
		}
	}
}

var errHangs = errors.New("the storage did not answer in time")

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
	failed := c.write(ctx) // a storage that is full can still be read
	days, err := c.readSegments(ctx)
	return cmp.Or(failed, err, c.mergeSegments(ctx, days))
}

// Add counts one use, today.
func (c *Counter) Add(u Use) {
	if c == nil {
		return
	}
	day := DayOf(c.options.Now())
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.closed {
		c.beginLate()
	}
	u, ok := c.counts.add(day, u.normal(), 1)
	today := c.pending[day]
	if today == nil {
		today = newDayTally()
		c.pending[day] = today
	}
	if !ok {
		c.notAll(day, u)
		today.partial = c.partial[day]
		return
	}
	if _, ok := today.uses[u]; !ok {
		u = u.clone()
	}
	today.uses[u]++
}

// notAll notes that a use was not counted on a day. Users are counted beside downloads.
func (c *Counter) notAll(day Day, u Use) {
	if u.By == "" {
		c.partial[day] = true
	}
}

// writeInTime writes if that was a minute ago: reading and merging may take longer.
func (c *Counter) writeInTime(ctx context.Context) error {
	if c.options.Now().Sub(c.wrote) < interval {
		return nil
	}
	return c.write(ctx)
}

// write stores what has been counted since the last time. What fails is kept for the next time.
func (c *Counter) write(ctx context.Context) error {
	c.wrote = c.options.Now()
	if err := c.storeWritten(ctx); err != nil { // while this fails, there is no more of it
		return err
	}
	c.mutex.Lock()
	pending := c.pending
	c.pending = make(map[Day]*dayTally)
	c.mutex.Unlock()
	for day, of := range pending {
		for s := range split(of.uses, c.most) {
			s.Partial = of.partial
			content, sum := s.encode(), newDayTally()
			s.sumInto(sum)
			name := nameSegment(day, ofMinute, content)
			c.written = append(c.written, written{name, content, sum})
			c.readDay(day).have[name.text] = true // also if it is stored and that is not confirmed
		}
	}
	return c.storeWritten(ctx)
}

func (c *Counter) storeWritten(ctx context.Context) error {
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

// renew begins the next generation, whether or not a count has changed: how long an answer takes
// must not tell that something was downloaded which a user may not see.
func (c *Counter) renew() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.generation++
}

// report tells when the storage begins to fail, and when there is too much to count.
func (c *Counter) report(ctx context.Context, err error) {
	c.mutex.Lock()
	begins := err != nil && !c.failing && !errors.Is(context.Cause(ctx), context.Canceled)
	c.failing = err != nil
	today := DayOf(c.options.Now())
	refused := c.counts.refused && c.told != today
	if c.counts.refused = false; refused {
		c.told = today
	}
	c.mutex.Unlock()
	if c.options.Warn == nil {
		return
	}
	if begins {
		c.options.Warn("the counts of downloads cannot be written, read or merged, and what is not written is lost if this instance ends: it is tried again every minute", err)
	}
	if refused {
		c.options.Warn("there are too many different downloads to count them all: count without by, or keep counts for a shorter time", nil)
	}
}

// Generation changes every minute. Answers with counts are kept as long.
func (c *Counter) Generation() uint64 {
	if c == nil {
		return 0
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.generation
}

package index

import (
	"sync"
	"time"
)

// Progress says how far a scan is with reading what it did not know.
type Progress struct {
	Done, Total           int
	DoneBytes, TotalBytes int64
	Began                 time.Time
}

// Rate is the bytes read a second up to now.
func (p Progress) Rate(now time.Time) int64 {
	elapsed := now.Sub(p.Began).Seconds()
	if elapsed <= 0 {
		return 0
	}
	return int64(float64(p.DoneBytes) / elapsed)
}

// Remaining is how long the rest takes at the rate up to now.
func (p Progress) Remaining(now time.Time) time.Duration {
	rate := p.Rate(now)
	if rate == 0 {
		return 0
	}
	return (time.Duration((p.TotalBytes-p.DoneBytes)/rate) * time.Second).Round(time.Second)
}

// Between two snapshots of one scan lie at least this many seconds, and more
// as the scan goes on: each costs a pass over everything that is offered.
const (
	firstBatch = time.Second
	lastBatch  = 10 * time.Second
)

// batches publishes what can be offered while a scan still reads.
type batches struct {
	scan  *scan
	found *inventory
	to    func(*Snapshot) // may be nil

	publishing sync.Mutex // a snapshot never follows a newer one
	included   int        // archives that had been read when the last was made, -1 before that
	resume     time.Time  // as long after the last as it took

	mutex    sync.Mutex
	progress Progress
	next     time.Time
	interval time.Duration
}

func newBatches(s *scan, found *inventory, to func(*Snapshot)) *batches {
	b := &batches{scan: s, found: found, to: to, interval: firstBatch, included: -1}
	b.progress = Progress{Total: len(found.unread), Began: s.options.now()}
	for _, a := range found.unread {
		b.progress.TotalBytes += a.stamp.size
	}
	b.next = b.progress.Began.Add(b.interval)
	return b
}

// count counts an archive that has been read.
func (b *batches) count(a *archive) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.progress.Done++
	b.progress.DoneBytes += a.stamp.size
}

// add tells of an archive that has been counted, and publishes when it is time.
func (b *batches) add() {
	b.mutex.Lock()
	now := b.scan.options.now()
	due := now.After(b.next) && b.progress.Done < b.progress.Total
	if due {
		b.interval = min(2*b.interval, lastBatch)
		b.next = now.Add(b.interval)
	}
	progress := b.progress
	b.mutex.Unlock()

	if b.scan.progress != nil {
		b.scan.progress(progress)
	}
	if due {
		b.publish()
	}
}

// publish makes a snapshot of what has been read by now. Of several calls at once
// those return early that an earlier one has served too.
func (b *batches) publish() {
	done := b.done()
	b.publishing.Lock()
	defer b.publishing.Unlock()
	if b.to == nil || b.scan.ctx.Err() != nil || b.included >= done {
		return
	}
	done = b.done()
	began := time.Now()
	if s, _ := b.scan.assemble(b.found); s.Report.failure() == nil {
		b.to(s)
		b.included = done
	}
	b.resume = time.Now().Add(time.Since(began))
}

// pause waits until at least half of the time has gone into something else than
// snapshots.
func (b *batches) pause() {
	b.publishing.Lock()
	rest := time.Until(b.resume)
	b.publishing.Unlock()
	select {
	case <-time.After(rest):
	case <-b.scan.ctx.Done():
	}
}

func (b *batches) done() int {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.progress.Done
}

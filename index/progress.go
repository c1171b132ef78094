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
	scanner *scanner
	to      func(*Snapshot)

	publishing sync.Mutex // a snapshot never follows a newer one
	included   int        // archives that had been read when the last was made; -1: there is none

	mutex    sync.Mutex
	progress Progress
	next     time.Time
	interval time.Duration
}

func newBatches(s *scanner, to func(*Snapshot)) *batches {
	b := &batches{scanner: s, to: to, interval: firstBatch, included: -1}
	b.progress = Progress{Total: len(s.unread), Began: s.options.now()}
	for _, a := range s.unread {
		b.progress.TotalBytes += a.stamp.size
	}
	b.next = b.progress.Began.Add(b.interval)
	return b
}

// add counts an archive that has been read, and publishes when it is time, or
// when a request waits for nothing else.
func (b *batches) add(a *archive, granted bool) {
	b.mutex.Lock()
	b.progress.Done++
	b.progress.DoneBytes += a.stamp.size
	now := b.scanner.options.now()
	due := now.After(b.next) && b.progress.Done < b.progress.Total
	if due {
		b.interval = min(2*b.interval, lastBatch)
		b.next = now.Add(b.interval)
	}
	due = due || granted
	progress := b.progress
	b.mutex.Unlock()

	if b.scanner.progress != nil {
		b.scanner.progress(progress)
	}
	if due {
		b.publish(progress.Done)
	}
}

// publish makes a snapshot of what has been read by now, unless the last one has
// that many archives already: a snapshot that says nothing new would cost a pass
// over everything, and requests that still wait would ask for the next at once.
func (b *batches) publish(read int) {
	b.publishing.Lock()
	defer b.publishing.Unlock()
	if b.to == nil || b.scanner.ctx.Err() != nil || b.included >= read {
		return
	}
	done := b.done()
	if s := b.scanner.assemble(); s.Report.failure() == nil {
		b.to(s)
		b.included = done
	}
}

func (b *batches) done() int {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.progress.Done
}

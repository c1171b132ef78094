package index

import (
	"cmp"
	"context"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// A reading is the part of a scan in which the archives are read that the memo
// does not know: as many at once as there are workers, the newest versions
// first, since those are asked for. What a request waits for comes before all
// that; it does not even wait for a worker, and the others pause meanwhile.
type reading struct {
	scan    *scan
	found   *inventory
	batches *batches

	mutex   sync.Mutex
	resumed *sync.Cond
	queue   []*archive                     // not begun, in order; some have been, as urgent
	urgent  []*archive                     // not begun, and waited for
	of      map[address.Address][]*archive // by address
	wishes  map[Wanted]*wish               // of all requests that wait for the same
	hurried atomic.Int64                   // archives that are waited for and not read
	workers int                            // that read what is urgent
	ended   bool

	publishing bool           // what is waited for, soon
	hurries    sync.WaitGroup // what is urgent; added to only before the end
}

// A wish counts the archives that requests still wait for.
type wish struct{ left int }

func newReading(s *scan, found *inventory, publish func(*Snapshot)) *reading {
	slices.SortStableFunc(found.unread, func(a, b *archive) int { return cmp.Compare(a.rank, b.rank) })
	r := &reading{
		scan: s, found: found, batches: newBatches(s, found, publish),
		queue: found.unread, of: make(map[address.Address][]*archive), wishes: make(map[Wanted]*wish),
	}
	r.resumed = sync.NewCond(&r.mutex)
	for _, a := range found.unread {
		a.reading = r
		r.of[a.address] = append(r.of[a.address], a)
	}
	return r
}

// run reads everything, or as much as there is time for.
func (r *reading) run() {
	stop := context.AfterFunc(r.scan.ctx, func() {
		r.mutex.Lock()
		defer r.mutex.Unlock()
		r.resumed.Broadcast()
	})
	defer stop()
	var background sync.WaitGroup
	for range min(r.scan.options.workers(), len(r.queue)) {
		background.Go(func() {
			for a := r.take(); a != nil; a = r.take() {
				r.read(a)
			}
		})
	}
	background.Wait()
	r.mutex.Lock()
	r.ended = true
	r.mutex.Unlock()
	r.hurries.Wait()
}

// take returns the next archive to read, nil when there is none.
func (r *reading) take() *archive {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if a := r.takeUrgent(); a != nil || r.scan.ctx.Err() != nil {
		return a
	}
	for len(r.queue) > 0 {
		a := r.queue[0]
		r.queue = r.queue[1:]
		if !a.begun {
			a.begun = true
			return a
		}
	}
	return nil
}

func (r *reading) takeUrgent() *archive {
	if len(r.urgent) == 0 || r.scan.ctx.Err() != nil {
		return nil
	}
	a := r.urgent[0]
	r.urgent = r.urgent[1:]
	a.begun = true
	return a
}

// hurry has what is wanted read at once, and published when it is. What has been
// read already is published.
func (r *reading) hurry(w Wanted) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.ended || len(r.of[w.Address]) == 0 {
		return
	}
	wished, read := r.wishes[w], false
	if wished != nil && wished.left > 0 {
		return // it is urgent already
	}
	if wished == nil {
		wished = new(wish)
	}
	for _, a := range r.of[w.Address] {
		if w.Version != "" && a.version != w.Version {
			continue
		}
		if a.finished {
			read = true
			continue
		}
		wished.left++
		a.wishes = append(a.wishes, wished)
		if a.urgent {
			continue
		}
		a.urgent = true
		r.hurried.Add(1)
		if !a.begun {
			r.urgent = append(r.urgent, a)
		}
	}
	if wished.left > 0 {
		r.wishes[w] = wished
	}
	r.resumed.Broadcast() // one that pauses may be urgent now
	if read && wished.left == 0 {
		r.publishSoon()
	}
	for ; r.workers < min(r.scan.options.workers(), len(r.urgent)); r.workers++ {
		r.hurries.Go(r.readUrgent)
	}
}

func (r *reading) readUrgent() {
	for {
		r.mutex.Lock()
		a := r.takeUrgent()
		if a == nil {
			r.workers--
		}
		r.mutex.Unlock()
		if a == nil {
			return
		}
		r.read(a)
	}
}

// read reads an archive, and publishes it when a request waits for nothing else.
func (r *reading) read(a *archive) {
	d := r.scan.readArchive(a)
	r.found.reading.Lock()
	a.digest, a.pending = d, false
	r.found.reading.Unlock()
	r.batches.count(a) // before a request can take it for finished, and have it published

	r.mutex.Lock()
	a.finished = true
	if a.urgent && r.hurried.Add(-1) == 0 {
		r.resumed.Broadcast()
	}
	granted := false
	for _, wished := range a.wishes {
		wished.left--
		granted = granted || wished.left == 0
	}
	if granted {
		r.publishSoon()
	}
	r.mutex.Unlock()
	r.batches.add()
}

// publishSoon publishes what requests wait for, in the background. All that is
// read until it comes to that is in the same snapshot: under a flood of requests
// the making of snapshots must not keep the reading waiting.
func (r *reading) publishSoon() {
	if r.publishing {
		return
	}
	r.publishing = true
	r.hurries.Go(func() {
		r.batches.pause()
		r.mutex.Lock()
		r.publishing = false
		r.mutex.Unlock()
		r.batches.publish()
	})
}

// pace pauses the reading of an archive while others are waited for.
func (r *reading) pace(a *archive) {
	if r == nil || r.hurried.Load() == 0 {
		return
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for r.hurried.Load() > 0 && !a.urgent && r.scan.ctx.Err() == nil {
		r.resumed.Wait()
	}
}

// A pacedFile is read at the pace of its reading.
type pacedFile struct {
	afero.File
	archive *archive
}

func (f pacedFile) Read(p []byte) (int, error) {
	f.archive.reading.pace(f.archive)
	return f.File.Read(p)
}

func (f pacedFile) ReadAt(p []byte, offset int64) (int, error) {
	f.archive.reading.pace(f.archive)
	return f.File.ReadAt(p, offset)
}

// pacedReaderAt is the same of what is no file.
type pacedReaderAt struct {
	io.ReaderAt
	archive *archive
}

func (r pacedReaderAt) ReadAt(p []byte, offset int64) (int, error) {
	r.archive.reading.pace(r.archive)
	return r.ReaderAt.ReadAt(p, offset)
}

// read reads the archives that are not known. What is known is published at once
// in the first scan.
func (s *scan) read(found *inventory, waiting *waiting, publish func(*Snapshot)) {
	r := newReading(s, found, publish)
	waiting.begin(r)
	if s.last.snapshot == nil {
		r.batches.publish()
	}
	r.run()
	waiting.end()
}

// Wanted is what a request waits for: everything under an address, or one version.
type Wanted struct {
	Address address.Address
	Version string // empty: all versions
}

// waiting knows what requests wait for. The scan that runs reads that first.
type waiting struct {
	mutex   sync.Mutex
	wanted  map[Wanted]int // how many requests
	reading *reading       // of the scan that runs; nil when it reads nothing
	changed chan struct{}  // closed with the next snapshot
}

// news returns a channel that is closed with the next snapshot.
func (w *waiting) news() <-chan struct{} {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.changed == nil {
		w.changed = make(chan struct{})
	}
	return w.changed
}

// published ends the waiting for a snapshot.
func (w *waiting) published() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.changed != nil {
		close(w.changed)
		w.changed = nil
	}
}

// add notes what a request waits for until remove is called.
func (w *waiting) add(list []Wanted) (remove func()) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.wanted == nil {
		w.wanted = make(map[Wanted]int)
	}
	for _, wanted := range list {
		w.wanted[wanted]++
		if w.reading != nil {
			w.reading.hurry(wanted)
		}
	}
	return func() {
		w.mutex.Lock()
		defer w.mutex.Unlock()
		for _, wanted := range list {
			if w.wanted[wanted]--; w.wanted[wanted] == 0 {
				delete(w.wanted, wanted)
			}
		}
	}
}

// begin tells a scan that starts to read of what is waited for. A scan that no
// request can wait for has no waiting.
func (w *waiting) begin(r *reading) {
	if w == nil {
		return
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.reading = r
	for wanted := range w.wanted {
		r.hurry(wanted)
	}
}

// end is called when the scan has read everything.
func (w *waiting) end() {
	if w == nil {
		return
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.reading = nil
}

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

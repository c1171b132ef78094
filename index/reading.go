package index

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// read reads the archives that the memo does not know. In the first scan, the versions that
// it knows are published at once.
func (s *scan) read(inv *inventory, waiting *waiting, publish func(*Snapshot)) {
	r := newReading(s, inv, publish)
	waiting.begin(r)
	if s.last.snapshot == nil {
		r.batches.publish()
	}
	r.run()
	waiting.end()
}

// A Selection names the archives that a request waits for: all of an address, or of one
// version.
type Selection struct {
	Address address.Address
	Version string // empty: all versions
}

// waiting has the selections of all waiting requests, which the running scan reads first.
type waiting struct {
	mutex      sync.Mutex
	selections map[Selection]int // number of requests for each
	reading    *reading          // of the running scan; nil when it reads nothing
	changed    chan struct{}     // closed with the next snapshot
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

// published notifies the waiting requests of a snapshot.
func (w *waiting) published() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.changed != nil {
		close(w.changed)
		w.changed = nil
	}
}

// add adds the selections of a request until remove is called.
func (w *waiting) add(list []Selection) (remove func()) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.selections == nil {
		w.selections = make(map[Selection]int)
	}
	for _, selection := range list {
		w.selections[selection]++
		if w.reading != nil {
			w.reading.prioritize(selection)
		}
	}
	return func() {
		w.mutex.Lock()
		defer w.mutex.Unlock()
		for _, selection := range list {
			if w.selections[selection]--; w.selections[selection] == 0 {
				delete(w.selections, selection)
			}
		}
	}
}

// begin is called when a scan starts to read. A scan without waiting requests has a nil
// waiting.
func (w *waiting) begin(r *reading) {
	if w == nil {
		return
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.reading = r
	for selection := range w.selections {
		r.prioritize(selection)
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

// Progress says how many of the unknown archives a scan has read.
type Progress struct {
	Done, Total           int   // archives
	DoneBytes, TotalBytes int64 // of these archives
	Began                 time.Time
}

// Rate returns the average number of bytes read per second.
func (p Progress) Rate(now time.Time) int64 {
	elapsed := now.Sub(p.Began).Seconds()
	if elapsed <= 0 {
		return 0
	}
	return int64(float64(p.DoneBytes) / elapsed)
}

// Remaining estimates how long the rest takes at that rate, to the second; zero if there is
// no rate yet.
func (p Progress) Remaining(now time.Time) time.Duration {
	rate := p.Rate(now)
	if rate == 0 {
		return 0
	}
	return (time.Duration((p.TotalBytes-p.DoneBytes)/rate) * time.Second).Round(time.Second)
}

// Snapshots of one scan are at least this far apart, and further as the scan goes on, since
// each costs a pass over all offers.
const (
	firstBatch = time.Second
	lastBatch  = 10 * time.Second
)

// batches publishes versions that can be offered while a scan still reads.
type batches struct {
	scan      *scan
	inventory *inventory
	send      func(*Snapshot) // may be nil

	publishing sync.Mutex // a newer snapshot is never followed by an older one
	included   int        // archives read before the last snapshot was made; -1 before the first
	resume     time.Time  // when the next snapshot may be made: after a pause as long as making the last one

	mutex    sync.Mutex
	progress Progress
	next     time.Time
	interval time.Duration
}

func newBatches(s *scan, inv *inventory, send func(*Snapshot)) *batches {
	b := &batches{scan: s, inventory: inv, send: send, interval: firstBatch, included: -1}
	b.progress = Progress{Total: len(inv.unread), Began: s.options.now()}
	for _, a := range inv.unread {
		b.progress.TotalBytes += a.Stamp.Size
	}
	b.next = b.progress.Began.Add(b.interval)
	return b
}

// count counts an archive after it has been read.
func (b *batches) count(a *job) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.progress.Done++
	b.progress.DoneBytes += a.Stamp.Size
}

// add is called after each counted archive, and publishes a snapshot when one is due.
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

// publish makes a snapshot of the archives read so far, unless the last snapshot has all of
// them.
func (b *batches) publish() {
	done := b.done()
	b.publishing.Lock()
	defer b.publishing.Unlock()
	if b.send == nil || b.scan.ctx.Err() != nil || b.included >= done {
		return
	}
	done = b.done()
	began := time.Now()
	if s := b.scan.assemble(b.inventory).snapshot; s.Report.failure() == nil {
		b.send(s)
		b.included = done
	}
	b.resume = time.Now().Add(time.Since(began))
}

// pause waits, so that at most half of the time is spent on making snapshots.
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

// A reading is the part of a scan that reads the archives that the memo does not know. It
// reads as many at once as there are workers, the newest versions first, since clients
// request these. Archives that a request waits for are urgent: they are read by workers of
// their own, and the others pause meanwhile.
type reading struct {
	scan      *scan
	inventory *inventory
	batches   *batches

	mutex      sync.Mutex
	resumed    *sync.Cond
	queue      []*job                     // not begun, in order; some have begun as urgent
	urgent     []*job                     // urgent and not begun
	archives   map[address.Address][]*job // all of them
	requests   map[Selection]*request     // requests that wait for archives
	urgentLeft atomic.Int64               // urgent archives that are not read yet: while there are any, others pause
	workers    int                        // running workers for urgent archives
	ended      bool

	publishing bool           // publishSoon has been called
	background sync.WaitGroup // workers for what is urgent, and publishing; added to only before the end
}

// A request stands for all requests with the same selection.
type request struct{ left int } // number of archives to read

func newReading(s *scan, inv *inventory, publish func(*Snapshot)) *reading {
	slices.SortStableFunc(inv.unread, func(a, b *job) int { return cmp.Compare(a.rank, b.rank) })
	r := &reading{
		scan: s, inventory: inv, batches: newBatches(s, inv, publish),
		queue: inv.unread, archives: make(map[address.Address][]*job), requests: make(map[Selection]*request),
	}
	r.resumed = sync.NewCond(&r.mutex)
	for _, a := range inv.unread {
		a.state = &jobState{reading: r}
		r.archives[a.folder.address] = append(r.archives[a.folder.address], a)
	}
	return r
}

// run reads all archives, or as many as it can before the scan ends.
func (r *reading) run() {
	stop := context.AfterFunc(r.scan.ctx, func() {
		r.mutex.Lock()
		defer r.mutex.Unlock()
		r.resumed.Broadcast()
	})
	defer stop()
	var workers sync.WaitGroup
	for range min(r.scan.options.workers(), len(r.queue)) {
		workers.Go(func() {
			for a := r.take(); a != nil; a = r.take() {
				r.read(a)
			}
		})
	}
	workers.Wait()
	r.mutex.Lock()
	r.ended = true
	r.mutex.Unlock()
	r.background.Wait()
}

// take returns the next archive to read, or nil when there is none.
func (r *reading) take() *job {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if a := r.takeUrgent(); a != nil || r.scan.ctx.Err() != nil {
		return a
	}
	for len(r.queue) > 0 {
		a := r.queue[0]
		r.queue = r.queue[1:]
		if !a.state.begun {
			a.state.begun = true
			return a
		}
	}
	return nil
}

func (r *reading) takeUrgent() *job {
	if len(r.urgent) == 0 || r.scan.ctx.Err() != nil {
		return nil
	}
	a := r.urgent[0]
	r.urgent = r.urgent[1:]
	a.state.begun = true
	return a
}

// prioritize makes the selected archives urgent, and publishes them when they have been
// read. If they have been read already, it publishes them now.
func (r *reading) prioritize(w Selection) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.ended || len(r.archives[w.Address]) == 0 {
		return
	}
	req, read := r.requests[w], false
	if req != nil && req.left > 0 {
		return // it is urgent already
	}
	if req == nil {
		req = new(request)
	}
	for _, a := range r.archives[w.Address] {
		if w.Version != "" && a.version != w.Version {
			continue
		}
		if a.state.finished {
			read = true
			continue
		}
		req.left++
		a.state.requests = append(a.state.requests, req)
		if a.state.urgent {
			continue
		}
		a.state.urgent = true
		r.urgentLeft.Add(1)
		if !a.state.begun {
			r.urgent = append(r.urgent, a)
		}
	}
	if req.left > 0 {
		r.requests[w] = req
	}
	r.resumed.Broadcast() // a paused archive may be urgent now
	if read && req.left == 0 {
		r.publishSoon()
	}
	for ; r.workers < min(r.scan.options.workers(), len(r.urgent)); r.workers++ {
		r.background.Go(r.readUrgent)
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

// read reads an archive, and publishes a snapshot if a request waited only for this archive.
func (r *reading) read(a *job) {
	d := r.scan.readArchive(a)
	r.inventory.reading.Lock()
	if d.Bad.Passes() && (r.scan.live || d.Bad.Reason == tree.StoreFailed) {
		r.inventory.failed = failureAt(a.ReportPath(), d.Bad) // the archive stays pending
	} else {
		a.Record, a.pending = d, false
	}
	r.inventory.reading.Unlock()
	r.batches.count(a) // before a request counts as finished and its snapshot is made

	r.mutex.Lock()
	a.state.finished = true
	if a.state.urgent && r.urgentLeft.Add(-1) == 0 {
		r.resumed.Broadcast()
	}
	complete := false
	for _, req := range a.state.requests {
		req.left--
		complete = complete || req.left == 0
	}
	if complete {
		r.publishSoon()
	}
	r.mutex.Unlock()
	r.batches.add()
}

// publishSoon publishes a snapshot for waiting requests in the background. It includes all
// archives read until then: under a flood of requests, making snapshots must not delay the
// reading.
func (r *reading) publishSoon() {
	if r.publishing {
		return
	}
	r.publishing = true
	r.background.Go(func() {
		r.batches.pause()
		r.mutex.Lock()
		r.publishing = false
		r.mutex.Unlock()
		r.batches.publish()
	})
}

// A jobState is the state of an archive in a reading, whose mutex guards it.
type jobState struct {
	reading                 *reading
	begun, urgent, finished bool
	requests                []*request // requests that wait for the archive
}

// wait pauses the reading of an archive while others are urgent. An archive that is read
// outside of a reading has a nil jobState.
func (t *jobState) wait() {
	if t == nil || t.reading.urgentLeft.Load() == 0 {
		return
	}
	r := t.reading
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for r.urgentLeft.Load() > 0 && !t.urgent && r.scan.ctx.Err() == nil {
		r.resumed.Wait()
	}
}

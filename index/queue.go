package index

import (
	"container/heap"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// A Selection names the archives that a request waits for: all of an address, or of one
// version.
type Selection struct {
	Address address.Address
	Version string // empty: all versions
}

func (w Selection) includes(a *job) bool {
	return !a.titles && (w.Version == "" || w.Version == a.version)
}

// commitPause is the time between two snapshots for which no request waits: while a large
// tree is read, its versions appear from second to second.
const commitPause = time.Second

// A queue has the archives of all folders that have not been read yet. It reads as many at
// once as there are workers: first the archives that a request waits for, then those that
// were not there at the first scan, and then the newest versions of all addresses, since
// clients request these. Before what the first scan found, the others are urgent: they are
// read by workers of their own, and the reading of everything else pauses meanwhile.
type queue struct {
	ctx      context.Context
	workers  int
	now      func() time.Time
	read     func(*job) readResult // reads an archive
	commit   func()                // makes a snapshot of the archives read so far
	progress func(Progress)        // is called after each archive

	mutex      sync.Mutex
	resumed    *sync.Cond
	waiting    jobHeap                    // not begun; some may have begun as urgent, or been dropped
	asked      []*job                     // a request waits for them; some may have begun, or been dropped
	jobs       map[address.Address][]*job // not committed
	selections map[Selection]int          // number of requests for each
	wanted     map[Selection]*request     // selections whose archives are being read
	urgentLeft atomic.Int64               // urgent archives that are not read yet: while there are any, others pause
	unread     int                        // archives that are not read yet
	initial    int                        // those among them that the first scan found
	later      int                        // archives that are not committed yet and were not found by the first scan
	running    int                        // workers
	rushing    int                        // workers for urgent archives
	done       []finishedJob              // read and not committed
	total      Progress                   // since the queue was empty

	committing, again bool           // a commit is running; another one shall follow
	due               *time.Timer    // the next commit; nil if there is none
	background        sync.WaitGroup // added to only before the end
	closed            bool
	idle              chan struct{} // closed when everything has been read and committed; nil if it has
}

// A request stands for all requests with the same selection.
type request struct{ left int } // number of archives to read

// A finishedJob is an archive that has been read, and the result.
type finishedJob struct {
	*job
	readResult
}

// A jobState is the state of an archive in a queue, whose mutex guards it.
type jobState struct {
	queue                   *queue
	begun, urgent, finished bool
	first                   bool       // it was found by the first scan
	dropped                 bool       // its result is of no use any more
	forgotten               bool       // it has been dropped or committed
	requests                []*request // requests that wait for the archive
}

// newQueue returns a queue that ends with ctx. It reads nothing before it has the functions
// to call.
func newQueue(ctx context.Context, workers int) *queue {
	q := &queue{ctx: ctx, workers: workers, jobs: make(map[address.Address][]*job), selections: make(map[Selection]int), wanted: make(map[Selection]*request)}
	q.resumed = sync.NewCond(&q.mutex)
	context.AfterFunc(ctx, func() {
		q.mutex.Lock()
		defer q.mutex.Unlock()
		q.resumed.Broadcast()
	})
	return q
}

// close ends the queue and waits for its goroutines. Its context has ended.
func (q *queue) close() {
	q.mutex.Lock()
	q.closed = true
	if q.due != nil {
		q.due.Stop()
	}
	q.mutex.Unlock()
	q.background.Wait()
}

// run runs a goroutine of the queue, unless the queue has ended.
func (q *queue) run(do func()) {
	if !q.closed {
		q.background.Go(do)
	}
}

// update adds the archives that are to be read by now, and drops archives that are not to be
// read any more. first reports whether they come from the first scan.
func (q *queue) update(added, dropped []*job, first bool) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	for _, a := range dropped {
		q.drop(a)
	}
	for _, a := range added {
		if a.state != nil && !a.state.dropped {
			continue
		}
		if q.unread == 0 && len(q.done) == 0 {
			q.total = Progress{Began: q.now()}
		}
		a.state = &jobState{queue: q, first: first}
		q.jobs[a.folder.address] = append(q.jobs[a.folder.address], a)
		heap.Push(&q.waiting, queuedJob{a, a.rank, first})
		switch {
		case first:
			q.initial++
		case q.initial > 0:
			q.makeUrgent(a)
			fallthrough
		default:
			q.later++
		}
		q.unread++
		q.total.Total++
		q.total.TotalBytes += a.Stamp.Size
	}
	if len(added) > 0 {
		for selection := range q.selections {
			q.prioritize(selection)
		}
	}
	if q.unread > 0 && q.idle == nil && !q.closed {
		q.idle = make(chan struct{})
	}
	for ; q.running < min(q.workers, q.waiting.Len()); q.running++ {
		q.run(q.work)
	}
	q.rushUrgent()
	switch {
	case q.unread > 0:
	case len(q.done) > 0:
		q.commitSoon()
	default:
		q.becomeIdle()
	}
}

// drop forgets an archive whose result is of no use any more.
func (q *queue) drop(a *job) {
	s := a.state
	if s == nil || s.dropped {
		return
	}
	s.dropped = true
	q.forget(a)
	if s.finished {
		return
	}
	q.total.Total--
	q.total.TotalBytes -= a.Stamp.Size
	q.leave(a)
}

// forget removes an archive from the archives of its address.
func (q *queue) forget(a *job) {
	if a.state.forgotten {
		return
	}
	a.state.forgotten = true
	if !a.state.first {
		q.later--
	}
	of := q.jobs[a.folder.address]
	for i, other := range of {
		if other == a {
			of[i] = of[len(of)-1]
			of[len(of)-1] = nil
			q.jobs[a.folder.address] = of[:len(of)-1]
		}
	}
	if len(q.jobs[a.folder.address]) == 0 {
		delete(q.jobs, a.folder.address)
	}
}

// leave notes that an archive is not to be read any more. It reports whether a request has
// waited only for this archive.
func (q *queue) leave(a *job) (complete bool) {
	q.unread--
	if a.state.first {
		q.initial--
	}
	if a.state.urgent && q.urgentLeft.Add(-1) == 0 {
		q.resumed.Broadcast()
	}
	for _, r := range a.state.requests {
		r.left--
		complete = complete || r.left == 0
	}
	return complete
}

// work reads archives until there is none.
func (q *queue) work() { q.readAll(q.take, &q.running) }

// rush reads urgent archives until there is none.
func (q *queue) rush() { q.readAll(q.takeUrgent, &q.rushing) }

// readAll reads the archives that take returns. workers counts the goroutines that do so.
func (q *queue) readAll(take func() *job, workers *int) {
	for {
		q.mutex.Lock()
		a := take()
		if a == nil {
			*workers--
			q.mutex.Unlock()
			return
		}
		state := a.state
		q.mutex.Unlock()
		q.readJob(a, state)
	}
}

// take returns the next archive to read, or nil when there is none.
func (q *queue) take() *job {
	if a := q.takeUrgent(); a != nil || q.ctx.Err() != nil {
		return a
	}
	for q.waiting.Len() > 0 {
		if a := heap.Pop(&q.waiting).(queuedJob).job; !a.state.begun && !a.state.dropped {
			a.state.begun = true
			return a
		}
	}
	return nil
}

func (q *queue) takeUrgent() *job {
	for q.ctx.Err() == nil {
		var a *job
		switch {
		case len(q.asked) > 0:
			a, q.asked = q.asked[0], q.asked[1:]
		case q.waiting.Len() > 0 && (q.waiting[0].state.urgent || q.waiting[0].state.begun || q.waiting[0].state.dropped):
			a = heap.Pop(&q.waiting).(queuedJob).job
		default:
			return nil
		}
		if !a.state.begun && !a.state.dropped {
			a.state.begun = true
			return a
		}
	}
	return nil
}

// makeUrgent makes others pause until an archive has been read.
func (q *queue) makeUrgent(a *job) {
	if !a.state.urgent {
		a.state.urgent = true
		q.urgentLeft.Add(1)
	}
}

// rushUrgent begins to read urgent archives.
func (q *queue) rushUrgent() {
	for ; q.rushing < min(q.workers, int(q.urgentLeft.Load())); q.rushing++ {
		q.run(q.rush)
	}
}

// readJob reads an archive. A snapshot follows at once if a request has waited only for this
// archive, or if everything has been read, and otherwise within commitPause.
func (q *queue) readJob(a *job, state *jobState) {
	r := q.read(a)
	q.mutex.Lock()
	if state.dropped || q.ctx.Err() != nil {
		q.mutex.Unlock()
		return
	}
	a.state.finished = true
	q.done = append(q.done, finishedJob{a, r})
	q.total.Done++
	q.total.DoneBytes += a.Stamp.Size
	complete := q.leave(a)
	progress := q.total
	switch {
	case complete, q.unread == 0:
		q.commitSoon()
	case q.due == nil:
		q.due = time.AfterFunc(commitPause, func() {
			q.mutex.Lock()
			defer q.mutex.Unlock()
			q.commitSoon()
		})
	}
	q.mutex.Unlock()
	q.progress(progress)
}

// commitSoon has a snapshot made in the background. Archives that are read until then are in
// it: under a flood of requests, making snapshots must not delay the reading.
func (q *queue) commitSoon() {
	if q.due != nil {
		q.due.Stop()
		q.due = nil
	}
	if q.committing || q.closed {
		q.again = true
		return
	}
	q.committing = true
	q.run(func() {
		for more := true; more; {
			q.commit()
			q.mutex.Lock()
			more, q.again = q.again && q.ctx.Err() == nil, false
			q.committing = more
			q.mutex.Unlock()
		}
	})
}

// takeFinished returns the archives that have been read and are in no snapshot yet.
func (q *queue) takeFinished() []finishedJob {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	done := q.done
	q.done = nil
	for _, f := range done {
		q.forget(f.job)
	}
	return done
}

func (q *queue) becomeIdle() {
	if q.idle != nil {
		close(q.idle)
		q.idle = nil
	}
	q.waiting, q.asked = nil, nil // they may still have archives that were dropped
	clear(q.wanted)
}

// Progress returns how much has been read; nil if everything has been read and committed.
func (q *queue) Progress() *Progress {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	if q.idle == nil {
		return nil
	}
	p := q.total
	return &p
}

// progressed reports whether everything has been read and committed, and whether everything
// has been that was not found by the first scan.
func (q *queue) progressed() (idle, current bool) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	return q.idle == nil, q.later == 0
}

// wait waits until everything has been read and committed.
func (q *queue) wait(ctx context.Context) error {
	q.mutex.Lock()
	idle := q.idle
	q.mutex.Unlock()
	if idle == nil {
		return ctx.Err()
	}
	select {
	case <-idle:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	case <-q.ctx.Done():
		return q.ctx.Err()
	}
}

// hurry adds the selections of a waiting request until remove is called.
func (q *queue) hurry(selections []Selection) (remove func()) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	for _, selection := range selections {
		q.selections[selection]++
		q.prioritize(selection)
	}
	return func() {
		q.mutex.Lock()
		defer q.mutex.Unlock()
		for _, selection := range selections {
			if q.selections[selection]--; q.selections[selection] == 0 {
				delete(q.selections, selection)
				delete(q.wanted, selection)
			}
		}
	}
}

// prioritize makes the selected archives urgent. Archives that have been read already are
// committed now.
func (q *queue) prioritize(w Selection) {
	req, read := q.wanted[w], false
	if req == nil {
		req = new(request)
		q.wanted[w] = req
	}
	for _, a := range q.jobs[w.Address] {
		if !w.includes(a) {
			continue
		}
		s := a.state
		if s.finished {
			read = true
			continue
		}
		if s.waitsFor(req) {
			continue
		}
		req.left++
		s.requests = append(s.requests, req)
		q.makeUrgent(a)
		if !s.begun {
			q.asked = append(q.asked, a)
		}
	}
	q.resumed.Broadcast() // a paused archive may be urgent now
	if read && req.left == 0 {
		q.commitSoon()
	}
	q.rushUrgent()
}

func (s *jobState) waitsFor(req *request) bool {
	for _, r := range s.requests {
		if r == req {
			return true
		}
	}
	return false
}

// wait pauses the reading of an archive while others are urgent. An archive that is read
// outside of a queue has a nil jobState.
func (s *jobState) wait() {
	if s == nil || s.queue.urgentLeft.Load() == 0 {
		return
	}
	q := s.queue
	q.mutex.Lock()
	defer q.mutex.Unlock()
	for q.urgentLeft.Load() > 0 && !s.urgent && q.ctx.Err() == nil {
		q.resumed.Wait()
	}
}

// A jobHeap has the archives to read, in order.
type jobHeap []queuedJob

type queuedJob struct {
	*job
	rank  int
	first bool // it was found by the first scan
}

func (h jobHeap) Len() int { return len(h) }

func (h jobHeap) Less(i, j int) bool {
	if h[i].first != h[j].first {
		return h[j].first
	}
	return h[i].rank < h[j].rank
}

func (h jobHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *jobHeap) Push(x any) { *h = append(*h, x.(queuedJob)) }

// Pop implements heap.Interface.
func (h *jobHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = queuedJob{}
	*h = old[:len(old)-1]
	return last
}

// Progress says how many of the unknown archives have been read.
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

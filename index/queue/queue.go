package queue

import (
	"container/heap"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// A Selection names the archives that a request waits for: all of an address, or of one
// version.
type Selection struct {
	Address address.Address
	Version string // empty: all versions
}

// commitPause is the time between two snapshots for which no request waits: while a large
// tree is read, its versions appear from second to second.
const commitPause = time.Second

// A Queue has the archives of all folders that have not been read yet. It reads as many at
// once as there are workers: first the archives that a request waits for, then those that
// were not there at the first scan, and then the newest versions of all addresses, since
// clients request these. Before what the first scan found, the others are urgent: they are
// read by workers of their own, and the reading of everything else pauses meanwhile. Archives
// in the background are read when nothing else is left, and nothing waits for them.
type Queue[A Archive, R any] struct {
	Now        func() time.Time
	Read       func(A) R      // reads an archive
	Commit     func()         // makes a snapshot of the archives read so far
	Progressed func(Progress) // is called after each archive

	workers int
	gate
	waiting    archiveHeap[A]          // not begun; some may have begun as urgent, or been dropped
	asked      []A                     // a request waits for them; some may have begun, or been dropped
	archives   map[address.Address][]A // not committed
	selections map[Selection]int       // number of requests for each
	wanted     map[Selection]*request  // selections whose archives are being read
	behind     []A                     // archives in the background that have not begun; some may have been dropped
	unread     int                     // archives that are not read yet, without the background
	quiet      int                     // archives in the background that are not read yet
	initial    int                     // those among them that the first scan found
	later      int                     // archives that are not committed yet and were not found by the first scan
	running    int                     // workers
	rushing    int                     // workers for urgent archives
	trailing   int                     // workers in the background
	done       []Finished[A, R]        // read and not committed
	uncounted  int                     // those among them that were read in the background
	total      Progress                // since the queue was empty

	committing, again bool           // a commit is running; another one shall follow
	due               *time.Timer    // the next commit; nil if there is none
	background        sync.WaitGroup // added to only before the end
	closed            bool
	idle              chan struct{} // closed when everything has been read and committed; nil if it has
}

// A request stands for all requests with the same selection.
type request struct{ left int } // number of archives to read

// A Finished archive has been read.
type Finished[A Archive, R any] struct {
	Archive A
	Result  R
}

// New returns a queue that ends with ctx. It reads nothing before it has the functions to
// call.
func New[A Archive, R any](ctx context.Context, workers int) *Queue[A, R] {
	q := &Queue[A, R]{gate: gate{ctx: ctx}, workers: workers, archives: make(map[address.Address][]A), selections: make(map[Selection]int), wanted: make(map[Selection]*request)}
	q.resumed = sync.NewCond(&q.mutex)
	context.AfterFunc(ctx, func() {
		q.mutex.Lock()
		defer q.mutex.Unlock()
		q.resumed.Broadcast()
	})
	return q
}

// Close ends the queue and waits for its goroutines. Its context has ended.
func (q *Queue[A, R]) Close() {
	q.mutex.Lock()
	q.closed = true
	if q.due != nil {
		q.due.Stop()
	}
	q.mutex.Unlock()
	q.background.Wait()
}

// run runs a goroutine of the queue, unless the queue has ended.
func (q *Queue[A, R]) run(do func()) {
	if !q.closed {
		q.background.Go(do)
	}
}

// Update adds the archives that are to be read by now, and drops archives that are not to be
// read any more. first reports whether they come from the first scan.
func (q *Queue[A, R]) Update(added, dropped []A, first bool) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	for _, a := range dropped {
		q.drop(a)
	}
	for _, a := range added {
		t := a.task()
		if t.state != nil && !t.state.dropped {
			continue
		}
		t.state = &state{gate: &q.gate, first: first}
		if t.Background {
			q.behind = append(q.behind, a)
			q.quiet++
			continue
		}
		if q.isRead() {
			q.total = Progress{Began: q.Now()}
		}
		q.archives[t.Address] = append(q.archives[t.Address], a)
		heap.Push(&q.waiting, queued[A]{a, t.Rank, first})
		switch {
		case first:
			q.initial++
		case q.initial > 0:
			q.makeUrgent(t.state)
			fallthrough
		default:
			q.later++
		}
		q.unread++
		q.total.Total++
		q.total.TotalBytes += t.Bytes
	}
	if len(added) > 0 {
		for selection := range q.selections {
			q.prioritize(selection)
		}
	}
	if q.unread > 0 && q.idle == nil && !q.closed {
		q.idle = make(chan struct{})
	}
	for n := q.waiting.Len(); n > 0 && q.running < q.workers; n-- { // those that run may be reading
		q.running++
		q.run(func() { q.readAll(q.take, &q.running) })
	}
	q.rushUrgent()
	q.readBehind()
	switch {
	case q.isRead():
		q.becomeIdle()
	case q.unread == 0:
		q.commitSoon()
	}
}

// isRead reports whether everything has been read and committed, except in the background.
func (q *Queue[A, R]) isRead() bool { return q.unread == 0 && len(q.done) == q.uncounted }

// drop forgets an archive whose result is of no use any more.
func (q *Queue[A, R]) drop(a A) {
	t := a.task()
	s := t.state
	if s == nil || s.dropped {
		return
	}
	s.dropped = true
	q.forget(a)
	switch {
	case s.finished:
		return
	case t.Background:
		q.quiet--
		return
	}
	q.total.Total--
	q.total.TotalBytes -= t.Bytes
	q.leave(s)
}

// forget removes an archive from the archives of its address.
func (q *Queue[A, R]) forget(a A) {
	t := a.task()
	if t.state.forgotten || t.Background {
		return
	}
	t.state.forgotten = true
	if !t.state.first {
		q.later--
	}
	of := q.archives[t.Address]
	if i := slices.Index(of, a); i >= 0 {
		q.archives[t.Address] = slices.Delete(of, i, i+1)
	}
	if len(q.archives[t.Address]) == 0 {
		delete(q.archives, t.Address)
	}
}

// leave notes that an archive is not to be read any more. It reports whether a request has
// waited only for this archive.
func (q *Queue[A, R]) leave(s *state) (complete bool) {
	q.unread--
	if s.first {
		q.initial--
	}
	if s.urgent && q.urgentLeft.Add(-1) == 0 {
		q.resumed.Broadcast()
	}
	q.readBehind()
	for _, r := range s.requests {
		r.left--
		complete = complete || r.left == 0
	}
	return complete
}

// readBehind begins to read in the background, if nothing else is left. The background has
// workers of its own: no other archive waits for one.
func (q *Queue[A, R]) readBehind() {
	for n := len(q.behind); n > 0 && q.unread == 0 && q.trailing < q.workers; n-- {
		q.trailing++
		q.run(func() { q.readAll(q.takeBehind, &q.trailing) })
	}
}

// readAll reads the archives that take returns. workers counts the goroutines that do so.
func (q *Queue[A, R]) readAll(take func() (A, bool), workers *int) {
	for {
		q.mutex.Lock()
		a, ok := take()
		if !ok {
			*workers--
			q.mutex.Unlock()
			return
		}
		s := a.task().state
		q.mutex.Unlock()
		q.readArchive(a, s)
	}
}

// take returns the next archive to read. ok reports whether there is one.
func (q *Queue[A, R]) take() (a A, ok bool) {
	if a, ok := q.takeUrgent(); ok || q.ctx.Err() != nil {
		return a, ok
	}
	for q.waiting.Len() > 0 {
		if a := heap.Pop(&q.waiting).(queued[A]).archive; a.task().state.begin() {
			return a, true
		}
	}
	return a, false
}

// takeBehind returns the next archive to read in the background, if nothing else is left.
func (q *Queue[A, R]) takeBehind() (a A, ok bool) {
	for q.unread == 0 && len(q.behind) > 0 && q.ctx.Err() == nil {
		a, q.behind = q.behind[0], q.behind[1:]
		if a.task().state.begin() {
			return a, true
		}
	}
	return a, false
}

func (q *Queue[A, R]) takeUrgent() (a A, ok bool) {
	for q.ctx.Err() == nil {
		switch {
		case len(q.asked) > 0:
			a, q.asked = q.asked[0], q.asked[1:]
		case q.waiting.Len() > 0 && q.waiting[0].isUrgent():
			a = heap.Pop(&q.waiting).(queued[A]).archive
		default:
			return a, false
		}
		if a.task().state.begin() {
			return a, true
		}
	}
	return a, false
}

// makeUrgent makes others pause until an archive has been read.
func (q *Queue[A, R]) makeUrgent(s *state) {
	if !s.urgent {
		s.urgent = true
		q.urgentLeft.Add(1)
	}
}

// rushUrgent begins to read urgent archives.
func (q *Queue[A, R]) rushUrgent() {
	for ; q.rushing < min(q.workers, int(q.urgentLeft.Load())); q.rushing++ {
		q.run(func() { q.readAll(q.takeUrgent, &q.rushing) })
	}
}

// readArchive reads an archive. A snapshot follows at once if a request has waited only for this
// archive, or if everything has been read, and otherwise within commitPause.
func (q *Queue[A, R]) readArchive(a A, s *state) {
	r := q.Read(a)
	q.mutex.Lock()
	if s.dropped || q.ctx.Err() != nil {
		q.mutex.Unlock()
		return
	}
	s.finished = true
	q.done = append(q.done, Finished[A, R]{a, r})
	if a.task().Background {
		q.quiet--
		q.uncounted++
		q.commitWhen(q.unread == 0 && q.quiet == 0)
		q.mutex.Unlock()
		return
	}
	q.total.Done++
	q.total.DoneBytes += a.task().Bytes
	complete := q.leave(s)
	progress := q.total
	q.commitWhen(complete || q.unread == 0)
	q.mutex.Unlock()
	q.Progressed(progress)
}

// commitWhen has a snapshot made at once, or else within commitPause.
func (q *Queue[A, R]) commitWhen(atOnce bool) {
	if atOnce {
		q.commitSoon()
		return
	}
	if q.due != nil {
		return
	}
	q.due = time.AfterFunc(commitPause, func() {
		q.mutex.Lock()
		defer q.mutex.Unlock()
		q.commitSoon()
	})
}

// commitSoon has a snapshot made in the background. Archives that are read until then are in
// it: under a flood of requests, making snapshots must not delay the reading.
func (q *Queue[A, R]) commitSoon() {
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
			q.Commit()
			q.mutex.Lock()
			more, q.again = q.again && q.ctx.Err() == nil, false
			q.committing = more
			q.mutex.Unlock()
		}
	})
}

// TakeFinished returns the archives that have been read and are in no snapshot yet.
func (q *Queue[A, R]) TakeFinished() []Finished[A, R] {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	done := q.done
	q.done, q.uncounted = nil, 0
	for _, f := range done {
		q.forget(f.Archive)
	}
	return done
}

func (q *Queue[A, R]) becomeIdle() {
	if q.idle != nil {
		close(q.idle)
		q.idle = nil
	}
	q.waiting, q.asked = nil, nil // they may still have archives that were dropped
	clear(q.wanted)
}

// Progress returns how much has been read; nil if everything has been read and committed.
func (q *Queue[A, R]) Progress() *Progress {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	if q.idle == nil {
		return nil
	}
	p := q.total
	return &p
}

// IsRead reports whether everything has been read and committed, and whether everything
// has been that was not found by the first scan.
func (q *Queue[A, R]) IsRead() (idle, current bool) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	return q.idle == nil, q.later == 0
}

// Wait waits until everything has been read and committed.
func (q *Queue[A, R]) Wait(ctx context.Context) error {
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

// Hurry adds the selections of a waiting request until remove is called.
func (q *Queue[A, R]) Hurry(selections []Selection) (remove func()) {
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
func (q *Queue[A, R]) prioritize(w Selection) {
	req, read := q.wanted[w], false
	if req == nil {
		req = new(request)
		q.wanted[w] = req
	}
	for _, a := range q.archives[w.Address] {
		t := a.task()
		if w.Version != "" && w.Version != t.Version {
			continue
		}
		s := t.state
		if s.finished {
			read = true
			continue
		}
		if slices.Contains(s.requests, req) {
			continue
		}
		req.left++
		s.requests = append(s.requests, req)
		q.makeUrgent(s)
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

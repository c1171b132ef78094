package upstream

import (
	"context"
	"slices"
	"sync"
)

// What is done at the same time, for each origin. A client asks about all
// platforms and files of a release within moments, and anybody may ask for
// anything: neither the origin nor this server is to be overrun by it.
const (
	// MaxDownloads fill any line, and leave the disk room to keep up. More of
	// them would each only come in more slowly.
	MaxDownloads = 8

	// MaxDocuments are small and wait for answers rather than for bytes.
	MaxDocuments = 16

	// MaxWaiting may be in the queue. Who waits costs a few kilobytes, and beyond
	// so many would be gone before it is their turn.
	MaxWaiting = 256

	// mostWaitingEach is the part of it that one client may have. More than a fleet
	// behind one address asks for within seconds.
	mostWaitingEach = 64
)

// Slots bound how much is done at the same time, and how much waits for it.
// Clients get theirs in turn: what one of them has waiting is no reason for
// another to wait, and one alone never has all of the slots.
type slots struct {
	size, share int // the latter of one client

	mutex   sync.Mutex
	taken   int
	waiting int
	queues  map[string]*queue
	ring    []*queue // those that have turns waiting; the next one first
}

// A queue is what one client has waiting, and how many slots it has.
type queue struct {
	client string
	taken  int
	turns  []*turn
}

// A turn is a slot that is waited for, by one client or several.
type turn struct {
	ended   chan struct{} // closed when it has come, or will not
	refused bool
	over    bool
	queues  int    // it is in
	by      *queue // whose slot it has
}

func newSlots(n int) *slots {
	return &slots{size: n, share: max(1, n-n/4), queues: make(map[string]*queue)}
}

// take waits for a slot as long as ctx lasts. Not ok, with a nil error: too many
// wait already.
func (s *slots) take(ctx context.Context) (free func(), ok bool, err error) {
	by, flying := ctx.Value(askerKey{}).(*Clients)
	if !flying {
		by = NewClients(ctx)
	}
	t := &turn{ended: make(chan struct{})}
	defer by.done()
	if !by.wait(s, t) {
		return nil, false, nil
	}
	select {
	case <-t.ended:
	case <-ctx.Done():
		s.leave(t)
		return nil, false, context.Cause(ctx)
	}
	if t.refused {
		return nil, false, nil
	}
	return sync.OnceFunc(func() { s.free(t) }), true, nil
}

// enqueue has a turn wait in the queues of clients. When too many wait, those go
// who came last to the longest queue; not ok: that is this one.
func (s *slots) enqueue(t *turn, clients ...string) (ok bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if t.over {
		return !t.refused
	}
	before := t.queues
	for _, client := range clients {
		q := s.queues[client]
		if q == nil {
			q = &queue{client: client}
			s.queues[client] = q
		}
		if client != "" && len(q.turns) >= mostWaitingEach {
			continue
		}
		if q.turns = append(q.turns, t); len(q.turns) == 1 {
			s.ring = append(s.ring, q)
		}
		t.queues++
	}
	if t.queues == 0 {
		t.over, t.refused = true, true
		return false
	}
	if before == 0 {
		s.waiting++
	}
	s.grant()
	for s.waiting > MaxWaiting {
		s.crowdOut(t)
	}
	return !t.refused
}

// grant gives free slots to those whose turn it is.
func (s *slots) grant() {
	for s.taken < s.size {
		i := slices.IndexFunc(s.ring, func(q *queue) bool { return q.client == "" || q.taken < s.share })
		if i < 0 {
			return
		}
		q := s.ring[i]
		t := q.turns[0]
		s.ring = append(slices.Delete(s.ring, i, i+1), q) // behind all others
		s.taken++
		q.taken++
		t.over, t.by = true, q
		s.remove(t)
		close(t.ended)
	}
}

// crowdOut takes the last one out of the longest queue, which is one with
// the newcomer if there are several.
func (s *slots) crowdOut(newcomer *turn) {
	var longest *queue
	for _, q := range s.ring {
		if longest == nil || len(q.turns) > len(longest.turns) ||
			len(q.turns) == len(longest.turns) && slices.Contains(q.turns, newcomer) {
			longest = q
		}
	}
	last := longest.turns[len(longest.turns)-1]
	longest.turns = longest.turns[:len(longest.turns)-1]
	s.tidy(longest)
	if last.queues--; last.queues == 0 {
		s.waiting--
		last.over, last.refused = true, true
		close(last.ended)
	}
}

// remove takes a turn that waits out of its queues.
func (s *slots) remove(t *turn) {
	for _, q := range slices.Clone(s.ring) {
		if i := slices.Index(q.turns, t); i >= 0 {
			q.turns = slices.Delete(q.turns, i, i+1)
			t.queues--
			s.tidy(q)
		}
		if t.queues == 0 {
			break
		}
	}
	s.waiting--
}

// tidy forgets a queue that nothing is in.
func (s *slots) tidy(q *queue) {
	if len(q.turns) == 0 {
		s.ring = slices.DeleteFunc(s.ring, func(other *queue) bool { return other == q })
	}
	if len(q.turns) == 0 && q.taken == 0 {
		delete(s.queues, q.client)
	}
}

// leave is for those who do not wait any longer.
func (s *slots) leave(t *turn) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	switch {
	case t.by != nil:
		s.giveBack(t)
	case !t.over:
		s.remove(t)
		t.over = true
	}
}

func (s *slots) free(t *turn) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.giveBack(t)
}

func (s *slots) giveBack(t *turn) {
	s.taken--
	t.by.taken--
	s.tidy(t.by)
	s.grant()
}

// busy is the failure of who finds the queue full.
func busy(host string) *Failure {
	return &Failure{Host: host, Kind: ErrUnavailable, Detail: "too much that is to be had from it is waited for already: try again later", Cause: ErrBusy}
}

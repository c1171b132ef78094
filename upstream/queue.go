package upstream

import (
	"context"
	"net/netip"
	"slices"
	"sync"
)

type (
	clientKey  struct{} // of a client's network
	clientsKey struct{} // of a *Clients
)

// ForClient says by its address which client something is requested for. Clients take
// turns at an origin, however much each of them requests. Requests without a client
// are the server's own; they count as one client, which may have every slot.
func ForClient(ctx context.Context, address string) context.Context {
	return context.WithValue(ctx, clientKey{}, network(address))
}

// ClientOf returns the client that something is requested for, as ForClient tells
// clients apart; empty without one.
func ClientOf(ctx context.Context) string {
	client, _ := ctx.Value(clientKey{}).(string)
	return client
}

// network identifies a client: an IPv4 address, or the /64 that one client with IPv6
// has.
func network(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	if ip = ip.Unmap().WithZone(""); ip.Is4() {
		return ip.String()
	}
	prefix, err := ip.Prefix(64)
	if err != nil {
		return address
	}
	return prefix.String()
}

// Clients are those that one piece of work is done for, such as a download that
// several of them requested. It waits in the queues of all of them, so that a client
// who joins does not wait behind the other requests of the first. It is safe for
// concurrent use.
type Clients struct {
	mutex   sync.Mutex
	clients []string
	needed  []*Clients // those of work that this work waits for

	turn  *turn // that it waits for, at slots; nil: none
	slots *slots
}

// NewClients returns the clients of new work that ctx requests.
func NewClients(ctx context.Context) *Clients {
	c := new(Clients)
	c.Join(ctx)
	return c
}

// Join adds the clients that ctx is for. If that is the context of other work, it
// also adds those that join the other work later.
func (c *Clients) Join(ctx context.Context) {
	if other, ok := ctx.Value(clientsKey{}).(*Clients); ok {
		other.passTo(c)
		return
	}
	c.add(ClientOf(ctx))
}

// passTo adds all clients of c, and those that will join it, to work that it needs.
func (c *Clients) passTo(needed *Clients) {
	c.mutex.Lock()
	if !slices.Contains(c.needed, needed) {
		c.needed = append(c.needed, needed)
	}
	clients := slices.Clone(c.clients)
	c.mutex.Unlock()
	for _, client := range clients {
		needed.add(client)
	}
}

func (c *Clients) add(client string) {
	c.mutex.Lock()
	if slices.Contains(c.clients, client) || len(c.clients) >= maxClients {
		c.mutex.Unlock()
		return
	}
	c.clients = append(c.clients, client)
	if c.turn != nil {
		c.slots.enqueue(c.turn, client)
	}
	needed := slices.Clone(c.needed)
	c.mutex.Unlock()
	for _, n := range needed {
		n.add(client)
	}
}

// In returns the context of the work.
func (c *Clients) In(ctx context.Context) context.Context {
	return context.WithValue(ctx, clientsKey{}, c)
}

// wait queues a turn for all clients, and for those that join until done. It reports
// false if too many turns wait.
func (c *Clients) wait(s *slots, t *turn) (ok bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.turn, c.slots = t, s
	return s.enqueue(t, c.clients...)
}

func (c *Clients) done() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.turn, c.slots = nil, nil
}

// slots bound how much is done at the same time, and how much waits for it. Clients
// take turns: the requests of one do not delay another, and none gets more slots than it
// leaves free, so that a few clients whose downloads take long do not have them all.
// golang.org/x/sync/semaphore grants in order of arrival instead, so that a client
// with a thousand requests would delay all others.
type slots struct {
	size int

	mutex   sync.Mutex
	taken   int
	waiting int               // turns
	queues  map[string]*queue // by client
	ring    []*queue          // those with turns waiting; the next one first
}

// A queue has the turns that wait for one client.
type queue struct {
	client string
	taken  int // slots
	turns  []*turn
}

// A turn is a slot that is waited for, in the queues of one client or several.
type turn struct {
	ended   chan struct{} // closed when it is granted or refused
	over    bool          // granted, refused or given up
	refused bool
	queues  int    // that it is in
	queue   *queue // that it was granted to; nil before
}

func newSlots(n int) *slots {
	return &slots{size: n, queues: make(map[string]*queue)}
}

// take waits for a slot as long as ctx lasts. With a nil error, ok reports false if
// too many turns wait already.
func (s *slots) take(ctx context.Context) (release func(), ok bool, err error) {
	clients, shared := ctx.Value(clientsKey{}).(*Clients)
	if !shared {
		clients = NewClients(ctx)
	}
	t := &turn{ended: make(chan struct{})}
	defer clients.done()
	if !clients.wait(s, t) {
		return nil, false, nil
	}
	select {
	case <-t.ended:
	case <-ctx.Done():
		s.giveUp(t)
		return nil, false, context.Cause(ctx)
	}
	if t.refused {
		return nil, false, nil
	}
	return sync.OnceFunc(func() { s.release(t) }), true, nil
}

// enqueue adds a turn to the queues of clients. When too many turns wait, the last of
// the longest queue is refused; ok reports false if it is this one.
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
		if client != "" && len(q.turns) >= maxWaitingPerClient {
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
		s.refuseOne(t)
	}
	return !t.refused
}

// grant gives free slots to the next clients.
func (s *slots) grant() {
	for s.taken < s.size {
		i := slices.IndexFunc(s.ring, func(q *queue) bool { return q.client == "" || q.taken < s.size-s.taken })
		if i < 0 {
			return
		}
		q := s.ring[i]
		t := q.turns[0]
		s.ring = append(slices.Delete(s.ring, i, i+1), q) // behind all others
		s.taken++
		q.taken++
		t.over, t.queue = true, q
		s.remove(t)
		close(t.ended)
	}
}

// refuseOne removes the last turn of the longest queue; of several, of one that the
// newest turn is in.
func (s *slots) refuseOne(newest *turn) {
	var longest *queue
	for _, q := range s.ring {
		if longest == nil || len(q.turns) > len(longest.turns) ||
			len(q.turns) == len(longest.turns) && slices.Contains(q.turns, newest) {
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

// remove takes a turn out of all its queues.
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

// tidy drops a queue that is empty.
func (s *slots) tidy(q *queue) {
	if len(q.turns) == 0 {
		s.ring = slices.DeleteFunc(s.ring, func(other *queue) bool { return other == q })
	}
	if len(q.turns) == 0 && q.taken == 0 {
		delete(s.queues, q.client)
	}
}

// giveUp ends a turn whose caller no longer waits.
func (s *slots) giveUp(t *turn) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	switch {
	case t.queue != nil:
		s.releaseLocked(t)
	case !t.over:
		s.remove(t)
		t.over = true
	}
}

func (s *slots) release(t *turn) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.releaseLocked(t)
}

func (s *slots) releaseLocked(t *turn) {
	s.taken--
	t.queue.taken--
	s.tidy(t.queue)
	s.grant()
}

// busy is the failure of a request that would wait behind too many others.
func busy(host string) *Failure {
	return &Failure{Host: host, Kind: ErrUnavailable, Detail: "too much of it is waited for already: try again later", Cause: ErrBusy}
}

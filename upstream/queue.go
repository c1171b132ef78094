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

// ForClient names the client of a request, by its address. Clients take waiters at an
// origin, however much each of them requests. Requests without a client are the
// server's own; they count as one client, which may have every slot.
func ForClient(ctx context.Context, address string) context.Context {
	return context.WithValue(ctx, clientKey{}, network(address))
}

// ClientOf returns the client of a request as ForClient identifies it; empty if the
// request has none.
func ClientOf(ctx context.Context) string {
	client, _ := ctx.Value(clientKey{}).(string)
	return client
}

// network identifies a client by its IPv4 address, or by the /64 that one client with
// IPv6 has.
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

// Clients are the clients of one piece of work, such as a download that several of them
// requested. The work waits in the queues of all of them, so that a client who joins
// does not wait behind the other requests of the first. Clients are safe for concurrent
// use.
type Clients struct {
	mutex   sync.Mutex
	clients []string
	needed  []*Clients // clients of the work that this work waits for

	waiter *waiter // waits for one of the slots; nil: none
	slots  *slots
}

// NewClients returns the clients of new work that is requested with ctx.
func NewClients(ctx context.Context) *Clients {
	c := new(Clients)
	c.Join(ctx)
	return c
}

// Join adds the clients of ctx. If ctx is the context of other work, clients that join
// the other work later are also added.
func (c *Clients) Join(ctx context.Context) {
	if other, ok := ctx.Value(clientsKey{}).(*Clients); ok {
		other.passTo(c)
		return
	}
	c.add(ClientOf(ctx))
}

// passTo adds all present and future clients of c to work that it needs.
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
	if c.waiter != nil {
		c.slots.enqueue(c.waiter, client)
	}
	needed := slices.Clone(c.needed)
	c.mutex.Unlock()
	for _, n := range needed {
		n.add(client)
	}
}

// Context returns the context of the work.
func (c *Clients) Context(ctx context.Context) context.Context {
	return context.WithValue(ctx, clientsKey{}, c)
}

// wait adds w to the queues of all clients, and of clients that join before done. It
// returns false if too many waiters are queued.
func (c *Clients) wait(s *slots, w *waiter) (ok bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.waiter, c.slots = w, s
	return s.enqueue(w, c.clients...)
}

func (c *Clients) done() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.waiter, c.slots = nil, nil
}

// slots limit the amount of concurrent and of waiting work. Clients take waiters: the
// requests of one client do not delay another. No client gets more slots than it leaves
// free, so that a few clients with long downloads do not occupy all slots.
// golang.org/x/sync/semaphore grants in order of arrival instead, so that a client with
// a thousand requests would delay all others.
type slots struct {
	size int

	mutex   sync.Mutex
	taken   int
	waiting int               // waiters
	queues  map[string]*queue // by client
	ring    []*queue          // queues with waiters, the next one first
}

// A queue has the waiters of one client.
type queue struct {
	client  string
	taken   int // slots
	waiters []*waiter
}

// A waiter waits for a slot, in the queues of one client or several.
type waiter struct {
	ended   chan struct{} // closed when the slot is granted or refused
	over    bool          // granted, refused or given up
	refused bool
	queues  int    // number of queues that it is in
	queue   *queue // to which the slot was granted; nil before
}

func newSlots(n int) *slots {
	return &slots{size: n, queues: make(map[string]*queue)}
}

// take waits for a slot as long as ctx lasts. The error is the cause of its end, or a Failure of the
// host that is ErrBusy if too many waiters are queued already.
func (s *slots) take(ctx context.Context, host string) (release func(), err error) {
	busy := &Failure{Host: host, Kind: ErrUnavailable, Detail: "too much of it is waited for already: try again later", Cause: ErrBusy}
	clients, shared := ctx.Value(clientsKey{}).(*Clients)
	if !shared {
		clients = NewClients(ctx)
	}
	w := &waiter{ended: make(chan struct{})}
	defer clients.done()
	if !clients.wait(s, w) {
		return nil, busy
	}
	select {
	case <-w.ended:
	case <-ctx.Done():
		s.giveUp(w)
		return nil, context.Cause(ctx)
	}
	if w.refused {
		return nil, busy
	}
	return sync.OnceFunc(func() { s.release(w) }), nil
}

// enqueue adds a waiter to the queues of clients. If there are too many waiters, the
// last one of the longest queue is refused. ok is false if this is w.
func (s *slots) enqueue(w *waiter, clients ...string) (ok bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if w.over {
		return !w.refused
	}
	before := w.queues
	for _, client := range clients {
		q := s.queues[client]
		if q == nil {
			q = &queue{client: client}
			s.queues[client] = q
		}
		if client != "" && len(q.waiters) >= maxWaitingPerClient {
			continue
		}
		if q.waiters = append(q.waiters, w); len(q.waiters) == 1 {
			s.ring = append(s.ring, q)
		}
		w.queues++
	}
	if w.queues == 0 {
		w.over, w.refused = true, true
		return false
	}
	if before == 0 {
		s.waiting++
	}
	s.grant()
	for s.waiting > MaxWaiting {
		s.refuseOne(w)
	}
	return !w.refused
}

// grant grants free slots to the next clients.
func (s *slots) grant() {
	for s.taken < s.size {
		i := slices.IndexFunc(s.ring, func(q *queue) bool { return q.client == "" || q.taken < s.size-s.taken })
		if i < 0 {
			return
		}
		q := s.ring[i]
		w := q.waiters[0]
		s.ring = append(slices.Delete(s.ring, i, i+1), q) // after all others
		s.taken++
		q.taken++
		w.over, w.queue = true, q
		s.remove(w)
		close(w.ended)
	}
}

// refuseOne removes the last waiter of the longest queue. If several are the longest,
// it prefers a queue of the newest waiter.
func (s *slots) refuseOne(newest *waiter) {
	var longest *queue
	for _, q := range s.ring {
		if longest == nil || len(q.waiters) > len(longest.waiters) ||
			len(q.waiters) == len(longest.waiters) && slices.Contains(q.waiters, newest) {
			longest = q
		}
	}
	last := longest.waiters[len(longest.waiters)-1]
	longest.waiters = longest.waiters[:len(longest.waiters)-1]
	s.tidy(longest)
	if last.queues--; last.queues == 0 {
		s.waiting--
		last.over, last.refused = true, true
		close(last.ended)
	}
}

// remove removes a waiter from all its queues.
func (s *slots) remove(w *waiter) {
	for _, q := range slices.Clone(s.ring) {
		if i := slices.Index(q.waiters, w); i >= 0 {
			q.waiters = slices.Delete(q.waiters, i, i+1)
			w.queues--
			s.tidy(q)
		}
		if w.queues == 0 {
			break
		}
	}
	s.waiting--
}

// tidy removes a queue that is empty.
func (s *slots) tidy(q *queue) {
	if len(q.waiters) == 0 {
		s.ring = slices.DeleteFunc(s.ring, func(other *queue) bool { return other == q })
	}
	if len(q.waiters) == 0 && q.taken == 0 {
		delete(s.queues, q.client)
	}
}

// giveUp removes a waiter whose caller no longer waits.
func (s *slots) giveUp(w *waiter) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	switch {
	case w.queue != nil:
		s.releaseLocked(w)
	case !w.over:
		s.remove(w)
		w.over = true
	}
}

func (s *slots) release(w *waiter) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.releaseLocked(w)
}

func (s *slots) releaseLocked(w *waiter) {
	s.taken--
	w.queue.taken--
	s.tidy(w.queue)
	s.grant()
}

package upstream

import (
	"context"
	"fmt"
	"testing"
)

// queued adds a waiter of one client.
func queued(s *slots, client string) (w *waiter, ok bool) {
	w = &waiter{ended: make(chan struct{})}
	return w, NewClients(ForClient(context.Background(), client)).wait(s, w)
}

func granted(w *waiter) bool { return w.queue != nil }

// One client has two of four slots and requests more. The first request of a second
// client gets the third slot at once, and the first request of a third client gets the
// fourth. The request of a fourth client comes before all waiting requests of the
// first.
func TestSlotsAreSharedByClients(t *testing.T) {
	const flood, first, second, third = "192.0.2.1", "192.0.2.2", "2001:db8::1", "192.0.2.3"
	s := newSlots(4)
	var waiters []*waiter
	refused := 0
	for range 300 {
		w, ok := queued(s, flood)
		if !ok {
			refused++
		}
		waiters = append(waiters, w)
	}
	if want := 300 - 2 - maxWaitingPerClient; refused != want || !granted(waiters[1]) || granted(waiters[2]) {
		t.Fatalf("%d are refused, want %d", refused, want)
	}
	one, _ := queued(s, first)
	if !granted(one) {
		t.Fatal("another client waits while a slot is free")
	}
	more, _ := queued(s, first)
	if granted(more) {
		t.Error("two clients have all slots")
	}
	two, _ := queued(s, second)
	if !granted(two) {
		t.Fatal("a third client waits while a slot is free")
	}
	three, _ := queued(s, third)
	s.release(one)
	if !granted(three) && !granted(more) {
		t.Error("the others wait behind the flood")
	}
	s.release(two)
	if !granted(three) || !granted(more) {
		t.Error("the others wait behind the flood")
	}
	s.release(three)
	s.release(more)
	s.release(waiters[0])
	if !granted(waiters[2]) {
		t.Error("the flooding client gets no slot")
	}
	for _, w := range waiters[1:] {
		if granted(w) {
			s.release(w)
		}
	}
	if s.taken != 0 || s.waiting != 0 || len(s.queues) != 0 || len(s.ring) != 0 {
		t.Errorf("%d slots are taken and %d wait, in %d queues", s.taken, s.waiting, len(s.queues))
	}
}

// A client that joins the work of another waits no longer than if it had requested the
// work first, even if the work is part of other work.
func TestJoiningDoesNotWaitBehindTheFirst(t *testing.T) {
	s := newSlots(1)
	running, _ := queued(s, "192.0.2.1")
	var behind []*waiter
	for range 10 {
		w, _ := queued(s, "192.0.2.1")
		behind = append(behind, w)
	}
	whole := NewClients(ForClient(context.Background(), "192.0.2.1"))
	part := NewClients(whole.Context(context.Background()))
	last := &waiter{ended: make(chan struct{})}
	part.wait(s, last)
	whole.Join(ForClient(context.Background(), "192.0.2.2"))
	s.release(running)
	s.release(behind[0])
	if !granted(last) {
		t.Error("it waits behind the earlier requests of the first client")
	}
}

// When the queues are full, a client with few waiters takes the place of one with many.
func TestLongestQueueIsCutFirst(t *testing.T) {
	s := newSlots(1)
	queued(s, "192.0.2.0")
	var last *waiter
	for i := range MaxWaiting {
		w, ok := queued(s, fmt.Sprintf("192.0.2.%d", 1+i%8))
		if !ok {
			t.Fatalf("the %dth is refused", i)
		}
		last = w
	}
	w, ok := queued(s, "198.51.100.1")
	if !ok || w.refused {
		t.Error("a new client is refused")
	}
	if !last.refused && s.waiting > MaxWaiting {
		t.Errorf("%d wait", s.waiting)
	}
	if _, ok := queued(s, "192.0.2.1"); ok {
		t.Error("a client with many waiters is accepted")
	}
}

// One host has a whole /64, so its addresses are one client.
func TestNetwork(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.1": "192.0.2.1", "::ffff:192.0.2.1": "192.0.2.1", "2001:db8::1": "2001:db8::/64",
		"2001:db8::ffff:1": "2001:db8::/64", "2001:db8:0:1::1": "2001:db8:0:1::/64", "fe80::1%eth0": "fe80::/64", "@": "@",
	} {
		if got := network(address); got != want {
			t.Errorf("%s: got %s, want %s", address, got, want)
		}
	}
}

package upstream

import (
	"context"
	"fmt"
	"testing"
)

// A waiter is a turn in the queues of some Clients.
func waiter(t *testing.T, s *slots, client string) (*Clients, *turn, bool) {
	t.Helper()
	a, w := NewClients(ForClient(context.Background(), client)), &turn{ended: make(chan struct{})}
	ok := a.wait(s, w)
	return a, w, ok
}

func has(w *turn) bool { return w.by != nil }

// One client has three of four slots and waits for more. Another one's first
// request has the fourth at once, and a third's is before all that the first has
// waiting.
func TestSlotsAreSharedByClients(t *testing.T) {
	const flood, first, second = "192.0.2.1", "192.0.2.2", "2001:db8::1"
	s := newSlots(4)
	var turns []*turn
	refused := 0
	for range 300 {
		_, w, ok := waiter(t, s, flood)
		if !ok {
			refused++
		}
		turns = append(turns, w)
	}
	if got := 300 - 3 - mostWaitingEach; refused != got || !has(turns[2]) || has(turns[3]) {
		t.Fatalf("%d are refused, want %d", refused, got)
	}
	_, one, _ := waiter(t, s, first)
	if !has(one) {
		t.Fatal("another client waits, though there is a slot")
	}
	_, two, _ := waiter(t, s, second)
	s.free(one)
	if !has(two) {
		t.Error("a third client waits behind the flood")
	}
	s.free(turns[0])
	if !has(turns[3]) {
		t.Error("who floods gets nothing at all")
	}
	s.free(two)
	for _, w := range turns[1:] {
		if has(w) {
			s.free(w)
		}
	}
	if s.taken != 0 || s.waiting != 0 || len(s.queues) != 0 || len(s.ring) != 0 {
		t.Errorf("%d slots are taken and %d wait, in %d queues", s.taken, s.waiting, len(s.queues))
	}
}

// Whoever joins what another client waits for has it as soon as if it had asked
// first, also where that is a part of something else.
func TestWhoJoinsDoesNotWaitBehindTheFirst(t *testing.T) {
	s := newSlots(1)
	_, running, _ := waiter(t, s, "192.0.2.1")
	var behind []*turn
	for range 10 {
		_, w, _ := waiter(t, s, "192.0.2.1")
		behind = append(behind, w)
	}
	whole := NewClients(ForClient(context.Background(), "192.0.2.1"))
	part := NewClients(whole.In(context.Background()))
	wanted := &turn{ended: make(chan struct{})}
	part.wait(s, wanted)
	whole.Join(ForClient(context.Background(), "192.0.2.2"))
	s.free(running)
	s.free(behind[0])
	if !has(wanted) {
		t.Error("it is behind what the first client asked for before")
	}
}

// When all who may wait do, a client with none gets in before one with many.
func TestTheLongestQueueGivesWay(t *testing.T) {
	s := newSlots(1)
	waiter(t, s, "192.0.2.0")
	var last *turn
	for i := range MaxWaiting {
		_, w, ok := waiter(t, s, fmt.Sprintf("192.0.2.%d", 1+i%8))
		if !ok {
			t.Fatalf("the %dth is refused", i)
		}
		last = w
	}
	_, w, ok := waiter(t, s, "198.51.100.1")
	if !ok || w.refused {
		t.Error("a new client is refused")
	}
	if !last.refused && s.waiting > MaxWaiting {
		t.Errorf("%d wait", s.waiting)
	}
	if _, _, ok := waiter(t, s, "192.0.2.1"); ok {
		t.Error("one with many gets in")
	}
}

// One host has a /64, of which each address is not another client.
func TestNetworksOfClients(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.1": "192.0.2.1", "::ffff:192.0.2.1": "192.0.2.1", "2001:db8::1": "2001:db8::/64",
		"2001:db8::ffff:1": "2001:db8::/64", "2001:db8:0:1::1": "2001:db8:0:1::/64", "fe80::1%eth0": "fe80::/64", "@": "@",
	} {
		if got := network(address); got != want {
			t.Errorf("%s: got %s, want %s", address, got, want)
		}
	}
}

package queue

import (
	"strings"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

type archive struct{ Task }

// The memory for waiting requests does not grow with their number: clients may repeat a
// request for as long as it takes to read an archive of gigabytes.
func TestRequestsForTheSameAreKeptOnce(t *testing.T) {
	demo := address.Address{Namespace: "acme", Name: "demo"}
	q := New[*archive, int](t.Context(), 0) // without workers
	q.Now = time.Now
	a := &archive{Task{Address: demo, Version: "1.0.0"}}
	q.Update([]*archive{a}, nil, true)
	var done []func()
	for range 100 {
		done = append(done, q.Hurry([]Selection{{demo, ""}, {demo, "1.0.0"}, {demo, "9.9.9"}}))
	}
	if len(a.state.requests) != 2 || len(q.wanted) != 3 {
		t.Errorf("%d requests are kept for an archive, %d in all", len(a.state.requests), len(q.wanted))
	}
	for _, f := range done {
		f()
	}
	if len(q.wanted) != 0 || len(q.selections) != 0 {
		t.Errorf("%d requests are kept when none waits", len(q.wanted))
	}
}

// An archive is read for the requests that wait for it, then because it is new, and then
// because its version is new.
func TestTheOrderOfReading(t *testing.T) {
	q := New[*archive, int](t.Context(), 0)
	q.Now = time.Now
	add := func(name, version string, rank int, first bool) {
		a := &archive{Task{Address: address.Address{Namespace: "acme", Name: name}, Version: version, Rank: rank}}
		q.Update([]*archive{a}, nil, first)
	}
	add("a", "1.0.0", 1, true)
	add("a", "2.0.0", 0, true)
	add("b", "1.0.0", 1, true)
	add("b", "2.0.0", 0, true)
	add("c", "1.0.0", 7, false)
	q.Hurry([]Selection{{address.Address{Namespace: "acme", Name: "b"}, "1.0.0"}})
	var versions, names string
	for a, ok := q.take(); ok; a, ok = q.take() {
		versions, names = versions+a.Version[:1], names+a.Address.Name
	}
	if versions != "11221" || !strings.HasPrefix(names, "bc") || !strings.HasSuffix(names, "a") {
		t.Errorf("the order is %s of %s", versions, names)
	}
}

// A folder that changes again while its archives are read is listed again. What is being
// read of it is not read twice, and what is gone from it is not read at all.
func TestArchivesAreDropped(t *testing.T) {
	q := New[*archive, int](t.Context(), 0)
	q.Now = time.Now
	of := address.Address{Namespace: "acme", Name: "a"}
	old, kept := &archive{Task{Address: of, Version: "1.0.0"}}, &archive{Task{Address: of, Version: "2.0.0", Rank: 1}}
	q.Update([]*archive{old, kept}, nil, true)
	q.Update([]*archive{kept}, []*archive{old}, false)
	if q.unread != 1 || q.total.Total != 1 {
		t.Errorf("%d are left to read, of %d", q.unread, q.total.Total)
	}
	if a, _ := q.take(); a != kept {
		t.Errorf("%+v is read", a)
	}
	if a, ok := q.take(); ok {
		t.Errorf("then %+v", a)
	}
	q.Update(nil, []*archive{kept}, false)
	if q.idle != nil || q.Progress() != nil {
		t.Error("it does not end")
	}
}

// Nothing waits for archives in the background, and they are read after all others.
func TestReadingInTheBackground(t *testing.T) {
	q := New[*archive, int](t.Context(), 0)
	q.Now = time.Now
	demo := address.Address{Namespace: "acme", Name: "a"}
	behind := &archive{Task{Address: demo, Version: "1.0.0", Background: true}}
	first, later := &archive{Task{Address: demo, Version: "2.0.0", Rank: 5}}, &archive{Task{Address: demo, Version: "3.0.0"}}
	q.Update([]*archive{behind}, nil, true)
	if idle, current := q.IsRead(); !idle || !current || q.Progress() != nil {
		t.Error("what is read in the background counts as unread")
	}
	if err := q.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	q.Update([]*archive{first}, nil, true)
	q.Update([]*archive{later, {Task{Address: demo, Background: true}}}, nil, false)
	q.Hurry([]Selection{{Address: demo}})
	if left := q.urgentLeft.Load(); left != 2 || q.later != 1 || q.Progress().Total != 2 {
		t.Errorf("%d archives are urgent, %d were added later, of %d", left, q.later, q.Progress().Total)
	}
	if behind.HasBegun() {
		t.Error("it has begun before all others")
	}
	q.Read, q.Progressed, q.Commit = func(*archive) int { return 1 }, func(Progress) {}, func() {}
	for range 2 {
		if a, ok := q.takeBehind(); ok {
			t.Errorf("%+v is read before all others", a)
		}
		a, _ := q.take()
		q.readArchive(a, a.state)
	}
	if a, ok := q.takeBehind(); !ok || a != behind || !behind.HasBegun() {
		t.Errorf("then %+v is read", a)
	}
	q.readArchive(behind, behind.state)
	if q.unread != 0 || q.quiet != 1 {
		t.Errorf("%d are unread, and %d in the background", q.unread, q.quiet)
	}
	if done := q.TakeFinished(); len(done) != 3 {
		t.Errorf("%d have been read", len(done))
	}
	q.Update(nil, nil, false)
	if idle, _ := q.IsRead(); !idle {
		t.Error("it waits for what is read in the background")
	}
	if a, ok := q.takeBehind(); !ok || !a.Background {
		t.Errorf("what is left in the background is forgotten: %+v", a)
	}
}

// A slow archive does not keep an idle worker from reading what is added afterwards.
func TestOtherWorkersReadWhatIsAddedLater(t *testing.T) {
	q := New[*archive, int](t.Context(), 2)
	begun, end := make(chan *archive), make(chan struct{})
	q.Now, q.Progressed, q.Commit = time.Now, func(Progress) {}, func() {}
	q.Read = func(a *archive) int {
		begun <- a
		<-end
		return 0
	}
	slow, other := &archive{Task{Version: "1.0.0"}}, &archive{Task{Version: "2.0.0"}}
	q.Update([]*archive{slow}, nil, false)
	if a := <-begun; a != slow {
		t.Fatalf("%+v is read", a)
	}
	q.Update([]*archive{other}, nil, false)
	select {
	case <-begun:
	case <-time.After(10 * time.Second):
		t.Error("it waits for the slow one")
	}
	close(end)
}

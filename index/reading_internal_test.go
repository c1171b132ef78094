package index

import (
	"sync"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/memo"
)

// newScan returns a scan of an empty tree without a memo.
func newScan(t *testing.T) *scan {
	return &scan{ctx: t.Context(), memo: new(memo.Memo), releases: new(releaseMemo), shared: new(shared)}
}

// A request may wait for a version that this scan does not read, such as a folder that is
// too young. Repeating the request does not cost a snapshot each time.
func TestASnapshotIsMadeWhenMoreHasBeenRead(t *testing.T) {
	address := address.Address{Namespace: "acme", Name: "vpc", System: "aws"}
	unread := &job{folder: &folder{address: address}, version: "1.0.0"}
	s := newScan(t)
	inv := &inventory{report: newReport(), unread: []*job{unread}}
	made := 0
	r := newReading(s, inv, func(*Snapshot) { made++ })
	prioritize := func(version string) int {
		r.prioritize(Selection{Address: address, Version: version})
		r.background.Wait()
		return made
	}
	if n := prioritize("1.1.0"); n != 0 {
		t.Errorf("for a version that is not read, %d are made", n)
	}
	unread.state.finished = true
	r.batches.progress.Done = 1
	for range 3 {
		if n := prioritize("1.0.0"); n != 1 {
			t.Errorf("for one that has been read, %d are made", n)
		}
	}
}

func TestTheSameSnapshotIsPublishedOnce(t *testing.T) {
	made := 0
	b := newBatches(newScan(t), &inventory{report: newReport()}, func(*Snapshot) { made++ })
	for range 3 {
		b.publish()
	}
	if made != 1 {
		t.Errorf("%d snapshots are made", made)
	}
}

// The memory for waiting requests does not grow with their number: clients may repeat a
// request for as long as it takes to read an archive of gigabytes.
func TestRequestsForTheSameAreKeptOnce(t *testing.T) {
	demo := address.Address{Namespace: "acme", Name: "demo"}
	a := &job{folder: &folder{address: demo}, version: "1.0.0", state: &jobState{begun: true}}
	r := &reading{scan: newScan(t), archives: map[address.Address][]*job{demo: {a}}, requests: make(map[Selection]*request)}
	r.resumed = sync.NewCond(&r.mutex)
	for range 100 {
		r.prioritize(Selection{demo, ""})
		r.prioritize(Selection{demo, "1.0.0"})
		r.prioritize(Selection{demo, "9.9.9"})
	}
	if len(a.state.requests) != 2 || len(r.requests) != 2 {
		t.Errorf("%d requests are kept for an archive, %d in all", len(a.state.requests), len(r.requests))
	}
}

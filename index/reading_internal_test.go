package index

import (
	"sync"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// newScan is a scan of nothing, which remembers nothing.
func newScan(t *testing.T) *scan {
	return &scan{ctx: t.Context(), memo: new(memo), releases: new(releaseMemo)}
}

// A request may wait for a version that this scan does not read, as a folder that
// has to rest. It does not cost a snapshot each time that it asks.
func TestASnapshotIsMadeWhenThereIsNews(t *testing.T) {
	address := address.Address{Namespace: "acme", Name: "vpc", System: "aws"}
	unread := &archive{address: address, version: "1.0.0"}
	s := newScan(t)
	found := &inventory{report: newReport(), unread: []*archive{unread}}
	made := 0
	r := newReading(s, found, func(*Snapshot) { made++ })
	hurry := func(version string) int {
		r.hurry(Wanted{Address: address, Version: version})
		r.hurries.Wait()
		return made
	}
	if n := hurry("1.1.0"); n != 0 {
		t.Errorf("for a version that is not read, %d are made", n)
	}
	unread.finished = true
	r.batches.progress.Done = 1
	for range 3 {
		if n := hurry("1.0.0"); n != 1 {
			t.Errorf("for one that has been read, %d are made", n)
		}
	}
}

func TestNothingReadIsPublishedOnce(t *testing.T) {
	made := 0
	b := newBatches(newScan(t), &inventory{report: newReport()}, func(*Snapshot) { made++ })
	for range 3 {
		b.publish()
	}
	if made != 1 {
		t.Errorf("%d snapshots are made", made)
	}
}

// What is kept for requests that wait does not grow with their number: they may
// leave at once, and come back until an archive of gigabytes has been read.
func TestRequestsForTheSameAreKeptOnce(t *testing.T) {
	a := &archive{address: address.Address{Namespace: "acme", Name: "demo"}, version: "1.0.0", begun: true}
	r := &reading{scan: newScan(t), of: map[address.Address][]*archive{a.address: {a}}, wishes: make(map[Wanted]*wish)}
	r.resumed = sync.NewCond(&r.mutex)
	for range 100 {
		r.hurry(Wanted{a.address, ""})
		r.hurry(Wanted{a.address, "1.0.0"})
		r.hurry(Wanted{a.address, "9.9.9"})
	}
	if len(a.wishes) != 2 || len(r.wishes) != 2 {
		t.Errorf("%d wishes for an archive, %d in all", len(a.wishes), len(r.wishes))
	}
}

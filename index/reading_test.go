package index

import (
	"fmt"
	"sync"
	"testing"
)

// What is kept for requests that wait does not grow with their number: they may
// leave at once, and come back until an archive of gigabytes has been read.
func TestRequestsForTheSameAreKeptOnce(t *testing.T) {
	a := &archive{address: ProviderAddress{Namespace: "acme", Type: "demo"}, version: "1.0.0", begun: true}
	r := &reading{scanner: &scanner{looker: new(looker)}, of: map[fmt.Stringer][]*archive{a.address: {a}}, wishes: make(map[Wanted]*wish)}
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

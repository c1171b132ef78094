package index

import (
	"sync"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// Wanted is what a request waits for: everything under an address, or one version.
type Wanted struct {
	Address address.Address
	Version string // empty: all versions
}

// waiting knows what requests wait for. The scan that runs reads that first.
type waiting struct {
	mutex   sync.Mutex
	wanted  map[Wanted]int // how many requests
	reading *reading       // of the scan that runs; nil when it reads nothing
	changed chan struct{}  // closed with the next snapshot
}

// news returns a channel that is closed with the next snapshot.
func (w *waiting) news() <-chan struct{} {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.changed == nil {
		w.changed = make(chan struct{})
	}
	return w.changed
}

// published ends the waiting for a snapshot.
func (w *waiting) published() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.changed != nil {
		close(w.changed)
		w.changed = nil
	}
}

// add notes what a request waits for until remove is called.
func (w *waiting) add(list []Wanted) (remove func()) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.wanted == nil {
		w.wanted = make(map[Wanted]int)
	}
	for _, wanted := range list {
		w.wanted[wanted]++
		if w.reading != nil {
			w.reading.hurry(wanted)
		}
	}
	return func() {
		w.mutex.Lock()
		defer w.mutex.Unlock()
		for _, wanted := range list {
			if w.wanted[wanted]--; w.wanted[wanted] == 0 {
				delete(w.wanted, wanted)
			}
		}
	}
}

// begin tells a scan that starts to read of what is waited for. A scan that no
// request can wait for has no waiting.
func (w *waiting) begin(r *reading) {
	if w == nil {
		return
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.reading = r
	for wanted := range w.wanted {
		r.hurry(wanted)
	}
}

// end is called when the scan has read everything.
func (w *waiting) end() {
	if w == nil {
		return
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.reading = nil
}

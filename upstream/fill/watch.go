package fill

import (
	"slices"
	"sync"
)

// Watchers hear how far the fills are that they wait for.
type watchers struct {
	mutex sync.Mutex
	of    map[fileID][]*func(received, size int64)
}

// add adds one, which may be nil, until it is removed.
func (w *watchers) add(id fileID, progress func(received, size int64)) (remove func()) {
	if progress == nil {
		return func() {}
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.of == nil {
		w.of = make(map[fileID][]*func(received, size int64))
	}
	w.of[id] = append(w.of[id], &progress)
	return func() {
		w.mutex.Lock()
		defer w.mutex.Unlock()
		w.of[id] = slices.DeleteFunc(w.of[id], func(p *func(received, size int64)) bool { return p == &progress })
		if len(w.of[id]) == 0 {
			delete(w.of, id)
		}
	}
}

func (w *watchers) tell(id fileID, received, size int64) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for _, progress := range w.of[id] {
		(*progress)(received, size)
	}
}

// A watched part tells as it grows.
type watched struct {
	*part
	watchers *watchers
	id       fileID
	received int64
	size     int64 // zero: it is not known
}

// Expect implements Expecter.
func (w *watched) Expect(size int64) error {
	w.size = size
	err := w.part.Expect(size)
	w.watchers.tell(w.id, w.received, w.size)
	return err
}

func (w *watched) Write(b []byte) (int, error) {
	n, err := w.part.Write(b)
	w.received += int64(n)
	w.watchers.tell(w.id, w.received, w.size)
	return n, err
}

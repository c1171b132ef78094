package flight

import (
	"slices"
	"sync"
)

// Watchers receive the progress of the downloads that they wait for, by key. The zero value is
// ready for use.
type Watchers[K comparable] struct {
	mutex sync.Mutex
	all   map[K][]*func(received, size int64)
}

// Add adds a watcher until remove is called. The watcher may be nil.
func (w *Watchers[K]) Add(key K, progress func(received, size int64)) (remove func()) {
	if progress == nil {
		return func() {}
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.all == nil {
		w.all = make(map[K][]*func(received, size int64))
	}
	w.all[key] = append(w.all[key], &progress)
	return func() {
		w.mutex.Lock()
		defer w.mutex.Unlock()
		w.all[key] = slices.DeleteFunc(w.all[key], func(p *func(received, size int64)) bool { return p == &progress })
		if len(w.all[key]) == 0 {
			delete(w.all, key)
		}
	}
}

// Tell tells the watchers of a key.
func (w *Watchers[K]) Tell(key K, received, size int64) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for _, progress := range w.all[key] {
		(*progress)(received, size)
	}
}

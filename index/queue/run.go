package queue

import (
	"context"
	"sync"
)

// InParallel calls do with every number below n, started in order, on so many goroutines. Each
// goroutine makes many calls: its stack grows once.
func InParallel(workers, n int, do func(i int)) { NewRun(n, do).InParallel(workers) }

// A Run calls a function with every number below n, once each: in order, but numbers that are
// asked for come first.
type Run struct {
	do func(i int)

	mutex        sync.Mutex
	begun, ended []bool // by number
	next         int    // all numbers below have begun
	asked        []int
	awaited      map[int]chan struct{} // closed when the call has ended; nil while nobody waits
}

// NewRun returns a Run that has not called do yet.
func NewRun(n int, do func(i int)) *Run {
	return &Run{do: do, begun: make([]bool, n), ended: make([]bool, n)}
}

// InParallel makes all calls, on so many goroutines, and returns when they have ended.
func (r *Run) InParallel(workers int) {
	var running sync.WaitGroup
	for range min(workers, len(r.begun)) {
		running.Go(func() {
			for i, ok := r.begin(); ok; i, ok = r.begin() {
				r.do(i)
				r.end(i)
			}
		})
	}
	running.Wait()
}

// Await asks for a number, and waits until the call with it has ended, or until ctx has. It
// reports whether the call has ended.
func (r *Run) Await(ctx context.Context, i int) bool {
	over := r.ask(i)
	if over == nil {
		return true
	}
	select {
	case <-over:
		return true
	case <-ctx.Done():
		return false
	}
}

// ask puts a number before those that nobody has asked for. It returns a channel that is closed
// when the call has ended; nil if it has ended already.
func (r *Run) ask(i int) <-chan struct{} {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.ended[i] {
		return nil
	}
	over := r.awaited[i]
	if over == nil {
		if r.awaited == nil {
			r.awaited = make(map[int]chan struct{})
		}
		over = make(chan struct{})
		r.awaited[i] = over
		r.asked = append(r.asked, i)
	}
	return over
}

// begin returns the number of the next call; ok is false if there is none.
func (r *Run) begin() (i int, ok bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for len(r.asked) > 0 && !ok {
		i, r.asked = r.asked[0], r.asked[1:]
		ok = !r.begun[i]
	}
	for ; r.next < len(r.begun) && !ok; r.next++ {
		i, ok = r.next, !r.begun[r.next]
	}
	if ok {
		r.begun[i] = true
	}
	return i, ok
}

func (r *Run) end(i int) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.ended[i] = true
	if over := r.awaited[i]; over != nil {
		close(over)
		delete(r.awaited, i)
	}
}

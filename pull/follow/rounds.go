package follow

import (
	"context"
	"sync"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// pause is the time between the ends of two rounds of one module. Whoever may send its webhook would
// otherwise have its host asked without end.
const pause = time.Second

// rounds do something for modules, in the background: for some at the same time, and for each once at a
// time. What is begun for a module meanwhile has it done once more.
type rounds struct {
	do   func(address.Address)
	ctx  context.Context // in which rounds begin
	free chan struct{}   // a place for each that may be under way

	mutex sync.Mutex
	under map[address.Address]bool // true: there will be another round
}

func newRounds(ctx context.Context, atOnce int, do func(address.Address)) *rounds {
	return &rounds{do: do, ctx: ctx, free: make(chan struct{}, atOnce), under: make(map[address.Address]bool)}
}

// begin begins a round of modules, and returns at once.
func (r *rounds) begin(modules ...address.Address) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for _, a := range modules {
		if _, is := r.under[a]; is {
			r.under[a] = true
			continue
		}
		r.under[a] = false
		go r.run(a)
	}
}

func (r *rounds) run(a address.Address) {
	for again := true; again; {
		select {
		case r.free <- struct{}{}:
		case <-r.ctx.Done():
			return
		}
		r.start(a)
		r.do(a)
		<-r.free
		select {
		case <-time.After(pause):
		case <-r.ctx.Done():
			return
		}
		again = r.next(a)
	}
}

// start notes that what is begun from now on needs another round.
func (r *rounds) start(a address.Address) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.under[a] = false
}

// next reports whether another round is needed. Otherwise the module is done.
func (r *rounds) next(a address.Address) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	again := r.under[a]
	if !again {
		delete(r.under, a)
	}
	return again
}

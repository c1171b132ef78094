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

// atOnce is how many modules have a round at the same time: fewer than may wait for a code host. share is
// how many of these may be of one namespace, since whoever describes its modules may name hosts that never
// end their answers.
const (
	atOnce = 64
	share  = 8
)

// rounds do something for modules, in the background: for some at the same time, and for each once at a
// time. What is begun for a module meanwhile has it done once more.
type rounds struct {
	do   func(a address.Address, begun time.Time)
	ctx  context.Context         // in which rounds begin
	left func(a address.Address) // called for rounds that were begun and not done when ctx ended; may be nil
	free chan struct{}           // a place for each that may be under way

	mutex  sync.Mutex
	under  map[address.Address]time.Time // when the next round was begun; zero: there will be none
	shares map[string]chan struct{}      // of the places, by namespace
}

func newRounds(ctx context.Context, do func(a address.Address, begun time.Time)) *rounds {
	return &rounds{do: do, ctx: ctx, free: make(chan struct{}, atOnce), under: make(map[address.Address]time.Time), shares: make(map[string]chan struct{})}
}

// begin begins a round of modules, and returns at once.
func (r *rounds) begin(modules ...address.Address) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	begun := time.Now()
	for _, a := range modules {
		_, is := r.under[a]
		if r.under[a] = begun; is {
			continue
		}
		if r.shares[a.Namespace] == nil {
			r.shares[a.Namespace] = make(chan struct{}, share)
		}
		go r.run(a, r.shares[a.Namespace])
	}
}

func (r *rounds) run(a address.Address, shared chan struct{}) {
	for again := true; again; {
		for _, place := range []chan struct{}{shared, r.free} {
			select {
			case place <- struct{}{}:
			case <-r.ctx.Done():
				r.leave(a, false)
				return
			}
		}
		r.do(a, r.start(a))
		cutOff := r.ctx.Err() != nil
		<-r.free
		<-shared
		select {
		case <-time.After(pause):
		case <-r.ctx.Done():
			r.leave(a, cutOff)
			return
		}
		again = r.next(a)
	}
}

// start returns when the round was begun last. What is begun from now on needs another one.
func (r *rounds) start(a address.Address) (begun time.Time) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	begun, r.under[a] = r.under[a], time.Time{}
	return begun
}

// next reports whether another round is needed. Otherwise the module is done.
func (r *rounds) next(a address.Address) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	again := !r.under[a].IsZero()
	if !again {
		delete(r.under, a)
	}
	return again
}

// leave ends the rounds of a module, of which the last one may have been cut off.
func (r *rounds) leave(a address.Address, cutOff bool) {
	r.mutex.Lock()
	again := cutOff || !r.under[a].IsZero()
	delete(r.under, a)
	r.mutex.Unlock()
	if again && r.left != nil {
		r.left(a)
	}
}

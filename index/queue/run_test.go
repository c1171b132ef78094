package queue_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/index/queue"
)

func TestNumbersThatAreAskedForComeFirst(t *testing.T) {
	var order []int
	begun, asked := make(chan struct{}), make(chan struct{})
	r := queue.NewRun(6, func(i int) {
		if i == 0 {
			close(begun)
			<-asked
		}
		order = append(order, i)
	})
	over := make(chan struct{})
	go func() {
		defer close(over)
		r.InParallel(1)
	}()
	<-begun
	given, giveUp := context.WithCancel(t.Context())
	giveUp()
	for _, i := range []int{0, 4, 2, 4} { // an end of ctx ends only the waiting
		if r.Await(given, i) {
			t.Errorf("%d has ended already", i)
		}
	}
	close(asked)
	if !r.Await(t.Context(), 2) || !r.Await(t.Context(), 0) {
		t.Error("the numbers have not ended")
	}
	<-over
	if want := []int{0, 4, 2, 1, 3, 5}; !slices.Equal(order, want) {
		t.Errorf("the order is %v, not %v", order, want)
	}
}

func TestEachNumberIsCalledOnce(t *testing.T) {
	const n = 100
	var mutex sync.Mutex
	calls := make(map[int]int)
	r := queue.NewRun(n, func(i int) {
		mutex.Lock()
		defer mutex.Unlock()
		calls[i]++
	})
	var waiting sync.WaitGroup
	for i := range n {
		waiting.Go(func() {
			if !r.Await(t.Context(), n-1-i) {
				t.Errorf("%d has not ended", n-1-i)
			}
		})
	}
	r.InParallel(4)
	waiting.Wait()
	for i := range n {
		if calls[i] != 1 {
			t.Errorf("%d calls with %d", calls[i], i)
		}
	}
}

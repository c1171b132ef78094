package queue

import (
	"sync"
	"sync/atomic"
)

// InParallel calls do with every number below n, started in order, on so many goroutines. Each
// goroutine makes many calls: its stack grows once.
func InParallel(workers, n int, do func(i int)) {
	var next atomic.Int64
	var running sync.WaitGroup
	for range min(workers, n) {
		running.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	running.Wait()
}

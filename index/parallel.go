package index

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// workers is how many archives are read, or folders walked, at once.
func (o Options) workers() int {
	if o.Workers > 0 {
		return o.Workers
	}
	return runtime.GOMAXPROCS(0)
}

// inParallel calls do with every number below n, in order, from so many
// goroutines.
func inParallel(workers, n int, do func(i int)) {
	var next atomic.Int64
	var done sync.WaitGroup
	for range min(workers, n) {
		done.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	done.Wait()
}

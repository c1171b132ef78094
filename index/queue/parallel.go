package queue

import "golang.org/x/sync/errgroup"

// InParallel calls do with every number below n, started in order, on so many goroutines.
func InParallel(workers, n int, do func(i int)) {
	var g errgroup.Group
	g.SetLimit(workers)
	for i := range n {
		g.Go(func() error {
			do(i)
			return nil
		})
	}
	_ = g.Wait() // do has no error
}

package cli

import "golang.org/x/sync/errgroup"

// InParallel calls do with every number below n, up to limit calls at once.
func InParallel(limit, n int, do func(int)) {
	var group errgroup.Group
	group.SetLimit(limit)
	for i := range n {
		group.Go(func() error { do(i); return nil })
	}
	group.Wait()
}

package tree

import (
	"cmp"
	"context"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"
)

// Documents calls visit with small files, one after another, and their paths in a folder. It returns
// the error of visit, or an error of reading the files. What it calls may keep the content.
type Documents func(visit func(name string, content []byte) error) error

// DocumentsOf returns the files of a map.
func DocumentsOf(contents map[string][]byte) Documents {
	return func(visit func(string, []byte) error) error {
		for name, content := range contents {
			if err := visit(name, content); err != nil {
				return err
			}
		}
		return nil
	}
}

const (
	documentWorkers = 16       // each waits for the disk or the store
	documentRoom    = 16 << 20 // bytes
)

// InParallel calls do for several of the documents at once, of which not more than 16 MiB, or else
// one alone, are in memory. After an error it calls do for no other document, except for one that
// waits for a worker.
func (d Documents) InParallel(ctx context.Context, do func(name string, content []byte) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(documentWorkers)
	room := semaphore.NewWeighted(documentRoom)
	err := d(func(name string, content []byte) error {
		size := min(int64(len(content)), documentRoom)
		if err := room.Acquire(ctx, size); err != nil {
			return err
		}
		g.Go(func() error {
			defer room.Release(size)
			return do(name, content)
		})
		return nil
	})
	return cmp.Or(g.Wait(), err)
}

package tlog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"golang.org/x/sync/errgroup"
)

// Tidy removes batches whose entries have been in a full bundle for a day, by the time of the
// bundle's file, and what instances that were killed have left.
func (l *Log) Tidy(ctx context.Context) error {
	firsts, err := l.files.batches(ctx)
	if err != nil {
		return err
	}
	full := l.Head().edge.full(0)
	of := make(map[int64][]int64) // the batches of bundles
	for _, first := range firsts {
		if n := first / BundleSize; n < full {
			of[n] = append(of[n], first)
		}
	}
	g, removing := errgroup.WithContext(ctx)
	g.SetLimit(l.options.reads)
	for n, firsts := range of {
		g.Go(func() error { return l.removeBatches(removing, n, firsts) })
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("removing old entries of the log: %w", err)
	}
	return l.options.Store.Sweep(ctx)
}

// removeBatches removes batches of a bundle if the bundle is old and whole.
func (l *Log) removeBatches(ctx context.Context, n int64, firsts []int64) error {
	written, err := l.options.Store.Modified(ctx, bundleName(n))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case time.Since(written) < l.options.batchLife:
		return nil
	}
	if _, err := l.files.storedBundle(ctx, n); err != nil {
		return err
	}
	for _, first := range firsts {
		if err := l.options.Store.Remove(ctx, batchName(first)); err != nil {
			return err
		}
	}
	return nil
}

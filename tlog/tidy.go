package tlog

import (
	"context"
	"fmt"
	"time"
)

// batchLife is for how long a batch stays after full bundles have its entries. On a network
// disk another instance may take a file for absent for a minute, and must not create a batch
// again that it does not see.
var batchLife = 24 * time.Hour

// Tidy removes batches whose entries have been in full bundles for a day, by the clock of this
// instance since it has first seen that.
func (l *Log) Tidy(ctx context.Context) error {
	firsts, err := l.files.batches(ctx)
	if err != nil {
		return err
	}
	now, full := time.Now(), l.Head().edge.full(0)*BundleSize
	old := l.old(firsts, full, now)
	for _, first := range old {
		entries, err := l.files.batch(ctx, first)
		if err != nil {
			return err
		}
		if first+int64(len(entries)) > full {
			continue
		}
		if err := l.options.Store.Remove(ctx, batchName(first)); err != nil {
			return fmt.Errorf("removing old entries of the log: %w", err)
		}
	}
	return nil
}

// old returns the batches that have begun in full bundles for long enough.
func (l *Log) old(firsts []int64, full int64, now time.Time) (old []int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	complete := make(map[int64]time.Time)
	for _, first := range firsts {
		if first >= full {
			continue
		}
		since, ok := l.complete[first]
		if !ok {
			since = now
		}
		complete[first] = since
		if now.Sub(since) >= batchLife {
			old = append(old, first)
		}
	}
	l.complete = complete
	return old
}

package tlog

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	sumdb "golang.org/x/mod/sumdb/tlog"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
)

// An Opening opens a log in several attempts. What an attempt has read, the next one need not
// read again: a large log in a bucket is opened at last. It is not safe for concurrent use.
type Opening struct {
	ledger   *ledger
	edge     *edge // of the entries whose leaves the ledger has
	recalled int64 // so many entries are from the memo
	lag      lag
}

// Open reads a log, and begins one if neither the store nor the anchor has one. The log must
// be closed. After an error it may be called again, with the same log in the options.
//
// The error is ErrBehind or ErrForked if nothing can be served, because the store contradicts
// its own checkpoint. It is ErrBehind only if that has lasted for a while.
func (x *Opening) Open(ctx context.Context, o Options) (*Log, error) {
	if o.Interval == 0 {
		o.Interval = time.Second
	}
	o.reads, o.batchLife = cmp.Or(o.reads, bundleReads), cmp.Or(o.batchLife, batchLife)
	if x.edge == nil {
		x.recall(o)
	}
	l := &Log{options: o, ledger: x.ledger, busy: make(chan struct{}, 1), catchUps: rate.NewLimiter(rate.Every(catchUpEvery), 1)}
	l.keys.Store(&o.Keys)
	l.files.store = o.Store
	l.files.tiles.MaxEntries, l.files.bundles.MaxEntries = keptTiles, keptBundles
	err := x.read(ctx, l)
	if x.recalled > 0 && (errors.Is(err, ErrForked) || errors.Is(err, ErrBehind)) {
		// The memo may be of another log, so all entries are read before this one is refused.
		x.forget()
		l.ledger = x.ledger
		err = x.read(ctx, l)
	}
	switch {
	case errors.Is(err, ErrForked), errors.Is(err, ErrBehind):
		x.ledger, x.edge = nil, nil // the store may be mended, or is another one than before
	case err != nil:
		x.ledger.truncate(x.edge.size)
	}
	if err != nil {
		return nil, err
	}
	l.remembered.Store(x.recalled)
	*x = Opening{}
	l.adding.begin(o.Interval)
	return l, nil
}

// recall begins with what the memo has.
func (x *Opening) recall(o Options) {
	x.forget()
	if e, known, ok := remembered(o); ok {
		x.edge, x.ledger, x.recalled = e, known, e.size
	}
}

// forget begins without a memo.
func (x *Opening) forget() { x.ledger, x.edge, x.recalled = new(ledger), &edge{batch: -1}, 0 }

func (x *Opening) read(ctx context.Context, l *Log) error {
	// The checkpoint is read first: the entries of a later one might come too late.
	checkpoint, signed, err := l.stored(ctx)
	if err == nil && signed == nil {
		checkpoint, signed, err = l.begin(ctx)
	}
	if err != nil {
		return err
	}
	if x.recalled > checkpoint.Size { // no root would say that the memo is of this log
		x.forget()
		l.ledger = x.ledger
	}
	if err := x.readBundles(ctx, l, checkpoint.Size/BundleSize); err != nil {
		return err
	}
	if x.recalled > 0 || x.edge.size > checkpoint.Size { // nothing else says that they are still there
		if err := l.endsWith(ctx, x.edge); err != nil {
			return err
		}
	}
	e, err := l.follow(ctx, x.edge)
	onlyRead := len(l.keys.Load().Signers) == 0
	if err != nil && (onlyRead || !hasSigned(e, checkpoint, err)) {
		return err
	}
	if e.size < checkpoint.Size {
		return x.lag.observe(e.size, checkpoint.Size)
	}
	root, err := sumdb.TreeHash(checkpoint.Size, l.files.hashes(ctx, e))
	if err != nil {
		return err
	}
	if root != checkpoint.Root {
		return fmt.Errorf("%w: the first %d", ErrForked, checkpoint.Size)
	}
	l.head.Store(&Head{Checkpoint: checkpoint, Signed: signed, edge: e})
	switch {
	case e.size == checkpoint.Size:
	case onlyRead:
		return l.showUnsigned(ctx, e)
	default:
		// Entries that were stored and not signed are in the edge, and not served before
		// they are signed. If that fails now, it is tried again with the next batch.
		_ = l.sign(ctx, e)
	}
	return nil
}

// hasSigned reports whether an edge has all that is signed, although following the log failed: an
// entry after that cannot be read, or the disk has no room for a tile that is full now. The log
// can be served then, and the next Refresh says what fails.
func hasSigned(e *edge, c Checkpoint, failed error) bool {
	return e.size >= c.Size && !errors.Is(failed, ErrForked) && !errors.Is(failed, ErrBehind)
}

const window = 1 << 7 // bundles are read before their leaves are added, in order

// readBundles reads full bundles and checks them against all tiles. So many are known to be
// full. They are read several at once, since a bucket takes its time for each. Later ones are
// read one by one: a network disk that was asked for a file too early goes on for a minute to
// say that it is absent. A bundle that is gone is made again of its batches, if these are there.
func (x *Opening) readBundles(ctx context.Context, l *Log, known int64) error {
	for {
		first := x.edge.full(0)
		n := max(1, min(known-first, window))
		entries, leaves := make([][]string, n), make([][]Leaf, n)
		g, reading := errgroup.WithContext(ctx)
		g.SetLimit(l.options.reads)
		for i := range n {
			g.Go(func() (err error) {
				entries[i], err = l.files.bundle(reading, first+i)
				if errors.Is(err, fs.ErrNotExist) {
					return nil
				}
				if err == nil {
					leaves[i] = leavesOf(entries[i])
				}
				return err
			})
		}
		err := g.Wait()
		for i := range n {
			if leaves[i] == nil {
				break // it is gone, or was not read
			}
			old := x.edge.size % BundleSize // entries of the first bundle may be from the memo
			next, full := x.edge.grow(entries[i][old:])
			if err := l.files.check(ctx, full); err != nil {
				return err
			}
			x.ledger.add(x.edge.size, leaves[i][old:])
			x.edge = next
		}
		switch {
		case errors.Is(err, ErrForked):
			return err
		case err != nil:
			return fmt.Errorf("reading entries of the log: %w", err)
		case x.edge.full(0) < first+n:
			return nil
		}
	}
}

// check compares the tiles above level 0 with those in the store. A bundle is compared with its
// tile when it is read.
func (f *files) check(ctx context.Context, full []file) error {
	for _, want := range full {
		if want.tile.L < 1 {
			continue
		}
		stored, err := f.tile(ctx, want.tile)
		if err != nil {
			return err
		}
		if !bytes.Equal(encodeHashes(stored.levels[0]), want.content) {
			return fmt.Errorf("%w: %s has other hashes", ErrForked, want.name())
		}
	}
	return nil
}

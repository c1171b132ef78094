package tlog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"
	"time"

	sumdb "golang.org/x/mod/sumdb/tlog"
	"golang.org/x/time/rate"
)

var (
	// ErrBehind means that the store has fewer entries than have been signed. It may have
	// been restored from a backup.
	ErrBehind = errors.New("the log has fewer entries than it has signed")

	// ErrForked means that the store has other entries than have been signed, or files that
	// contradict each other.
	ErrForked = errors.New("the log has other entries than it has signed")
)

// Options say where a Log lies, and who signs it.
type Options struct {
	// Origin is the name of the log, such as registry.example.com/v1/tlog. It never changes.
	Origin string

	Keys

	// Rotated returns the keys that sign now, given the keys before. It is called whenever the
	// log is refreshed. Nil: they stay the same.
	Rotated func(context.Context, Keys) (Keys, error)

	Store  Store
	Anchor Anchor
	Memo   Memo // of this instance; nil: none

	// Interval is the least time from when this Log begins to add until it begins again, however long
	// adding takes. Zero: a second.
	Interval time.Duration

	// Open sets these. Only tests have other values.
	reads     int           // that many bundles are read at the same time
	batchLife time.Duration // for how long a batch stays after a full bundle has its entries
}

const (
	bundleReads = 16

	// On a network disk another instance may take a file for absent for a minute, and must not
	// create a batch again that it does not see.
	batchLife = 24 * time.Hour
)

// A Log is a transparency log in a Store that other instances may use as well. It is safe for
// concurrent use.
type Log struct {
	options Options
	files   files
	ledger  *ledger
	keys    atomic.Pointer[Keys]
	head    atomic.Pointer[Head]
	adding  adding

	remembered atomic.Int64 // the size of the head that the memo has

	busy     chan struct{}         // has a value while the head is being replaced
	lag      lag                   // while busy
	catchUps *rate.Limiter         // of AtLeast
	behind   atomic.Pointer[error] // why AtLeast has not caught up; nil: it has
}

// Close stops adding. Callers of Append get an error.
func (l *Log) Close() { l.adding.end() }

// Head returns the log as it was signed last.
func (l *Log) Head() *Head { return l.head.Load() }

// stored returns the checkpoint of the store; signed is nil if there is none.
func (l *Log) stored(ctx context.Context) (c Checkpoint, signed []byte, err error) {
	signed, err = l.options.Store.Read(ctx, checkpointName)
	return l.opened("reading the checkpoint of the log", signed, err)
}

// begin returns what a log without a checkpoint in the store begins with: the checkpoint of
// the anchor, or else one of a log without entries.
func (l *Log) begin(ctx context.Context) (Checkpoint, []byte, error) {
	c, signed, err := l.anchored(ctx)
	if err != nil || signed != nil {
		return c, signed, err
	}
	root, err := sumdb.TreeHash(0, nil)
	if err != nil {
		return Checkpoint{}, nil, err
	}
	c = Checkpoint{Origin: l.options.Origin, Root: root}
	signed, err = c.Sign(l.keys.Load().Signers...)
	return c, signed, err
}

// opened returns a checkpoint that was read, or the error of reading it.
func (l *Log) opened(reading string, signed []byte, err error) (Checkpoint, []byte, error) {
	if errors.Is(err, fs.ErrNotExist) {
		return Checkpoint{}, nil, nil
	}
	if err != nil {
		return Checkpoint{}, nil, fmt.Errorf("%s: %w", reading, err)
	}
	c, err := OpenCheckpoint(signed, l.options.Origin, l.keys.Load().Verifiers...)
	return c, signed, err
}

// continuing returns the edge, with what other instances have added if they have signed more.
// The edge then continues everything that has been signed.
func (l *Log) continuing(ctx context.Context, e *edge) (*edge, error) {
	anchored, _, err := l.anchored(ctx)
	if err != nil {
		return e, err
	}
	return l.continues(ctx, e, anchored)
}

// continues is continuing for one checkpoint.
func (l *Log) continues(ctx context.Context, e *edge, c Checkpoint) (_ *edge, err error) {
	if c.Size == 0 {
		return e, nil
	}
	if c.Size > e.size {
		if e, err = l.follow(ctx, e); err != nil {
			return e, err
		}
	}
	if c.Size > e.size {
		return e, l.lag.observe(e.size, c.Size)
	}
	l.lag.caughtUp()
	root, err := sumdb.TreeHash(c.Size, l.files.hashes(ctx, e))
	if err != nil {
		return e, err
	}
	if root != c.Root {
		return e, fmt.Errorf("%w: the first %d", ErrForked, c.Size)
	}
	return e, nil
}

// sign signs a log that the store has, and makes it the head. It signs again if the anchor
// has an older checkpoint afterwards, of an instance that was suspended, or if there are
// further entries: then others may have stored a newer one, and it was replaced.
func (l *Log) sign(ctx context.Context, e *edge) (err error) {
	for range maxLost {
		if e, err = l.continuing(ctx, e); err != nil {
			return err
		}
		root, err := sumdb.TreeHash(e.size, l.files.hashes(ctx, e))
		if err != nil {
			return err
		}
		c := Checkpoint{Origin: l.options.Origin, Size: e.size, Root: root}
		signed, err := c.Sign(l.keys.Load().Signers...)
		if err != nil {
			return err
		}
		if err := l.anchor(ctx, signed); err != nil {
			return err
		}
		kept, _, err := l.anchored(ctx)
		if err != nil {
			return err
		}
		if e, err = l.follow(ctx, e); err != nil {
			return err
		}
		if e.size > c.Size || kept.Size < c.Size || kept.Size == c.Size && kept != c {
			continue
		}
		if err := l.publish(ctx, signed); err != nil {
			return err
		}
		l.head.Store(&Head{Checkpoint: c, Signed: signed, edge: e})
		return nil
	}
	return fmt.Errorf("signing the log: other instances were first %d times", maxLost)
}

func (l *Log) publish(ctx context.Context, signed []byte) error {
	if err := l.options.Store.Replace(ctx, checkpointName, signed); err != nil {
		return fmt.Errorf("writing the checkpoint of the log: %w", err)
	}
	return nil
}

// keep has the anchor and the store keep the checkpoint of the head. An instance that was
// suspended may have replaced it with an older one, and one that ended cannot mend that.
func (l *Log) keep(ctx context.Context) error {
	head := l.Head()
	anchored, _, err := l.anchored(ctx)
	if err != nil {
		return err
	}
	stored, _, err := l.stored(ctx)
	if err != nil {
		return err
	}
	e := head.edge
	for _, c := range []Checkpoint{anchored, stored} {
		if e, err = l.continues(ctx, e, c); err != nil {
			return err
		}
	}
	if e.size > head.Size {
		return l.sign(ctx, e)
	}
	if anchored.Size < head.Size {
		if err := l.anchor(ctx, head.Signed); err != nil {
			return err
		}
	}
	if stored.Size == head.Size {
		return nil
	}
	// A store from a backup keeps its own checkpoint, so that it can be served.
	if err := l.endsWith(ctx, head.edge); err != nil {
		return err
	}
	return l.publish(ctx, head.Signed)
}

// follow returns the edge with what the store has after it, by whatever instance. Tiles and
// bundles that have become full are written.
func (l *Log) follow(ctx context.Context, e *edge) (*edge, error) {
	for checked := false; ; {
		entries, err := l.files.from(ctx, e.size)
		if err != nil || entries == nil {
			return e, err
		}
		if !checked {
			if err := l.endsWith(ctx, e); err != nil {
				return e, err
			}
			checked = true
		}
		next, full := e.grow(entries)
		if err := l.files.write(ctx, full); err != nil {
			return e, err
		}
		l.ledger.add(e.size, leavesOf(entries))
		e = next
	}
}

// endsWith checks that the store still has the last entry of the edge. It has not if it was
// restored from a backup while this instance runs.
func (l *Log) endsWith(ctx context.Context, e *edge) error {
	if e.batch < 0 {
		return nil
	}
	n := e.size - 1
	first := n - n%BundleSize
	entries, err := l.files.storedBundle(ctx, n/BundleSize)
	if errors.Is(err, fs.ErrNotExist) {
		first = e.batch
		entries, err = l.files.batch(ctx, first)
	}
	switch {
	case err != nil:
		return err
	case entries == nil:
		return fmt.Errorf("%w: entry %d is gone", ErrBehind, n)
	case n-first >= int64(len(entries)) || hashOf(entries[n-first]) != e.last:
		return fmt.Errorf("%w: entry %d", ErrForked, n)
	}
	return nil
}

// Refresh reads what other instances have added, and has the checkpoint kept.
func (l *Log) Refresh(ctx context.Context) error {
	end, err := l.take(ctx)
	if err != nil {
		return err
	}
	defer end()
	if err := l.rotate(ctx); err != nil {
		return err
	}
	e, err := l.known(ctx)
	if err != nil {
		return err
	}
	if e, err = l.follow(ctx, e); err != nil {
		return err
	}
	if head := l.Head(); e.size == head.Size && l.keys.Load().haveSigned(head.Signed) {
		return l.keep(ctx)
	}
	return l.sign(ctx, e)
}

// known returns the edge of the head, and has the ledger forget what comes after it: entries that
// were stored and not signed may be lost, and others may have taken their place. After a start
// that could not sign, the edge itself has such entries: they must not be signed if they are lost.
func (l *Log) known(ctx context.Context) (*edge, error) {
	head := l.Head()
	l.ledger.truncate(head.edge.size)
	if head.edge.size == head.Size {
		return head.edge, nil
	}
	err := l.endsWith(ctx, head.edge)
	if errors.Is(err, ErrBehind) || errors.Is(err, ErrForked) { // nothing that is signed is missing
		err = errLost
	}
	return head.edge, err
}

// errLost is no fault of the log: a new start reads what the store has now.
var errLost = errors.New("entries that were stored and not signed yet are gone, as after a backup was restored: restart the server")

func (l *Log) take(ctx context.Context) (end func(), err error) {
	select {
	case l.busy <- struct{}{}:
		return func() { <-l.busy }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Begun reports whether all that was there when the log was begun has been entered. Versions
// that are offered for the first time afterwards are new.
func (l *Log) Begun(ctx context.Context) (bool, error) {
	_, err := l.options.Store.Modified(ctx, begunName)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("reading the log: %w", err)
	}
	return err == nil, nil
}

// SetBegun makes Begun report true, for all instances.
func (l *Log) SetBegun(ctx context.Context) error {
	now := time.Now().UTC().Format(time.RFC3339) + "\n"
	if err := l.options.Store.Create(ctx, begunName, []byte(now)); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("writing the log: %w", err)
	}
	return nil
}

package tlog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/mod/sumdb/note"
	sumdb "golang.org/x/mod/sumdb/tlog"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
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

	// Signers sign checkpoints: the key of the log, and while keys rotate the key before.
	// Verifiers are of all keys that may have signed the checkpoints in the Store and the
	// Anchor.
	Signers   []note.Signer
	Verifiers []note.Verifier

	// Public is the line by which others know the key that signs.
	Public string

	Store  Store
	Anchor Anchor

	// Interval is the least time between two batches that this Log creates. Zero: a second.
	Interval time.Duration
}

// A Log is a transparency log in a Store that other instances may use as well. It is safe for
// concurrent use.
type Log struct {
	options Options
	files   files
	ledger  ledger
	head    atomic.Pointer[Head]
	adding  adding

	busy chan struct{} // has a value while the head is being replaced

	mu       sync.Mutex
	complete map[int64]time.Time // since when full bundles have the entries of batches
}

// Open reads a log, and begins one if neither the store nor the anchor has one. The log must
// be closed.
//
// The error is ErrBehind or ErrForked if nothing can be served, because the store contradicts
// its own checkpoint.
func Open(ctx context.Context, o Options) (*Log, error) {
	if o.Interval == 0 {
		o.Interval = time.Second
	}
	l := &Log{options: o, busy: make(chan struct{}, 1), complete: make(map[int64]time.Time)}
	l.files.store = o.Store
	l.files.tiles.MaxEntries, l.files.bundles.MaxEntries = keptTiles, keptBundles
	if err := l.read(ctx); err != nil {
		return nil, err
	}
	l.adding.begin(l.write, o.Interval)
	return l, nil
}

// Close stops adding. Callers of Append get an error.
func (l *Log) Close() { l.adding.end() }

// Public returns the line by which others know the key of the log.
func (l *Log) Public() string { return l.options.Public }

// Head returns the log as it was signed last.
func (l *Log) Head() *Head { return l.head.Load() }

func (l *Log) read(ctx context.Context) error {
	// The checkpoint is read first: the entries of a later one might come too late.
	checkpoint, signed, err := l.stored(ctx)
	if err == nil && signed == nil {
		checkpoint, signed, err = l.begin(ctx)
	}
	if err != nil {
		return err
	}
	e, err := l.files.edge(ctx, checkpoint.Size/BundleSize)
	if err != nil {
		return err
	}
	for n := range e.full(0) {
		entries, err := l.files.bundle(ctx, n)
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%w: %s is gone", ErrForked, TilePath(fullTile(-1, n)))
		}
		if err != nil {
			return fmt.Errorf("reading entries of the log: %w", err)
		}
		leaves, err := leavesOf(n*BundleSize, entries)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrForked, err)
		}
		l.ledger.add(n*BundleSize, leaves)
	}
	if e, err = l.follow(ctx, e); err != nil {
		return err
	}
	if e.size < checkpoint.Size {
		return fmt.Errorf("%w: %d of %d", ErrBehind, e.size, checkpoint.Size)
	}
	root, err := sumdb.TreeHash(checkpoint.Size, l.files.hashes(ctx, e))
	if err != nil {
		return err
	}
	if root != checkpoint.Root {
		return fmt.Errorf("%w: the first %d", ErrForked, checkpoint.Size)
	}
	l.head.Store(&Head{Checkpoint: checkpoint, Signed: signed, edge: e})
	if e.size > checkpoint.Size {
		// Entries that were stored and not signed are in the edge, and not served before
		// they are signed. If that fails now, it is tried again with the next batch.
		_ = l.sign(ctx, e)
	}
	return nil
}

// stored returns the checkpoint of the store; signed is nil if there is none.
func (l *Log) stored(ctx context.Context) (c Checkpoint, signed []byte, err error) {
	signed, err = l.options.Store.Read(ctx, checkpointName)
	if errors.Is(err, fs.ErrNotExist) {
		return Checkpoint{}, nil, nil
	}
	if err != nil {
		return Checkpoint{}, nil, fmt.Errorf("reading the checkpoint of the log: %w", err)
	}
	c, err = OpenCheckpoint(signed, l.options.Origin, l.options.Verifiers...)
	return c, signed, err
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
	signed, err = c.Sign(l.options.Signers...)
	return c, signed, err
}

// anchored returns the checkpoint of the anchor; signed is nil if there is none.
func (l *Log) anchored(ctx context.Context) (c Checkpoint, signed []byte, err error) {
	signed, err = l.options.Anchor.Load(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		return Checkpoint{}, nil, nil
	}
	if err != nil {
		return Checkpoint{}, nil, fmt.Errorf("reading the newest checkpoint of the log: %w", err)
	}
	c, err = OpenCheckpoint(signed, l.options.Origin, l.options.Verifiers...)
	return c, signed, err
}

// continuing returns the edge, with what other instances have added if they have signed more.
// The edge then continues everything that has been signed.
func (l *Log) continuing(ctx context.Context, e *edge) (*edge, error) {
	anchored, _, err := l.anchored(ctx)
	if err != nil || anchored.Size == 0 {
		return e, err
	}
	if anchored.Size > e.size {
		if e, err = l.follow(ctx, e); err != nil {
			return e, err
		}
	}
	if anchored.Size > e.size {
		return e, fmt.Errorf("%w: %d of %d", ErrBehind, e.size, anchored.Size)
	}
	root, err := sumdb.TreeHash(anchored.Size, l.files.hashes(ctx, e))
	if err != nil {
		return e, err
	}
	if root != anchored.Root {
		return e, fmt.Errorf("%w: the first %d", ErrForked, anchored.Size)
	}
	return e, nil
}

// sign signs a log that the store has, and makes it the head.
func (l *Log) sign(ctx context.Context, e *edge) error {
	e, err := l.continuing(ctx, e)
	if err != nil {
		return err
	}
	root, err := sumdb.TreeHash(e.size, l.files.hashes(ctx, e))
	if err != nil {
		return err
	}
	c := Checkpoint{Origin: l.options.Origin, Size: e.size, Root: root}
	signed, err := c.Sign(l.options.Signers...)
	if err != nil {
		return err
	}
	if err := l.options.Anchor.Store(ctx, signed); err != nil {
		return fmt.Errorf("keeping the newest checkpoint of the log: %w", err)
	}
	if err := l.options.Store.Replace(ctx, checkpointName, signed); err != nil {
		return fmt.Errorf("writing the checkpoint of the log: %w", err)
	}
	l.head.Store(&Head{Checkpoint: c, Signed: signed, edge: e})
	return nil
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
		leaves, err := leavesOf(e.size, entries)
		if err != nil {
			return e, fmt.Errorf("%w: %w", ErrForked, err)
		}
		next, full := e.grow(entries)
		if err := l.files.write(ctx, full); err != nil {
			return e, err
		}
		l.ledger.add(e.size, leaves)
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
	entries, err := l.files.bundle(ctx, n/BundleSize)
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

// Refresh reads what other instances have added.
func (l *Log) Refresh(ctx context.Context) error {
	end, err := l.take(ctx)
	if err != nil {
		return err
	}
	defer end()
	head := l.Head()
	e, err := l.follow(ctx, head.edge)
	if err != nil || e.size == head.Size {
		return err
	}
	return l.sign(ctx, e)
}

func (l *Log) take(ctx context.Context) (end func(), err error) {
	select {
	case l.busy <- struct{}{}:
		return func() { <-l.busy }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Leaves returns the leaves of a version that a head has, the oldest first, with their
// numbers.
func (l *Log) Leaves(ctx context.Context, h *Head, a address.Address, version string) (leaves []NumberedLeaf, err error) {
	for _, n := range l.ledger.of(a, version, h.Size) {
		entry, err := l.files.entry(ctx, h.edge, n)
		if err != nil {
			return nil, err
		}
		leaf, err := ParseLeaf(entry)
		if err != nil {
			return nil, err
		}
		if leaf.Address == a && leaf.Version == version { // and no other one with that digest
			leaves = append(leaves, NumberedLeaf{Number: n, Text: entry, Leaf: leaf})
		}
	}
	return leaves, nil
}

// Lookup returns the leaves of a version under several addresses, in that order, and proofs
// that a head has them.
func (l *Log) Lookup(ctx context.Context, h *Head, version string, addresses ...address.Address) (Lookup, error) {
	found := Lookup{Signed: h.Signed}
	for _, a := range addresses {
		leaves, err := l.Leaves(ctx, h, a, version)
		if err != nil {
			return Lookup{}, err
		}
		for _, leaf := range leaves {
			p, err := l.Prove(ctx, h, leaf.Number)
			if err != nil {
				return Lookup{}, err
			}
			found.Entries = append(found.Entries, ProvenEntry{leaf.Text, p})
		}
	}
	return found, nil
}

// Begun reports whether all that was there when the log was begun has been entered: what is
// offered for the first time afterwards is new.
func (l *Log) Begun(ctx context.Context) (bool, error) {
	begun, err := l.options.Store.Exists(ctx, begunName)
	if err != nil {
		err = fmt.Errorf("reading the log: %w", err)
	}
	return begun, err
}

// SetBegun makes Begun report true, for all instances.
func (l *Log) SetBegun(ctx context.Context) error {
	now := time.Now().UTC().Format(time.RFC3339) + "\n"
	if err := l.options.Store.Create(ctx, begunName, []byte(now)); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("writing the log: %w", err)
	}
	return nil
}

// A NumberedLeaf is a leaf at its place in a log.
type NumberedLeaf struct {
	Leaf
	Number int64
	Text   string
}

// Prove returns the proof that a head has the entry with a number.
func (l *Log) Prove(ctx context.Context, h *Head, number int64) (Proof, error) {
	hashes, err := sumdb.ProveRecord(h.Size, number, l.files.hashes(ctx, h.edge))
	return Proof{Index: number, Hashes: hashes}, err
}

// Consistency returns the proof that a head begins with its first entries.
func (l *Log) Consistency(ctx context.Context, h *Head, size int64) (Consistency, error) {
	if size == 0 || size == h.Size {
		return Consistency{}, nil
	}
	hashes, err := sumdb.ProveTree(h.Size, size, l.files.hashes(ctx, h.edge))
	return Consistency{Hashes: hashes}, err
}

// Tile returns a tile or a bundle of a head, perhaps a partial one. The error is
// fs.ErrNotExist if the head has none like that.
func (l *Log) Tile(ctx context.Context, h *Head, t sumdb.Tile) ([]byte, error) {
	level := max(t.L, 0)
	width := min(h.Size>>(tileHeight*level)-t.N<<tileHeight, BundleSize)
	if t.H != tileHeight || t.L >= 8 || t.N > h.Size || int64(t.W) > width {
		return nil, fs.ErrNotExist
	}
	if t.L < 0 {
		entries := h.edge.entries
		if t.N < h.edge.full(0) {
			var err error
			if entries, err = l.files.bundle(ctx, t.N); err != nil {
				return nil, err
			}
		}
		return EncodeBundle(entries[:t.W]), nil
	}
	return sumdb.ReadTileData(t, l.files.hashes(ctx, h.edge))
}

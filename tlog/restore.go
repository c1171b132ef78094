package tlog

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"

	sumdb "golang.org/x/mod/sumdb/tlog"
)

// A Restoration says what Restore has done.
type Restoration struct {
	Entries int64 // of the copy
	Copied  int   // files that were missing

	// Faults are why nothing was copied.
	Faults []string
}

func (r *Restoration) fault(format string, args ...any) {
	r.Faults = append(r.Faults, fmt.Sprintf(format, args...))
}

// Restore adds to the store of a log what it lacks of a copy, which may be a backup or be from
// another machine. The copy must be whole, and continue both the checkpoint of the store and the
// newest one, of the anchor. No file of the store is replaced but an older checkpoint: if a file
// differs from the copy, nothing is copied. Restore may be called again after it was cut off.
//
// The store has files in the order in which a Log writes them, so that one that is open goes on
// when it has all entries.
func Restore(ctx context.Context, o Options, from Store) (*Restoration, error) {
	copied := o
	copied.Store = from
	r := &restoring{to: files{store: o.Store}}
	var err error
	if r.from, err = newFsck(ctx, copied); err != nil {
		return nil, err
	}
	r.Entries = r.from.edge.size
	if len(r.from.Faults) > 0 {
		for _, f := range r.from.Faults {
			r.fault("the copy is not whole, or not the newest: %s", f)
		}
		return &r.Restoration, nil
	}
	checkpoint, err := r.checkpoint(ctx, o)
	if err == nil {
		err = r.each(ctx, r.compare)
	}
	if err == nil {
		err = r.compareBatches(ctx)
	}
	if err != nil || len(r.Faults) > 0 {
		return &r.Restoration, err
	}
	// While files are missing, a server that runs must not add others in their place, even if
	// Caddy's storage is from an older backup than the copy.
	if r.from.Signed > r.from.Anchored {
		if err := o.Anchor.Store(ctx, r.from.checkpoint); err != nil {
			return &r.Restoration, fmt.Errorf("keeping the newest checkpoint of the log: %w", err)
		}
	}
	if err := r.each(ctx, r.create); err != nil {
		return &r.Restoration, err
	}
	if checkpoint == nil {
		return &r.Restoration, nil
	}
	if err := o.Store.Replace(ctx, checkpointName, checkpoint); err != nil {
		return &r.Restoration, fmt.Errorf("writing the checkpoint of the log: %w", err)
	}
	r.Copied++
	return &r.Restoration, nil
}

// restoring compares two stores.
type restoring struct {
	Restoration
	from *fsck
	to   files
}

// checkpoint returns the checkpoint that the store gets; nil: it has it already.
func (r *restoring) checkpoint(ctx context.Context, o Options) ([]byte, error) {
	newest, size := r.from.checkpoint, r.from.Signed
	if r.from.Anchored > size {
		newest, size = r.from.anchored, r.from.Anchored
	}
	signed, err := o.Store.Read(ctx, checkpointName)
	if errors.Is(err, fs.ErrNotExist) {
		return newest, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the checkpoint of the log: %w", err)
	}
	c, err := OpenCheckpoint(signed, o.Origin, o.Verifiers...)
	switch {
	case err != nil:
		r.fault("the checkpoint in the folder of the log: %v", err)
		return nil, nil
	case c.Size > r.Entries:
		r.fault("the checkpoint in the folder of the log has %d entries, and the copy has %d", c.Size, r.Entries)
		return nil, nil
	}
	root, err := sumdb.TreeHash(c.Size, r.from.hashes(ctx, r.from.edge))
	switch {
	case err != nil:
		return nil, err
	case root != c.Root:
		r.fault("the checkpoint in the folder of the log has another root for %d entries than the copy", c.Size)
	case c.Size < size:
		return newest, nil
	}
	return nil, nil
}

// each calls do for the files that the store must have, in an order in which a log is whole after
// each.
func (r *restoring) each(ctx context.Context, do func(ctx context.Context, name string, content []byte) error) error {
	// A log that were whole before it had begunName would enter what is new as Found.
	for _, name := range []string{keyName, begunName} {
		content, err := r.from.store.Read(ctx, name)
		if errors.Is(err, fs.ErrNotExist) && name == begunName {
			continue
		}
		if err == nil {
			err = do(ctx, name, content)
		}
		if err != nil {
			return fmt.Errorf("restoring the log: %w", err)
		}
	}
	for _, p := range r.from.parts {
		content, err := r.read(ctx, p)
		if err == nil {
			err = do(ctx, p.name, content)
		}
		if err != nil {
			return fmt.Errorf("restoring the log: %w", err)
		}
	}
	return nil
}

// read returns the content of a part of the copy, as it was checked.
func (r *restoring) read(ctx context.Context, p part) ([]byte, error) {
	if p.content != nil {
		return p.content, nil
	}
	content, err := r.from.store.Read(ctx, p.name)
	if err == nil && sha256.Sum256(content) != p.sum {
		err = fmt.Errorf("%s of the copy has changed meanwhile", p.name)
	}
	return content, err
}

// compare notes a file of the store that differs.
func (r *restoring) compare(ctx context.Context, name string, content []byte) error {
	if len(r.Faults) >= maxFaults {
		return nil
	}
	has, err := r.to.store.Read(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && !bytes.Equal(has, content) {
		r.fault("%s differs from the copy: if it is damaged, move it away", name)
	}
	return err
}

// create adds a file that is missing.
func (r *restoring) create(ctx context.Context, name string, content []byte) error {
	if _, err := r.to.store.Read(ctx, name); !errors.Is(err, fs.ErrNotExist) {
		return err // it was compared
	}
	err := r.to.store.Create(ctx, name, content)
	if errors.Is(err, fs.ErrExist) { // a registry that runs has just written it
		var has []byte
		if has, err = r.to.store.Read(ctx, name); err == nil && !bytes.Equal(has, content) {
			err = fmt.Errorf("%w: %s has other content", ErrForked, name)
		}
		return err
	}
	if err == nil {
		r.Copied++
	}
	return err
}

// compareBatches compares batches of the store that the copy has in its bundles.
func (r *restoring) compareBatches(ctx context.Context) error {
	firsts, err := r.to.batches(ctx)
	if err != nil {
		return err
	}
	for _, first := range firsts {
		if first >= r.from.full || len(r.Faults) >= maxFaults {
			break // those that follow were compared by their name, or are not signed
		}
		content, err := r.to.store.Read(ctx, batchName(first))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading entries of the log: %w", err)
		}
		bundle := bundleName(first / BundleSize)
		if _, err := r.to.store.Read(ctx, bundle); err == nil {
			continue // which is the same, and counts
		} else if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("reading entries of the log: %w", err)
		}
		entries, ok := decodeBatch(first, content)
		copied, err := r.from.store.Read(ctx, bundle)
		if err != nil {
			return fmt.Errorf("reading entries of the copy: %w", err)
		}
		all, full := decodeFull(copied)
		for i, entry := range entries {
			ok = ok && full && all[first%BundleSize+int64(i)] == entry
		}
		if !ok {
			r.fault("%s differs from the copy: if it is damaged, move it away", batchName(first))
		}
	}
	return nil
}

package tlog

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	sumdb "golang.org/x/mod/sumdb/tlog"
)

// A Health has the findings of Fsck about the files of a log.
type Health struct {
	Entries int64 // that are stored
	Signed  int64 // of these, how many the checkpoint has

	Anchored int64 // and how many the checkpoint of the anchor has

	// Faults contradict the log: files that are damaged, missing or of another log. Notes
	// are unusual and do no harm.
	Faults, Notes []string
}

func (h *Health) fault(format string, args ...any) {
	h.Faults = append(h.Faults, fmt.Sprintf(format, args...))
}

func (h *Health) note(format string, args ...any) {
	h.Notes = append(h.Notes, fmt.Sprintf(format, args...))
}

// maxFaults is after how many faults Fsck ends: a log with another file in the place of one
// differs from there on.
const maxFaults = 20

// Fsck reads all files of a log, changes none, and compares them: bundles with tiles, tiles
// with the tiles above, batches with bundles, the root with the checkpoint and its signature,
// and with the checkpoint of the anchor. The error says that something could not be read.
func Fsck(ctx context.Context, o Options) (*Health, error) {
	f, err := newFsck(ctx, o)
	if err != nil {
		return nil, err
	}
	return &f.Health, nil
}

func newFsck(ctx context.Context, o Options) (*fsck, error) {
	f := &fsck{files: files{store: o.Store}, edge: &edge{levels: make([][]sumdb.Hash, 1), batch: -1}}
	f.tiles.MaxEntries, f.bundles.MaxEntries = keptTiles, keptBundles
	// The checkpoint is read first: it has no entries that come later.
	signed, err := o.Store.Read(ctx, checkpointName)
	f.checkpoint = signed
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the checkpoint of the log: %w", err)
	}
	// So is the anchor's: a registry that runs adds entries and signs them meanwhile.
	anchored, err := o.Anchor.Load(ctx)
	f.anchored = anchored
	switch {
	case errors.Is(err, ErrBehind):
		f.fault("%v", err)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("reading the newest checkpoint of the log: %w", err)
	}
	if err := f.readEntries(ctx); err != nil {
		return nil, err
	}
	f.Entries = f.edge.size
	if len(f.Faults) > 0 {
		return f, nil // the hashes may be of other entries
	}
	if signed == nil && anchored == nil && f.Entries == 0 {
		f.note("there are no entries yet, and no checkpoint")
		return f, nil
	}
	if signed == nil {
		f.fault("there is no checkpoint")
	} else if err := f.checkCheckpoint(ctx, o, "the checkpoint", signed, &f.Signed); err != nil {
		return nil, err
	}
	if len(f.Faults) == 0 && f.Entries > f.Signed {
		f.note("%d entries are stored and not signed yet: a registry that runs signs them", f.Entries-f.Signed)
	}
	if anchored == nil {
		f.note("there is no checkpoint in Caddy's storage to compare with")
		return f, nil
	}
	return f, f.checkCheckpoint(ctx, o, "the checkpoint in Caddy's storage", anchored, &f.Anchored)
}

// An fsck adds all entries of a store to an edge, and compares what becomes full with the
// files.
type fsck struct {
	Health
	files
	edge       *edge
	checkpoint []byte // of the store
	anchored   []byte // of the anchor

	full  int64  // entries in full bundles
	parts []part // the files with the entries, in the order in which a Log writes them
}

// A part is a file that a log has.
type part struct {
	name    string
	sum     [sha256.Size]byte
	content []byte // nil: the store has it
}

// readEntries reads bundles, and then the batches that follow them.
func (f *fsck) readEntries(ctx context.Context) error {
	for n := int64(0); len(f.Faults) < maxFaults; n++ {
		name := bundleName(n)
		content, err := f.store.Read(ctx, name)
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return fmt.Errorf("reading entries of the log: %w", err)
		}
		entries, ok := decodeFull(content)
		if !ok {
			f.fault("%s has not %d entries", name, BundleSize)
			return nil
		}
		if err := f.add(ctx, name, entries); err != nil {
			return err
		}
	}
	f.full = f.edge.size
	firsts, err := f.batches(ctx)
	if err != nil {
		return err
	}
	for _, first := range firsts {
		if len(f.Faults) >= maxFaults {
			break
		}
		if err := f.readBatch(ctx, first); err != nil {
			return err
		}
	}
	return nil
}

func (f *fsck) readBatch(ctx context.Context, first int64) error {
	name := batchName(first)
	content, err := f.store.Read(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a registry that runs has removed it
	}
	if err != nil {
		return fmt.Errorf("reading entries of the log: %w", err)
	}
	entries, ok := decodeBatch(first, content)
	if !ok {
		f.fault("%s is damaged", name)
		return nil
	}
	if first >= f.full {
		if first != f.edge.size {
			f.fault("%s is there, and entry %d is not", name, f.edge.size)
			return nil
		}
		f.parts = append(f.parts, part{name: name, sum: sha256.Sum256(content)})
		return f.add(ctx, name, entries)
	}
	bundle := bundleName(first / BundleSize)
	if content, err = f.store.Read(ctx, bundle); err != nil {
		return fmt.Errorf("reading entries of the log: %w", err)
	}
	all, ok := decodeFull(content)
	if !ok {
		f.fault("%s has changed meanwhile", bundle)
		return nil
	}
	if all[first%BundleSize] != entries[0] {
		f.note("%s came too late, and is no part of the log", name)
		return nil
	}
	for i, entry := range entries {
		if all[first%BundleSize+int64(i)] != entry {
			f.fault("%s has another entry %d than %s", name, first+int64(i), bundle)
			return nil
		}
	}
	return nil
}

// add adds the entries of a file.
func (f *fsck) add(ctx context.Context, name string, entries []string) error {
	for i, entry := range entries {
		if _, err := ParseSuccession(entry); err == nil && f.edge.size+int64(i) == 0 {
			continue
		}
		if _, err := ParseLeaf(entry); err != nil {
			f.note("%s: number %d is of a later release, or no leaf: %v", name, f.edge.size+int64(i), err)
			break // which may have made many
		}
	}
	next, full := f.edge.grow(entries)
	f.edge = next
	inBundle := !strings.HasPrefix(name, batchFolder) // whose tiles were written before
	for _, want := range full {
		p := part{name: want.name(), sum: sha256.Sum256(want.content)}
		content, err := f.store.Read(ctx, p.name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if inBundle {
				f.fault("%s is gone", p.name)
				continue
			}
			f.note("%s is not written yet: a registry that runs writes it", p.name)
			f.keep(want)
			p.content = want.content
		case err != nil:
			return fmt.Errorf("reading hashes of the log: %w", err)
		case !bytes.Equal(content, want.content):
			f.fault("%s does not have the hashes of the entries", p.name)
		}
		f.parts = append(f.parts, p)
	}
	return nil
}

// checkCheckpoint checks a checkpoint, and sets size to the number of its entries.
func (f *fsck) checkCheckpoint(ctx context.Context, o Options, what string, signed []byte, size *int64) error {
	c, err := OpenCheckpoint(signed, o.Origin, o.Verifiers...)
	if err != nil {
		f.fault("%s: %v", what, err)
		return nil
	}
	*size = c.Size
	if c.Size > f.edge.size {
		f.fault("%s has %d entries, and %d are stored", what, c.Size, f.edge.size)
		return nil
	}
	root, err := sumdb.TreeHash(c.Size, f.hashes(ctx, f.edge))
	if errors.Is(err, ErrForked) { // a tile is missing
		f.fault("%v", err)
		return nil
	}
	if err != nil {
		return err
	}
	if root != c.Root {
		f.fault("%s has another root for %d entries than the files", what, c.Size)
	}
	return nil
}

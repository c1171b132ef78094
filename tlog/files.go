package tlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"time"

	sumdb "golang.org/x/mod/sumdb/tlog"

	"github.com/caddy-terraform/caddy-terraform-registry/cache"
)

// files are the files of a log in a store. Full tiles and bundles never change, so those that
// were read last are kept in memory.
type files struct {
	store   Store
	tiles   cache.Cache[sumdb.Tile, *tile]
	bundles cache.Cache[int64, []string]
}

const (
	keptTiles   = 256 // of 16 KiB
	keptBundles = 64  // of some 50 KiB
)

const (
	checkpointName = "checkpoint"
	begunName      = "begun"
)

const batchFolder = "batch"

func bundleName(n int64) string { return TilePath(fullTile(-1, n)) }

func batchName(first int64) string { return batchFolder + "/" + strconv.FormatInt(first, 10) }

// batches returns the numbers with which batches begin.
func (f *files) batches(ctx context.Context) (firsts []int64, err error) {
	names, err := f.store.List(ctx, batchFolder)
	if err != nil {
		return nil, fmt.Errorf("listing batches of the log: %w", err)
	}
	for _, name := range names {
		if first, err := strconv.ParseInt(name, 10, 64); err == nil && strconv.FormatInt(first, 10) == name {
			firsts = append(firsts, first)
		}
	}
	slices.Sort(firsts)
	return firsts, nil
}

// bundle returns the entries of a full bundle. The error is fs.ErrNotExist if it is not full.
func (f *files) bundle(ctx context.Context, n int64) ([]string, error) {
	return f.bundles.Load(ctx, n, func(ctx context.Context) ([]string, time.Duration, error) {
		content, err := f.store.Read(ctx, bundleName(n))
		if err != nil {
			return nil, 0, err
		}
		entries, ok := decodeFull(content)
		if !ok {
			return nil, 0, fmt.Errorf("%w: %s is damaged", ErrForked, bundleName(n))
		}
		// A bundle is written after its tile.
		t, err := f.tile(ctx, fullTile(0, n))
		if err != nil {
			return nil, 0, err
		}
		for i, entry := range entries {
			if hashOf(entry) != t.levels[0][i] {
				return nil, 0, fmt.Errorf("%w: entry %d", ErrForked, n*BundleSize+int64(i))
			}
		}
		return entries, cache.UntilEvicted, nil
	})
}

// storedBundle is bundle without what is in memory, for those who must know that the store has
// it still.
func (f *files) storedBundle(ctx context.Context, n int64) ([]string, error) {
	f.bundles.Remove(n)
	return f.bundle(ctx, n)
}

// batch returns the entries of the batch that begins with a number, and nil if there is none.
func (f *files) batch(ctx context.Context, first int64) ([]string, error) {
	content, err := f.store.Read(ctx, batchName(first))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading entries of the log: %w", err)
	}
	entries, ok := decodeBatch(first, content)
	if !ok {
		return nil, fmt.Errorf("%w: %s is damaged", ErrForked, batchName(first))
	}
	// The bundle is looked at after the batch: if the batch was created too late, the bundle
	// is there.
	bundle, err := f.bundle(ctx, first/BundleSize)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return entries, nil
	case err != nil:
		return nil, fmt.Errorf("reading entries of the log: %w", err)
	case bundle[first%BundleSize] != entries[0]:
		return nil, nil
	}
	return entries, nil
}

// from returns entries from a number on, with which a batch begins: the batch, or the rest of
// a full bundle if the batch is gone. The result is nil if the log has no such entry.
func (f *files) from(ctx context.Context, first int64) ([]string, error) {
	entries, err := f.batch(ctx, first)
	if err != nil || entries != nil {
		return entries, err
	}
	bundle, err := f.bundle(ctx, first/BundleSize)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading entries of the log: %w", err)
	}
	return bundle[first%BundleSize:], nil
}

// write writes tiles and bundles that have become full. Another instance may have written
// them before; then they are the same.
func (f *files) write(ctx context.Context, full []file) error {
	for _, file := range full {
		err := f.store.Create(ctx, file.name(), file.content)
		if errors.Is(err, fs.ErrExist) {
			var content []byte
			if content, err = f.store.Read(ctx, file.name()); err == nil && !bytes.Equal(content, file.content) {
				err = fmt.Errorf("%w: %s has other content", ErrForked, file.name())
			}
		}
		if err != nil {
			return fmt.Errorf("writing the log: %w", err)
		}
		f.keep(file)
	}
	return nil
}

// keep keeps a tile in memory. A log that is only read does not write it.
func (f *files) keep(full file) {
	if full.tile.L >= 0 {
		f.tiles.Put(full.tile, newTile(decodeHashes(full.content)), cache.UntilEvicted)
	}
}

// tile returns a full tile.
func (f *files) tile(ctx context.Context, full sumdb.Tile) (*tile, error) {
	return f.tiles.Load(ctx, full, func(ctx context.Context) (*tile, time.Duration, error) {
		name := TilePath(full)
		content, err := f.store.Read(ctx, name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, 0, fmt.Errorf("%w: %s is gone", ErrForked, name)
		}
		if err != nil {
			return nil, 0, fmt.Errorf("reading hashes of the log: %w", err)
		}
		if len(content) != BundleSize*sumdb.HashSize {
			return nil, 0, fmt.Errorf("%w: %s is damaged", ErrForked, name)
		}
		return newTile(decodeHashes(content)), cache.UntilEvicted, nil
	})
}

// hashes reads the hashes of a log of the edge's size, or of a smaller one.
func (f *files) hashes(ctx context.Context, e *edge) sumdb.HashReader {
	return sumdb.HashReaderFunc(func(indexes []int64) ([]sumdb.Hash, error) {
		hashes := make([]sumdb.Hash, len(indexes))
		for i, index := range indexes {
			level, n, within, place := tileOf(index)
			ok := false
			if n < e.full(level) {
				t, err := f.tile(ctx, fullTile(level, n))
				if err != nil {
					return nil, err
				}
				hashes[i], ok = t.hash(within, place)
			} else if n == e.full(level) {
				hashes[i], ok = e.hash(level, within, place)
			}
			if !ok {
				return nil, fmt.Errorf("a log of %d entries has no hash %d", e.size, index)
			}
		}
		return hashes, nil
	})
}

// entry returns the text of an entry of the edge's log.
func (f *files) entry(ctx context.Context, e *edge, number int64) (string, error) {
	if n := number - (e.size - int64(len(e.entries))); n >= 0 {
		return e.entries[n], nil
	}
	entries, err := f.signedBundle(ctx, number/BundleSize)
	if err != nil {
		return "", err
	}
	return entries[number%BundleSize], nil
}

// signedBundle returns the entries of a bundle that a signed log has: it cannot be absent.
func (f *files) signedBundle(ctx context.Context, n int64) ([]string, error) {
	entries, err := f.bundle(ctx, n)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s is gone", ErrForked, bundleName(n))
	}
	if err != nil {
		return nil, fmt.Errorf("reading entries of the log: %w", err)
	}
	return entries, nil
}

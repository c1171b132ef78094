package tlog

import (
	"slices"
	"sync"

	sumdb "golang.org/x/mod/sumdb/tlog"
)

// An edge has the part of a log that must be in memory so that the log can grow: at each level
// the hashes of the tile that is not full yet. It takes at most 8 KiB a level, and is immutable.
type edge struct {
	size int64

	// levels[l] has the hashes of level 8·l from the last full tile of that level on. Each is
	// the root of a full tile one level below, and at level 0 the hash of an entry.
	levels [][]sumdb.Hash

	// entries are those from the last full bundle on.
	entries []string

	// The last entry has this hash, and the batch that has it begins with this number. It is
	// negative if it is not known.
	last  sumdb.Hash
	batch int64

	once  sync.Once
	tiles []*tile // of the levels; they are made for the first proof
}

// A file is a tile or bundle that has become full.
type file struct {
	tile    sumdb.Tile
	content []byte
}

func (f file) name() string { return TilePath(f.tile) }

// grow returns the edge with further entries, and the files that have become full, so that
// each bundle comes after all tiles that it completes.
func (e *edge) grow(entries []string) (*edge, []file) {
	next := &edge{size: e.size, last: e.last, batch: e.size, levels: make([][]sumdb.Hash, len(e.levels)), entries: slices.Clone(e.entries)}
	for l, hashes := range e.levels {
		next.levels[l] = slices.Clone(hashes)
	}
	var full []file
	for _, entry := range entries {
		next.entries = append(next.entries, entry)
		next.last = hashOf(entry)
		full = append(full, next.add(0, next.size, next.last)...)
		next.size++
		if len(next.entries) == BundleSize {
			full = append(full, file{fullTile(-1, next.size/BundleSize-1), EncodeBundle(next.entries)})
			next.entries = nil
		}
	}
	return next, full
}

// add adds the hash with number n of a level.
func (e *edge) add(level int, n int64, h sumdb.Hash) []file {
	if level == len(e.levels) {
		e.levels = append(e.levels, nil)
	}
	e.levels[level] = append(e.levels[level], h)
	if len(e.levels[level]) < BundleSize {
		return nil
	}
	t := newTile(e.levels[level])
	e.levels[level] = nil
	full := []file{{fullTile(level, n/BundleSize), encodeHashes(t.levels[0])}}
	return append(full, e.add(level+1, n/BundleSize, t.root())...)
}

// hash returns a hash of a tile that is not full.
func (e *edge) hash(level, within int, place int64) (sumdb.Hash, bool) {
	e.once.Do(func() {
		e.tiles = make([]*tile, len(e.levels))
		for l, hashes := range e.levels {
			e.tiles[l] = newTile(hashes)
		}
	})
	if level >= len(e.tiles) {
		return sumdb.Hash{}, false
	}
	return e.tiles[level].hash(within, place)
}

// full returns the number of full tiles of a level.
func (e *edge) full(level int) int64 { return e.size >> (tileHeight * (level + 1)) }

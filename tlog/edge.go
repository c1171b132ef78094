package tlog

import (
	"fmt"
	"slices"

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
}

// A file is a tile or bundle that has become full.
type file struct {
	name    string
	content []byte
}

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
			full = append(full, file{TilePath(fullTile(-1, next.size/BundleSize-1)), EncodeBundle(next.entries)})
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
	data := encodeHashes(e.levels[level])
	e.levels[level] = nil
	full := []file{{TilePath(fullTile(level, n/BundleSize)), data}}
	return append(full, e.add(level+1, n/BundleSize, rootOf(level, n/BundleSize, data))...)
}

// rootOf returns the hash of a full tile's root, which is a hash of the level above.
func rootOf(level int, n int64, data []byte) sumdb.Hash {
	half := func(i int64) sumdb.Hash {
		h, err := sumdb.HashFromTile(fullTile(level, n), data, sumdb.StoredHashIndex(tileHeight*(level+1)-1, 2*n+i))
		if err != nil {
			panic(err) // the tile has these hashes, whatever they are
		}
		return h
	}
	return sumdb.NodeHash(half(0), half(1))
}

// hash returns a hash of a tile that is not full.
func (e *edge) hash(t sumdb.Tile, index int64) (sumdb.Hash, error) {
	if t.L >= len(e.levels) || len(e.levels[t.L]) < t.W {
		return sumdb.Hash{}, fmt.Errorf("a log of %d entries has no hash %d", e.size, index)
	}
	return sumdb.HashFromTile(t, encodeHashes(e.levels[t.L][:t.W]), index)
}

// full returns the number of full tiles of a level.
func (e *edge) full(level int) int64 { return e.size >> (tileHeight * (level + 1)) }

func encodeHashes(hashes []sumdb.Hash) []byte {
	b := make([]byte, 0, len(hashes)*sumdb.HashSize)
	for _, h := range hashes {
		b = append(b, h[:]...)
	}
	return b
}

// A Head is a log as a signed checkpoint has it. It is immutable.
type Head struct {
	Checkpoint
	Signed []byte // the checkpoint with its signatures

	edge *edge
}

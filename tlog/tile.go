package tlog

import (
	"fmt"
	"math"
	"strings"

	sumdb "golang.org/x/mod/sumdb/tlog"
)

// TilePath returns the path of a tile in C2SP's tlog-tiles, such as tile/0/x001/234.p/5. A
// tile of level -1 is a bundle. The paths of Go's checksum database have the height, too, and
// another name for bundles.
func TilePath(t sumdb.Tile) string {
	rest := strings.TrimPrefix(t.Path(), fmt.Sprintf("tile/%d/", tileHeight))
	if bundle, ok := strings.CutPrefix(rest, "data/"); ok {
		rest = "entries/" + bundle
	}
	return "tile/" + rest
}

// ParseTilePath reads what TilePath has written. Each tile has one path.
func ParseTilePath(path string) (sumdb.Tile, error) {
	rest, ok := strings.CutPrefix(path, "tile/")
	if bundle, is := strings.CutPrefix(rest, "entries/"); is {
		rest = "data/" + bundle
	} else if strings.HasPrefix(rest, "data/") {
		ok = false
	}
	t, err := sumdb.ParseTilePath(fmt.Sprintf("tile/%d/%s", tileHeight, rest))
	if !ok || err != nil || TilePath(t) != path {
		return sumdb.Tile{}, fmt.Errorf("%.100q is no path of a tile", path)
	}
	return t, nil
}

// SizeWith returns the size of the smallest log that has a tile or bundle.
func SizeWith(t sumdb.Tile) int64 {
	level := max(t.L, 0)
	hashes := t.N<<tileHeight + int64(t.W)
	if level >= 7 || hashes > math.MaxInt64>>(tileHeight*level) {
		return math.MaxInt64
	}
	return hashes << (tileHeight * level)
}

func fullTile(level int, n int64) sumdb.Tile {
	return sumdb.Tile{H: tileHeight, L: level, N: n, W: BundleSize}
}

// A tile has the hashes of a tile, and those above them up to its root. It is immutable.
type tile struct {
	levels [tileHeight + 1][]sumdb.Hash // from the tile's own hashes upwards
}

// newTile returns the tile with these hashes. It need not be full.
func newTile(hashes []sumdb.Hash) *tile {
	t := new(tile)
	t.levels[0] = hashes
	for l := range tileHeight {
		below := t.levels[l]
		above := make([]sumdb.Hash, len(below)/2)
		for i := range above {
			above[i] = sumdb.NodeHash(below[2*i], below[2*i+1])
		}
		t.levels[l+1] = above
	}
	return t
}

// root returns the root of a full tile.
func (t *tile) root() sumdb.Hash { return t.levels[tileHeight][0] }

// hash returns the hash with a number of a level of the tile's tree, counted from the tile.
func (t *tile) hash(level int, n int64) (h sumdb.Hash, ok bool) {
	if n >= int64(len(t.levels[level])) {
		return h, false
	}
	return t.levels[level][n], true
}

// tileOf returns which tile has a stored hash, and at which place in it.
func tileOf(index int64) (level int, n int64, within int, place int64) {
	l, i := sumdb.SplitStoredHashIndex(index)
	level, within = l/tileHeight, l%tileHeight
	width := tileHeight - within // the tile has so many hashes at that height, as a power of 2
	return level, i >> width, within, i & (1<<width - 1)
}

func encodeHashes(hashes []sumdb.Hash) []byte {
	b := make([]byte, 0, len(hashes)*sumdb.HashSize)
	for _, h := range hashes {
		b = append(b, h[:]...)
	}
	return b
}

func decodeHashes(b []byte) []sumdb.Hash {
	hashes := make([]sumdb.Hash, len(b)/sumdb.HashSize)
	for i := range hashes {
		copy(hashes[i][:], b[i*sumdb.HashSize:])
	}
	return hashes
}

package tlog

import (
	"fmt"
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

func fullTile(level int, n int64) sumdb.Tile {
	return sumdb.Tile{H: tileHeight, L: level, N: n, W: BundleSize}
}

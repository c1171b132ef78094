package layout

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// A Way knows the folders on the way to addresses as they were last listed.
type Way interface {
	// Names returns the names of the folders in a folder, by its path in the report; nil if it was
	// not listed.
	Names(report string) map[string]bool

	// IsUnchanged reports whether it is known, without listing the folder again, that no name has
	// been added or removed since.
	IsUnchanged(f Folder) bool
}

// Lowest returns the lowest folders on the way from f to a path of a report in which something can
// be new or gone: all that is above them lies there as it was listed before. Several spellings of
// the path have several such folders.
func (f Folder) Lowest(report string, listed Way) []Folder {
	folders := []Folder{f}
	names := tree.SplitPath(strings.TrimPrefix(report, f.Report))
	for _, name := range names[:max(0, len(names)-1)] { // the path itself may be gone
		var below []Folder
		for _, f := range folders {
			spellings, known := f.spellings(name, listed)
			if !known {
				return folders
			}
			below = append(below, spellings...)
		}
		if len(below) == 0 {
			return folders
		}
		folders = below
	}
	return folders
}

// spellings returns the folders of a name in f, in any spelling. known reports whether they are the
// folders that have been listed before.
func (f Folder) spellings(name string, listed Way) (below []Folder, known bool) {
	before := listed.Names(f.Report)
	if before == nil {
		return nil, false
	}
	spelled := func(names iter.Seq[string]) (spelled []string) {
		for n := range names {
			if address.SameName(n, name) {
				spelled = append(spelled, n)
			}
		}
		slices.Sort(spelled)
		return spelled
	}
	found := spelled(maps.Keys(before))
	if !listed.IsUnchanged(f) {
		now, err := f.Part.Names(f.Dir)
		if err != nil || !slices.Equal(found, spelled(slices.Values(now))) {
			return nil, false
		}
	}
	for _, n := range found {
		next := f.Below(n)
		if info, err := f.Part.Lookup(next.Dir); err != nil || !info.IsDir() || listed.Names(next.Report) == nil {
			return nil, false
		}
		below = append(below, next)
	}
	return below, true
}

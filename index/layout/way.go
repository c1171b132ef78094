package layout

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// Lowest returns the lowest folders on the way from f to a path of a report in which something can
// be new or gone: all that is above them lies there as it was listed before. Several spellings of
// the path have several such folders. listed returns the names that were listed in a folder, or nil
// if it was not listed.
func (f Folder) Lowest(report string, listed func(report string) map[string]bool) []Folder {
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
func (f Folder) spellings(name string, listed func(report string) map[string]bool) (below []Folder, known bool) {
	before := listed(f.Report)
	now, err := f.Part.Names(f.Dir)
	if err != nil || before == nil {
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
	found := spelled(slices.Values(now))
	if !slices.Equal(found, spelled(maps.Keys(before))) {
		return nil, false
	}
	for _, n := range found {
		next := f.Below(n)
		if info, err := f.Part.Lookup(next.Dir); err != nil || !info.IsDir() || listed(next.Report) == nil {
			return nil, false
		}
		below = append(below, next)
	}
	return below, true
}

package watch

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"
)

// A folder that is gone takes the folders in it along, also those in folders that are not watched,
// and no folder that is only called like it. What comes back is found again.
func TestAFolderThatIsGoneTakesThoseInItAlong(t *testing.T) {
	path := func(name string) string { return filepath.FromSlash("/srv/registry/" + name) }
	w := newWatched()
	for _, name := range []string{"acme", "acme/demo", "acme/demo/1.0.0/deep", "acme-two", "acme-two/demo"} {
		w.add(path(name), name)
	}
	for range 2 {
		var removed []string
		w.remove(path("acme"), func(dir string) { removed = append(removed, dir) })
		slices.Sort(removed)
		if want := []string{path("acme"), path("acme/demo"), path("acme/demo/1.0.0/deep")}; !slices.Equal(removed, want) {
			t.Errorf("%v are removed, want %v", removed, want)
		}
		if left := slices.Sorted(maps.Keys(w.tree)); !slices.Equal(left, []string{path("acme-two"), path("acme-two/demo")}) {
			t.Errorf("%v are left", left)
		}
		for _, name := range []string{"acme/demo/1.0.0/deep", "acme", "acme/demo"} { // in any order
			w.add(path(name), name)
		}
	}
}

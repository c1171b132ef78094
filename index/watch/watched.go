package watch

import "path/filepath"

// watched has the directories that a scan has read.
type watched struct {
	tree    map[string]string          // the directories of the tree, with a folder that the report names; empty: the whole tree
	below   map[string]map[string]bool // the directories in each directory that lead to those of the tree
	modules map[string]bool            // the directories among them that are packed as a module, where dot files count
	onPath  map[string]map[string]bool // names in other directories, see AddPathTo
	linked  bool                       // a directory may have two names, and events have only one of them
	ended   bool                       // the watch of a directory has ended whose name another directory has now
	blind   bool                       // something cannot be watched
}

func newWatched() watched {
	return watched{tree: make(map[string]string), below: make(map[string]map[string]bool), modules: make(map[string]bool), onPath: make(map[string]map[string]bool)}
}

// add adds a directory of the tree.
func (w *watched) add(dir, report string) {
	w.tree[dir] = report
	for parent := filepath.Dir(dir); !w.below[parent][dir] && parent != dir; dir, parent = parent, filepath.Dir(parent) {
		if w.below[parent] == nil {
			w.below[parent] = make(map[string]bool)
		}
		w.below[parent][dir] = true
	}
}

// remove removes a directory and the directories in it, and calls removed for each directory of
// the tree. It does not look at all others: thousands of folders may be renamed at once.
func (w *watched) remove(dir string, removed func(dir string)) {
	for below := range w.below[dir] {
		w.remove(below, removed)
	}
	delete(w.below, dir)
	delete(w.below[filepath.Dir(dir)], dir)
	delete(w.modules, dir)
	if w.has(dir) {
		delete(w.tree, dir)
		removed(dir)
	}
}

// all returns every directory that is watched.
func (w *watched) all() map[string]bool {
	all := make(map[string]bool, len(w.tree))
	for dir := range w.tree {
		all[dir] = true
	}
	for dir := range w.onPath {
		all[dir] = true
	}
	return all
}

func (w *watched) has(dir string) bool {
	_, ok := w.tree[dir]
	return ok
}

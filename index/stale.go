package index

import (
	"cmp"
	"maps"
	"slices"

	"github.com/caddy-terraform/caddy-terraform-registry/index/keys"
	"github.com/caddy-terraform/caddy-terraform-registry/index/layout"
)

// A scan of some folders makes only the entries of these folders again: a change must not cost
// more in a large tree than in a small one.

// walkStale finds the folders of addresses that may have changed. It lists a folder on the
// way to an address only if a folder in it is new or gone: the folder of a provider that is
// known is found without listing thousands of others, and the folder of a new one without
// listing thousands of namespaces.
func (v *wayWalk) walkStale(root layout.Folder, paths []string) {
	starts := make(map[string]layout.Folder)
	for _, report := range paths {
		if v.addKnown(root, report) {
			continue
		}
		v.unsettled = append(v.unsettled, report)
		for _, f := range root.Lowest(report, v.names) {
			starts[f.Report] = f
		}
	}
	for _, report := range slices.Sorted(maps.Keys(starts)) {
		if v.way[report] == nil { // else the walk of a folder above has listed it
			v.walk(starts[report])
		}
	}
	v.sort()
}

// names returns the names of the folders in a folder when it was last listed; nil if it never was.
func (v *wayWalk) names(report string) map[string]bool {
	last := cmp.Or(v.scan.last, new(Snapshot)).way.Get(report)
	return cmp.Or(last, new(wayFolder)).names
}

// sort orders the folders that were found, and drops those that were found twice.
func (v *wayWalk) sort() {
	slices.SortFunc(v.found, func(a, b layout.Folder) int { return a.Compare(b) })
	v.found = slices.CompactFunc(v.found, func(a, b layout.Folder) bool { return a.Report == b.Report })
}

// addKnown adds the folders of the address in which a path lies, and reports whether it has
// found the folder of that path.
func (v *wayWalk) addKnown(root layout.Folder, report string) (found bool) {
	f, ok := root.FolderOf(report)
	if !ok {
		return false
	}
	for _, e := range v.scan.last.group(f.Address).all() {
		known := e.folder.Folder
		if known.Address != f.Address {
			continue
		}
		known.Part = f.Part
		if info, err := f.Part.Lookup(known.Dir); err != nil || !info.IsDir() {
			return false
		}
		v.found = append(v.found, known)
		found = found || known.Report == f.Report
	}
	return found
}

// passes reports whether the walk passes a folder, since nothing in it has changed.
func (v *wayWalk) passes(f layout.Folder) bool {
	if v.unsettled == nil || slices.ContainsFunc(v.unsettled, func(s string) bool { return layout.IsOnWay(f.Report, s) || layout.IsOnWay(s, f.Report) }) {
		return false
	}
	if v.scan.last.way.Get(f.Report) != nil {
		return true
	}
	if !f.IsWhole() {
		return false
	}
	a, err := f.ParseAddress()
	return err == nil && v.scan.last.group(a).entryOf(f.Report) != nil
}

// addOfKeys adds the folders of all providers whose namespace has other keys now.
func (v *wayWalk) addOfKeys(k *keys.Folder) {
	for _, g := range v.scan.last.groups.All() {
		for _, e := range g.entries {
			if !e.folder.Address.IsModule() && !e.keys.Same(k.For(keys.NamespaceOf(e.folder.Address))) {
				f := e.folder.Folder
				f.Part = v.scan.tree.Providers
				v.found = append(v.found, f)
			}
		}
	}
	v.sort()
}

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
		for _, f := range root.Lowest(report, v) {
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

// last returns a folder as it was after the last scan.
func (v *wayWalk) last(report string) *wayFolder {
	return cmp.Or(cmp.Or(v.scan.last, new(Snapshot)).way.Get(report), new(wayFolder))
}

// Names implements layout.Way.
func (v *wayWalk) Names(report string) map[string]bool { return v.last(report).names }

// IsUnchanged implements layout.Way. A change in one of thousands of namespaces need not list the
// names of all.
func (v *wayWalk) IsUnchanged(f layout.Folder) bool {
	last := v.last(f.Report)
	now, _ := f.Part.StampOfNames(f.Dir, v.scan.options.now)
	return last.stamped && last.stamp == now
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
	for _, e := range v.scan.last.group(f.Address).entries {
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

// mayHaveChanged reports whether something in a folder may have changed.
func (v *wayWalk) mayHaveChanged(f layout.Folder) bool {
	return v.unsettled == nil || slices.ContainsFunc(v.unsettled, func(s string) bool { return layout.IsOnWay(f.Report, s) || layout.IsOnWay(s, f.Report) })
}

// addOfKeys adds the folders of all addresses that have other keys now.
func (v *wayWalk) addOfKeys(k *keys.Folder) {
	for _, g := range v.scan.last.groups.All() {
		for _, e := range g.entries {
			if f := e.folder.Folder; f.IsModule() == v.root.IsModule() && !e.keys.Same(keysFor(f.Address, k)) {
				f.Part = v.root.Part
				v.found = append(v.found, f)
			}
		}
	}
	v.sort()
}

package index

import (
	"slices"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// A scan of some folders makes only the entries of these folders again: a change must not cost
// more in a large tree than in a small one.

// stale has the folders and files that may have changed, by their path in the report, with
// everything below them. An empty path is the whole tree.
type stale map[string]bool

func everything() stale { return stale{"": true} }

// staleFolders returns folders that may have changed: without folders, the whole tree.
func staleFolders(folders []string) stale {
	if len(folders) == 0 {
		return everything()
	}
	s := make(stale, len(folders))
	for _, report := range folders {
		s[report] = true
	}
	return s
}

// in returns the paths that lie in a part of the tree.
func (s stale) in(part string) (paths []string) {
	for report := range s {
		if tree.IsBelow(report, part) {
			paths = append(paths, report)
		}
	}
	slices.Sort(paths)
	return paths
}

// has reports whether something has changed in a part of the tree.
func (s stale) has(part string) bool { return s[""] || len(s.in(part)) > 0 }

// walkStale finds the folders of addresses that may have changed. It lists a folder on the
// way to an address only if a folder in it is new or gone: the folder of a provider that is
// known is found without listing thousands of others.
func (v *wayWalk) walkStale(root folder, paths []string) {
	for _, report := range paths {
		if !v.addKnown(root, report) {
			v.unsettled = append(v.unsettled, report)
		}
	}
	if len(v.unsettled) > 0 {
		v.walk(root)
	}
	v.sort()
}

// sort orders the folders that were found, and drops those that were found twice.
func (v *wayWalk) sort() {
	slices.SortFunc(v.found, compareFolders)
	v.found = slices.CompactFunc(v.found, func(a, b folder) bool { return a.report == b.report })
}

// addKnown adds the folders of the address in which a path lies, and reports whether it has
// found the folder of that path.
func (v *wayWalk) addKnown(f folder, report string) (found bool) {
	rest := strings.TrimPrefix(strings.TrimPrefix(report, f.report), "/")
	for name := range strings.SplitSeq(rest, "/") {
		if name != "" && len(f.names) < v.depth {
			f = f.below(name)
		}
	}
	if len(f.names) < v.depth {
		return false
	}
	a, err := v.parse(f)
	if err != nil {
		return false
	}
	for _, e := range v.scan.last.group(a).all() {
		known := e.folder
		if known.address != a {
			continue
		}
		known.part = f.part
		if info, err := f.part.Lookup(known.dir); err != nil || !info.IsDir() {
			return false
		}
		known.metadata = nil
		v.found = append(v.found, known)
		found = found || known.report == f.report
	}
	return found
}

// passes reports whether the walk passes a folder, since nothing in it has changed.
func (v *wayWalk) passes(f folder) bool {
	if v.unsettled == nil || slices.ContainsFunc(v.unsettled, func(s string) bool { return isOnWay(f.report, s) || isOnWay(s, f.report) }) {
		return false
	}
	if v.scan.last.way[f.report] != nil {
		return true
	}
	if len(f.names) < v.depth {
		return false
	}
	a, err := v.parse(f)
	return err == nil && v.scan.last.group(a).entryOf(f.report) != nil
}

// isOnWay reports whether a path lies at or below a folder, in any spelling.
func isOnWay(folder, report string) bool {
	names, above := strings.Split(report, "/"), strings.Split(folder, "/")
	return len(above) <= len(names) && slices.EqualFunc(above, names[:len(above)], address.SameName)
}

// addOfKeys adds the folders of all providers whose namespace has other keys now.
func (v *wayWalk) addOfKeys(keys *keysFolder) {
	for _, g := range v.scan.last.groups {
		for _, e := range g.entries {
			if !e.folder.address.IsModule() && !e.keys.same(keys.keysFor(e.folder.keysOf())) {
				f := e.folder
				f.part, f.metadata = v.scan.tree.Providers, nil
				v.found = append(v.found, f)
			}
		}
	}
	v.sort()
}

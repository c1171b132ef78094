package changes

import (
	"slices"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// Paths are folders and files that may have changed, by their path in the report, with
// everything below them. An empty path is the whole tree.
type Paths map[string]bool

// Everything returns the whole tree.
func Everything() Paths { return Paths{"": true} }

// PathsOf returns these folders or, if there are none, the whole tree.
func PathsOf(folders []string) Paths {
	if len(folders) == 0 {
		return Everything()
	}
	return Only(folders)
}

// Only returns these paths, of which there may be none.
func Only(reports []string) Paths {
	p := make(Paths, len(reports))
	for _, report := range reports {
		p[report] = true
	}
	return p
}

// Below returns the paths that lie in a part of the tree, in order.
func (p Paths) Below(part string) (paths []string) {
	for report := range p {
		if tree.IsBelow(report, part) {
			paths = append(paths, report)
		}
	}
	slices.Sort(paths)
	return paths
}

// Has reports whether something may have changed in a part of the tree.
func (p Paths) Has(part string) bool { return p[""] || len(p.Below(part)) > 0 }

package pages

import (
	"slices"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/changes"
)

// versions returns the rows of all versions.
func (m *moduleView) versions() []versionGroup[versionRow] {
	var offered, withdrawn []versionRow
	var summaries summaryCache
	for i, v := range m.module.Versions {
		row := versionRow{
			Version: v.Version, URL: m.url(m.route.withVersion(v.Version)), Published: v.Published(), Size: size(v.Archive.Size), Chips: m.chipsOf(v),
		}
		if n := v.Deprecated(); n != nil {
			row.Reason = n.Reason
		}
		if i+1 < len(m.module.Versions) {
			row.Added, row.Removed = summaries.difference(m.module.Versions[i+1], v)
			row.Compare = withQuery(row.URL, "tab", tabChanges)
		}
		offered = append(offered, row)
	}
	for _, w := range m.module.Withdrawn() {
		withdrawn = append(withdrawn, versionRow{
			Version: w.Version, URL: m.url(m.route.withVersion(w.Version)), Reason: w.Notice.Reason, Chips: []chip{withdrawnChip},
		})
	}
	return groupVersions(offered, withdrawn)
}

// A summaryCache decodes each summary only once for a list that compares every version
// with the next.
type summaryCache struct {
	of    *index.ModuleVersion
	names []string
}

// difference returns the names that the root of a version has more and fewer than the
// root of another version.
func (c *summaryCache) difference(from, to *index.ModuleVersion) (more, less []string) {
	now := c.names
	if c.of != to {
		now = interfaceNames(to)
	}
	old := interfaceNames(from)
	c.of, c.names = from, old
	return changes.Names(old, now)
}

func interfaceNames(v *index.ModuleVersion) []string {
	s := v.Summary()
	return slices.Concat(s.Inputs, s.Outputs)
}

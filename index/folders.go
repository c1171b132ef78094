package index

import (
	"cmp"
	"context"
	"slices"
	"time"

	version "github.com/hashicorp/go-version"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/memo"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// Folders returns the folders of all providers and modules, without reading their packages.
// Of several spellings of an address it returns the one that is offered.
func Folders(ctx context.Context, t tree.Tree) ([]tree.AddressFolder, error) {
	s := &scan{ctx: ctx, tree: t, now: time.Now(), memo: new(memo.Memo), releases: new(releaseMemo), copies: new(keyCopyMemo)}
	s.memo.Begin(s.now)
	w := &walker{scan: s, report: newReport()}
	var folders []tree.AddressFolder
	add := func(f *folder, a address.Address, versions []*version.Version) {
		address.SortNewestFirst(versions, func(v *version.Version) *version.Version { return v })
		versions = slices.CompactFunc(versions, func(a, b *version.Version) bool { return a.String() == b.String() })
		folders = append(folders, tree.NewAddressFolder(a, f.report, f.part, f.dir, versions))
	}
	for _, p := range w.walkProviders(nil) {
		var versions []*version.Version
		for _, r := range p.ordered {
			if len(r.packages) > 0 {
				versions = append(versions, r.version)
			}
		}
		add(&p.folder, p.address, versions)
	}
	for _, m := range w.walkModules() {
		var versions []*version.Version
		for _, p := range m.packages {
			versions = append(versions, p.version)
		}
		add(&m.folder, m.address, versions)
	}
	return folders, cmp.Or(ctx.Err(), w.report.failure())
}

// Covered returns the number and, in short, the names of the versions that meet
// constraints.
func Covered(versions []*version.Version, c address.Constraints) (n int, names string) {
	covered := slices.Clone(versions)
	for i, v := range covered {
		if c.Cover(v) {
			n++
		} else {
			covered[i] = nil
		}
	}
	return n, nameVersions(covered, n)
}

package index

import (
	"cmp"
	"context"
	"slices"
	"time"

	version "github.com/hashicorp/go-version"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/changes"
	"github.com/caddy-terraform/caddy-terraform-registry/index/keys"
	"github.com/caddy-terraform/caddy-terraform-registry/index/report"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// Folders returns the folders of all providers and modules, without reading their packages.
// Of several spellings of an address it returns the one that is offered.
func Folders(ctx context.Context, t tree.Tree) ([]tree.AddressFolder, error) {
	x := &scanner{once: true}
	s := &scan{scanner: x, ctx: ctx, tree: t, now: time.Now(), stale: changes.Everything()}
	x.memo.Begin(s.now)
	var listings []*listing
	report := report.New()
	for _, v := range s.walkTree() {
		for _, way := range v.way {
			report.Merge(way.report)
		}
		for _, f := range v.found {
			listings = append(listings, s.list(f, new(keys.Folder))) // nothing is verified
		}
	}
	for _, l := range listings {
		report.Merge(l.walker.report)
	}
	var folders []tree.AddressFolder
	for _, l := range s.chosen(listings) {
		f := l.folder()
		var versions []*version.Version
		if l.entry == nil { // it can be read
			versions = l.found.versions()
		}
		address.SortNewestFirst(versions, func(v *version.Version) *version.Version { return v })
		versions = slices.CompactFunc(versions, func(a, b *version.Version) bool { return a.String() == b.String() })
		folders = append(folders, tree.NewAddressFolder(f.Address, f.Report, f.Part, f.Dir, versions))
	}
	return folders, cmp.Or(ctx.Err(), report.Failure())
}

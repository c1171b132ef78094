package index

import (
	"path"
	"slices"
	"strings"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/offer"
	"github.com/caddy-terraform/caddy-terraform-registry/index/report"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// A Ledger has on record what clients were offered before, such as a transparency log. A
// version that it has with other bytes is withheld. It must answer from memory: all snapshots
// wait for it.
type Ledger interface {
	// Package returns why the package of a provider must not be offered; nil if it may be.
	// The address has the HOSTNAME of its folder.
	Package(a address.Address, version string, k *Package) *tree.Finding

	// ModuleVersion returns why the version of a module must not be offered; nil if it may be.
	ModuleVersion(a address.Address, v *ModuleVersion) *tree.Finding
}

// SetLedger compares everything with a ledger, which may be nil, soon and whenever something
// changes. It does not wait for a scan.
func (x *Index) SetLedger(l Ledger) {
	if before := x.scanner.ledger.Swap(&l); before == nil && l == nil || before != nil && *before == l {
		return
	}
	x.done.Go(func() { x.Compare() })
}

// Compare compares addresses, or everything if there are none, with a ledger that has
// something new. The HOSTNAME of an address does not count.
func (x *Index) Compare(addresses ...address.Address) {
	x.scanning.Lock()
	defer x.scanning.Unlock()
	x.compare(addresses)
}

func (x *Index) compare(addresses []address.Address) {
	before := x.scanner.last
	if before == nil || x.ctx.Err() != nil {
		return
	}
	if len(addresses) == 0 {
		addresses = slices.Collect(before.addresses())
	}
	s := &scan{scanner: &x.scanner, ctx: x.ctx, tree: before.tree, now: x.options.now()}
	if n := s.between(found{keys: before.keys, compared: addresses}); len(n.differs.groups) > 0 {
		x.begin(time.Now())
		x.publish(before, n, nil)
	}
}

// recorded returns the ledger; nil: there is none.
func (x *scanner) recorded() Ledger {
	if l := x.ledger.Load(); l != nil {
		return *l
	}
	return nil
}

// compare makes a group again if a ledger has something new about it.
func (s *Snapshot) compare(key address.Address, before *group, l Ledger) {
	g := newGroup(slices.Clone(before.entries), before, l)
	if !slices.Equal(g.offered, before.offered) {
		s.groups[key] = g
		s.differs.groups[key] = true
	}
}

// onRecord returns the entry without the versions that a ledger, which may be nil, has with
// other bytes. before is what was offered of the address, which may be nil: what has not
// changed stays the same.
func (e *entry) onRecord(l Ledger, before *entry) *entry {
	if l == nil || e.provider == nil && e.module == nil {
		return e
	}
	bad := report.New()
	releases := slices.DeleteFunc(slices.Clone(e.releases), func(r *Release) bool { return e.withholdRelease(bad, l, r) })
	versions := slices.DeleteFunc(slices.Clone(e.module.VersionList()), func(v *ModuleVersion) bool { return e.withholdVersion(bad, l, v) })
	if len(bad.Withheld) == 0 {
		return e
	}
	if before != nil && before.whole == e && slices.Equal(before.withheld, bad.Withheld) {
		return before
	}
	without := *e
	without.whole, without.withheld = e, bad.Withheld
	without.report = bad
	without.report.Merge(e.report)
	without.provider, without.module = nil, nil
	if len(releases) > 0 {
		without.provider = offer.NewProvider(e.provider.Address, releases, e.metadata)
		without.provider = without.provider.WithTitles(e.provider.TitlesOf(without.provider.Latest()))
	}
	if len(versions) > 0 {
		without.module = offer.NewModule(e.module.Address, versions, e.metadata)
	}
	return &without
}

// withholdRelease reports whether a ledger has a release with other bytes.
func (e *entry) withholdRelease(r *Report, l Ledger, release *Release) (replaced bool) {
	for _, k := range release.Packages {
		if bad := l.Package(e.folder.Address, release.Version, k); bad != nil {
			r.Withhold(e.reportPath(k.File), e.folder.Address, release.Version, bad)
			replaced = true
		}
	}
	return replaced
}

// withholdVersion reports whether a ledger has the version of a module with other bytes.
func (e *entry) withholdVersion(r *Report, l Ledger, v *ModuleVersion) (replaced bool) {
	bad := l.ModuleVersion(e.folder.Address, v)
	if bad != nil {
		r.Withhold(e.reportPath(v.Archive), e.folder.Address, v.Version, bad)
	}
	return bad != nil
}

// reportPath returns the path of a file of the entry in reports.
func (e *entry) reportPath(f *File) string {
	return path.Join(e.folder.Report, strings.TrimPrefix(f.Path(), e.folder.Dir))
}

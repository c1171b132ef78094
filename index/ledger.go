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
	// Package returns when the package of a provider was first offered, zero if that is not
	// known, and why it must not be offered, nil if it may be. The address has the HOSTNAME
	// of its folder.
	Package(a address.Address, version string, k *Package) (time.Time, *tree.Finding)

	// ModuleVersion returns the same of the version of a module.
	ModuleVersion(a address.Address, v *ModuleVersion) (time.Time, *tree.Finding)
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

// A recorded entry has what a ledger says of the versions of an entry.
type recorded struct {
	whole    *entry    // the entry without the ledger
	withheld []Problem // versions that the ledger has with other bytes
	times    []int64   // when the others were first offered, in nanoseconds; 0: it is not known
}

// onRecord returns the entry as a ledger, which may be nil, has it: without the versions of
// other bytes, the others with the time when they were first offered. before is what was
// offered of the address, which may be nil: what has not changed stays the same.
func (e *entry) onRecord(l Ledger, before *entry) *entry {
	if l == nil || e.provider == nil && e.module == nil {
		return e
	}
	c := &comparing{ledger: l, entry: e, bad: report.New()}
	var releases []*Release
	for _, r := range e.releases {
		if c.compareRelease(r) {
			releases = append(releases, r)
		}
	}
	var versions []*ModuleVersion
	for _, v := range e.module.VersionList() {
		if c.compareVersion(v) {
			versions = append(versions, v)
		}
	}
	if len(c.bad.Withheld) == 0 && !c.knows {
		return e
	}
	now := recorded{e, c.bad.Withheld, c.times}
	same := before != nil && before.recorded.saysTheSame(now)
	if same && before.recorded.whole == e {
		return before
	}
	on := *e
	on.recorded, on.report = &now, c.bad
	on.report.Merge(e.report)
	if same && before.recorded.whole.offersTheSame(e) {
		on.provider, on.module = titled(before.provider, e.titles), before.module
		return &on
	}
	on.provider, on.module = nil, nil
	for i, r := range releases {
		releases[i] = r.WithOffered(c.times[i])
	}
	for i, v := range versions {
		versions[i] = v.WithOffered(c.times[i])
	}
	if len(releases) > 0 {
		on.provider = titled(offer.NewProvider(e.provider.Address, releases, e.metadata), e.titles)
	}
	if len(versions) > 0 {
		on.module = offer.NewModule(e.module.Address, versions, e.metadata)
	}
	return &on
}

// saysTheSame reports whether a ledger said the same of the versions of an entry before.
func (r *recorded) saysTheSame(now recorded) bool {
	return r != nil && slices.Equal(r.withheld, now.withheld) && slices.Equal(r.times, now.times)
}

// comparing collects what a ledger says of an entry.
type comparing struct {
	ledger Ledger
	entry  *entry
	bad    *Report
	times  []int64
	knows  bool // when one of the versions was offered
}

// compareRelease reports whether a release may be offered.
func (c *comparing) compareRelease(r *Release) bool {
	var first time.Time
	may, known := true, true
	for _, k := range r.Packages {
		at, bad := c.ledger.Package(c.entry.folder.Address, r.Version, k)
		if bad != nil {
			c.bad.Withhold(c.entry.reportPath(k.File), c.entry.folder.Address, r.Version, bad)
			may = false
		}
		first, known = earlier(first, at), known && !at.IsZero()
	}
	if !known { // one of its packages may be older
		first = time.Time{}
	}
	return c.add(first, may)
}

// compareVersion reports whether the version of a module may be offered.
func (c *comparing) compareVersion(v *ModuleVersion) bool {
	at, bad := c.ledger.ModuleVersion(c.entry.folder.Address, v)
	if bad != nil {
		c.bad.Withhold(c.entry.reportPath(v.Archive), c.entry.folder.Address, v.Version, bad)
	}
	return c.add(at, bad == nil)
}

func (c *comparing) add(first time.Time, may bool) bool {
	switch {
	case !may:
	case first.IsZero():
		c.times = append(c.times, 0)
	default:
		c.times, c.knows = append(c.times, first.UnixNano()), true
	}
	return may
}

// reportPath returns the path of a file of the entry in reports.
func (e *entry) reportPath(f *File) string {
	return path.Join(e.folder.Report, strings.TrimPrefix(f.Path(), e.folder.Dir))
}

package index

import (
	"cmp"
	"slices"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/ledger"
	"github.com/caddy-terraform/caddy-terraform-registry/index/offer"
	"github.com/caddy-terraform/caddy-terraform-registry/index/report"
)

// SetLedger compares everything with a ledger, which may be nil, soon and whenever something
// changes. It does not wait for a scan.
func (x *Index) SetLedger(l Ledger) {
	if before := x.scanner.ledger.Swap(&l); *cmp.Or(before, new(Ledger)) == l {
		return
	}
	if x.scanning.TryLock() {
		defer x.scanning.Unlock()
		if x.scanner.last == nil { // the first scan compares everything
			return
		}
	}
	x.done.Go(func() { x.Compare() })
}

// latestLedger returns the ledger, or nil if there is none.
func (x *scanner) latestLedger() Ledger { return *cmp.Or(x.ledger.Load(), new(Ledger)) }

// Compare compares addresses, or everything if there are none, with a ledger that has
// something new. The HOSTNAME of an address does not count.
func (x *Index) Compare(addresses ...address.Address) {
	x.scanning.Lock()
	defer x.scanning.Unlock()
	before := x.scanner.last
	if before == nil || x.ctx.Err() != nil {
		return
	}
	if len(addresses) == 0 {
		addresses = slices.Collect(before.addresses())
	}
	s := &scan{scanner: &x.scanner, ctx: x.ctx, tree: before.tree, now: x.options.now()}
	if n := s.interimSnapshot(found{keys: before.keys, compared: addresses}); len(n.differs.groups) > 0 {
		x.begin(time.Now())
		x.publish(before, n, nil)
	}
}

// compared returns the group, which may be nil, and is another one if a ledger has something new about it.
func (g *group) compared(l Ledger) *group {
	if now := newGroup(g.orEmpty().entries, g, l); !slices.Equal(now.offered, g.orEmpty().offered) {
		return now
	}
	return g
}

// A recorded entry has what a ledger says of the versions of an entry.
type recorded struct {
	whole *entry // the entry without the ledger
	said  ledger.Statement
}

// Unrecorded returns the versions that a folder would offer if the ledger had them: releases, with
// the packages that it does not have, or versions of a module.
func (s *Snapshot) Unrecorded(folder address.Address) (releases []*Release, versions []*ModuleVersion) {
	if e := s.entry(folder); e != nil && e.recorded != nil {
		return e.recorded.said.Releases, e.recorded.said.Versions
	}
	return nil, nil
}

// onRecord returns the entry as a ledger, which may be nil, has it: without versions that it
// refuses, and with the times when the others were first offered. before is the offered entry of
// the address, which may be nil: unchanged parts stay the same.
func (e *entry) onRecord(l Ledger, before *entry) *entry {
	if l == nil || !e.offersVersions() {
		return e
	}
	var releases []*Release
	var versions []*ModuleVersion
	now := &recorded{whole: e}
	if e.provider != nil {
		releases, now.said = ledger.OfReleases(l, &e.folder.Folder, e.releases)
	} else {
		versions, now.said = ledger.OfVersions(l, &e.folder.Folder, e.module.VersionList())
	}
	if now.said.SaysNothing() {
		return e
	}
	same := before != nil && before.recorded != nil && before.recorded.said.Equal(now.said)
	if same && before.recorded.whole == e {
		return before
	}
	on := *e
	on.recorded, on.report = now, report.New()
	on.report.Withheld = slices.Clone(now.said.Withheld)
	on.report.Merge(e.report)
	if waiting := now.said.Waiting(); len(waiting) > 0 { // without any version, a list would say that there are none
		on.pending.Versions = slices.Concat(on.pending.Versions, waiting)
		on.pending.List = on.pending.List || len(releases)+len(versions) == 0
	}
	if same && before.recorded.whole.offersTheSame(e) {
		on.provider, on.module = titled(before.provider, e.titles), before.module
		return &on
	}
	on.provider, on.module = nil, nil
	if len(releases) > 0 {
		on.provider = titled(offer.NewProvider(e.provider.Address, releases, e.metadata), e.titles)
	}
	if len(versions) > 0 {
		on.module = offer.NewModule(e.module.Address, versions, e.metadata)
	}
	return &on
}

package index

import (
	"cmp"
	"iter"
	"maps"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/keys"
	"github.com/caddy-terraform/caddy-terraform-registry/index/layout"
	"github.com/caddy-terraform/caddy-terraform-registry/index/offer"
	"github.com/caddy-terraform/caddy-terraform-registry/index/queue"
	"github.com/caddy-terraform/caddy-terraform-registry/index/report"
	"github.com/caddy-terraform/caddy-terraform-registry/index/sharded"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// A Snapshot has everything that the registry offers at one time. It is immutable: a request
// uses one snapshot to its end.
type Snapshot struct {
	// Taken is the time when the last scan of everything began.
	Taken time.Time

	// KeysExpire is when the first of the keys that clients get expires; zero if none
	// expires.
	KeysExpire time.Time

	// Changed are the versions whose bytes have changed since they were first offered, by
	// path.
	Changed []ChangedVersion

	// Totals counts what the report lists, and Hint is its hint.
	Totals report.Totals
	Hint   string

	// Read and Recalled count the archives that the scan read and the archives that the memo
	// knew.
	Read, Recalled int

	scanned time.Time // when the last scan began, of everything or of some folders
	tree    tree.Tree
	keys    *keys.Folder
	groups  *sharded.Map[address.Address, *group] // by address without HOSTNAME
	way     *sharded.Map[string, *wayFolder]      // by path in the report
	unknown []layout.Folder                       // folders that no scan could read yet
	changes Change                                // the last change that its scan has seen
	later   chan struct{}                         // closed when the Index has a later snapshot
	live    bool                                  // another scan follows

	failed     string   // which archive could not be read, and why; empty: all could
	keysFailed string   // why a copy of keys cannot be read or written; empty: none has failed
	faulty     []string // folders in which something could not be read that may be readable a moment later
	young      []string // folders in which a file is too young to be offered or remembered

	differs difference // from the last snapshot
	noted   difference // groups and folders that collect lists

	reporting sync.Once
	report    *Report

	deriving sync.Once
	derived  func() any // see Derived

	signer Signer // of releases without a usable signature; nil: they are not signed

	*caches
}

// found has the new results of a scan.
type found struct {
	entries []*entry
	way     []*wayWalk // of the parts that were walked
	keys    *keys.Folder

	compared []address.Address // groups to compare with the ledger again
}

// newSnapshot returns a snapshot without groups and folders.
func (s *scan) newSnapshot(k *keys.Folder) *Snapshot {
	n := &Snapshot{
		Taken: s.now, scanned: s.now, tree: s.tree, keys: k, caches: &s.caches, live: !s.once,
		later: make(chan struct{}), differs: newDifference(),
	}
	if !s.options.RequireSignatures {
		n.signer = s.options.Signer
	}
	return n
}

// next returns the snapshot after the last one.
func (s *scan) next(c found) *Snapshot {
	n, l, last := s.newSnapshot(c.keys), s.latestLedger(), cmp.Or(s.last, new(Snapshot))
	n.groups, n.way = last.groups.Copy(), last.way.Copy()
	made := make(map[address.Address][]*entry)
	for _, e := range c.entries {
		key := e.folder.Address.WithHostname("")
		made[key] = append(made[key], e)
	}
	walked := make(map[string]*wayFolder)
	for _, w := range c.way {
		maps.Copy(walked, w.way)
	}
	if len(walked) > 0 {
		n.removeGone(walked, l)
	}
	n.putAll(slices.Collect(maps.Keys(made)), func(key address.Address) *group {
		entries, before := made[key], n.groups.Get(key)
		for _, e := range before.orEmpty().entries {
			if !slices.ContainsFunc(entries, func(m *entry) bool { return m.folder.Report == e.folder.Report }) {
				entries = append(entries, e)
			}
		}
		return before.withEntries(entries, l)
	})
	n.putAll(c.compared, func(a address.Address) *group { return n.groups.Get(a.WithHostname("")).compared(l) })
	for report, w := range walked {
		n.way.Set(report, w)
		n.differs.way[report] = true
	}
	for _, e := range c.entries {
		if report := e.folder.Report; n.way.Get(report) != nil {
			n.way.Delete(report)
			n.differs.way[report] = true
		}
	}
	n.count(s.last)
	return n
}

// putAll replaces groups by what remake returns for them.
func (s *Snapshot) putAll(keys []address.Address, remake func(key address.Address) *group) {
	groups := slices.Repeat([]*group{nil}, len(keys))
	queue.InParallel(runtime.GOMAXPROCS(0), len(keys), func(i int) { groups[i] = remake(keys[i]) })
	for i, key := range keys {
		s.put(key.WithHostname(""), groups[i])
	}
}

// put replaces a group by another one, or removes it.
func (s *Snapshot) put(key address.Address, g *group) {
	if g == s.groups.Get(key) {
		return
	}
	if s.groups.Set(key, g); g == nil {
		s.groups.Delete(key)
	}
	s.differs.groups[key] = true
}

// removeGone removes the folders that a walk has not found in the folders that it listed.
func (s *Snapshot) removeGone(walked map[string]*wayFolder, l Ledger) {
	gone := make(map[string]bool) // by path in the report
	var addresses []address.Address
	above := false // some folder above those of addresses is gone
	for report, w := range walked {
		last := s.way.Get(report)
		if !w.listed || last == nil {
			continue
		}
		for name := range last.names {
			if w.names[name] {
				continue
			}
			f := w.folder.Below(name)
			if gone[f.Report] = true; !f.IsWhole() {
				above = true
			} else if a, err := f.ParseAddress(); err == nil {
				addresses = append(addresses, a.WithHostname(""))
			}
		}
	}
	ways, groups := maps.Keys(gone), slices.Values(addresses)
	if above {
		ways, groups = s.way.Keys(), s.groups.Keys()
	}
	isGone := func(report string) bool {
		for report != "." && !gone[report] {
			report = path.Dir(report)
		}
		return report != "."
	}
	for report := range ways {
		if isGone(report) && s.way.Get(report) != nil {
			s.way.Delete(report)
			s.differs.way[report] = true
		}
	}
	removed := func(e *entry) bool { return isGone(e.folder.Report) }
	for key := range groups {
		if g := s.groups.Get(key); slices.ContainsFunc(g.orEmpty().entries, removed) {
			s.put(key, g.withEntries(slices.DeleteFunc(slices.Clone(g.entries), removed), l))
		}
	}
}

// count sums up the groups and folders of the snapshot. Of a large tree it looks at those
// only that differ from the last snapshot, and at those about which there is something to
// tell.
func (s *Snapshot) count(last *Snapshot) {
	if last == nil {
		last = &Snapshot{keys: &keys.Folder{Report: report.New()}}
	}
	s.Totals = last.Totals.Clone()
	s.noted = difference{maps.Clone(last.noted.groups), maps.Clone(last.noted.way)}
	if s.noted.groups == nil {
		s.noted = newDifference()
	}
	s.Totals.Add(last.keys.Report, -1, s.live)
	s.Totals.Add(s.keys.Report, 1, s.live)
	for report := range s.differs.way {
		delete(s.noted.way, report)
		if w := last.way.Get(report); w != nil {
			s.Totals.Add(w.report, -1, s.live)
		}
		if w := s.way.Get(report); w != nil {
			s.Totals.Add(w.report, 1, s.live)
			if w.faulty || w.unknown {
				s.noted.way[report] = true
			}
		}
	}
	s.KeysExpire = last.KeysExpire
	for a := range s.differs.groups {
		delete(s.noted.groups, a)
		if g := last.groups.Get(a); g != nil {
			s.addGroup(a, g, -1)
		}
		if g := s.groups.Get(a); g != nil {
			s.addGroup(a, g, 1)
			s.KeysExpire = earlier(s.KeysExpire, g.keysExpire)
			if g.isNoted() {
				s.noted.groups[a] = true
			}
		}
	}
	for a := range s.differs.groups { // the key that expires first may be gone
		if g := last.groups.Get(a); g != nil && !g.keysExpire.IsZero() && g.keysExpire.Equal(last.KeysExpire) {
			s.KeysExpire = time.Time{}
			for _, g := range s.groups.All() {
				s.KeysExpire = earlier(s.KeysExpire, g.keysExpire)
			}
			break
		}
	}
	s.collect()
}

// addGroup adds a group to the totals, or removes it if sign is -1.
func (s *Snapshot) addGroup(a address.Address, g *group, sign int) {
	kind := KindProvider
	if a.IsModule() {
		kind = KindModule
	}
	s.Totals.Offered[kind] += sign * g.versions()
	s.Totals.Add(g.report, sign, s.live)
}

// collect lists the folders to scan again, the unknown folders and the changed versions.
func (s *Snapshot) collect() {
	again := func(report string, faulty, young bool) {
		if faulty {
			s.faulty = append(s.faulty, report)
		}
		if young {
			s.young = append(s.young, report)
		}
	}
	again("keys", s.keys.Faulty, s.keys.Young)
	for report := range s.noted.way {
		w := s.way.Get(report)
		again(report, w.faulty, false)
		if w.unknown {
			s.unknown = append(s.unknown, w.folder)
		}
	}
	for a := range s.noted.groups {
		g := s.groups.Get(a)
		s.Changed = append(s.Changed, g.changed...)
		for _, e := range g.entries {
			s.failed = cmp.Or(s.failed, e.failed)
			again(e.folder.Report, e.faulty || e.failed != "", e.young)
			if e.unknown {
				s.unknown = append(s.unknown, e.folder.Folder)
			}
		}
	}
	slices.SortFunc(s.Changed, func(a, b ChangedVersion) int { return strings.Compare(a.Path, b.Path) })
}

// isEmpty reports whether the snapshot has neither versions nor problems nor metadata.
func (s *Snapshot) isEmpty() bool {
	if s.Totals.Versions()+s.Totals.Problems()+s.Totals.Pending > 0 {
		return false
	}
	for _, g := range s.groups.All() {
		if slices.ContainsFunc(g.offered, (*entry).offers) {
			return false
		}
	}
	return true
}

// Report returns the results for all files of the tree. It is joined on the first request.
func (s *Snapshot) Report() *Report {
	s.reporting.Do(func() { s.report = s.join((*group).addTo) })
	return s.report
}

// problems returns the report without what is offered.
func (s *Snapshot) problems() *Report {
	return s.join(func(g *group, r *Report) { r.Merge(g.report) })
}

// join joins the reports of all that the snapshot knows. add adds the report of a group.
func (s *Snapshot) join(add func(*group, *Report)) *Report {
	r := report.New()
	r.Hint = s.Hint
	r.Merge(s.keys.Report)
	for _, report := range slices.Sorted(s.way.Keys()) {
		r.Merge(s.way.Get(report).report)
	}
	for _, a := range slices.SortedFunc(s.addresses(), address.Address.Compare) {
		add(s.groups.Get(a), r)
	}
	r.Finish(s.live)
	return r
}

// addTo adds the report of a group with its offers.
func (g *group) addTo(r *Report) {
	r.Merge(g.report)
	for _, e := range g.offered {
		first := len(r.Offered)
		for _, release := range e.provider.ReleaseList() {
			r.Offered = append(r.Offered, release.Reported(e.provider.Address))
		}
		for _, v := range e.module.VersionList() {
			r.Offered = append(r.Offered, v.Reported(e.module.Address))
		}
		offers := r.Offered[first:]
		if e.folder.Address.Hostname == "" && g.twice != nil {
			report.NoteShadows(offers, g.twice)
		}
		report.NoteBuilds(offers)
	}
}

// A difference names groups and folders on the way to addresses, such as those that differ
// between two snapshots.
type difference struct {
	groups map[address.Address]bool
	way    map[string]bool
}

func newDifference() difference {
	return difference{make(map[address.Address]bool), make(map[string]bool)}
}

// addresses returns the addresses of the groups that differ from a snapshot; nil without one.
func (d *difference) addresses(before *Snapshot) []address.Address {
	if before == nil {
		return nil
	}
	return slices.AppendSeq([]address.Address{}, maps.Keys(d.groups))
}

// add adds what differs between the second snapshot and a third.
func (d *difference) add(other difference) {
	maps.Copy(d.groups, other.groups)
	maps.Copy(d.way, other.way)
}

// reports returns the reports of what differs between two snapshots. before may be nil: the
// report has only problems then.
func (d *difference) reports(before, now *Snapshot) (was, is *Report) {
	was, is = report.New(), report.New()
	if before == nil {
		return was, now.problems()
	}
	if before.keys != now.keys {
		was.Merge(before.keys.Report)
		is.Merge(now.keys.Report)
	}
	for report := range d.way {
		before.way.Get(report).addTo(was)
		now.way.Get(report).addTo(is)
	}
	for a := range d.groups {
		before.group(a).addTo(was)
		now.group(a).addTo(is)
	}
	was.Finish(before.live)
	is.Finish(now.live)
	return was, is
}

// addTo adds the report of a folder, which may be nil.
func (w *wayFolder) addTo(r *Report) {
	if w != nil {
		r.Merge(w.report)
	}
}

// SignChecksums returns the SignedChecksums of a release of the provider called typ that is
// not in the tree. The release will have the same documents in the tree, if its SHA256SUMS
// is the same. SignChecksums returns nil if the registry signs no releases.
func (s *Snapshot) SignChecksums(typ, version string, checksums []byte) *SignedChecksums {
	if s.signer == nil {
		return nil
	}
	return offer.NewSignedChecksums(typ, version, checksums, s.signer)
}

// Sees reports whether the scan began after the Index had been told of a change.
func (s *Snapshot) Sees(c Change) bool { return s.changes >= c }

// group returns the group of an address, which is empty if nothing is known of it. A nil Snapshot
// knows nothing.
func (s *Snapshot) group(a address.Address) *group {
	var g *group
	if s != nil {
		g = s.groups.Get(a.WithHostname(""))
	}
	return g.orEmpty()
}

// entry returns the entry of exactly that address, or nil.
func (s *Snapshot) entry(a address.Address) *entry { return s.group(a).entry(a.Hostname) }

// knows reports whether a folder has been read, by its path in the report. A nil Snapshot
// knows none.
func (s *Snapshot) knows(report string) bool {
	if s == nil {
		return false
	}
	if w := s.way.Get(report); w != nil {
		return !w.unknown
	}
	for _, g := range s.groups.All() {
		if e := g.entryOf(report); e != nil {
			return !e.unknown
		}
	}
	return false
}

// addresses yields the addresses of all groups.
func (s *Snapshot) addresses() iter.Seq[address.Address] { return s.groups.Keys() }

// offered yields the entries that are offered, each under the address of its folder.
func (s *Snapshot) offered() iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		for _, g := range s.groups.All() {
			for _, e := range g.offered {
				if !yield(e) {
					return
				}
			}
		}
	}
}

// Merged yields the addresses, with HOSTNAME, that are found with and without HOSTNAME.
func (s *Snapshot) Merged() iter.Seq[address.Address] {
	return func(yield func(address.Address) bool) {
		for _, g := range s.groups.All() {
			for _, m := range g.merged {
				if !yield(m.own.folder.Address) {
					return
				}
			}
		}
	}
}

// Folders yields the addresses of the folders that count, of these addresses in any HOSTNAME,
// or of all if there are none. While the value beside an address is the same, so is everything
// that is known of the folder.
func (s *Snapshot) Folders(of ...address.Address) iter.Seq2[address.Address, any] {
	return func(yield func(address.Address, any) bool) {
		groups := slices.Values(of)
		if len(of) == 0 {
			groups = s.addresses()
		}
		for a := range groups {
			for _, e := range s.group(a).offered {
				if !yield(e.folder.Address, e) {
					return
				}
			}
		}
	}
}

// Complete reports whether everything that lies in the tree has been read.
func (s *Snapshot) Complete() bool { return s.Totals.Pending == 0 && len(s.unknown) == 0 }

// Providers yields all providers, each under the address of its folder.
func (s *Snapshot) Providers() iter.Seq[*Provider] {
	return present(s.offered(), func(e *entry) *Provider { return e.provider })
}

// Modules yields all modules, each under the address of its folder.
func (s *Snapshot) Modules() iter.Seq[*Module] {
	return present(s.offered(), func(e *entry) *Module { return e.module })
}

func present[T any](all iter.Seq[*entry], get func(*entry) *T) iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for e := range all {
			if v := get(e); v != nil && !yield(v) {
				return
			}
		}
	}
}

package index

import (
	"iter"
	"slices"
	"time"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/content"
	"github.com/caddy-terraform/caddy-terraform-registry/index/keys"
	"github.com/caddy-terraform/caddy-terraform-registry/index/offer"
	"github.com/caddy-terraform/caddy-terraform-registry/index/report"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// An entry has everything that a snapshot knows about the folder of one address. It depends
// on what is in the folder, on the keys of its namespace and on the entry before, and on no
// other folder. It is immutable, except for the jobs of its listing.
type entry struct {
	folder folder
	offered

	walked  *Report               // files that are not part of a version, and problems of the walk
	empty   bool                  // no version is in the folder
	packed  map[string]tree.Stamp // stamps of the folders that were packed, by their path in the report
	state   *folderState          // nil if the same listing may have another result
	keys    *keys.File            // that verify its versions; nil if none count
	listing *listing              // nil when all archives have been read

	recorded *recorded // what a ledger says of it; nil: nothing

	// Titles of documentation, by its folder: of the latest release, and of the latest one
	// of a merged provider.
	titles map[string]content.Titles

	kept    *entry // the entry whose state is kept, since the folder cannot be read
	unknown bool   // the folder cannot be read, and there is no earlier state
	faulty  bool   // something in it could not be read, and may be readable a moment later
	failed  string // which archive could not be read, and why; empty: all could
	young   bool   // a file is too young to be offered or remembered
}

// Versions that a folder offers, of a provider or of a module.
type offered struct {
	provider *Provider // nil if no release is offered
	module   *Module   // nil if no version is offered
	metadata offer.Metadata
	pending  offer.Pending // versions that have not been read yet
	report   *Report       // of the versions

	releases []*Release // of the provider, without notices
	since    time.Time  // when the first of its versions was verified; zero: none needs to be
	passing  bool       // the same files and keys may soon have another result
	unread   bool       // a document could not be read, and may be readable a moment later
}

// orEmpty returns an entry without anything if there is none.
func (e *entry) orEmpty() *entry {
	if e == nil {
		return new(entry)
	}
	return e
}

// offers reports whether there is anything to say about the address of the entry, which may be nil.
func (e *entry) offers() bool {
	return e != nil && (e.provider != nil || e.module != nil || e.metadata.File != nil)
}

// release returns the offered release of a version, without notices, or nil.
func (e *entry) release(version string) *Release {
	for _, r := range e.releases {
		if r.Version == version {
			return r
		}
	}
	return nil
}

// listed reports whether the versions of the entry are all that clients have been told of.
func (e *entry) listed() bool { return e.offersVersions() && !e.pending.List }

func (e *entry) offersVersions() bool { return e.provider != nil || e.module != nil }

// facts yields what is known of each version that is offered.
func (e *entry) facts() iter.Seq[*Facts] {
	return func(yield func(*Facts) bool) {
		for _, r := range e.provider.ReleaseList() {
			if !yield(&r.Facts) {
				return
			}
		}
		for _, v := range e.module.VersionList() {
			if !yield(&v.Facts) {
				return
			}
		}
	}
}

// changed returns the offered versions whose bytes have changed.
func (e *entry) changed() (list []ChangedVersion) {
	for f := range e.facts() {
		for _, c := range f.Changed {
			list = append(list, ChangedVersion{Address: e.folder.Address, Version: f.Version, ChangedBytes: c})
		}
	}
	return list
}

// keysExpire returns the earliest time at which a key of a version expires; zero if none does.
func (e *entry) keysExpire() (first time.Time) {
	for f := range e.facts() {
		first = earlier(first, f.Signature.KeysExpire())
	}
	return first
}

// earlier returns the earlier of two times. A zero time does not count.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// A group has the entries of all folders with one namespace and name, and system: under any
// HOSTNAME, and in any spelling. It is a pure function of these entries.
type group struct {
	entries []*entry // by their path in the report
	offered []*entry // the one entry that is offered for each address
	merged  []*mergedEntry
	report  *Report             // without the offers
	twice   map[string][]string // hostnames under which a hosted version is found too; nil if there are none

	keysExpire time.Time
	changed    []ChangedVersion
}

// A mergedEntry merges the entry of an address with HOSTNAME and the entry of the same
// address without. It is not known here whether the registry answers as HOSTNAME, so the
// versions under it stay separately reachable as well.
type mergedEntry struct {
	own, hosted *entry
	provider    *Provider // nil if all releases are withdrawn
	module      *Module   // nil if all versions are withdrawn
	metadata    offer.Metadata
}

// newGroup returns the group of entries in their order, without the versions that a ledger, which may be
// nil, has with other bytes. before is the group as it was, which may be nil: unchanged
// parts stay the same.
func newGroup(entries []*entry, before *group, l Ledger) *group {
	g := &group{entries: entries, report: report.New()}
	before = before.orEmpty()
	for _, e := range entries {
		if chosen := chooseSpelling(entries, e.folder.Address); chosen == e {
			g.offered = append(g.offered, e.onRecord(l, before.entry(e.folder.Address.Hostname)))
		} else {
			e.reportSpelling(g.report, chosen)
		}
	}
	hosted := g.entry("")
	for _, e := range g.offered {
		g.report.Merge(e.walked)
		g.report.Merge(e.report)
		g.keysExpire = earlier(g.keysExpire, e.keysExpire())
		g.changed = append(g.changed, e.changed()...)
	}
	twice := make(map[string][]string)
	for _, e := range g.offered {
		if e != hosted && e.offers() && hosted.offers() {
			g.merged = append(g.merged, mergeEntries(e, hosted, before.mergedAt(e.folder.Address.Hostname), twice))
		}
	}
	if len(twice) > 0 {
		g.twice = twice
	}
	return g
}

// orEmpty returns a group without entries if there is none.
func (g *group) orEmpty() *group {
	if g == nil {
		return &group{report: new(Report)}
	}
	return g
}

// withEntries returns the group of these entries: this one, which may be nil, if it has them already,
// and nil without entries.
func (g *group) withEntries(entries []*entry, l Ledger) *group {
	slices.SortFunc(entries, func(a, b *entry) int { return a.folder.Compare(b.folder.Folder) })
	switch {
	case len(entries) == 0:
		return nil
	case slices.Equal(g.orEmpty().entries, entries):
		return g
	}
	return newGroup(entries, g, l)
}

// isNoted reports whether a snapshot has something to tell of the group besides its versions.
func (g *group) isNoted() bool {
	return len(g.changed) > 0 || slices.ContainsFunc(g.entries, func(e *entry) bool {
		return e.faulty || e.failed != "" || e.young || e.unknown
	})
}

// versions counts the versions that are offered.
func (g *group) versions() (n int) {
	for _, e := range g.offered {
		n += len(e.provider.ReleaseList()) + len(e.module.VersionList())
	}
	return n
}

// entry returns the offered entry under exactly that HOSTNAME, or nil.
func (g *group) entry(hostname svchost.Hostname) *entry {
	for _, e := range g.offered {
		if e.folder.Address.Hostname == hostname {
			return e
		}
	}
	return nil
}

// mergedAt returns the merged entry of a HOSTNAME, or nil.
func (g *group) mergedAt(hostname svchost.Hostname) *mergedEntry {
	for _, m := range g.merged {
		if m.own.folder.Address.Hostname == hostname {
			return m
		}
	}
	return nil
}

// entryOf returns the entry of a folder, by its path in the report, or nil.
func (g *group) entryOf(report string) *entry {
	for _, e := range g.entries {
		if e.folder.Report == report {
			return e
		}
	}
	return nil
}

// mergeEntries merges an entry with the hosted entry. If a version is found twice, the
// version with HOSTNAME is offered, and twice gets the hostname. before is the merged entry
// as it was, or nil.
func mergeEntries(own, hosted *entry, before *mergedEntry, twice map[string][]string) *mergedEntry {
	a, metadata := own.folder.Address, own.metadata.Over(hosted.metadata)
	clash := func(version string) {
		twice[version] = append(twice[version], address.DisplayHostname(a.Hostname))
	}
	releases := offer.MergeVersions(own.provider.ReleaseList(), hosted.provider.ReleaseList(), &metadata, func(r *Release) { clash(r.Version) })
	versions := offer.MergeVersions(own.module.VersionList(), hosted.module.VersionList(), &metadata, func(v *ModuleVersion) { clash(v.Version) })
	m := &mergedEntry{own: own, hosted: hosted, metadata: metadata}
	switch {
	case before != nil && before.own.offersTheSame(own) && before.hosted.offersTheSame(hosted):
		m.provider, m.module, m.metadata = before.provider, before.module, before.metadata
	case len(releases) > 0:
		m.provider = offer.NewProvider(a, releases, metadata)
	case len(versions) > 0:
		m.module = offer.NewModule(a, versions, metadata)
	}
	if e, docs := m.latestDocs(); docs != "" {
		m.provider = m.provider.WithTitles(e.titles[docs])
	}
	return m
}

// latestDocs returns the folder of the documentation of the latest release, and the entry
// of the two that has it; an empty folder if there is none.
func (m *mergedEntry) latestDocs() (e *entry, docs string) {
	if m.provider == nil {
		return nil, ""
	}
	latest := m.provider.Latest()
	if latest.Hostname == "" {
		return m.hosted, latest.Docs()
	}
	return m.own, latest.Docs()
}

// offersTheSame reports whether two entries have the same versions and metadata.
func (e *entry) offersTheSame(other *entry) bool {
	return e.provider == other.provider && e.module == other.module && e.metadata.Equal(other.metadata)
}

// chooseSpelling returns the entry that is offered of an address. Clients compare addresses
// in their normal form: acme/demo and ACME/Demo are the same. It prefers the folder in
// normal form, then the first one, but chooses no empty folder if another one is not empty:
// a stray ACME/demo/README must not hide acme/demo.
func chooseSpelling(entries []*entry, a address.Address) (chosen *entry) {
	for _, e := range entries {
		if e.folder.Address == a && (chosen == nil || e.betterSpelling(chosen)) {
			chosen = e
		}
	}
	return chosen
}

func (e *entry) betterSpelling(other *entry) bool {
	if e.empty != other.empty {
		return other.empty
	}
	return e.folder.IsNormal() && !other.folder.IsNormal()
}

// reportSpelling reports an entry that is not offered, since another folder has its address.
func (e *entry) reportSpelling(r *Report, chosen *entry) {
	if !e.empty {
		bad := tree.Findingf(tree.Duplicate, "it has the address of %s in another spelling, and that folder is offered: move its content there", chosen.folder.Report)
		r.Withhold(e.folder.Report, e.folder.Address, "", bad)
		return
	}
	r.Merge(e.walked)
	if e.folder.metadata != nil {
		bad := tree.Findingf(tree.Duplicate, "it is of the address of %s in another spelling: move it there", chosen.folder.Report)
		r.Withhold(tree.InFolder(e.folder.Report, tree.MetadataName), e.folder.Address, "", bad)
	}
}

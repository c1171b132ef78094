package index

import (
	"slices"
	"strings"

	version "github.com/hashicorp/go-version"
	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/index/keys"
	"github.com/caddy-terraform/caddy-terraform-registry/index/layout"
	"github.com/caddy-terraform/caddy-terraform-registry/index/memo"
	"github.com/caddy-terraform/caddy-terraform-registry/index/offer"
	"github.com/caddy-terraform/caddy-terraform-registry/index/report"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// A moduleFolder is the folder of one module and the packages in it.
type moduleFolder struct {
	folder
	packages []*modulePackage
}

// A modulePackage is an archive or a folder of a module folder.
type modulePackage struct {
	layout.ModulePackage
	*job
	offer.Evidence
}

// areSigned reports whether publishers sign the versions of an address. Modules are not signed.
func areSigned(a address.Address) bool { return !a.IsModule() }

// list finds the packages of a module, and queues the unread ones.
func (m *moduleFolder) list(w *walker) (bad *tree.Finding) {
	entries, unreadable, bad := w.List(m.Part, m.Dir, m.Report)
	if bad == nil {
		bad = w.readMetadata(&m.folder, entries, unreadable)
	}
	if bad != nil {
		return bad
	}
	for _, e := range unreadable {
		w.addUnreadable(m, e)
	}
	beside := layout.NewSiblings(entries)
	for _, e := range entries {
		if !layout.IsMetadata(e) && !w.strays().InModule(m.Folder, e, beside) {
			w.addModulePackage(m, e)
		}
	}
	m.order()
	return nil
}

func (m *moduleFolder) isEmpty() bool { return len(m.packages) == 0 }

func (m *moduleFolder) versions() (versions []*version.Version) {
	for _, p := range m.packages {
		versions = append(versions, p.Number)
	}
	return versions
}

func (m *moduleFolder) archives() (all []*job) {
	for _, p := range m.packages {
		all = append(all, p.job)
	}
	return all
}

// order sorts the versions. The newest one is also read first.
func (m *moduleFolder) order() {
	address.SortNewestFirst(m.packages, func(p *modulePackage) *version.Version { return p.Number })
	for rank, p := range m.packages {
		p.job.Rank = rank
	}
}

// addModulePackage adds an archive or a folder to its module.
func (w *walker) addModulePackage(m *moduleFolder, e tree.Entry) {
	e.Name = strings.Clone(e.Name) // the version must not keep the names of the other entries in memory
	parsed, err := layout.ParseModulePackage(e)
	if err != nil {
		w.report.Withhold(tree.InFolder(m.Report, e.Name), m.Address, "", tree.Findingf(tree.BadVersion, "%v", err))
		return
	}
	p := &modulePackage{ModulePackage: parsed}
	tags := offer.TagReader{Git: m.metadata.Git(), Part: m.Part, Dir: m.Dir, Report: m.Report, Records: w.records, Memo: &w.scan.memo, Now: w.scan.options.now()}
	switch p.Tag, e.Bad = tags.Read(parsed.Number.String(), w.before.module.Version(parsed.Number.String())); {
	case e.Bad != nil:
		w.addUnreadable(m, e)
		return
	case p.IsFolder:
		p.job = w.newFolderArchive(m, e, parsed.Number.String())
	default:
		p.job = w.newArchive(&m.folder, m.Report, e, parsed.Number.String())
	}
	m.packages = append(m.packages, p)
}

// addUnreadable adds an entry that cannot be read: its version keeps its earlier state.
func (w *walker) addUnreadable(m *moduleFolder, e tree.Entry) {
	w.faulty = w.faulty || e.Bad.Passes()
	p, err := layout.ParseModulePackage(e)
	if err != nil || p.IsFolder && !layout.LooksLikeVersion(e.Name) {
		w.report.Withhold(tree.InFolder(m.Report, e.Name), m.Address, "", e.Bad)
		return
	}
	a := &job{part: m.Part, Location: tree.Location{Dir: e.Dir, Name: strings.Clone(e.Name), Report: m.Report}, Record: memo.Record{Digest: archive.Digest{Bad: e.Bad}}}
	m.packages = append(m.packages, &modulePackage{ModulePackage: p, job: a})
}

// newFolderArchive adds a module folder to the archives to read, unless the memo knows it.
// Its stamp covers the names, sizes and times of all files in it.
func (w *walker) newFolderArchive(m *moduleFolder, e tree.Entry, version string) *job {
	w.depends = true // on what is in the folder
	a := w.newJob(&m.folder, m.Report, e, version)
	var dirs []string
	visit := func(dir string) {
		dirs = append(dirs, dir)
		w.scan.watch.AddModule(m.Part, dir, m.Report)
	}
	if a.module, a.Bad = archive.FindModule(m.Part, a.Path(), visit); a.Bad != nil {
		w.setAside(a)
		return a
	}
	a.Stamp = a.module.Stamp()
	return w.recallOrQueueFolder(a, dirs...)
}

// offer returns the versions of a module's folder that can be offered.
func (f *moduleFolder) offer(s *scan, _ *keys.File, before *entry) offered {
	metadata, lacks, report := f.addressMetadata(), offer.Pending{}, report.New()
	last, listed := before.module, before.listed()
	kept := make(map[string]*modulePackage)
	asBefore := make(map[string]bool) // versions that stay offered until the new ones have been read; true: even if it is there twice
	for _, p := range f.packages {
		v := p.Number.String()
		if n := metadata.File.WithdrawnVersion(p.Number); n != nil {
			metadata.Withdraw(p.Number, n)
			report.Withdraw(p.job.ReportPath(), f.Address, v, n)
			continue
		}
		known := last.Version(v)
		withhold := func(p *modulePackage, bad *tree.Finding) {
			report.Withhold(p.job.ReportPath(), f.Address, v, bad)
		}
		switch {
		case p.pending:
			report.Pending++
			lacks.Versions = append(lacks.Versions, v)
			lacks.List = lacks.List || known == nil && !listed
			if known != nil {
				asBefore[v] = asBefore[v] || p.isOffered(known) // a list without it would make clients choose an older version
			}
			continue
		case p.Bad != nil:
			withhold(p, p.Bad)
			switch {
			case known != nil && (p.Bad.IsFault() || p.unfinished(s.options.now())):
				asBefore[v] = asBefore[v] || p.isOffered(known)
			case p.Bad.Passes():
				lacks.Versions = append(lacks.Versions, v)
				lacks.List = lacks.List || !listed
			}
			continue
		}
		duplicate := tree.Findingf(tree.Duplicate, "the version is there twice: keep one of them")
		switch other := kept[v]; {
		case other == nil:
			kept[v] = p
		case other.Preference <= p.Preference:
			withhold(p, duplicate)
		default:
			kept[v] = p
			withhold(other, duplicate)
		}
	}
	metadata.Sort()
	o := offered{metadata: metadata, pending: lacks, report: report}
	versions := f.offeredVersions(last, kept, asBefore)
	switch {
	case versions == nil:
	case slices.Equal(last.VersionList(), versions) && before.metadata.Equal(metadata):
		o.module = last
	default:
		o.module = offer.NewModule(f.Address, versions, metadata)
	}
	return o
}

// offeredVersions returns the versions of the packages in kept, by version, and the versions of last,
// which may be nil, that stay as they were.
func (f *moduleFolder) offeredVersions(last *Module, kept map[string]*modulePackage, asBefore map[string]bool) (versions []*ModuleVersion) {
	for _, p := range f.packages { // the newest first
		v := p.Number.String()
		known := last.Version(v)
		switch itself, stays := asBefore[v]; {
		case stays && (itself || kept[v] == nil):
			versions = append(versions, known)
			delete(asBefore, v)
			delete(kept, v)
		case kept[v] == p:
			versions = append(versions, p.offered(f.Address.Hostname, known))
		}
	}
	return versions
}

// isOffered reports whether the package is what clients were offered of its version.
func (p *modulePackage) isOffered(v *ModuleVersion) bool { return v.Archive.Path() == p.job.Path() }

// offered returns the module version of a package that has been read. It is known, which may be nil,
// if nothing has changed.
func (p *modulePackage) offered(hostname svchost.Hostname, known *ModuleVersion) *ModuleVersion {
	read := offer.ModulePackage{Location: p.job.Location, Record: p.Record, Part: p.part, Folder: p.module, Version: p.Number, Format: p.Format, Evidence: p.Evidence}
	return read.ModuleVersion(hostname, known)
}

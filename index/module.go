package index

import (
	"context"
	"path"

	version "github.com/hashicorp/go-version"
	svchost "github.com/hashicorp/terraform-svchost"
	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A Module is everything offered under one module address.
type Module struct {
	Address address.Address

	// Versions are the newest first; there is at least one.
	Versions []*ModuleVersion

	byVersion map[string]*ModuleVersion
	versions  *wire.Document
}

// A ModuleVersion is one version of a module, verified.
type ModuleVersion struct {
	version *version.Version

	// Hostname it lies under in the tree. Empty: it is hosted, not mirrored.
	Hostname svchost.Hostname

	// Version in the form clients request it.
	Version string

	// Archive is the package, named archive.tar.gz or archive.zip.
	Archive *File

	// Folder is the one folder at the package's root, if the module lies in it
	// and not at the root. It is safe in a URL as it is.
	Folder string

	notes []string // for the report
}

// Version returns the version of that number, or nil. A nil Module has none.
func (m *Module) Version(v string) *ModuleVersion {
	if m == nil {
		return nil
	}
	return m.byVersion[v]
}

// Newest is the version to use if none is requested: the newest that is not a
// prerelease, or the newest if all are.
func (m *Module) Newest() *ModuleVersion {
	for _, v := range m.Versions {
		if v.version.Prerelease() == "" {
			return v
		}
	}
	return m.Versions[0]
}

// List is the registry's answer with all versions.
func (m *Module) List() *wire.Document { return m.versions }

// A moduleFolder is the folder of one module and the packages in it.
type moduleFolder struct {
	folder
	address  address.Address
	packages []*modulePackage
}

// A modulePackage is an archive or a folder of a module folder.
type modulePackage struct {
	*archive
	version    *version.Version
	format     string
	preference int // of its format: the lowest is kept
}

// walkModules finds the packages of all modules, and those that have to be read.
func (w *walker) walkModules() []*moduleFolder {
	var folders []*moduleFolder
	for _, f := range w.walkAddresses(w.scan.tree.Modules, "modules", 3) {
		a, err := address.ParseModule(f.hostname, f.names[0], f.names[1], f.names[2])
		if err != nil {
			w.badModuleAddress(f, err)
			continue
		}
		folders = append(folders, &moduleFolder{folder: f, address: a})
	}
	found := w.each(len(folders), func(w *walker, i int) {
		m := folders[i]
		entries := w.list(m.part, m.dir, m.report)
		beside := newSiblings(entries)
		for _, e := range entries {
			if !w.strayInModule(m, e, beside) {
				w.addModulePackage(m, m.part, path.Join(m.report, e.name), e)
			}
		}
		m.order()
	})
	spellings := make([]spelling, len(folders))
	for i, m := range folders {
		spellings[i] = spelling{folder: &m.folder, address: m.address, empty: len(m.packages) == 0}
	}
	var modules []*moduleFolder
	for _, i := range w.oneSpellingEach(spellings, found) {
		modules = append(modules, folders[i])
	}
	return modules
}

// order sorts the versions. The newest one is also read first.
func (m *moduleFolder) order() {
	address.SortNewestFirst(m.packages, func(p *modulePackage) *version.Version { return p.version })
	for rank, p := range m.packages {
		p.archive.rank = rank
	}
}

// addModulePackage adds an archive or a folder to its module.
func (w *walker) addModulePackage(m *moduleFolder, part Part, report string, e entry) {
	withhold := func(f *finding) {
		w.report.withhold(f.at(report, m.address, ""))
	}
	text, format, preference := e.name, "tar.gz", len(moduleFormats)
	if !e.info.IsDir() {
		text, format, preference, _ = parseModuleFile(e.name)
	}
	v, err := address.ParseModuleVersion(text)
	if err != nil {
		withhold(found(BadVersion, "%v", err))
		return
	}
	p := &modulePackage{version: v, format: format, preference: preference}
	if e.info.IsDir() {
		p.archive = w.newFolderArchive(part, report, e)
	} else {
		p.archive = w.newArchive(part, report, e, func(ctx context.Context, a *archive) (digest, error) {
			return readFile(ctx, a, func(f afero.File, size int64) (digest, error) {
				return digestModuleArchive(ctx, f, size, format)
			})
		})
	}
	p.archive.address, p.archive.version = m.address, v.String()
	m.packages = append(m.packages, p)
}

// newFolderArchive adds a module folder to what has to be read, unless the memo
// knows it. Its stamp covers the names, sizes and times of all files in it.
func (w *walker) newFolderArchive(part Part, report string, e entry) *archive {
	a := &archive{part: part, path: e.path, report: report, read: readFolder}
	var dirs []string
	visit := func(dir string) {
		dirs = append(dirs, dir)
		w.scan.watch.addModule(part, dir)
	}
	if a.folder, a.leftOut, a.bad = part.walkFolder(e.path, visit); a.bad != nil {
		return a
	}
	var m moduleFinder
	for _, f := range a.folder {
		m.add(f.name)
	}
	if a.subfolder, a.bad = m.module(); a.bad != nil {
		return a
	}
	a.stamp = stampFolder(a.folder)
	if w.recallOrQueueFolder(a, dirs...) {
		recallExecutables(a.folder, a.content)
	}
	return a
}

// noteRested adds the folders that have been read: they need not rest again.
func (m *moduleFolder) noteRested(rested map[string]stamp) {
	for _, p := range m.packages {
		p.archive.noteRested(rested)
	}
}

// offerModule returns what can be offered of a module's folder, nil if there is
// nothing, and what has not been read yet. Problems and offers go to report.
func (s *scan) offerModule(f *moduleFolder, report *Report) (module *Module, lacks pending) {
	last := s.last.module(f.address)
	listed := last != nil && s.last.listed(f.address)
	kept := make(map[string]*modulePackage)
	asBefore := make(map[string]*ModuleVersion) // until what is new has been read
	for _, p := range f.packages {
		v := p.version.String()
		known := last.Version(v)
		withhold := func(p *modulePackage, bad *finding) {
			report.withhold(bad.at(p.archive.report, f.address, v))
		}
		switch {
		case p.pending:
			report.Pending++
			lacks.versions = append(lacks.versions, v)
			lacks.list = lacks.list || known == nil && !listed
			if known != nil {
				asBefore[v] = known // a list without it would have clients choose an older one
			}
			continue
		case p.bad != nil:
			withhold(p, p.bad)
			if known != nil && p.unfinished(s.options.now()) {
				asBefore[v] = known
			}
			continue
		}
		duplicate := found(Duplicate, "the version is there twice: keep one of them")
		switch other := kept[v]; {
		case other == nil:
			kept[v] = p
		case other.preference <= p.preference:
			withhold(p, duplicate)
		default:
			kept[v] = p
			withhold(other, duplicate)
		}
	}
	var versions []*ModuleVersion
	for v, known := range asBefore {
		if kept[v] == nil {
			versions = append(versions, known)
		}
	}
	for v, p := range kept {
		versions = append(versions, &ModuleVersion{
			version: p.version, Hostname: f.address.Hostname, Version: v,
			Archive: p.file(), Folder: p.subfolderOfModule(), notes: p.notes(),
		})
	}
	if versions == nil {
		return nil, lacks
	}
	module = newModule(f.address, versions) // which orders them
	for _, v := range module.Versions {
		report.Offered = append(report.Offered, Offer{Kind: KindModule, Address: f.address.String(), Version: v.Version, Notes: v.notes})
	}
	return module, lacks
}

// file is what clients download of a package that has been read.
func (p *modulePackage) file() *File {
	f := &File{
		Name: "archive." + p.format, ContentType: gzipType, Size: p.digest.size, SHA256: p.sha256,
		in: inModules, path: p.path, modTime: p.stamp.modTime, inode: p.stamp.inode, changed: p.stamp.changed,
	}
	if k := p.archive.layout(); k != nil {
		f.packed = k
	}
	if p.format == "zip" {
		f.ContentType = zipType
	}
	return f
}

// subfolderOfModule is the folder of the package in which the module lies.
func (p *modulePackage) subfolderOfModule() string {
	if p.folder != nil {
		return p.subfolder
	}
	return decodeFacts(p.content).Folder
}

// notes are what the operator should know of an offered package.
func (p *modulePackage) notes() []string {
	if p.folder != nil {
		if p.leftOut.total == 0 {
			return nil
		}
		return []string{"leaves out " + p.leftOut.String()}
	}
	facts := decodeFacts(p.content)
	if facts.SecretsTotal == 0 {
		return nil
	}
	secrets := nameList{facts.Secrets, facts.SecretsTotal}
	return []string{"contains " + secrets.String() + ", which everyone who downloads the module gets: pack it without"}
}

// newModule orders versions and encodes the list of them.
func newModule(a address.Address, versions []*ModuleVersion) *Module {
	address.SortNewestFirst(versions, func(v *ModuleVersion) *version.Version { return v.version })
	m := &Module{Address: a, Versions: versions, byVersion: make(map[string]*ModuleVersion, len(versions))}
	list := make([]string, len(versions))
	for i, v := range versions {
		m.byVersion[v.Version] = v
		list[i] = v.Version
	}
	m.versions = wire.EncodeModuleVersions(list)
	return m
}

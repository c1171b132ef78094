package index

import (
	"context"
	"io"
	"path"
	"time"

	version "github.com/hashicorp/go-version"
	svchost "github.com/hashicorp/terraform-svchost"
	"github.com/spf13/afero"
)

// A Module is everything offered under one module address.
type Module struct {
	Address ModuleAddress

	// Versions are the newest first; there is at least one.
	Versions []*ModuleVersion

	byVersion map[string]*ModuleVersion
	versions  *Document
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
}

// Version returns the one of that number, or nil.
func (m *Module) Version(v string) *ModuleVersion { return m.byVersion[v] }

// Newest is the version to use where none is asked for: the newest that is no
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
func (m *Module) List() *Document { return m.versions }

// A moduleFolder is the folder of one module and the packages in it.
type moduleFolder struct {
	folder
	address  ModuleAddress
	packages []*modulePackage
}

// A modulePackage is an archive or a folder of a module folder.
type modulePackage struct {
	*archive
	version    *version.Version
	format     string
	preference int // of its format: the lowest is kept
}

// walkModules finds the packages of all modules and queues them for reading.
func (w *walker) walkModules() []*moduleFolder {
	var modules []*moduleFolder
	known := make(map[ModuleAddress]bool)
	for _, f := range w.walkAddresses(w.tree.Modules, "modules", 3) {
		address, err := ParseModuleAddress(f.hostname, f.names[0], f.names[1], f.names[2])
		if err != nil {
			w.report.withhold(Problem{Path: f.report, Reason: BadName, Detail: err.Error()})
			continue
		}
		if known[address] {
			w.report.withhold(Problem{Path: f.report, Address: address.String(), Reason: Duplicate,
				Detail: "another folder has the same address, written differently: keep one of them"})
			continue
		}
		known[address] = true
		modules = append(modules, &moduleFolder{folder: f, address: address})
	}
	w.each(len(modules), func(w *walker, i int) {
		m := modules[i]
		for _, e := range w.list(m.part, m.dir, m.report) {
			w.addModulePackage(m, m.part, path.Join(m.report, e.name), e)
		}
		m.order()
	})
	return modules
}

// order puts the newest version first, which is also read first.
func (m *moduleFolder) order() {
	newestFirst(m.packages, func(p *modulePackage) *version.Version { return p.version })
	for rank, p := range m.packages {
		p.archive.rank = rank
	}
}

func (w *walker) addModulePackage(m *moduleFolder, part Part, report string, e entry) {
	withhold := func(f *finding) {
		w.report.withhold(Problem{Path: report, Address: m.address.String(), Reason: f.reason, Detail: f.detail})
	}
	text, format, preference := e.name, "tar.gz", len(moduleFormats)
	if !e.info.IsDir() {
		var ok bool
		if text, format, preference, ok = parseModuleFile(e.name); !ok {
			w.report.ignore(report, NotPartOfTree, "a module is in a folder or an archive named after its version")
			return
		}
	} else if !looksLikeVersion(e.name) {
		w.report.ignore(report, NotPartOfTree, "a folder here is named after a version")
		return
	}
	v, err := ParseModuleVersion(text)
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
				sum, err := digestModuleArchive(ctx, f, size, format)
				return digest{sha256: sum, size: size}, err
			})
		})
	}
	m.packages = append(m.packages, p)
}

// newFolderArchive queues a module folder for reading. Its stamp covers the
// names, sizes and times of all files in it.
func (w *walker) newFolderArchive(part Part, report string, e entry) *archive {
	a := &archive{part: part, path: e.path, report: report, read: readFolder}
	if a.folder, a.bad = part.walkFolder(e.path); a.bad != nil {
		return a
	}
	var m moduleFinder
	for _, f := range a.folder {
		m.add(f.name)
	}
	if a.bad = m.finding(); a.bad != nil {
		return a
	}
	a.stamp = stampFolder(a.folder)
	if w.begun && w.watch != nil && w.rested[report] != a.stamp && w.memo.tooYoung(a.stamp, folderRest, w.options.now()) {
		a.pending = true // nothing tells that a folder is whole but that it rests
		return a
	}
	w.recall(a)
	return a
}

// folderRest is how long a module folder that comes while the index watches has
// to rest before it is offered. One that is renamed into place has rested.
const folderRest = time.Second

// readFolder reads the packing of a folder to its end.
func readFolder(ctx context.Context, a *archive) (digest, error) {
	k, err := a.part.packFolder(a.folder)
	if err != nil {
		return digest{}, changedWhileRead(err)
	}
	r := &packingReader{packing: k, part: a.part, crc: true}
	defer r.Close()
	sum, err := digestFile(ctx, io.NewSectionReader(r, 0, k.size()))
	if err != nil {
		return digest{}, changedWhileRead(err)
	}
	return digest{sha256: sum, size: k.size(), checksum: k.checksum}, nil
}

// addModule offers what can be offered of a module's folder.
func (a *assembly) addModule(f *moduleFolder) {
	kept := make(map[string]*modulePackage)
	for _, p := range f.packages {
		v := p.version.String()
		withhold := func(p *modulePackage, bad *finding) {
			a.report.withhold(Problem{Path: p.archive.report, Address: f.address.String(), Version: v, Reason: bad.reason, Detail: bad.detail})
		}
		switch {
		case p.pending:
			a.report.Pending++
			a.snapshot.pendingModules[f.address] = true
			continue
		case p.bad != nil:
			withhold(p, p.bad)
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
	if len(kept) == 0 {
		return
	}
	var versions []*ModuleVersion
	for v, p := range kept {
		versions = append(versions, &ModuleVersion{version: p.version, Hostname: f.address.Hostname, Version: v, Archive: p.file()})
	}
	for _, p := range kept {
		if p.folder != nil {
			a.folders[p.archive.report] = p.stamp
		}
	}
	m := newModule(f.address, versions) // which orders them
	for _, v := range m.Versions {
		a.report.Offered = append(a.report.Offered, Offer{Kind: KindModule, Address: f.address.String(), Version: v.Version})
	}
	a.snapshot.modules[f.address] = m
}

func (p *modulePackage) file() *File {
	f := &File{
		Name: "archive." + p.format, ContentType: gzipType, Size: p.digest.size, SHA256: p.sha256,
		in: inModules, path: p.path, modTime: p.stamp.modTime, inode: p.stamp.inode, folder: p.folder, checksum: p.checksum,
	}
	if p.format == "zip" {
		f.ContentType = zipType
	}
	return f
}

// newModule orders versions and encodes the list of them. There is exactly one
// element in modules (checklist 75).
func newModule(a ModuleAddress, versions []*ModuleVersion) *Module {
	newestFirst(versions, func(v *ModuleVersion) *version.Version { return v.version })
	m := &Module{Address: a, Versions: versions, byVersion: make(map[string]*ModuleVersion, len(versions))}
	var w documentWriter
	w.WriteString(`{"modules":[{"versions":[`)
	for i, v := range versions {
		m.byVersion[v.Version] = v
		if i > 0 {
			w.WriteByte(',')
		}
		w.WriteString(`{"version":`)
		w.value(v.Version)
		w.WriteByte('}')
	}
	w.WriteString(`]}]}`)
	m.versions = w.document(nil)
	return m
}

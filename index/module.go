package index

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"time"

	version "github.com/hashicorp/go-version"
	svchost "github.com/hashicorp/terraform-svchost"
	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/index/layout"
	"github.com/caddy-terraform/caddy-terraform-registry/index/memo"
	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
	"github.com/caddy-terraform/caddy-terraform-registry/index/report"
	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A Module has all versions that are offered under a module address.
type Module struct {
	Address address.Address

	// Versions are the newest first; there is at least one.
	Versions []*ModuleVersion

	// Age of the origin's part of the list, if it should have been renewed by now.
	Age time.Duration

	metadata  addressMetadata
	byVersion map[string]*ModuleVersion
	versions  *wire.Document
}

// A ModuleVersion is a verified version of a module.
type ModuleVersion struct {
	version *version.Version

	// Hostname of its folder in the tree. Empty: it is hosted, not mirrored.
	Hostname svchost.Hostname

	// Version in the form clients request it.
	Version string

	// Archive is the package, named archive.tar.gz or archive.zip.
	Archive *File

	// H1 is Go's dirhash of the package's files, "h1:…": the same for the same files,
	// however they are packed.
	H1 string

	// Folder of the package in which the module lies, if it is not the root: the folder that
	// the package names (FetchedModule), or the only folder at its root. It can be used in a
	// URL unescaped.
	Folder string

	// Changed is not empty if the files in the package have changed since it was first
	// offered.
	Changed []ChangedBytes

	// Doubts are the faults of the package that do not keep it from being offered.
	Doubts archive.Doubts

	notes      []string // for the report
	summary    []byte   // encoded: it is rarely needed
	deprecated *registryhcl.Notice
}

func (v *ModuleVersion) number() *version.Version { return v.version }

// versionList returns Versions, which a nil Module does not have.
func (m *Module) versionList() []*ModuleVersion {
	if m == nil {
		return nil
	}
	return m.Versions
}

// Version returns the version of that number, or nil. A nil Module has none.
func (m *Module) Version(v string) *ModuleVersion {
	if m == nil {
		return nil
	}
	return m.byVersion[v]
}

// Latest returns the version to use if none is requested: the newest that is neither a
// prerelease nor deprecated, else the newest that is not a prerelease, else the newest.
func (m *Module) Latest() *ModuleVersion {
	return latestOf(m.Versions, func(v *ModuleVersion) (*version.Version, *registryhcl.Notice) { return v.version, v.deprecated })
}

// latestOf returns the version to use of a list that is ordered, the newest first.
func latestOf[T any](list []T, about func(T) (*version.Version, *registryhcl.Notice)) T {
	best, stable := list[0], false
	for _, item := range list {
		v, deprecated := about(item)
		if v.Prerelease() != "" {
			continue
		}
		if deprecated == nil {
			return item
		}
		if !stable {
			best, stable = item, true
		}
	}
	return best
}

// Metadata returns the module's registry.hcl; nil if it has none.
func (m *Module) Metadata() *registryhcl.File { return m.metadata.file }

// Withdrawn returns the withdrawn versions, which lie in the tree but are not offered, the
// newest first.
func (m *Module) Withdrawn() []WithdrawnVersion { return m.metadata.withdrawn }

// Deprecated returns the notice that deprecates the version; nil if there is none.
func (v *ModuleVersion) Deprecated() *registryhcl.Notice { return v.deprecated }

// withNotice returns the version with the notice that deprecates it, which may be nil.
func (v *ModuleVersion) withNotice(n *registryhcl.Notice) *ModuleVersion {
	if v.deprecated == n {
		return v
	}
	other := *v
	other.deprecated = n
	return &other
}

// MergedModule returns a module with the versions of another one, which may be nil, and
// further versions that can be fetched, of which nothing but the number is known. m is the
// module's registry.hcl. MergedModule returns nil if there is no version.
func MergedModule(a address.Address, present *Module, further []wire.ProviderVersion, m *registryhcl.File) *Module {
	all := slices.Clone(present.versionList())
	known := make(map[string]bool, len(all)+len(further))
	for _, v := range all {
		known[v.Version] = true
	}
	for _, f := range further {
		v, err := address.ParseModuleVersion(f.Version)
		if err != nil || known[v.String()] {
			continue
		}
		known[v.String()] = true
		all = append(all, &ModuleVersion{version: v, Version: v.String()})
	}
	if len(all) == 0 {
		return nil
	}
	return newModule(a, all, addressMetadata{file: m})
}

// List returns the registry's answer with all versions.
func (m *Module) List() *wire.Document { return m.versions }

// Summary returns the module's own documentation in short.
func (v *ModuleVersion) Summary() moduledoc.Summary {
	s, _ := moduledoc.DecodeSummary(v.summary) // zero if the memo is damaged
	return s
}

// Published returns the time of the newest file in the package.
func (v *ModuleVersion) Published() time.Time { return time.Unix(0, v.Archive.modTime) }

// A moduleFolder is the folder of one module and the packages in it.
type moduleFolder struct {
	folder
	packages []*modulePackage
}

// A modulePackage is an archive or a folder of a module folder.
type modulePackage struct {
	*job
	version    *version.Version
	format     string
	preference int // of its format: the lowest is kept
}

// listModule finds the packages of a module, and queues the packages to read. bad says why
// the folder cannot be judged; nil if it can.
func (w *walker) listModule(m *moduleFolder) (bad *tree.Finding) {
	entries, unreadable, bad := w.List(m.Part, m.Dir, m.Report)
	if bad == nil {
		bad = w.readMetadata(&m.folder, m.Address, entries, unreadable)
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

// order sorts the versions. The newest one is also read first.
func (m *moduleFolder) order() {
	address.SortNewestFirst(m.packages, func(p *modulePackage) *version.Version { return p.version })
	for rank, p := range m.packages {
		p.job.Rank = rank
	}
}

// addModulePackage adds an archive or a folder to its module.
func (w *walker) addModulePackage(m *moduleFolder, e tree.Entry) {
	e.Name = strings.Clone(e.Name) // the version must not keep the names of the other entries in memory
	withhold := func(f *tree.Finding) {
		w.report.Withhold(tree.InFolder(m.Report, e.Name), m.Address, "", f)
	}
	text, format, preference := e.Name, "tar.gz", len(address.ModuleFormats)
	if !e.Info.IsDir() {
		text, format, preference, _ = address.ParseModuleFile(e.Name)
	}
	v, err := address.ParseModuleVersion(text)
	if err != nil {
		withhold(tree.Findingf(tree.BadVersion, "%v", err))
		return
	}
	p := &modulePackage{version: v, format: format, preference: preference}
	if e.Info.IsDir() {
		p.job = w.newFolderArchive(m, e, v.String())
	} else {
		p.job = w.newArchive(&m.folder, m.Report, e, v.String(), func(ctx context.Context, a *job) (memo.Record, error) {
			return readFile(a, func(f afero.File, size int64) (archive.Digest, error) {
				return archive.ReadModule(ctx, f, size, format, wire.SHA256{})
			})
		})
	}
	m.packages = append(m.packages, p)
}

// addUnreadable adds an entry that cannot be read, so that its version keeps its earlier
// state.
func (w *walker) addUnreadable(m *moduleFolder, e tree.Entry) {
	w.faulty = w.faulty || e.Bad.Passes()
	text, format, preference, isFile := address.ParseModuleFile(e.Name)
	if !isFile {
		text, format, preference = e.Name, "tar.gz", len(address.ModuleFormats)
	}
	v, err := address.ParseModuleVersion(text)
	if err != nil || !isFile && !layout.LooksLikeVersion(e.Name) {
		w.report.Withhold(tree.InFolder(m.Report, e.Name), m.Address, "", e.Bad)
		return
	}
	a := &job{folder: &m.folder, Location: tree.Location{Dir: e.Dir, Name: strings.Clone(e.Name), Report: m.Report}, Record: memo.Record{Digest: archive.Digest{Bad: e.Bad}}}
	m.packages = append(m.packages, &modulePackage{job: a, version: v, format: format, preference: preference})
}

// newFolderArchive adds a module folder to the archives to read, unless the memo knows it.
// Its stamp covers the names, sizes and times of all files in it.
func (w *walker) newFolderArchive(m *moduleFolder, e tree.Entry, version string) *job {
	w.depends = true // on what is in the folder
	a := w.newJob(&m.folder, m.Report, e, version, readModuleFolder)
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
	if a = w.recallOrQueueFolder(a, dirs...); !a.pending {
		a.module.Recall(a.Digest)
	}
	return a
}

func readModuleFolder(ctx context.Context, a *job) (memo.Record, error) {
	d, err := a.module.Read(ctx, a.Pause())
	return memo.Record{Digest: d}, err
}

// offerModule returns the versions of a module's folder that can be offered. before is the
// entry of the folder so far, which may be nil.
func (s *scan) offerModule(f *moduleFolder, before *entry) offered {
	metadata, lacks, report := f.addressMetadata(), pending{}, report.New()
	last, listed := before.moduleOrNil(), before.listed()
	kept := make(map[string]*modulePackage)
	asBefore := make(map[string]*ModuleVersion) // versions that stay offered until the new ones have been read
	for _, p := range f.packages {
		v := p.version.String()
		if n := metadata.file.WithdrawnVersion(p.version); n != nil {
			metadata.withdraw(p.version, n)
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
			lacks.versions = append(lacks.versions, v)
			lacks.list = lacks.list || known == nil && !listed
			if known != nil {
				asBefore[v] = known // a list without it would make clients choose an older version
			}
			continue
		case p.Bad != nil:
			withhold(p, p.Bad)
			switch {
			case known != nil && (p.Bad.IsFault() || p.unfinished(s.options.now())):
				asBefore[v] = known
			case p.Bad.Passes():
				lacks.versions = append(lacks.versions, v)
				lacks.list = lacks.list || !listed
			}
			continue
		}
		duplicate := tree.Findingf(tree.Duplicate, "the version is there twice: keep one of them")
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
		versions = append(versions, p.offered(f.Address.Hostname).orUnchanged(last.Version(v)))
	}
	metadata.sort()
	o := offered{metadata: metadata, pending: lacks, report: report}
	if versions == nil {
		return o
	}
	o.module = last
	if !last.consistsOf(versions, metadata) {
		o.module = newModule(f.Address, versions, metadata) // newModule orders them
	}
	return o
}

// offered returns the module version of a package that has been read.
func (p *modulePackage) offered(hostname svchost.Hostname) *ModuleVersion {
	v := &ModuleVersion{
		version: p.version, Hostname: hostname, Version: p.version.String(),
		Archive: p.file(), H1: p.H1, Folder: p.subfolderOfModule(), Changed: p.changedBytes(""), Doubts: p.doubts(), summary: p.summary(),
	}
	v.notes = slices.Concat(p.notes(), v.Doubts.All(), changedNotes(v.Changed))
	v.Archive.Version = v.Version
	return v
}

// file returns the file that clients download of a package that has been read.
func (p *modulePackage) file() *File {
	f := &File{
		Name: "archive." + p.format, ContentType: gzipType, Size: p.Record.Size, SHA256: p.SHA256,
		in: inModules, dir: p.Dir, base: p.job.Name, modTime: p.Stamp.ModTime, inode: p.Stamp.Inode, changed: p.Stamp.Changed,
	}
	if p.module != nil {
		if k := p.module.Pack(p.Digest); k != nil {
			f.made = &madeFile{packed: k}
		}
	}
	if p.format == "zip" {
		f.ContentType = zipType
	}
	return f
}

// subfolderOfModule returns the folder of the package in which the module lies.
func (p *modulePackage) subfolderOfModule() string {
	if p.module != nil {
		return p.module.Folder()
	}
	return archive.ModuleFolderIn(p.Content)
}

// notes returns what the operator should know about an offered package besides its doubts.
func (p *modulePackage) notes() []string {
	if p.module == nil || p.module.LeftOut() == "" {
		return nil
	}
	return []string{"leaves out " + p.module.LeftOut()}
}

// summary returns the module's own documentation in short, encoded.
func (p *modulePackage) summary() []byte { return archive.SummaryIn(p.Content) }

// doubts returns the doubts about a package that has been read.
func (p *modulePackage) doubts() archive.Doubts {
	if p.module != nil {
		return p.module.Doubts(p.Digest)
	}
	return archive.DoubtsOf(p.Digest)
}

// newModule returns a module with these versions, none of which may be withdrawn. It orders
// the versions, applies deprecations, and encodes the list.
func newModule(a address.Address, versions []*ModuleVersion, s addressMetadata) *Module {
	address.SortNewestFirst(versions, func(v *ModuleVersion) *version.Version { return v.version })
	m := &Module{Address: a, Versions: versions, metadata: s, byVersion: make(map[string]*ModuleVersion, len(versions))}
	list := make([]wire.ModuleVersion, len(versions))
	for i, v := range versions {
		v = v.withNotice(s.file.DeprecatedVersion(v.version))
		versions[i], m.byVersion[v.Version] = v, v
		list[i].Version = v.Version
		if n := v.deprecated; n != nil {
			list[i].Deprecation = &wire.Deprecation{Reason: n.Reason, Link: n.Link}
		}
	}
	m.versions = wire.EncodeModuleVersions(list, s.source())
	return m
}

// A module version that has not changed since the last scan stays the same ModuleVersion. If
// no version has changed, the module stays the same Module, with the same documents.

// orUnchanged returns the version before, which may be nil, if v does not differ from it,
// and otherwise v.
func (v *ModuleVersion) orUnchanged(before *ModuleVersion) *ModuleVersion {
	if before == nil || v.Hostname != before.Hostname || v.Version != before.Version || v.H1 != before.H1 || v.Folder != before.Folder ||
		!slices.Equal(v.notes, before.notes) || !bytes.Equal(v.summary, before.summary) || !v.Archive.same(before.Archive) {
		return v
	}
	return before
}

// same reports whether two files of a tree have the same bytes and the same path.
func (f *File) same(other *File) bool {
	if f.Name != other.Name || f.Size != other.Size || f.SHA256 != other.SHA256 || f.ContentType != other.ContentType ||
		f.Path() != other.Path() || f.modTime != other.modTime || f.inode != other.inode || f.changed != other.changed ||
		f.IsFolder() != other.IsFolder() {
		return false
	}
	return !f.IsFolder() || slices.Equal(f.made.packed.Files(), other.made.packed.Files())
}

// consistsOf reports whether a module has exactly these versions. A nil Module has none.
func (m *Module) consistsOf(versions []*ModuleVersion, s addressMetadata) bool {
	if m == nil || len(m.Versions) != len(versions) || !m.metadata.equal(s) {
		return false
	}
	return !slices.ContainsFunc(versions, func(v *ModuleVersion) bool { return m.Version(v.Version) != v })
}

package index

import (
	"crypto/sha256"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	version "github.com/hashicorp/go-version"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/index/keys"
	"github.com/caddy-terraform/caddy-terraform-registry/index/layout"
	"github.com/caddy-terraform/caddy-terraform-registry/index/memo"
	"github.com/caddy-terraform/caddy-terraform-registry/index/release"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A providerFolder is the folder of one provider and the releases in it,
// before anything is verified.
type providerFolder struct {
	folder
	parser   address.ReleaseFileParser
	releases map[string]*releaseFiles // by version
	ordered  []*releaseFiles          // the newest first
}

func newProviderFolder(f folder) *providerFolder {
	return &providerFolder{folder: f, parser: address.ReleaseFileParser{Type: f.Address.Name}, releases: make(map[string]*releaseFiles)}
}

// releaseFiles are the files of one version, in any place in the folder.
type releaseFiles struct {
	release.Files
	packages []*packageArchive
	copied   bool // the copy of its namespace's keys lists the release

	bad          *tree.Finding // why a file of it cannot be read, so that the release keeps its earlier state; nil if all can
	onlyPackages bool          // all such files are packages: its documents are known
}

// A packageArchive is a provider's package for one platform, as a zip or an unpacked folder.
type packageArchive struct {
	*job
	platform address.Platform

	platformText string
}

// newPackageArchive takes the platform's names from the archive's name, so that the string
// they were parsed from need not stay in memory.
func newPackageArchive(a *job, p address.Platform) *packageArchive {
	text := strings.TrimSuffix(a.Name, ".zip")
	text = text[len(text)-len(p.OS)-len("_")-len(p.Arch):]
	return &packageArchive{job: a, platform: address.Platform{OS: text[:len(p.OS)], Arch: text[len(p.OS)+1:]}, platformText: text}
}

// list sorts the files of a provider's folder into releases, and queues the unread packages.
func (p *providerFolder) list(w *walker) (bad *tree.Finding) {
	bad = w.walkReleases(p, p.Dir, p.Report, "")
	p.order()
	return bad
}

func (p *providerFolder) isEmpty() bool {
	return !slices.ContainsFunc(p.ordered, (*releaseFiles).any)
}

func (p *providerFolder) versions() (versions []*version.Version) {
	for _, r := range p.ordered {
		if len(r.packages) > 0 {
			versions = append(versions, r.Version)
		}
	}
	return versions
}

func (p *providerFolder) archives() (all []*job) {
	for _, r := range p.ordered {
		for _, k := range r.packages {
			all = append(all, k.job)
		}
	}
	return all
}

// walkReleases sorts the files of a provider's folder, or of the folder of one version in
// it, into releases. only is that version, or empty for any. bad says why the folder cannot
// be judged; nil if it can.
func (w *walker) walkReleases(p *providerFolder, dir, report, only string) (bad *tree.Finding) {
	entries, unreadable, bad := w.List(p.Part, dir, report)
	if bad != nil {
		return bad
	}
	for _, e := range unreadable {
		w.faulty = w.faulty || e.Bad.Passes()
		v, isPackage := layout.VersionOf(&p.parser, e.Name, only)
		w.report.Withhold(tree.InFolder(report, e.Name), p.Address, v, e.Bad)
		p.keepVersion(v, e.Bad, isPackage)
	}
	if only == "" {
		if bad := w.readMetadata(&p.folder, entries, unreadable); bad != nil {
			return bad
		}
	} else if tree.IsIncompleteUpload(p.Address.Name, only, entries) {
		w.report.Ignore(report, tree.Temporary, "it is being uploaded: it is skipped until its SHA256SUMS is there, which comes last")
		return nil
	}
	beside := layout.NewSiblings(entries)
	for _, e := range entries {
		switch {
		case only == "" && layout.IsMetadata(e), only != "" && e.Name == tree.UploadName:
		case !e.Info.IsDir():
			w.addProviderFile(p, report, only, e, beside)
		case only == "":
			w.addProviderFolder(p, report, e)
		default:
			if !w.addDocs(p, only, e) && !w.addPackageFolder(p, report, only, e) {
				w.strays().FolderInProvider(p.Folder, report, e)
			}
		}
	}
	for _, e := range unreadable {
		w.keepDocs(p, only, e)
	}
	return nil
}

// addProviderFolder adds a folder in the folder of a provider, which is the folder of a version or a
// stray.
func (w *walker) addProviderFolder(p *providerFolder, report string, e tree.Entry) {
	switch v, err := p.parser.ParseVersion(e.Name); {
	case err == nil:
		if bad := w.walkReleases(p, e.Path(), tree.InFolder(report, e.Name), v.String()); bad != nil {
			p.keepVersion(v.String(), bad, false)
		}
	case layout.LooksLikeVersion(e.Name):
		w.report.Withhold(tree.InFolder(report, e.Name), p.Address, "", tree.Findingf(tree.BadVersion, "%v", err))
	default:
		w.strays().FolderInProvider(p.Folder, report, e)
	}
}

// addProviderFile adds a file in the folder of a provider or, if only is not empty, of that version.
func (w *walker) addProviderFile(p *providerFolder, report, only string, e tree.Entry, beside *layout.Siblings) {
	f, err := p.parser.Parse(e.Name)
	switch {
	case errors.Is(err, address.ErrNoReleaseFile):
		w.strays().FileInProvider(p.Folder, report, only, e, beside)
	case err != nil:
		w.report.Withhold(tree.InFolder(report, e.Name), p.Address, "", layout.BadReleaseName(err))
	case only != "" && f.Text != only:
		bad := tree.Findingf(tree.NameMismatch, "it is of version %s and lies in the folder of %s: move it", f.Text, only)
		w.report.Withhold(tree.InFolder(report, e.Name), p.Address, f.Text, bad)
	default:
		w.addReleaseFile(p, f, report, e)
	}
}

// keepVersion keeps the earlier state of a version, unless its name is empty.
func (p *providerFolder) keepVersion(text string, bad *tree.Finding, isPackage bool) {
	if v, err := address.ParseProviderVersion(text); err == nil {
		p.release(v, v.String()).keep(bad, isPackage)
	}
}

// keep keeps the earlier state of the release. Of several reasons, one that may pass counts.
func (r *releaseFiles) keep(bad *tree.Finding, isPackage bool) {
	r.onlyPackages = isPackage && (r.onlyPackages || r.bad == nil)
	if !r.bad.Passes() {
		r.bad = bad
	}
}

// addReleaseFile adds a file in a folder, which a report calls report, to the release of its
// version.
func (w *walker) addReleaseFile(p *providerFolder, f address.ReleaseFile, report string, e tree.Entry) {
	r := p.release(f.Version, f.Text)
	if f.Kind == address.PackageFile {
		a := w.newArchive(&p.folder, report, e, r.Text)
		r.packages = append(r.packages, newPackageArchive(a, f.Platform))
		return
	}
	slot := &r.Manifest
	switch f.Kind {
	case address.ChecksumsFile:
		slot = &r.Checksums
	case address.SignatureFile:
		slot = &r.Signature
	}
	if *slot != nil {
		w.report.Withhold(tree.InFolder(report, e.Name), p.Address, r.Text, tree.Findingf(tree.Duplicate, "the release has this file twice: keep one of them"))
		return
	}
	d := &release.Document{Location: e.Location(report), Stamp: tree.StampOf(e.Info)}
	if known, ok := w.scan.memo.Get(&d.Location, d.Stamp); ok {
		d.Content = known.Content
	} else {
		d.DetachName()
	}
	*slot = d
}

// addPackageFolder queues the unpacked package of a platform for reading, and reports
// whether the folder's name is a platform.
func (w *walker) addPackageFolder(p *providerFolder, report, version string, e tree.Entry) bool {
	platform, noPlatform := address.ParsePlatformName(e.Name)
	v, err := address.ParseProviderVersion(version)
	if noPlatform != nil || err != nil {
		return false
	}
	a := w.newJob(&p.folder, report, e, version)
	w.depends = true // the result depends on the files in its folders
	visit := func(dir string) { w.scan.watch.Add(p.Part, dir, p.Report) }
	if a.unpacked, a.Bad = archive.FindPackage(p.Part, e.Path(), p.Address.Name, platform.OS, visit); a.Bad != nil {
		w.setAside(a)
	} else {
		a.Stamp = a.unpacked.Stamp()
		a = w.recallOrQueueFolder(a)
	}
	r := p.release(v, v.String())
	r.packages = append(r.packages, newPackageArchive(a, platform))
	return true
}

// release returns the files of a version, and adds it if it is new.
func (p *providerFolder) release(v *version.Version, text string) *releaseFiles {
	r := p.releases[text]
	if r == nil {
		r = &releaseFiles{Files: release.Files{Version: v, Text: text}}
		p.releases[text] = r
	}
	return r
}

// order sorts the releases. The newest one is also read first.
func (p *providerFolder) order() {
	p.ordered = slices.Collect(maps.Values(p.releases))
	address.SortNewestFirst(p.ordered, func(r *releaseFiles) *version.Version { return r.Version })
	for rank, r := range p.ordered {
		for _, k := range r.packages {
			k.Rank = rank
		}
	}
}

// toVerify yields the packages, which have been read.
func (r *releaseFiles) toVerify() iter.Seq[release.Package] {
	return func(yield func(release.Package) bool) {
		for _, p := range r.packages {
			if !yield(release.Package{Location: p.Location, Record: p.Record, Part: p.part, Unpacked: p.unpacked, Platform: p.platform, PlatformText: p.platformText}) {
				return
			}
		}
	}
}

// unread counts the packages still to be read.
func (r *releaseFiles) unread() int {
	n := 0
	for _, p := range r.packages {
		if p.pending {
			n++
		}
	}
	return n
}

func (r *releaseFiles) pending() bool { return r.unread() > 0 }

// any reports whether a file of the version can be offered, or may be.
func (r *releaseFiles) any() bool { return len(r.packages) > 0 || r.bad != nil }

// path returns the path that a report names for the version.
func (r *releaseFiles) path(p *providerFolder) string {
	if len(r.packages) == 0 {
		return tree.InFolder(p.Report, r.Text)
	}
	return r.packages[0].ReportPath()
}

// rewritten reports whether a package changed while it was read, or an offered package is
// being rewritten or cannot be read. The next scan tries again.
func (r *releaseFiles) rewritten(known *Release, now time.Time) bool {
	return slices.ContainsFunc(r.packages, func(p *packageArchive) bool {
		return p.Bad.IsFault() && known.Package(p.platform.OS, p.platform.Arch) != nil || p.unfinished(now) && (p.Bad.Reason == tree.BeingWritten || known.Package(p.platform.OS, p.platform.Arch) != nil)
	})
}

// state returns a digest of the files of a release and the keys that verify them.
func (r *releaseFiles) state(trusted *keys.File) (sum wire.SHA256) {
	h := sha256.New()
	var b []byte
	for _, p := range r.packages {
		b = memo.AppendFile(b[:0], &p.Location, p.Stamp)
		h.Write(b)
	}
	for d := range r.Documents() {
		b = memo.AppendFile(b[:0], &d.Location, d.Stamp)
		h.Write(b)
	}
	b = append(b[:0], r.Docs...)
	if trusted != nil { // an empty keys file is not the same as none
		keys := trusted.Sum()
		b = append(b, keys[:]...)
	}
	h.Write(b)
	h.Sum(sum[:0])
	return sum
}

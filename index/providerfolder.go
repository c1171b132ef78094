package index

import (
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	version "github.com/hashicorp/go-version"
	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A providerFolder is the folder of one provider and the releases in it,
// before anything is verified.
type providerFolder struct {
	folder
	address  address.Address
	releases map[string]*releaseFiles // by version
	ordered  []*releaseFiles          // the newest first
}

// releaseFiles are the files of one version, wherever in the folder they lie.
type releaseFiles struct {
	version   *version.Version
	text      string // of the version
	packages  []*packageArchive
	checksums *document
	signature *document
	manifest  *document
}

// A packageArchive is a provider's zip for one platform, or the folder of an
// unpacked one.
type packageArchive struct {
	*archive
	name     string
	platform address.Platform
}

// detail is what reading the zip found out. An unpacked package has no detail: the
// registry packs it as it should be.
func (p *packageArchive) detail() packageDetail {
	if p.folder != nil {
		return packageDetail{}
	}
	return decodePackageDetail(p.content)
}

// A document is one of the small files beside the packages.
type document struct {
	name, path, report string
	stamp              stamp
}

// walkProviders finds the releases of all providers, and their packages that have
// to be read.
func (w *walker) walkProviders() []*providerFolder {
	var folders []*providerFolder
	for _, f := range w.walkAddresses(w.scan.tree.Providers, "providers", 2) {
		a, err := address.ParseProvider(f.hostname, f.names[0], f.names[1])
		if err != nil {
			w.badProviderAddress(f, err)
			continue
		}
		folders = append(folders, &providerFolder{folder: f, address: a, releases: make(map[string]*releaseFiles)})
	}
	found := w.each(len(folders), func(w *walker, i int) {
		p := folders[i]
		w.walkReleases(p, p.part, p.dir, p.report, "")
		p.order()
	})
	spellings := make([]spelling, len(folders))
	for i, p := range folders {
		spellings[i] = spelling{folder: &p.folder, address: p.address, empty: !p.hasPackages()}
	}
	var providers []*providerFolder
	for _, i := range w.oneSpellingEach(spellings, found) {
		providers = append(providers, folders[i])
	}
	return providers
}

func (p *providerFolder) hasPackages() bool {
	for _, r := range p.releases {
		if len(r.packages) > 0 {
			return true
		}
	}
	return false
}

// walkReleases sorts the files of a provider's folder, or of the folder of one
// version in it, into releases. only is that version, empty for any.
func (w *walker) walkReleases(p *providerFolder, part Part, dir, report, only string) {
	entries := w.list(part, dir, report)
	beside := newSiblings(entries)
	for _, e := range entries {
		folder, report := report, path.Join(report, e.name)
		problem := func(f *finding, version string) {
			w.report.withhold(f.at(report, p.address, version))
		}
		if e.info.IsDir() {
			switch v, err := address.ParseProviderVersion(e.name); {
			case only != "":
				if !w.addPackageFolder(p, part, report, only, e) {
					w.strayProviderFolder(p, part, folder, e)
				}
			case err == nil:
				w.walkReleases(p, part, e.path, report, v.String())
			case looksLikeVersion(e.name):
				problem(found(BadVersion, "%v", err), "")
			default:
				w.strayProviderFolder(p, part, folder, e)
			}
			continue
		}
		f, err := address.ParseReleaseFile(p.address.Name, e.name)
		switch {
		case errors.Is(err, address.ErrNoReleaseFile):
			w.strayProviderFile(p, folder, only, e, beside)
			continue
		case err != nil:
			problem(badReleaseName(err), "")
			continue
		case only != "" && f.Version.String() != only:
			problem(found(NameMismatch, "it is of version %s and lies in the folder of %s: move it", f.Version, only), f.Version.String())
			continue
		}
		w.addReleaseFile(p, f, part, report, e)
	}
}

// badReleaseName is the finding for a name that ParseReleaseFile refuses.
func badReleaseName(err error) *finding {
	switch {
	case errors.Is(err, address.ErrOtherProvider):
		return &finding{NameMismatch, err.Error()}
	case errors.Is(err, address.ErrPackageName):
		return &finding{BadName, err.Error()}
	}
	return &finding{BadVersion, err.Error()}
}

// looksLikeVersion reports whether a folder was meant to be a version.
func looksLikeVersion(name string) bool {
	name = strings.TrimPrefix(name, "v")
	return name != "" && name[0] >= '0' && name[0] <= '9'
}

// addReleaseFile adds a file to the release of its version.
func (w *walker) addReleaseFile(p *providerFolder, f address.ReleaseFile, part Part, report string, e entry) {
	r := p.release(f.Version)
	if f.Kind == address.PackageFile {
		a := w.newArchive(part, report, e, func(ctx context.Context, a *archive) (digest, error) {
			return readFile(ctx, a, func(f afero.File, size int64) (digest, error) {
				d, err := digestPackage(ctx, f, size, p.address.Name)
				d.size = size
				return d, err
			})
		})
		a.address, a.version = p.address, r.text
		r.packages = append(r.packages, &packageArchive{archive: a, name: e.name, platform: f.Platform})
		return
	}
	slot := map[address.ReleaseFileKind]**document{
		address.ChecksumsFile: &r.checksums, address.SignatureFile: &r.signature, address.ManifestFile: &r.manifest,
	}[f.Kind]
	if *slot != nil {
		w.report.withhold(found(Duplicate, "the release has this file twice: keep one of them").at(report, p.address, r.text))
		return
	}
	*slot = &document{name: e.name, path: e.path, report: report, stamp: stampOf(e.info)}
}

// release returns the files of a version, and adds it if it is new.
func (p *providerFolder) release(v *version.Version) *releaseFiles {
	text := v.String()
	r := p.releases[text]
	if r == nil {
		r = &releaseFiles{version: v, text: text}
		p.releases[text] = r
	}
	return r
}

// order sorts the releases. The newest one is also read first.
func (p *providerFolder) order() {
	p.ordered = slices.Collect(maps.Values(p.releases))
	address.SortNewestFirst(p.ordered, func(r *releaseFiles) *version.Version { return r.version })
	for rank, r := range p.ordered {
		for _, k := range r.packages {
			k.rank = rank
		}
	}
}

// noteRested adds the unpacked packages that have been read: they need not rest
// again.
func (p *providerFolder) noteRested(rested map[string]stamp) {
	for _, files := range p.ordered {
		for _, k := range files.packages {
			k.noteRested(rested)
		}
	}
}

// documents are the ones a release has.
func (r *releaseFiles) documents() []*document {
	return slices.DeleteFunc([]*document{r.checksums, r.signature, r.manifest}, func(d *document) bool { return d == nil })
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

// rewritten reports whether a package changed while it was read, or one that is
// offered is being written anew. The next scan tries again.
func (r *releaseFiles) rewritten(known *Release, now time.Time) bool {
	return slices.ContainsFunc(r.packages, func(p *packageArchive) bool {
		return p.unfinished(now) && (p.bad.reason == BeingWritten || known.Package(p.platform.OS, p.platform.Arch) != nil)
	})
}

// settled reports whether a further change to a document would be seen. A
// package's was checked when it was read.
func (r *releaseFiles) settled(now time.Time) bool {
	return !slices.ContainsFunc(r.documents(), func(d *document) bool { return !d.stamp.settled(now) })
}

// state identifies the files of a release and the keys they are verified with.
func (r *releaseFiles) state(keys *keysFile) wire.SHA256 {
	b := make([]byte, 0, 128*len(r.packages)+512)
	for _, p := range r.packages {
		b = p.stamp.append(appendString(b, p.report))
	}
	for _, d := range r.documents() {
		b = d.stamp.append(appendString(b, d.report))
	}
	if keys != nil {
		b = append(b, keys.sum[:]...)
	}
	return sha256Of(b)
}

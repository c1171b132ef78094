package index

import (
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"

	version "github.com/hashicorp/go-version"
	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
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

// detail is what was found out about a zip. An unpacked package has none: it is
// packed as it should be.
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

// walkProviders finds the releases of all providers and queues their packages
// for reading.
func (w *walker) walkProviders() []*providerFolder {
	var folders []*providerFolder
	for _, f := range w.walkAddresses(w.tree.Providers, "providers", 2) {
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
		spellings[i] = spelling{
			folder: &p.folder, address: p.address,
			normal: p.inNormalForm(p.address.Hostname, p.address.Namespace, p.address.Name),
			empty:  !p.hasPackages(),
		}
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
// version in it, by version.
func (w *walker) walkReleases(p *providerFolder, part Part, dir, report, only string) {
	entries := w.list(part, dir, report)
	beside := newSiblings(entries)
	for _, e := range entries {
		folder, report := report, path.Join(report, e.name)
		problem := func(f *finding, version string) {
			w.report.withhold(Problem{Path: report, Address: p.address.String(), Version: version, Reason: f.reason, Detail: f.detail})
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

// looksLikeVersion tells a folder that was meant to be a version from one that
// was not.
func looksLikeVersion(name string) bool {
	name = strings.TrimPrefix(name, "v")
	return name != "" && name[0] >= '0' && name[0] <= '9'
}

func (w *walker) addReleaseFile(p *providerFolder, f address.ReleaseFile, part Part, report string, e entry) {
	version := f.Version.String()
	r := p.release(f.Version)
	if f.Kind == address.PackageFile {
		a := w.newArchive(part, report, e, func(ctx context.Context, a *archive) (digest, error) {
			return readFile(ctx, a, func(f afero.File, size int64) (digest, error) {
				d, err := digestPackage(ctx, f, size, p.address.Name)
				d.size = size
				return d, err
			})
		})
		a.address, a.version = p.address, version
		r.packages = append(r.packages, &packageArchive{archive: a, name: e.name, platform: f.Platform})
		return
	}
	slot := map[address.ReleaseFileKind]**document{
		address.ChecksumsFile: &r.checksums, address.SignatureFile: &r.signature, address.ManifestFile: &r.manifest,
	}[f.Kind]
	if *slot != nil {
		w.report.withhold(Problem{Path: report, Address: p.address.String(), Version: version, Reason: Duplicate,
			Detail: "the release has this file twice: keep one of them"})
		return
	}
	*slot = &document{name: e.name, path: e.path, report: report, stamp: stampOf(e.info)}
}

// release is the one of a version, which may be new.
func (p *providerFolder) release(v *version.Version) *releaseFiles {
	r := p.releases[v.String()]
	if r == nil {
		r = &releaseFiles{version: v}
		p.releases[v.String()] = r
	}
	return r
}

// order puts the newest release first, which is also read first.
func (p *providerFolder) order() {
	p.ordered = slices.Collect(maps.Values(p.releases))
	address.SortNewestFirst(p.ordered, func(r *releaseFiles) *version.Version { return r.version })
	for rank, r := range p.ordered {
		for _, k := range r.packages {
			k.rank = rank
		}
	}
}

// addProviders offers what can be offered of the providers' folders. Verifying
// goes on on all cores, each folder with a report of its own.
func (a *assembly) addProviders() {
	type result struct {
		report   *Report
		provider *Provider
		pending  pending
	}
	results := make([]result, len(a.providers))
	inParallel(a.options.workers(), len(a.providers), func(i int) {
		r := &results[i]
		r.report = newReport()
		part := &assembly{scanner: a.scanner, report: r.report}
		r.provider, r.pending = part.provider(a.providers[i])
	})
	for i, r := range results {
		of := a.providers[i].address
		a.report.merge(r.report)
		a.noteRested(a.providers[i])
		if r.pending.has("") {
			a.snapshot.pending[of] = r.pending
		}
		if r.provider != nil {
			a.snapshot.providers[of] = r.provider
			a.snapshot.noteExpiry(r.provider)
		}
	}
}

// noteRested remembers the unpacked packages that have been read: they need not
// rest again.
func (a *assembly) noteRested(p *providerFolder) {
	for _, files := range p.ordered {
		for _, k := range files.packages {
			if k.folder != nil && !k.pending && k.bad == nil {
				a.folders[k.report] = k.stamp
			}
		}
	}
}

// provider is what can be offered of a folder, nil if nothing, and what of it
// has not been read yet.
func (a *assembly) provider(p *providerFolder) (provider *Provider, pending pending) {
	var before *Provider // as clients know it; nil if they may know more than the index does
	if a.last != nil && !a.last.ListPending(p.address) {
		before = a.last.Provider(p.address)
	}
	var releases []*Release
	for _, files := range p.ordered {
		r := a.addRelease(p, files)
		if r != nil {
			releases = append(releases, r)
		}
		if files.pending() {
			pending.versions = append(pending.versions, files.version.String())
			pending.list = pending.list || r == nil && before == nil
		}
	}
	if releases == nil {
		return nil, pending
	}
	return a.releases.provider(p.address, releases), pending
}

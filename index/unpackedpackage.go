package index

import (
	"context"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/index/memo"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// addPackageFolder queues the unpacked package of a platform for reading, and reports
// whether the folder's name is a platform.
func (w *walker) addPackageFolder(p *providerFolder, report, version string, e tree.Entry) bool {
	platform, ok := platformOfFolder(e.Name)
	if !ok {
		return false
	}
	v, err := address.ParseProviderVersion(version)
	if err != nil {
		return false
	}
	typ := p.address.Name
	a := w.newJob(&p.folder, report, e, version, readPackageFolder)
	r := p.release(v, v.String())

	w.depends = true // the result depends on the files in its folders
	visit := func(dir string) { w.scan.watch.Add(p.part, dir, p.report) }
	if a.unpacked, a.Bad = archive.FindPackage(p.part, e.Path(), typ, platform.OS, visit); a.Bad != nil {
		w.setAside(a)
	} else {
		a.Stamp = a.unpacked.Stamp()
		a = w.recallOrQueueFolder(a)
	}
	r.packages = append(r.packages, newPackageArchive(a, platform))
	return true
}

func readPackageFolder(ctx context.Context, a *job) (memo.Record, error) {
	d, err := a.unpacked.Read(ctx, a.state.wait)
	return memo.Record{Digest: d}, err
}

// platformOfFolder parses the name OS_ARCH of an unpacked package's folder.
func platformOfFolder(name string) (p address.Platform, ok bool) {
	os, arch, _ := strings.Cut(name, "_")
	p, err := address.ParsePlatform(os, arch)
	return p, err == nil
}

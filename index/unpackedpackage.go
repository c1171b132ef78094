package index

import (
	"context"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/index/layout"
	"github.com/caddy-terraform/caddy-terraform-registry/index/memo"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// addPackageFolder queues the unpacked package of a platform for reading, and reports
// whether the folder's name is a platform.
func (w *walker) addPackageFolder(p *providerFolder, report, version string, e tree.Entry) bool {
	platform, ok := layout.PlatformOfFolder(e.Name)
	v, err := address.ParseProviderVersion(version)
	if !ok || err != nil {
		return false
	}
	a := w.newJob(&p.folder, report, e, version, readPackageFolder)
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

func readPackageFolder(ctx context.Context, a *job) (memo.Record, error) {
	d, err := a.unpacked.Read(ctx, a.Pause())
	return memo.Record{Digest: d}, err
}

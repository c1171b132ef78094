package index

import (
	"slices"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/content"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// addDocs notes a folder of a version that is documentation. Where there are both
// layouts, the older one counts, as in the public registry.
func (w *walker) addDocs(p *providerFolder, only string, e tree.Entry) bool {
	v, err := address.ParseProviderVersion(only)
	if err != nil {
		return false
	}
	w.depends = true // on what is in the folder
	switch e.Name {
	case "docs":
	case "website": // it comes after docs
		entries := w.Look(p.Part, e.Path())
		i := slices.IndexFunc(entries, func(e tree.Entry) bool { return e.Name == "docs" && e.Bad == nil && e.Info.IsDir() })
		if i < 0 {
			return false
		}
		e = entries[i]
	default:
		return false
	}
	p.release(v, only).Docs = e.Path()
	w.watchDocs(p, e.Path())
	return true
}

// watchDocs has a scan follow when pages change: they are shown as they were at the
// last one.
func (w *walker) watchDocs(p *providerFolder, dir string) {
	if !w.scan.watch.Watches(p.Part) {
		return
	}
	w.scan.watch.Add(p.Part, dir, p.Report)
	entries, _ := p.Part.List(dir) // the reader of a page learns why it cannot be listed
	for _, e := range entries {
		if content.IsDocsFolder(e.Name) && e.Bad == nil && e.Info.IsDir() {
			w.scan.watch.Add(p.Part, e.Path(), p.Report)
		}
	}
}

package index

import (
	"path"

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
	docs := ""
	switch e.Name {
	case "docs":
		docs = e.Path()
	case "website": // it comes after docs
		docs = w.docsInWebsite(p, only, e.Path())
	}
	if docs == "" {
		return false
	}
	p.release(v, only).Docs = docs
	w.watchDocs(p, docs)
	return true
}

// keepDocs keeps the documentation of a version while an entry that had it cannot be looked at. A
// symlink to nothing has none.
func (w *walker) keepDocs(p *providerFolder, only string, e tree.Entry) {
	v, err := address.ParseProviderVersion(only)
	last := w.before.release(only)
	if err != nil || last == nil || e.Gone || !tree.IsBelow(last.Docs(), e.Path()) {
		return
	}
	if r := p.release(v, only); r.Docs == "" || e.Name == "website" { // the older layout counts
		r.Docs = last.Docs()
	}
}

// docsInWebsite returns the folder of documentation in the folder website of a version; empty
// if there is none. If that cannot be read, website has what it had at the last scan: the
// release keeps its documentation, and need not be verified again.
func (w *walker) docsInWebsite(p *providerFolder, only, website string) string {
	docs := tree.InFolder(website, "docs")
	entries, err := p.Part.List(website)
	unread := err != nil
	for _, e := range entries {
		if e.Name != "docs" {
			continue
		}
		if e.IsDir() {
			return docs
		}
		if e.Bad != nil && !e.Gone { // a symlink, and its target may be a folder
			unread, err = true, e.Bad
		}
	}
	w.NoteFault(err)
	if last := w.before.release(only); unread && last != nil && path.Base(path.Dir(last.Docs())) == "website" {
		return docs
	}
	return ""
}

// watchDocs has a scan follow when pages change: they are shown as they were at the
// last one. If the folder cannot be listed, a scan tries again: otherwise events in the folders
// of its categories would be missed. The reader of a page learns why it cannot be listed.
func (w *walker) watchDocs(p *providerFolder, dir string) {
	if !w.scan.watch.Watches(p.Part) {
		return
	}
	w.scan.watch.Add(p.Part, dir, p.Report)
	entries, err := p.Part.List(dir)
	w.NoteFault(err)
	for _, e := range entries {
		switch {
		case !content.IsDocsFolder(e.Name):
		case e.Bad != nil:
			w.faulty = w.faulty || e.Bad.Passes()
		case e.Info.IsDir():
			w.scan.watch.Add(p.Part, e.Path(), p.Report)
		}
	}
}

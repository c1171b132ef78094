package index

import (
	"context"
	"math"
	"path"
	"slices"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/index/content"
	"github.com/caddy-terraform/caddy-terraform-registry/index/memo"
	"github.com/caddy-terraform/caddy-terraform-registry/index/queue"
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
		p.release(v, only).docs = e.Path()
	case "website": // it comes after docs
		entries := w.Look(p.Part, e.Path())
		i := slices.IndexFunc(entries, func(e tree.Entry) bool { return e.Name == "docs" && e.Bad == nil && e.Info.IsDir() })
		if i < 0 {
			return false
		}
		e = entries[i]
		p.release(v, only).docs = e.Path()
	default:
		return false
	}
	w.watchDocs(p, e.Path())
	return true
}

// watchDocs has a scan follow when pages change: they are shown as they were at the
// last one.
func (w *walker) watchDocs(p *providerFolder, dir string) {
	part := p.Part
	if w.scan.watch == nil || !part.IsOnDisk() {
		return
	}
	w.scan.watch.Add(part, dir, p.Report)
	entries, _ := part.List(dir) // whoever looks at them is told what is wrong
	for _, e := range entries {
		if content.IsDocsFolder(e.Name) && e.Bad == nil && e.Info.IsDir() {
			w.scan.watch.Add(part, e.Path(), p.Report)
		}
	}
}

// titled returns a provider with the titles of the documentation of its latest release. If
// they have not been read yet, or cannot be read, it keeps those of the provider before.
func (l *listing) titled(s *scan, p *Provider) *Provider {
	if p == nil || s.once {
		return p
	}
	var titles content.Titles
	if r := p.Latest(); r.Docs() != "" {
		a, w := l.titles(s, r), l.walker
		switch {
		case a != nil && !a.pending && a.Bad == nil:
			titles = a.Content
		case w.before.providerOrNil() != nil && w.before.provider.Latest().Docs() == r.Docs():
			titles = w.before.provider.DocTitles()
		}
	}
	return p.WithTitles(titles)
}

// titles returns the job of reading the titles of a release, or nil if its documentation
// cannot be listed. No request waits for it.
func (l *listing) titles(s *scan, r *Release) *job {
	w, p := l.walker, l.provider
	if a := w.titles[r.Docs()]; a != nil {
		return a
	}
	found, err := content.FindDocs(s.ctx, p.Part, r.Docs())
	if err != nil {
		w.NoteFault(err)
		return nil
	}
	dir, name := path.Split(r.Docs())
	a := &job{
		folder: &p.folder, listing: l, titles: true, Task: queue.Task{Address: p.Address, Version: r.Version, Rank: math.MaxInt, Background: true},
		Location: tree.Location{Dir: path.Clean(dir), Name: name, Report: path.Join("providers", dir)},
		read: func(ctx context.Context, _ *job) (memo.Record, error) {
			text, err := found.ReadTitles(ctx, p.Address.Name)
			return memo.Record{Digest: archive.Digest{Content: text}}, err
		},
	}
	a.Stamp = found.Stamp()
	if w.titles == nil {
		w.titles = make(map[string]*job)
	}
	if !w.recall(a) || a.isOutdated(a.Record) {
		a = w.queue(a)
	}
	w.titles[r.Docs()] = a
	return a
}

package index

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"

	"github.com/caddy-terraform/caddy-terraform-registry/index/changes"
	"github.com/caddy-terraform/caddy-terraform-registry/index/content"
	"github.com/caddy-terraform/caddy-terraform-registry/index/queue"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// Searches find pages of documentation by their titles. Titles are read in the background: no
// client depends on titles, so no request, report or scan waits. Until the reading ends, the
// earlier titles count.

// titled returns a provider, which may be nil, with the titles of its latest release.
func titled(p *Provider, titles map[string]content.Titles) *Provider {
	if p == nil {
		return nil
	}
	return p.WithTitles(titles[p.Latest().Docs()])
}

// titlesFor returns the titles of the documentation of the releases of a provider, which may
// be nil, that are the latest: of the provider, or of a merged one.
func (l *listing) titlesFor(s *scan, p *Provider) map[string]content.Titles {
	if p == nil {
		return nil
	}
	all := make(map[string]content.Titles)
	if latest := p.Latest(); latest.Docs() != "" {
		all[latest.Docs()] = l.titles(s, latest)
	}
	for _, m := range s.last.group(l.folder().Address).merged {
		_, docs := m.latestDocs()
		i := slices.IndexFunc(p.Releases, func(r *Release) bool { return r.Docs() == docs })
		if _, known := all[docs]; docs != "" && i >= 0 && !known {
			all[docs] = l.titles(s, p.Releases[i])
		}
	}
	return all
}

// titles returns the titles of a release, as they have been read by now, in this process or
// an earlier one. Unless that was for the same listing, they are read again.
func (l *listing) titles(s *scan, r *Release) content.Titles {
	w, docs := l.walker, r.Docs()
	a := w.titles[docs]
	if a == nil || a.finished && a.again.Load() {
		a = newTitlesJob(l.folder(), r)
		kept, _ := s.memo.Document(&a.Location) // of an earlier process
		a.known = kept
		if before, known := w.before.titles[docs]; known {
			a.known = before
		}
		if w.titles == nil {
			w.titles = make(map[string]*job)
		}
		w.titles[docs] = a
	}
	if a.listing != l {
		a.listing, w.unread = l, append(w.unread, a)
	}
	if a.finished && a.Bad == nil {
		return a.Content
	}
	return a.known
}

// newTitlesJob makes the job of reading the titles of a release.
func newTitlesJob(f *folder, r *Release) *job {
	dir, name := path.Split(r.Docs())
	return &job{
		part: f.Part, titles: true, Task: queue.Task{Address: f.Address, Version: r.Version, Background: true},
		Location: tree.Location{Dir: path.Clean(dir), Name: name, Report: path.Join("providers", dir)},
	}
}

// takeTitles takes over a job of reading titles that has not ended, from the listing before.
// If its reading has begun, the folder may have changed since, and the job is done again.
func (w *walker) takeTitles(a *job) {
	if a.finished {
		return
	}
	if a.HasBegun() {
		a.again.Store(true) // two spellings of an address may take it over at the same time
	}
	if w.titles == nil {
		w.titles = make(map[string]*job)
	}
	w.titles[a.Path()] = a
}

// readTitles reads the titles in a folder of documentation, or recalls them if nothing in it
// has changed.
func (x *scanner) readTitles(ctx context.Context, a *job) (r readResult) {
	at, now := a.Location, x.options.now()
	found, err := content.FindDocs(ctx, a.part, at.Path())
	if err == nil {
		if d, known := x.memo.Get(&at, found.Stamp()); known && content.Titles(d.Content).AreCurrent() {
			return readResult{record: d}
		}
		r.record.Stamp = found.Stamp()
		r.record.Content, err = found.ReadTitles(ctx, a.Address.Name, a.known)
		r.young = r.record.Stamp.TooYoung(now, 0)
	}
	switch {
	case err == nil:
		x.memo.Put(&at, r.record, now)
	case !errors.Is(err, fs.ErrNotExist): // else the folder has been removed since
		bad := tree.AsFinding(err)
		if bad.Passes() {
			r.failed = bad.Line(at.ReportPath())
		}
		if r.record.Content == nil {
			r.record.Bad = bad
		}
	}
	return r
}

// untitled returns the folders of the releases that are the latest of a merged provider, and
// whose titles have not been asked for, since they are not the latest in their folder.
func (s *Snapshot) untitled() changes.Paths {
	folders := make(changes.Paths)
	for a := range s.differs.groups {
		for _, m := range s.group(a).merged {
			e, docs := m.latestDocs()
			if docs == "" {
				continue
			}
			if _, known := e.titles[docs]; !known {
				folders[e.folder.Report] = true
			}
		}
	}
	return folders
}

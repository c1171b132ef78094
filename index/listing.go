package index

import (
	"maps"
	"slices"
	"time"

	version "github.com/hashicorp/go-version"

	"github.com/caddy-terraform/caddy-terraform-registry/index/keys"
	"github.com/caddy-terraform/caddy-terraform-registry/index/layout"
	"github.com/caddy-terraform/caddy-terraform-registry/index/memo"
	"github.com/caddy-terraform/caddy-terraform-registry/index/report"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// A listing is the folder of an address as it was listed, before anything is verified: of a
// provider or of a module. Entries are made of it until all its archives have been read.
type listing struct {
	found  versionFolder
	walker *walker
	entry  *entry // replaces all other fields, if the folder has not changed or cannot be read
}

// A versionFolder is the folder of a provider or of a module, and what was found in it.
type versionFolder interface {
	addressFolder() *folder
	list(w *walker) (bad *tree.Finding) // says why it cannot
	isEmpty() bool                      // of versions
	versions() []*version.Version       // with packages
	archives() []*job

	// offer returns the versions that can be offered. trusted are the keys that verify them, which may
	// be nil, and before is the entry of the folder so far.
	offer(s *scan, trusted *keys.File, before *entry) offered
}

// folder returns the folder that was listed.
func (l *listing) folder() *folder {
	if l.found != nil {
		return l.found.addressFolder()
	}
	return &l.entry.folder
}

// isEmpty reports whether no version is in the folder.
func (l *listing) isEmpty() bool {
	if l.entry != nil {
		return l.entry.empty
	}
	return l.found.isEmpty()
}

// list lists the folder of an address. It returns the entry that the folder has already if
// nothing has changed that the entry depends on, and the listing that it had if archives of an
// unchanged folder are still to be read. It keeps the earlier entry of a folder that cannot
// be read.
func (s *scan) list(path layout.Folder, k *keys.Folder) *listing {
	f := folder{Folder: path}
	g := s.last.group(f.Address)
	known := g.entryOf(f.Report)
	before := known
	if before == nil {
		before = g.entry(f.Address.Hostname) // the folder may have been renamed
	}
	w := s.newWalker(before.withoutListing())
	l := &listing{walker: w}
	if before != nil && before.listing != nil {
		w.queued = make(map[string]*job)
		for _, a := range before.listing.walker.unread {
			if a.titles {
				w.takeTitles(a)
			} else {
				w.queued[a.ReportPath()] = a
			}
		}
	}
	if known != nil && w.reuse(known, f.Part, k) {
		l.entry = known
		return l
	}
	if again := w.relist(known, f.Part); again != nil {
		return again
	}
	w.notes = true
	if f.Address.IsModule() {
		l.found = &moduleFolder{folder: f}
	} else {
		l.found = newProviderFolder(f)
	}
	bad := l.found.list(w)
	w.queued = nil
	switch {
	case bad != nil:
		w.unread, w.recalled = nil, 0
		l.entry = w.keep(*l.folder(), known.withoutListing())
	case w.erred:
		s.memo.RetainBelow(path.Report)
	}
	return l
}

// takeOver makes the listing of an entry, if it has one, the listing of its unread archives.
func (e *entry) takeOver() {
	if e.listing != nil {
		for _, a := range e.listing.walker.unread {
			a.listing = e.listing
		}
	}
}

// withoutListing returns the entry without its listing, which would keep all listings before
// in memory. The entry may be nil.
func (e *entry) withoutListing() *entry {
	if e == nil || e.listing == nil {
		return e
	}
	without := *e
	without.listing = nil
	return &without
}

// keep returns the entry of a folder that cannot be read. It keeps the state of the entry
// before, which is nil if no scan could read the folder yet: then the folder is unknown.
func (w *walker) keep(f folder, before *entry) *entry {
	w.scan.memo.RetainBelow(f.Report)
	f.Part = tree.Part{} // an entry may outlast it
	if before == nil || before.unknown {
		f.metadata = nil
		return &entry{folder: f, offered: offered{report: report.New()}, walked: w.report, empty: true, unknown: true, faulty: w.faulty}
	}
	if before.kept != nil {
		before = before.kept
	}
	e := *before
	f.metadata = before.folder.metadata
	e.folder, e.kept, e.faulty = f, before, w.faulty
	e.walked, e.state, e.listing = report.New(), nil, nil
	e.walked.Merge(w.report)
	e.walked.Merge(before.walked)
	e.passing, e.pending.Unreadable = true, true
	return &e
}

// entry makes the entry of a listing from the archives that have been read by now.
func (s *scan) entry(l *listing, k *keys.Folder) *entry {
	s.recalled.Add(int64(l.walker.recalled))
	if l.entry != nil {
		return l.entry
	}
	w, f := l.walker, *l.folder()
	f.Part = tree.Part{} // an entry may outlast it
	e := &entry{folder: f, walked: w.report, failed: w.failed, faulty: w.faulty, young: w.young}
	e.empty, e.keys = l.isEmpty(), keysFor(f.Address, k)
	if e.offered = l.found.offer(s, e.keys, w.before); !s.once {
		e.titles = l.titlesFor(s, e.provider)
		e.provider = titled(e.provider, e.titles)
	}
	e.faulty = e.faulty || e.unread || w.faulty
	e.packed = packedFolders(l.found.archives(), w)
	for _, a := range w.unread {
		e.young = e.young || a.young
		if e.failed == "" {
			e.failed = a.failed
		}
		if !a.finished {
			e.listing = l
		}
	}
	if l.isRepeatable(e) && e.isRepeatable() {
		e.state = &folderState{listed: slices.Clip(w.listed), archives: len(l.found.archives())}
	}
	return e
}

// packedFolders returns the stamps of the folders that have been read and need not rest
// again. A folder that could not be looked at stays what it was.
func packedFolders(archives []*job, w *walker) map[string]tree.Stamp {
	packed := make(map[string]tree.Stamp)
	if w.faulty {
		maps.Copy(packed, w.before.packed)
	}
	for _, a := range archives {
		if a.isFolder() && !a.pending && a.Bad == nil {
			packed[a.ReportPath()] = a.Stamp
		}
	}
	if len(packed) == 0 {
		return nil
	}
	return packed
}

// Most folders do not change from one scan to the next. A scan only lists such a folder, and
// keeps its entry, or its listing if some archives are still to be read.

// A folderState has everything that an entry depends on besides the keys and the options.
type folderState struct {
	listed   memo.ListedFolders // the folder and its subfolders
	archives int
}

// note remembers the entries of a folder, or that the result depends on more than the
// entries: a file may change again unnoticed, or a symlink may lead elsewhere.
func (w *walker) note(dir, report string, entries []tree.Entry) {
	if w.notes && !w.depends {
		w.depends = !w.listed.Note(dir, report, entries, w.scan.now)
	}
}

// reuse reports whether nothing has changed that an entry depends on.
func (w *walker) reuse(e *entry, part tree.Part, k *keys.Folder) bool {
	s := w.scan
	if e.state == nil {
		return false
	}
	outdated := !e.since.IsZero() && (s.now.Sub(e.since) >= verifiedFor || s.now.Before(e.since))
	if outdated || !e.keys.Same(keysFor(e.folder.Address, k)) || !w.areUnchanged(e.state.listed, part) {
		return false
	}
	w.recalled = e.state.archives
	return true
}

// areUnchanged reports whether nothing has changed in folders, whose records are then kept.
func (w *walker) areUnchanged(folders memo.ListedFolders, part tree.Part) bool {
	s := w.scan
	unchanged := folders.Unchanged(s.now, func(dir, report string) ([]tree.Entry, error) {
		if err := s.ctx.Err(); err != nil { // the scan is given up, and the rest of the tree may be large
			return nil, err
		}
		s.watch.Add(part, dir, report)
		return part.List(dir)
	})
	if !unchanged || s.ctx.Err() != nil {
		return false
	}
	s.memo.Retain(folders)
	return true
}

// relist returns the listing of an entry, which may be nil, for the next entry, if archives are
// still to be read and nothing has changed in the folder. It returns nil otherwise. The two
// listings share everything but the unread archives. So each archive of a large tree is listed
// once, however many scans its first read takes.
func (w *walker) relist(e *entry, part tree.Part) *listing {
	if e == nil || e.listing == nil || !e.listing.isRepeatable(e) || !w.areUnchanged(e.listing.walker.listed, part) {
		return nil
	}
	again, walked := *e.listing, *e.listing.walker
	again.walker, walked.before, walked.unread = &walked, w.before, nil
	for _, a := range e.listing.walker.unread {
		if !a.finished {
			walked.unread = append(walked.unread, a)
			continue
		}
		if a.listing = nil; !a.Background { // it has been recalled already
			walked.recalled++
		}
	}
	return &again
}

// isRepeatable reports whether the same folder would be listed in the same way again.
func (l *listing) isRepeatable(e *entry) bool {
	w := l.walker
	return !w.depends && !w.young && !e.faulty && w.failed == "" && len(w.report.Withheld) == 0 &&
		!slices.ContainsFunc(w.unread, func(a *job) bool { return a.failed != "" || a.young })
}

// isRepeatable reports whether the same files and keys have the same result again, until signatures
// must be verified again.
func (o *offered) isRepeatable() bool {
	return !o.passing && len(o.report.Withheld) == 0 && len(o.pending.Versions) == 0 && o.report.Pending == 0
}

// sinceEarlier notes the time of a verification.
func (o *offered) sinceEarlier(at time.Time) {
	if at.Before(o.since) {
		o.since = at
	}
}

package index

import (
	"context"
	"errors"
	"io/fs"
	"sync/atomic"
	"time"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/index/content"
	"github.com/caddy-terraform/caddy-terraform-registry/index/memo"
	"github.com/caddy-terraform/caddy-terraform-registry/index/queue"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A job is an archive, as a file or a folder, that has to be read, and the result of reading
// it. Titles of documentation are read by such jobs, too.
type job struct {
	part    tree.Part
	listing *listing // the newest one, until the archive has been read: others must not stay in memory
	tree.Location
	module   *archive.ModuleFolder  // nil for any other archive
	unpacked *archive.PackageFolder // nil for any other archive
	queue.Task

	before *entry // of the folder
	first  bool   // nothing was offered before: it was found by the first scan of a process

	titles bool // it is no archive, but the titles of documentation

	// Of titles: those that were known before, and whether the folder was listed again after
	// its reading had begun.
	known content.Titles
	again atomic.Bool

	// An archive is pending until it is read: only its stamp is known, and no version that
	// needs it is offered.
	pending  bool
	finished bool   // it has been read, or reading has failed
	failed   string // why it stays pending: reading has failed, and is tried again; empty otherwise
	young    bool   // it may change again unnoticed
	memo.Record
}

// finished is a job that has been read, and the result.
type finished = queue.Finished[*job, readResult]

// isFolder reports whether the archive is computed from the files of a folder.
func (a *job) isFolder() bool { return a.module != nil || a.unpacked != nil }

// newArchive adds a file in a folder, which a report calls report, to the archives to read,
// unless the memo knows it, or it is empty, or no regular file.
func (w *walker) newArchive(f *folder, report string, e tree.Entry, version string) *job {
	a := w.newJob(f, report, e, version)
	a.Stamp = tree.StampOf(e.Info)
	if !e.Info.Mode().IsRegular() {
		a.Bad = tree.Findingf(tree.Unreadable, "it is not a regular file: remove it")
		return a
	}
	if a.Stamp.Size == 0 {
		a.Bad = tree.Findingf(tree.Empty, "it is empty: copy it again")
		return a
	}
	if !w.recall(a) {
		return w.queue(a)
	}
	return w.renew(a)
}

func (w *walker) newJob(f *folder, report string, e tree.Entry, version string) *job {
	return &job{part: f.Part, Location: e.Location(report), Task: queue.Task{Address: f.Address, Version: version}, before: w.before, first: w.scan.last == nil}
}

// recall copies the result for an archive from the memo, or from the digests from outside of
// scans, and reports whether one of them has it.
func (w *walker) recall(a *job) (known bool) {
	d, known := w.scan.memo.Get(&a.Location, a.Stamp)
	if !known {
		if d, known = w.scan.options.Digests.Get(a.Stamp); known {
			a.DetachName()
			d.Earlier = w.scan.earlier(a, d, w.scan.now)
			w.scan.memo.Keep(&a.Location, d)
		}
	}
	if known {
		a.Record = d
		a.recallModule(d)
		w.recalled++
	}
	return known
}

// recallModule tells a module's folder of an earlier reading.
func (a *job) recallModule(d memo.Record) {
	if a.module != nil {
		a.module.Recall(d.Digest)
	}
}

// folderRest is how long a folder must stay unchanged before it is offered, since there is
// no other sign that it has been copied completely. It does not delay a folder that is
// renamed into place.
const folderRest = time.Second

// recallOrQueueFolder copies the result for a folder from the memo, like newArchive. Otherwise
// it adds the folder to the archives to read, or leaves it to a later scan if it is too young.
// dirs are the folders in it, from which removing a file is a change too.
func (w *walker) recallOrQueueFolder(a *job, dirs ...string) *job {
	now := w.scan.options.now()
	switch {
	case w.recall(a):
		return w.renew(a)
	case !w.scan.once && !w.hasPacked(a) && a.part.WithChanges(a.Stamp, a.Path(), dirs, now).TooYoung(now, folderRest):
		a.pending, w.young = true, true
	default:
		return w.queue(a)
	}
	return a
}

// hasPacked reports whether a folder has been packed as it is now.
func (w *walker) hasPacked(a *job) bool {
	return w.before.packed[a.ReportPath()] == a.Stamp
}

// queue adds an archive to the archives to read. If the listing before has the same archive,
// which may be being read, that one is returned.
func (w *walker) queue(a *job) *job {
	if known := w.queued[a.ReportPath()]; known != nil && known.Stamp == a.Stamp && known.isFolder() == a.isFolder() && known.failed == "" {
		w.unread = append(w.unread, known)
		return known
	}
	a.pending, a.Bytes = true, a.Stamp.Size
	a.DetachName()
	w.unread = append(w.unread, a)
	return a
}

// renew adds an archive that is known to the archives to read, if an earlier release has
// read it and this one reads more of it. Until then it is offered as it was read, so that it is
// read in the background.
func (w *walker) renew(a *job) *job {
	if w.scan.once || !a.IsOutdated(a.Address.IsModule()) {
		return a
	}
	a.Background = true
	known := a.Record
	if a = w.queue(a); a.pending && !a.finished {
		a.Record, a.pending = known, false
	}
	return a
}

// setAside leaves an archive that cannot be read at the moment to a later scan.
func (w *walker) setAside(a *job) {
	w.erred = w.erred || a.Bad.IsFault()
	if !w.scan.once && a.Bad.Passes() {
		w.failed = a.Bad.Line(a.ReportPath())
		a.Bad, a.pending = nil, true
	}
}

// A readResult is the result of reading an archive.
type readResult struct {
	record memo.Record
	failed string // why the archive is to be read again; empty otherwise
	young  bool   // it may change again unnoticed
}

// apply stores the result of reading an archive. Titles that could be read count even if
// others could not be.
func (a *job) apply(r readResult) {
	a.finished, a.failed, a.young = true, r.failed, r.young
	if r.failed == "" || a.titles {
		a.Record, a.pending = r.record, false
	}
}

// readArchive reads an archive, remembers the result and returns it.
func (x *scanner) readArchive(ctx context.Context, a *job) (r readResult) {
	if a.titles {
		return x.readTitles(ctx, a)
	}
	at := a.Location
	if d, known := x.memo.Get(&at, a.Stamp); known && !d.IsOutdated(a.Address.IsModule()) { // of another instance
		if !a.Background { // it is not offered yet
			a.recallModule(d)
		}
		return readResult{record: d}
	}
	read, err := a.read(ctx)
	if err != nil {
		read = archive.Digest{Bad: tree.AsFinding(err)}
	}
	d := memo.Record{Digest: read, Stamp: a.Stamp}
	if x.options.Listed != nil && (errors.Is(err, fs.ErrNotExist) || d.Bad != nil && d.Bad.Reason == tree.BeingWritten) {
		x.options.Listed.Forget(a.Report) // it was replaced or removed after it was listed
		r.young = true
	}
	now := x.options.now()
	d.Earlier = x.earlier(a, d, now)
	if ctx.Err() == nil {
		x.memo.Put(&a.Location, d, now)
	}
	r.record, r.young = d, r.young || d.Stamp.TooYoung(now, 0)
	if d.Bad.Passes() && (!x.once || d.Bad.Reason == tree.StoreFailed) {
		r.failed = d.Bad.Line(a.ReportPath())
	}
	return r
}

// read reads the archive.
func (a *job) read(ctx context.Context) (archive.Digest, error) {
	switch {
	case a.module != nil && a.Background:
		return a.readModuleAgain(ctx)
	case a.module != nil:
		return a.module.Read(ctx, a.Pause())
	case a.unpacked != nil:
		return a.unpacked.Read(ctx, a.Pause())
	}
	return a.readFile(func(f afero.File, size int64) (archive.Digest, error) {
		if a.Address.IsModule() {
			return archive.ReadModule(ctx, f, size, address.ModuleFormatOf(a.Name), wire.SHA256{})
		}
		return archive.ReadPackage(ctx, f, size, a.Address.Name, wire.SHA256{})
	})
}

// readModuleAgain reads the folder of a module that is offered: a.module must not change.
func (a *job) readModuleAgain(ctx context.Context) (archive.Digest, error) {
	again, bad := archive.FindModule(a.part, a.Path(), func(string) {})
	switch {
	case bad != nil:
		return archive.Digest{}, bad
	case again.Stamp() != a.Stamp:
		return archive.Digest{}, beingWritten()
	}
	return again.Read(ctx, a.Pause())
}

// readFile opens an archive that is a file, and calls read. The file must not change meanwhile.
func (a *job) readFile(read func(f afero.File, size int64) (archive.Digest, error)) (archive.Digest, error) {
	f, info, err := a.part.OpenRegular(a.Path())
	if err != nil {
		return archive.Digest{}, err
	}
	defer f.Close()
	if !tree.StampOf(info).SameContent(a.Stamp) {
		return archive.Digest{}, beingWritten()
	}
	d, failed := read(archive.Paced(f, a.Pause()), info.Size())
	if err := tree.ReadFailure(f); err != nil {
		return archive.Digest{}, err
	}
	if bad := (*tree.Finding)(nil); failed != nil && !errors.As(failed, &bad) {
		return archive.Digest{}, failed
	}
	if info, err = f.Stat(); err != nil {
		return archive.Digest{}, err
	}
	if !tree.StampOf(info).SameContent(a.Stamp) {
		return archive.Digest{}, beingWritten()
	}
	return d, failed
}

// beingWritten is the finding for an archive that changes while it is read.
func beingWritten() *tree.Finding {
	return tree.Findingf(tree.BeingWritten, "it is still being written")
}

package index

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/index/memo"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// A job is an archive, as a file or a folder, that has to be read, and the result of reading
// it.
type job struct {
	folder *folder // the folder of the provider or module
	tree.Location
	version  string
	module   *archive.ModuleFolder  // nil for any other archive
	unpacked *archive.PackageFolder // nil for any other archive
	rank     int                    // number of newer versions
	read     func(context.Context, *job) (memo.Record, error)
	state    *jobState // state in a reading; nil until it is in one

	// An archive is pending until it is read: only its stamp is known, and no version that
	// needs it is offered.
	pending bool
	memo.Record
}

// noteUnchanged notes that the folder has been read and need not stay unchanged for folderRest
// again.
func (a *job) noteUnchanged(unchanged map[string]tree.Stamp) {
	if a.isFolder() && !a.pending && a.Bad == nil {
		unchanged[a.ReportPath()] = a.Stamp
	}
}

// isFolder reports whether the archive is computed from the files of a folder.
func (a *job) isFolder() bool { return a.module != nil || a.unpacked != nil }

// newArchive adds a file in a folder, which a report calls report, to the archives to read,
// unless the memo knows it, or it is empty, or no regular file.
func (w *walker) newArchive(f *folder, report string, e tree.Entry, version string, read func(context.Context, *job) (memo.Record, error)) *job {
	a := &job{folder: f, Location: e.Location(report), version: version, read: read}
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
		w.queue(a)
	}
	return a
}

// recall copies the result for an archive from the memo, or from the digests from outside of
// scans, and reports whether one of them has it.
func (w *walker) recall(a *job) (known bool) {
	d, known := w.scan.memo.Get(&a.Location, a.Stamp)
	if !known {
		if d, known = w.scan.options.Digests.get(a.Stamp); known {
			a.DetachName()
			d.Earlier = w.scan.earlier(a, d)
			w.scan.memo.Keep(&a.Location, d)
		}
	}
	if known {
		a.Record = d
		w.recalled++
	}
	return known
}

// folderRest is how long a folder must stay unchanged before it is offered, since there is
// no other sign that it has been copied completely. It does not delay a folder that is
// renamed into place.
const folderRest = time.Second

// recallOrQueueFolder copies the result for a folder from the memo. Otherwise it adds the
// folder to the archives to read, or leaves it to a later scan if it is too young. dirs are
// the folders in it, from which removing a file is a change too.
func (w *walker) recallOrQueueFolder(a *job, dirs ...string) (known bool) {
	switch {
	case w.recall(a):
		return true
	case w.scan.live && w.scan.last.packed[a.ReportPath()] != a.Stamp && w.scan.memo.TooYoung(a.withChanges(dirs, w.scan.options.now()), folderRest, w.scan.options.now()):
		a.pending = true
	default:
		w.queue(a)
	}
	return false
}

// withChanges returns a folder's stamp with the last time at which a name in it was removed
// or added, if that was later. Only local file systems keep this time: others make one up,
// and then a folder might never count as unchanged.
func (a *job) withChanges(dirs []string, taken time.Time) tree.Stamp {
	s := a.Stamp
	if !a.folder.part.IsOnDisk() || !a.folder.part.KeepsInodes(a.Path()) {
		return s
	}
	now := taken.UnixNano()
	for _, dir := range dirs {
		info, err := a.folder.part.Lookup(dir)
		if err != nil {
			s.Changed = max(s.Newest(), now) // the next scan sees the new state
			continue
		}
		if t := info.ModTime().UnixNano(); t <= now { // a later time says nothing of the folder's age
			s.Changed = max(s.Newest(), t)
		}
	}
	return s
}

// queue adds an archive to the archives to read.
func (w *walker) queue(a *job) {
	a.pending = true
	a.DetachName()
	w.unread = append(w.unread, a)
}

// readArchive reads an archive, remembers the result and returns it.
func (s *scan) readArchive(a *job) memo.Record {
	d, err := a.read(s.ctx, a)
	if err != nil {
		d = memo.Record{Digest: archive.Digest{Bad: tree.AsFinding(err)}}
	}
	if s.options.Listed != nil && (errors.Is(err, fs.ErrNotExist) || d.Bad != nil && d.Bad.Reason == tree.BeingWritten) {
		s.options.Listed.Forget(a.Report) // it was replaced or removed after it was listed
		s.memo.LookAgain()
	}
	d.Stamp, d.Earlier = a.Stamp, s.earlier(a, d)
	if s.ctx.Err() == nil {
		s.memo.Put(&a.Location, d, s.options.now())
	}
	return d
}

// readFile opens an archive that is a file, calls read, and checks that the file has not
// changed meanwhile.
func readFile(a *job, read func(f afero.File, size int64) (archive.Digest, error)) (memo.Record, error) {
	f, info, err := a.folder.part.OpenRegular(a.Path())
	if err != nil {
		return memo.Record{}, err
	}
	defer f.Close()
	if !a.folder.part.SameContent(tree.StampOf(info), a.Stamp) {
		return memo.Record{}, tree.Findingf(tree.BeingWritten, "it is still being written")
	}
	d, failed := read(archive.Paced(f, a.state.wait), info.Size())
	if err := tree.ReadFailure(f); err != nil {
		return memo.Record{}, err
	}
	if bad := (*tree.Finding)(nil); failed != nil && !errors.As(failed, &bad) {
		return memo.Record{}, failed
	}
	if info, err = f.Stat(); err != nil {
		return memo.Record{}, err
	}
	if !a.folder.part.SameContent(tree.StampOf(info), a.Stamp) {
		return memo.Record{}, tree.Findingf(tree.BeingWritten, "it is still being written")
	}
	return memo.Record{Digest: d}, failed
}

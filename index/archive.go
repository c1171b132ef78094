package index

import (
	"cmp"
	"context"
	"slices"

	"github.com/spf13/afero"
)

// An archive is a file or folder whose content has to be read, and then what
// that gave.
type archive struct {
	part   Part
	path   string // in its part
	report string // the path a report names
	stamp  stamp
	folder []packedFile // of a module folder, or an unpacked package
	rank   int          // how many newer versions there are
	read   func(context.Context, *archive) (digest, error)

	// Until it is read, an archive is pending: nothing is known of it, and
	// nothing is offered that would need it.
	pending bool
	digest
}

// newArchive notes a file to be read. An empty one needs no reading, and what
// is no file has none.
func (w *walker) newArchive(part Part, report string, e entry, read func(context.Context, *archive) (digest, error)) *archive {
	a := &archive{part: part, path: e.path, report: report, read: read}
	a.stamp = stampOf(e.info)
	if !e.info.Mode().IsRegular() {
		a.bad = found(Unreadable, "it is not a regular file: remove it")
		return a
	}
	if a.stamp.size == 0 {
		a.bad = found(Empty, "it is empty: copy it again")
		return a
	}
	w.recall(a)
	return a
}

// recall takes what the memo knows of an archive, or leaves it to be read.
func (w *walker) recall(a *archive) {
	var known bool
	if a.digest, known = w.memo.get(a.report, a.stamp); known {
		w.recalled++
		return
	}
	a.pending = true
	w.unread = append(w.unread, a)
}

// readArchives reads every archive the memo does not know, as many at once as
// there are workers, the newest versions first: those are asked for.
func (s *scanner) readArchives(each func(*archive)) {
	slices.SortStableFunc(s.unread, func(a, b *archive) int { return cmp.Compare(a.rank, b.rank) })
	inParallel(s.options.workers(), len(s.unread), func(i int) {
		a := s.unread[i]
		d := s.readArchive(a)
		s.mutex.Lock()
		a.digest, a.pending = d, false
		s.mutex.Unlock()
		each(a)
	})
}

func (s *scanner) readArchive(a *archive) digest {
	d, err := a.read(s.ctx, a)
	if err != nil {
		d = digest{bad: asFinding(err)}
	}
	d.stamp = a.stamp
	if s.ctx.Err() == nil {
		s.memo.put(a.report, d, s.options.now())
	}
	return d
}

// readFile opens an archive that is a file, has it digested, and looks whether
// it stayed the same meanwhile.
func readFile(ctx context.Context, a *archive, digestOf func(f afero.File, size int64) (digest, error)) (digest, error) {
	f, info, err := a.part.open(a.path)
	if err != nil {
		return digest{}, err
	}
	defer f.Close()
	if info.Size() != a.stamp.size || info.ModTime().UnixNano() != a.stamp.modTime {
		return digest{}, found(BeingWritten, "it is still being written")
	}
	if s, ok := f.(*sequentialFile); ok {
		if err := s.spool(ctx); err != nil { // or it would be read again to copy it
			return digest{}, err
		}
	}
	d, failed := digestOf(f, info.Size())
	if info, err = f.Stat(); err != nil {
		return digest{}, err
	}
	if info.Size() != a.stamp.size || info.ModTime().UnixNano() != a.stamp.modTime {
		return digest{}, found(BeingWritten, "it is still being written")
	}
	return d, failed
}

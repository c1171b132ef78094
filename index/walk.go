package index

import (
	"path"
	"path/filepath"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// A walker finds out what there is, and what of it the memo knows.
type walker struct {
	*scanner
	report   *Report
	unread   []*archive
	recalled int
}

// each calls walk for every one of n folders, on all cores. Each has a walker of
// its own, which the caller merges or drops.
func (w *walker) each(n int, walk func(w *walker, i int)) []walker {
	walkers := make([]walker, n)
	inParallel(w.options.workers(), n, func(i int) {
		walkers[i] = walker{scanner: w.scanner, report: newReport()}
		walk(&walkers[i], i)
	})
	return walkers
}

// merge takes over what another walker found.
func (w *walker) merge(other *walker) {
	w.report.merge(other.report)
	w.unread = append(w.unread, other.unread...)
	w.recalled += other.recalled
}

// A folder is a directory whose path is an address.
type folder struct {
	part     Part
	dir      string // in its part
	report   string // the path a report names
	hostname string // empty without HOSTNAME
	names    []string
}

// walkAddresses finds the directories with depth names below an optional
// HOSTNAME, in order.
func (w *walker) walkAddresses(part Part, name string, depth int) []folder {
	var folders []folder
	var walk func(f folder)
	walk = func(f folder) {
		if len(f.names) == depth {
			folders = append(folders, f)
			return
		}
		entries := w.list(part, f.dir, f.report)
		beside := newSiblings(entries)
		for _, e := range entries {
			report := path.Join(f.report, e.name)
			if !e.info.IsDir() {
				w.fileWithoutAddress(f, name, e, beside)
				continue
			}
			next := folder{part: part, dir: e.path, report: report, hostname: f.hostname, names: f.names}
			if len(f.names) == 0 && f.hostname == "" && address.IsHostname(e.name) {
				next.hostname = e.name
			} else {
				next.names = append(f.names[:len(f.names):len(f.names)], e.name)
			}
			walk(next)
		}
	}
	walk(folder{part: part, dir: ".", report: name})
	return folders
}

// list returns what is in a directory and can be looked at, and reports the rest.
func (w *walker) list(part Part, dir, report string) []entry {
	if w.ctx.Err() != nil {
		return nil
	}
	w.watch.add(part, dir) // before it is read: nothing can come in unseen
	entries, err := part.list(dir)
	if err != nil {
		f := asFinding(err)
		w.report.withhold(Problem{Path: report, Reason: f.reason, Detail: f.detail})
		return nil
	}
	kept := entries[:0]
	for _, e := range entries {
		switch {
		case harmless(e.name, e.info == nil || !e.info.IsDir()):
		case hiddenOrTemporary(e.name):
			w.report.ignore(path.Join(report, e.name), Temporary, "its name is hidden or temporary: it is not looked at until it is renamed")
		case e.bad != nil:
			w.report.withhold(Problem{Path: path.Join(report, e.name), Reason: e.bad.reason, Detail: e.bad.detail})
		default:
			if e.link && e.info.IsDir() && part.disk != "" {
				w.watch.pass(filepath.Join(part.disk, filepath.FromSlash(path.Join(part.Dir, e.path))))
			}
			kept = append(kept, e)
		}
	}
	return kept
}

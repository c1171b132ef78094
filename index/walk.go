package index

import (
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/layout"
	"github.com/caddy-terraform/caddy-terraform-registry/index/memo"
	"github.com/caddy-terraform/caddy-terraform-registry/index/metadata"
	"github.com/caddy-terraform/caddy-terraform-registry/index/offer"
	"github.com/caddy-terraform/caddy-terraform-registry/index/report"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// A folder is the folder of an address.
type folder struct {
	layout.Folder

	metadata *metadata.File // nil without registry.hcl
}

func (f *folder) addressFolder() *folder { return f }

// addressMetadata returns the metadata of the address, before its versions are known.
func (f *folder) addressMetadata() offer.Metadata {
	if f.metadata == nil {
		return offer.Metadata{}
	}
	return offer.Metadata{File: f.metadata.Metadata}
}

// A wayFolder is a folder on the way to addresses, or a folder whose path is not an address.
type wayFolder struct {
	folder  layout.Folder
	report  *Report         // the files and problems in it
	names   map[string]bool // of the folders in it, when it was last listed; nil if it never was
	listed  bool            // by this scan
	unknown bool            // no scan could list it yet
	faulty  bool            // something in it could not be read, and may be readable a moment later

	stamp   tree.Stamp // of the names in it, taken before it was listed
	stamped bool       // the stamp tells whether names have changed since
}

// A wayWalk finds the folders of addresses in a part of the tree.
type wayWalk struct {
	scan *scan
	root layout.Folder

	found []layout.Folder // the folders of addresses, in order
	way   map[string]*wayFolder

	unsettled []string // in a scan of some folders, the paths that the walk looks for
}

// walkTree finds the folders of all providers and modules that may have changed.
func (s *scan) walkTree() (all []*wayWalk) {
	for _, root := range []layout.Folder{layout.Providers(s.tree), layout.Modules(s.tree)} {
		v := &wayWalk{scan: s, root: root, way: make(map[string]*wayFolder)}
		if all = append(all, v); s.stale[""] {
			v.walk(root)
		} else {
			v.walkStale(root, s.stale.Below(root.Report))
		}
	}
	return all
}

// walk walks a folder and the folders below it. A fault preserves the state of the folder in
// which it occurs, and of everything below.
func (v *wayWalk) walk(f layout.Folder) {
	if f.IsWhole() {
		v.addAddress(f)
		return
	}
	w := v.scan.newWalker(nil)
	here := &wayFolder{folder: f, report: w.report}
	v.way[f.Report] = here
	stamp, stamped := f.Part.StampOfNames(f.Dir, v.scan.options.now)
	entries, unreadable, bad := w.List(f.Part, f.Dir, f.Report)
	if bad == nil && f.Dir == "." && len(entries)+len(unreadable) == 0 {
		if bad = v.scan.emptied(f.Report); bad != nil {
			w.Withhold(f.Report, bad)
		}
	}
	if bad != nil {
		v.scan.memo.RetainBelow(f.Report)
		here.names, here.unknown, here.faulty = v.Names(f.Report), !v.scan.last.knows(f.Report), w.faulty
		return
	}
	here.names, here.listed, here.stamp, here.stamped = make(map[string]bool), true, stamp, stamped
	for _, e := range unreadable {
		w.Withhold(path.Join(f.Report, e.Name), e.Bad)
		below := f.Below(strings.Clone(e.Name))
		here.names[path.Base(below.Report)] = true
		v.scan.memo.RetainBelow(below.Report)
		if !v.scan.last.knows(below.Report) {
			v.way[below.Report] = &wayFolder{folder: below, report: report.New(), unknown: true}
		}
	}
	known, beside := v.Names(f.Report), layout.NewSiblings(entries)
	for _, e := range entries {
		if !e.Info.IsDir() {
			w.strays().FileOnWay(f, e, beside)
			continue
		}
		below := f.Below(strings.Clone(e.Name)) // addresses stay in memory longer than the names beside them
		name := path.Base(below.Report)
		if here.names[name] = true; !known[name] || v.mayHaveChanged(below) {
			v.walk(below)
		}
	}
	here.faulty = w.faulty
}

func (v *wayWalk) addAddress(f layout.Folder) {
	a, err := f.ParseAddress()
	if err == nil {
		f.Address = a
		v.found = append(v.found, f)
		return
	}
	w := v.scan.newWalker(nil)
	w.strays().BadAddress(f, err)
	v.way[f.Report] = &wayFolder{folder: f, report: w.report, faulty: w.faulty}
}

// A walker lists the files in a folder, and recalls their results from the memo.
type walker struct {
	scan   *scan
	before *entry // of the folder, or of another folder with its address; empty if there is none

	report   *Report
	unread   []*job
	recalled int
	titles   map[string]*job // of documentation, by the path of its folder
	records  offer.Records   // of the sources of a module's versions
	queued   map[string]*job // archives of the listing before, by their path in the report

	failed string // which archive could not be read this time, and why; empty: all could
	faulty bool   // another file could not be read, and may be readable a moment later
	erred  bool   // a file or folder could not be looked at: it may still be there
	young  bool   // a file is too young to be offered or remembered

	notes   bool               // listed folders are noted
	listed  memo.ListedFolders // the noted folders
	depends bool               // the result depends on more than the noted folders
}

// newWalker returns a walker that has found nothing yet. before may be nil.
func (s *scan) newWalker(before *entry) *walker {
	return &walker{scan: s, before: before.orEmpty(), report: report.New()}
}

// Put remembers the record of a file, and notes whether the file is too young for that.
func (w *walker) Put(file *tree.Location, d memo.Record) {
	now := w.scan.options.now()
	w.young = w.young || d.Stamp.TooYoung(now, 0)
	w.scan.memo.Put(file, d, now)
}

// Ends implements keys.Walk.
func (w *walker) Ends() (faulty, young bool) { return w.faulty, w.young }

// strays judges what is not offered.
func (w *walker) strays() layout.Strays { return layout.Strays{Report: w.report, Walk: w} }

// Look returns the entries of a folder from which nothing is offered, and on which the result
// depends. If it cannot be read, it counts as empty until the next scan, which follows soon.
func (w *walker) Look(part tree.Part, dir string) []tree.Entry {
	w.depends = true
	entries, err := part.List(dir)
	w.NoteFault(err)
	for _, e := range entries {
		w.faulty = w.faulty || e.Bad.Passes()
	}
	return entries
}

// NoteFault has another scan follow an error that may be over a moment later.
func (w *walker) NoteFault(err error) {
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.faulty = w.faulty || tree.AsFinding(err).Passes()
	}
}

// Withhold reports a file or folder without an address.
func (w *walker) Withhold(report string, f *tree.Finding) {
	w.faulty = w.faulty || f.Passes()
	w.report.Withhold(report, address.Address{}, "", f)
}

// List returns the usable entries of a directory, and the entries that cannot be read. It
// reports the other entries, and why a directory cannot be listed.
func (w *walker) List(part tree.Part, dir, report string) (usable, unreadable []tree.Entry, bad *tree.Finding) {
	if w.scan.ctx.Err() != nil {
		return nil, nil, nil
	}
	w.scan.watch.Add(part, dir, report) // before the directory is read, so that no change is missed
	entries, err := part.List(dir)
	if err != nil {
		bad, w.erred = tree.AsFinding(err), true
		w.Withhold(report, bad)
		return nil, nil, bad
	}
	w.note(dir, report, entries)
	usable = entries[:0]
	for _, e := range entries {
		switch {
		case layout.IsHarmless(e.Name, e.Info == nil || !e.Info.IsDir()):
			w.records.Note(e)
		case dir == "." && e.Name == tree.StagingName && e.Info != nil && e.Info.IsDir():
		case tree.IsHiddenOrTemporary(e.Name):
			w.report.Ignore(path.Join(report, e.Name), tree.Temporary, "its name is hidden or temporary: it is skipped until it is renamed")
		case e.Bad != nil:
			if e.Link {
				w.scan.watch.AddLink(part, e.Path(), false)
			}
			unreadable, w.erred = append(unreadable, e), true
		default:
			if e.Link && e.Info.IsDir() {
				w.scan.watch.AddLink(part, e.Path(), true)
			}
			usable = append(usable, e)
		}
	}
	return usable, unreadable, nil
}

// readMetadata reads the registry.hcl among the entries of an address's folder, if there is
// one. unreadable are the entries that cannot be read. bad says why it is unknown which
// versions are withdrawn; nil if it is known.
func (w *walker) readMetadata(f *folder, entries, unreadable []tree.Entry) (bad *tree.Finding) {
	s := w.scan
	if s.options.IgnoreMetadata || s.ctx.Err() != nil {
		return nil
	}
	report := path.Join(f.Report, tree.MetadataName)
	r := metadata.Reader{Part: f.Part, Report: report, Memo: &s.memo, Began: s.now, Now: s.options.now}
	if w.before.folder.Report == f.Report { // else it is another spelling of the address
		r.Last = w.before.folder.metadata
	}
	f.metadata, bad = r.Read(entries, unreadable)
	if f.metadata != nil {
		for _, p := range f.metadata.Problems {
			w.report.Withhold(report, f.Address, "", p)
		}
	}
	w.young, w.faulty = w.young || r.IsYoung, w.faulty || bad.Passes()
	if bad != nil && r.IsKnown() {
		return nil // the earlier metadata still counts
	}
	return bad
}

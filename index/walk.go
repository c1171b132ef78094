package index

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/memo"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// A folder is a directory whose path is an address, or the beginning of one.
type folder struct {
	part     tree.Part
	dir      string // in its part
	report   string // the path a report names
	hostname string // empty without HOSTNAME
	names    []string
	address  address.Address // once the path has been parsed

	metadata *metadataFile // of the folder of an address; nil without registry.hcl
}

// addressMetadata returns the metadata of the folder's address, before its versions are
// known.
func (f *folder) addressMetadata() addressMetadata {
	if f.metadata == nil {
		return addressMetadata{}
	}
	return addressMetadata{file: f.metadata.metadata}
}

// below returns the folder of that name in f, on the way to an address.
func (f folder) below(name string) folder {
	next := folder{part: f.part, dir: tree.InFolder(f.dir, name), report: path.Join(f.report, name), hostname: f.hostname, names: f.names}
	if len(f.names) == 0 && f.hostname == "" && address.IsHostname(name) {
		next.hostname = name
	} else {
		next.names = append(f.names[:len(f.names):len(f.names)], name)
	}
	return next
}

// covers reports whether an address may lie in a folder whose path is the beginning of an
// address.
func (f *folder) covers(a address.Address) bool {
	part, _, _ := strings.Cut(f.report, "/")
	if (part == "modules") != a.IsModule() {
		return false
	}
	if f.hostname != "" {
		if hostname, err := address.ParseHostname(f.hostname); err != nil || hostname != a.Hostname {
			return false
		}
	} else if len(f.names) > 0 && a.Hostname != "" {
		return false
	}
	for i, name := range []string{a.Namespace, a.Name, a.System} {
		if i < len(f.names) && !strings.EqualFold(f.names[i], name) {
			return false
		}
	}
	return true
}

// A wayFolder is a folder on the way to addresses, or a folder whose path is not an address.
type wayFolder struct {
	folder  folder
	report  *Report         // the files and problems in it
	names   map[string]bool // of the folders in it; nil if it was not listed
	unknown bool            // no scan could list it yet
	faulty  bool            // something in it could not be read, and may be readable a moment later
}

// A wayWalk finds the folders of addresses in a part of the tree.
type wayWalk struct {
	scan  *scan
	depth int // number of names in an address
	parse func(folder) (address.Address, error)

	found []folder // the folders of addresses, in order
	way   map[string]*wayFolder

	unsettled []string // in a scan of some folders, the paths that the walk looks for
}

// walkProviders finds the folders of all providers that may have changed.
func (s *scan) walkProviders() *wayWalk {
	v := &wayWalk{scan: s, depth: 2, way: make(map[string]*wayFolder), parse: func(f folder) (address.Address, error) {
		return address.ParseProvider(f.hostname, f.names[0], f.names[1])
	}}
	v.start(folder{part: s.tree.Providers, dir: ".", report: "providers"})
	return v
}

// walkModules finds the folders of all modules that may have changed.
func (s *scan) walkModules() *wayWalk {
	v := &wayWalk{scan: s, depth: 3, way: make(map[string]*wayFolder), parse: func(f folder) (address.Address, error) {
		return address.ParseModule(f.hostname, f.names[0], f.names[1], f.names[2])
	}}
	v.start(folder{part: s.tree.Modules, dir: ".", report: "modules"})
	return v
}

func (v *wayWalk) start(root folder) {
	if v.scan.stale[""] {
		v.walk(root)
	} else {
		v.walkStale(root, v.scan.stale.in(root.report))
	}
}

// walk walks a folder and the folders below it. A fault preserves the state of the folder in
// which it occurs, and of everything below.
func (v *wayWalk) walk(f folder) {
	if v.passes(f) {
		return
	}
	if len(f.names) == v.depth {
		v.addAddress(f)
		return
	}
	w := v.scan.newWalker(nil)
	here := &wayFolder{folder: f, report: w.report}
	v.way[f.report] = here
	entries, unreadable, bad := w.list(f.part, f.dir, f.report)
	if bad == nil && f.dir == "." && len(entries)+len(unreadable) == 0 {
		if bad = v.scan.emptied(f.report); bad != nil {
			w.withhold(f.report, bad)
		}
	}
	if bad != nil {
		v.scan.memo.RetainBelow(f.report)
		here.unknown, here.faulty = !v.scan.last.knows(f.report), w.faulty
		return
	}
	here.names = make(map[string]bool)
	for _, e := range unreadable {
		w.withhold(path.Join(f.report, e.Name), e.Bad)
		below := f.below(strings.Clone(e.Name))
		here.names[path.Base(below.report)] = true
		v.scan.memo.RetainBelow(below.report)
		if !v.scan.last.knows(below.report) {
			v.way[below.report] = &wayFolder{folder: below, report: newReport(), unknown: true}
		}
	}
	beside := newSiblings(entries)
	for _, e := range entries {
		if !e.Info.IsDir() {
			w.fileWithoutAddress(f, e, beside)
			continue
		}
		below := f.below(strings.Clone(e.Name)) // addresses stay in memory longer than the names beside them
		here.names[path.Base(below.report)] = true
		v.walk(below)
	}
	here.faulty = w.faulty
}

func (v *wayWalk) addAddress(f folder) {
	a, err := v.parse(f)
	if err == nil {
		f.address = a
		v.found = append(v.found, f)
		return
	}
	w := v.scan.newWalker(nil)
	if v.depth == 2 {
		w.badProviderAddress(f, err)
	} else {
		w.badModuleAddress(f, err)
	}
	v.way[f.report] = &wayFolder{folder: f, report: w.report}
}

// A walker lists the files in a folder, and recalls their results from the memo.
type walker struct {
	scan   *scan
	before *entry // of the folder, or of another folder with its address; nil if there is none

	report   *Report
	unread   []*job
	recalled int
	titles   map[string]*job // of documentation, by the path of its folder
	queued   map[string]*job // archives of the listing before, by their path in the report

	failed string // which archive could not be read this time, and why; empty: all could
	faulty bool   // another file could not be read, and may be readable a moment later
	young  bool   // a file is too young to be offered or remembered

	notes   bool           // listed folders are noted
	listed  []listedFolder // the noted folders
	depends bool           // the result depends on more than the noted folders
}

func (s *scan) newWalker(before *entry) *walker {
	return &walker{scan: s, before: before, report: newReport()}
}

// put remembers the record of a file, and notes whether the file is too young for that.
func (w *walker) put(file *tree.Location, d memo.Record) {
	now := w.scan.options.now()
	w.young = w.young || d.Stamp.TooYoung(now, 0)
	w.scan.memo.Put(file, d, now)
}

// look returns the entries of a folder from which nothing is offered. If it cannot be read,
// it counts as empty until the next scan, which follows soon.
func (w *walker) look(part tree.Part, dir string) []tree.Entry {
	entries, err := part.List(dir)
	w.noteFault(err)
	for _, e := range entries {
		w.faulty = w.faulty || e.Bad.Passes()
	}
	return entries
}

// noteFault has another scan follow an error that may be over a moment later.
func (w *walker) noteFault(err error) {
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.faulty = w.faulty || tree.AsFinding(err).Passes()
	}
}

// withhold reports a file or folder without an address.
func (w *walker) withhold(report string, f *tree.Finding) {
	w.faulty = w.faulty || f.Passes()
	w.report.withhold(problemOf(f, report, address.Address{}, ""))
}

// list returns the usable entries of a directory, and the entries that cannot be read. It
// reports the other entries, and why a directory cannot be listed.
func (w *walker) list(part tree.Part, dir, report string) (usable, unreadable []tree.Entry, bad *tree.Finding) {
	if w.scan.ctx.Err() != nil {
		return nil, nil, nil
	}
	w.scan.watch.Add(part, dir, report) // before the directory is read, so that no change is missed
	entries, err := part.List(dir)
	if err != nil {
		bad = tree.AsFinding(err)
		w.withhold(report, bad)
		return nil, nil, bad
	}
	w.note(dir, report, entries)
	usable = entries[:0]
	for _, e := range entries {
		switch {
		case harmless(e.Name, e.Info == nil || !e.Info.IsDir()):
		case dir == "." && e.Name == tree.StagingName && e.Info != nil && e.Info.IsDir():
		case tree.IsHiddenOrTemporary(e.Name):
			w.report.ignore(path.Join(report, e.Name), tree.Temporary, "its name is hidden or temporary: it is skipped until it is renamed")
		case e.Bad != nil:
			unreadable = append(unreadable, e)
		default:
			if e.Link && e.Info.IsDir() && part.IsOnDisk() {
				w.scan.watch.AddLink(part.DiskPath(e.Path()))
			}
			usable = append(usable, e)
		}
	}
	return usable, unreadable, nil
}

// emptied returns the finding for a part of the tree in which the last scan found addresses
// and this scan finds none, as under the mount point of a volume that is not mounted. It
// returns nil if the part is not empty, or if the caller of the scan accepts that it is.
func (s *scan) emptied(part string) *tree.Finding {
	if s.accepts || s.last == nil {
		return nil
	}
	for _, g := range s.last.groups {
		if slices.ContainsFunc(g.entries, func(e *entry) bool { return !e.empty && !e.unknown && tree.IsBelow(e.folder.report, part) }) {
			return tree.Faultf(tree.Lasting, tree.Unreadable, "all that was in it is gone at once: is its volume mounted? If it is meant to be empty, ask for a rescan")
		}
	}
	return nil
}

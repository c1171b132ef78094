package index

import (
	"context"
	"path"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// Scan scans the tree once, to the end.
func Scan(ctx context.Context, o Options) (*Snapshot, error) {
	return (&scanner{options: o, progress: o.Progress}).scan(ctx, nil, nil)
}

// A scanner scans a tree again and again, and remembers what it found. It runs
// one scan at a time.
type scanner struct {
	options  Options
	progress func(Progress) // may be nil
	memo     memo
	releases releaseMemo
	watch    *watcher // nil: nothing is watched
	seeks    bool     // the tree's file system is known to have files that seek
	last     outcome  // of the last scan that succeeded
}

// An outcome is what a scan came to.
type outcome struct {
	snapshot *Snapshot            // nil before the first
	keys     map[keysOf]*keysFile // as they were read
	rested   map[string]stamp     // the folders that were packed, by their path in the report
}

// provider is a provider as it was offered, or nil.
func (o outcome) provider(a address.Address) *Provider {
	if o.snapshot == nil {
		return nil
	}
	return o.snapshot.Provider(a)
}

// module is a module as it was offered, or nil.
func (o outcome) module(a address.Address) *Module {
	if o.snapshot == nil {
		return nil
	}
	return o.snapshot.Module(a)
}

// listed reports whether clients have been told of no other versions of a provider
// or module than those that were offered.
func (o outcome) listed(a address.Address) bool {
	return o.snapshot != nil && !o.snapshot.ListPending(a)
}

// A scan is what all steps of one scan need to know. Nothing of it changes; what
// memo, releases and watch remember outlasts it.
type scan struct {
	ctx  context.Context
	tree Tree
	now  time.Time // when it began
	live bool      // another scan follows when something is too young to be offered
	last outcome   // of the scan before

	options  Options
	progress func(Progress)
	memo     *memo
	releases *releaseMemo
	watch    *watcher
}

// scan walks the tree, reads the archives it does not know, and verifies. When a
// batch of archives has been read, or what a request waits for, publish is called
// with what can be offered by then. waiting and publish may be nil.
func (x *scanner) scan(ctx context.Context, waiting *waiting, publish func(*Snapshot)) (*Snapshot, error) {
	for _, name := range x.options.Paths {
		x.watch.addPathTo(name) // before it is taken
	}
	tree, err := x.options.Open()
	if err != nil {
		return nil, err
	}
	s := &scan{
		ctx: ctx, tree: tree, now: x.options.now(), live: waiting != nil, last: x.last,
		options: x.options, progress: x.progress, memo: &x.memo, releases: &x.releases, watch: x.watch,
	}
	x.memo.begin()
	x.releases.begin()
	found := s.walk()
	if len(found.unread) > 0 {
		if !x.seeks {
			if x.seeks, err = checkSeeking(found.unread); err != nil {
				return nil, err
			}
		}
		s.read(found, waiting, publish)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	snapshot, rested := s.assemble(found)
	if err := snapshot.Report.failure(); err != nil {
		return nil, err
	}
	if r := snapshot.Report; len(r.Offered)+len(r.Withheld)+r.Pending == 0 {
		if r.Hint = tree.hint(); r.Hint == nothingYet && len(found.keys) > 0 {
			r.Hint = "" // the keys came first
		}
	}
	snapshot.Read, snapshot.Recalled = len(found.unread), found.recalled
	x.memo.finish()
	x.releases.finish(snapshot)
	x.watch.finish()
	x.last = outcome{snapshot, found.keys, rested}
	return snapshot, nil
}

// checkSeeking checks the first archive that can be opened. ok reports whether there
// is one.
func checkSeeking(unread []*archive) (ok bool, err error) {
	for _, a := range unread {
		name := a.path
		if len(a.folder) > 0 {
			name = a.folder[0].path
		}
		if ok, err := a.part.checkSeeking(name); ok {
			return err == nil, err
		}
	}
	return false, nil
}

// An inventory is what a walk finds, before anything is verified.
type inventory struct {
	report    *Report
	keys      map[keysOf]*keysFile
	providers []*providerFolder
	modules   []*moduleFolder

	unread   []*archive // those the memo does not know, in no order
	recalled int        // how many it knows

	reading sync.Mutex // guards the digests of archives while they are read
}

// walk finds out what there is.
func (s *scan) walk() *inventory {
	w := &walker{scan: s, report: newReport()}
	found := &inventory{keys: w.readKeys(), providers: w.walkProviders(), modules: w.walkModules()}
	found.report, found.unread, found.recalled = w.report, w.unread, w.recalled
	return found
}

// assemble verifies what has been read by now and makes a snapshot of it. rested
// are the folders that it offers packed.
func (s *scan) assemble(found *inventory) (snapshot *Snapshot, rested map[string]stamp) {
	found.reading.Lock()
	defer found.reading.Unlock()
	snapshot, rested = newSnapshot(s.tree, s.now), make(map[string]stamp)
	report := found.report.clone()

	providers := make([]offeredProvider, len(found.providers))
	inParallel(s.options.workers(), len(providers), func(i int) {
		p := found.providers[i]
		providers[i] = s.offerProvider(p, found.keys[keysOf{p.address.Hostname, p.address.Namespace}])
	})
	for i, p := range providers {
		report.merge(p.report)
		snapshot.addProvider(found.providers[i].address, p.provider, p.pending)
		found.providers[i].noteRested(rested)
	}
	for _, m := range found.modules {
		module, pending := s.offerModule(m, report)
		snapshot.addModule(m.address, module, pending)
		m.noteRested(rested)
	}
	snapshot.Report = report
	snapshot.mergeHosted()
	report.sort()
	return snapshot, rested
}

// workers is how many archives are read, or folders walked, at once.
func (o Options) workers() int {
	if o.Workers > 0 {
		return o.Workers
	}
	return runtime.GOMAXPROCS(0)
}

// inParallel calls do with every number below n, started in order, on so many
// goroutines.
func inParallel(workers, n int, do func(i int)) {
	var g errgroup.Group
	g.SetLimit(workers)
	for i := range n {
		g.Go(func() error {
			do(i)
			return nil
		})
	}
	_ = g.Wait() // do has no error
}

// A walker finds out what is in some folders, and what of it the memo knows.
type walker struct {
	scan     *scan
	report   *Report
	unread   []*archive
	recalled int
}

// each calls walk for every one of n folders, in parallel. Each has a walker of
// its own, which the caller merges or drops.
func (w *walker) each(n int, walk func(w *walker, i int)) []walker {
	walkers := make([]walker, n)
	inParallel(w.scan.options.workers(), n, func(i int) {
		walkers[i] = walker{scan: w.scan, report: newReport()}
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
			if !e.info.IsDir() {
				w.fileWithoutAddress(f, name, e, beside)
				continue
			}
			next := folder{part: part, dir: e.path, report: path.Join(f.report, e.name), hostname: f.hostname, names: f.names}
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

// list returns what is in a directory and can be used, and reports the rest.
func (w *walker) list(part Part, dir, report string) []entry {
	if w.scan.ctx.Err() != nil {
		return nil
	}
	w.scan.watch.add(part, dir) // before it is read: nothing can come in unseen
	entries, err := part.list(dir)
	if err != nil {
		w.report.withhold(asFinding(err).at(report, address.Address{}, ""))
		return nil
	}
	kept := entries[:0]
	for _, e := range entries {
		switch {
		case harmless(e.name, e.info == nil || !e.info.IsDir()):
		case hiddenOrTemporary(e.name):
			w.report.ignore(path.Join(report, e.name), Temporary, "its name is hidden or temporary: it is skipped until it is renamed")
		case e.bad != nil:
			w.report.withhold(e.bad.at(path.Join(report, e.name), address.Address{}, ""))
		default:
			if e.link && e.info.IsDir() && part.disk != "" {
				w.scan.watch.addPathTo(part.onDisk(e.path))
			}
			kept = append(kept, e)
		}
	}
	return kept
}

// A spelling is a folder whose address other folders may have as well, since
// clients compare addresses in their normal form: acme/demo and ACME/Demo are one.
type spelling struct {
	folder  *folder
	address address.Address
	empty   bool // it has nothing to offer
}

// oneSpellingEach chooses one folder for each address, keeping their order: the one
// in normal form or else the first, but no empty one if another is not empty: a stray
// ACME/demo/README must not hide acme/demo. It merges what the walkers found in the
// folders it chooses, and reports the others.
func (w *walker) oneSpellingEach(spellings []spelling, walkers []walker) (chosen []int) {
	best := make(map[address.Address]int)
	for i, s := range spellings {
		other, known := best[s.address]
		if !known || better(s, spellings[other]) {
			best[s.address] = i
		}
	}
	for i, s := range spellings {
		winner := best[s.address]
		switch {
		case winner == i:
			chosen = append(chosen, i)
			w.merge(&walkers[i])
		case s.empty:
			w.merge(&walkers[i])
		default:
			bad := found(Duplicate, "it has the address of %s in another spelling, and that folder is offered: move its content there", spellings[winner].folder.report)
			w.report.withhold(bad.at(s.folder.report, s.address, ""))
		}
	}
	return chosen
}

// better reports whether a is chosen rather than b.
func better(a, b spelling) bool {
	if a.empty != b.empty {
		return b.empty
	}
	return a.normal() && !b.normal()
}

// normal reports whether the folder's path is the address as clients compare it,
// with the hostname as users write it or as clients request it.
func (s spelling) normal() bool {
	names := []string{s.address.Namespace, s.address.Name}
	if s.address.IsModule() {
		names = append(names, s.address.System)
	}
	hostname := s.address.Hostname
	return slices.Equal(s.folder.names, names) &&
		(s.folder.hostname == string(hostname) || s.folder.hostname == address.DisplayHostname(hostname))
}

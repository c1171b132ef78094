package index

import (
	"cmp"
	"context"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/content"
	"github.com/caddy-terraform/caddy-terraform-registry/index/memo"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// Scan scans the tree once, to the end, and reads every archive in it. The memo in the Store
// is only used for comparison: it has the bytes that an Index has offered first. Nothing is
// stored.
func Scan(ctx context.Context, o Options) (*Snapshot, error) {
	x := &scanner{options: o, progress: o.Progress}
	if o.Store != nil {
		// Without a usable memo, no file is known to have changed.
		_ = x.compared.Load(o.Store, o.Identity)
	}
	return x.scan(ctx, nil, nil)
}

// A scanner scans a tree repeatedly and remembers the results. It runs one scan at a time.
type scanner struct {
	options  Options
	progress func(Progress) // may be nil
	memo     memo.Memo
	compared memo.Memo // of an Index, see Scan
	releases releaseMemo
	copies   keyCopyMemo
	sharing  *memo.Sharing // nil: nothing is shared
	watch    *watcher      // nil: nothing is watched
	seeks    bool          // the tree's file system is known to have seekable files
	last     scanResult    // of the last scan that succeeded
	changes  Change        // the last change that the next scan sees
	accepts  bool          // value of scan.accepts for the next scan

	shared shared
}

// shared has the caches that all snapshots of a scanner share: results that were read or
// made for one snapshot serve the next, too.
type shared struct {
	content   content.Reader
	catalogs  catalogMemo
	unchanged unchangedObjects
	merged    mergedMemo
}

// A scanResult has the results of a scan that the next scan uses.
type scanResult struct {
	snapshot *Snapshot                // nil before the first scan
	keys     *keysFolder              // nil before the first scan
	metadata map[string]*metadataFile // by their path in the report
	packed   map[string]tree.Stamp    // stamps of the folders that were packed, by their path in the report
	kept     map[string]*keptFolder   // the folders of addresses, by their path in the report
	known    map[string]bool          // the folders on the way to addresses that have been listed, by their path in the report

	providers map[string]*providerResult // by the path of the folder in the report
}

// provider returns the offered provider, or nil.
func (o scanResult) provider(a address.Address) *Provider {
	if o.snapshot == nil {
		return nil
	}
	return o.snapshot.Provider(a)
}

// module returns the offered module, or nil.
func (o scanResult) module(a address.Address) *Module {
	if o.snapshot == nil {
		return nil
	}
	return o.snapshot.Module(a)
}

// listed reports whether the offered versions of a provider or module are all that clients
// have been told of.
func (o scanResult) listed(a address.Address) bool {
	return o.snapshot != nil && !o.snapshot.ListPending(a)
}

// A scan has the inputs of all steps of one scan. It is immutable; memo, releases and watch
// outlast it.
type scan struct {
	ctx  context.Context
	tree tree.Tree
	now  time.Time  // when the scan began
	live bool       // another scan follows if a file is too young to be offered, or cannot be read
	last scanResult // of the scan before

	accepts bool // a part of the tree may be empty all at once

	changes Change // the last change that it sees

	options  Options
	progress func(Progress)
	memo     *memo.Memo
	compared *memo.Memo
	releases *releaseMemo
	copies   *keyCopyMemo
	sharing  *memo.Sharing
	watch    *watcher

	shared *shared
}

// scan walks the tree, reads the archives that the memo does not know, and verifies. When a
// batch of archives has been read, or the archives that a request waits for, it calls
// publish with a snapshot of what can be offered by then. waiting and publish may be nil.
func (x *scanner) scan(ctx context.Context, waiting *waiting, publish func(*Snapshot)) (*Snapshot, error) {
	for _, name := range x.options.Paths {
		x.watch.addPathTo(name) // before it is taken
	}
	now := x.options.now() // the listing of a Bucket may or may not have changes after this
	files, err := x.options.open(ctx)
	if err != nil {
		return nil, err
	}
	s := &scan{
		ctx: ctx, tree: files, now: now, live: waiting != nil, last: x.last, changes: x.changes, accepts: x.accepts,
		options: x.options, progress: x.progress, memo: &x.memo, compared: &x.compared, releases: &x.releases, copies: &x.copies, sharing: x.sharing, watch: x.watch, shared: &x.shared,
	}
	x.copies.store = x.options.KeyCopies
	x.memo.Begin(now)
	x.releases.begin()
	inv := s.walk()
	s.recallShared(inv)
	s.copyKeys(inv)
	if len(inv.unread) > 0 {
		if !x.seeks {
			if x.seeks, err = checkSeeking(inv.unread); err != nil {
				return nil, err
			}
		}
		s.read(inv, waiting, publish)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	result := s.assemble(inv)
	snapshot := result.snapshot
	if err := snapshot.Report.failure(); err != nil {
		return nil, err
	}
	if r := snapshot.Report; len(r.Offered)+len(r.Withheld)+r.Pending+len(snapshot.metadata) == 0 {
		if r.Hint = hint(files); r.Hint == nothingYet && len(inv.keys.files) > 0 {
			r.Hint = "" // the keys came first
		}
	}
	snapshot.unread, snapshot.faulty = inv.failed, inv.faulty
	snapshot.keys = inv.keys
	snapshot.Read, snapshot.Recalled = len(inv.unread), inv.recalled
	x.memo.Finish()
	x.releases.finish(snapshot)
	x.watch.finish()
	result.keys, result.metadata = inv.keys, inv.metadata()
	x.last = result
	return snapshot, nil
}

// checkSeeking checks the first archive that can be opened. ok reports whether there is such
// an archive.
func checkSeeking(unread []*job) (ok bool, err error) {
	for _, a := range unread {
		name := a.Path()
		switch {
		case a.module != nil:
			name = cmp.Or(a.module.FirstFile(), name)
		case a.unpacked != nil:
			name = cmp.Or(a.unpacked.FirstFile(), name)
		}
		if ok, err := a.folder.part.CheckSeeking(name); ok {
			return err == nil, err
		}
	}
	return false, nil
}

// An inventory has the files that a walk finds, before anything is verified.
type inventory struct {
	report    *Report
	keys      *keysFolder
	providers []*providerFolder
	modules   []*moduleFolder

	unread   []*job // archives that the memo does not know, in no particular order
	recalled int    // number of archives that the memo knows

	reading sync.Mutex // guards the digests of archives while they are read
	failed  string     // which archive could not be read this time, and why; empty: all could

	unknown []folder        // folders that no scan could read yet
	known   map[string]bool // folders that were listed, see scanResult
	faulty  bool            // another file could not be read, and may be readable a moment later
}

// metadata returns the registry.hcl files, by their path in the report.
func (inv *inventory) metadata() map[string]*metadataFile {
	files := make(map[string]*metadataFile)
	add := func(f *folder) {
		if f.metadata != nil {
			files[path.Join(f.report, tree.MetadataName)] = f.metadata
		}
	}
	for _, p := range inv.providers {
		add(&p.folder)
	}
	for _, m := range inv.modules {
		add(&m.folder)
	}
	return files
}

// walk lists the files of the tree.
func (s *scan) walk() *inventory {
	w := &walker{scan: s, report: newReport()}
	inv := &inventory{keys: w.readKeys()}
	inv.providers, inv.modules = w.walkProviders(inv.keys), w.walkModules()
	inv.report, inv.unread, inv.recalled = w.report, w.unread, w.recalled
	inv.unknown, inv.failed, inv.faulty = w.unknown, w.failed, w.faulty
	inv.known = make(map[string]bool, len(w.known))
	for _, report := range w.known {
		inv.known[report] = true
	}
	return inv
}

// assemble verifies the archives read so far and makes a snapshot of them.
func (s *scan) assemble(inv *inventory) scanResult {
	inv.reading.Lock()
	defer inv.reading.Unlock()
	snapshot, packed := newSnapshot(s.tree, s.now, s.shared), make(map[string]tree.Stamp)
	snapshot.changes, snapshot.unknown = s.changes, inv.unknown
	kept := make(map[string]*keptFolder, len(inv.providers)+len(inv.modules))
	results := make(map[string]*providerResult, len(inv.providers))
	if !s.options.RequireSignatures {
		snapshot.signer = s.options.Signer
	}
	report := inv.report.clone()

	providers := make([]offeredProvider, len(inv.providers))
	inParallel(s.options.workers(), len(providers), func(i int) {
		switch p := inv.providers[i]; {
		case p.result != nil:
			providers[i] = p.result.offered
		case p.kept != nil:
			providers[i] = p.kept.offeredProvider()
		default:
			providers[i] = s.offerProvider(p, inv.keys.keysFor(p.keysOf()))
		}
	})
	for i, p := range providers {
		f := inv.providers[i]
		report.merge(p.report)
		for _, r := range p.provider.releaseList() {
			report.Offered = append(report.Offered, r.offer.withNotice(r.deprecated))
		}
		switch o := f.newResult(p, inv.keys.keysFor(f.keysOf())); {
		case f.kept != nil:
			results[f.report] = s.last.providers[f.report]
		case o != nil:
			results[f.report] = o
		}
		snapshot.addProvider(f.address, p.provider, p.pending)
		snapshot.addMetadata(f.address, p.metadata)
		snapshot.addDocs(f, p.provider, s.last.snapshot)
		f.noteUnchanged(packed)
		switch {
		case f.kept != nil:
			kept[f.report] = f.kept
		case !f.unknown:
			kept[f.report] = &keptFolder{folder: f.folder, walked: f.walkReport(), empty: !f.hasPackages(), provider: p}
		}
	}
	for _, m := range inv.modules {
		var offered offeredModule
		if m.kept != nil {
			offered = m.kept.offeredModule()
		} else {
			offered = s.offerModule(m)
		}
		report.merge(offered.report)
		for _, v := range offered.module.versionList() {
			offer := Offer{Kind: KindModule, Address: m.address.String(), Version: v.Version, Notes: v.notes}
			report.Offered = append(report.Offered, offer.withNotice(v.deprecated))
		}
		snapshot.addModule(m.address, offered.module, offered.pending)
		snapshot.addMetadata(m.address, offered.metadata)
		m.noteUnchanged(packed)
		switch {
		case m.kept != nil:
			kept[m.report] = m.kept
		case !m.unknown:
			kept[m.report] = &keptFolder{folder: m.folder, walked: m.walked, empty: m.isEmpty(), module: offered}
		}
	}
	if s.keepsResults(inv) {
		for report, stamp := range s.last.packed {
			if _, again := packed[report]; !again {
				packed[report] = stamp
			}
		}
	}
	if s.live {
		report.nameUnreadable()
	}
	snapshot.Report = report
	snapshot.mergeHosted()
	report.sort()
	report.noteBuilds()
	return scanResult{snapshot: snapshot, packed: packed, providers: results, kept: kept, known: inv.known}
}

// workers returns how many archives are read, or folders walked, at once.
func (o Options) workers() int {
	if o.Workers > 0 {
		return o.Workers
	}
	return runtime.GOMAXPROCS(0)
}

// inParallel calls do with every number below n, started in order, on so many goroutines.
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

// A walker lists the files in some folders, and recalls their results from the memo.
type walker struct {
	scan     *scan
	report   *Report
	unread   []*job
	recalled int

	known   []string // folders that were listed, see scanResult
	unknown []folder // folders that no scan could read yet
	failed  string   // which archive could not be read this time, and why; empty: all could
	faulty  bool     // another file could not be read, and may be readable a moment later

	notes   bool           // listed folders are noted
	listed  []listedFolder // the noted folders
	depends bool           // the result depends on more than the noted folders
}

// each calls walk for each of n folders, in parallel. Each call has a walker of its own,
// which the caller merges or drops.
func (w *walker) each(n int, walk func(w *walker, i int)) []walker {
	walkers := make([]walker, n)
	inParallel(w.scan.options.workers(), n, func(i int) {
		walkers[i] = walker{scan: w.scan, report: newReport()}
		walk(&walkers[i], i)
	})
	return walkers
}

// merge adds the results of another walker.
func (w *walker) merge(other *walker) {
	w.report.merge(other.report)
	w.unread = append(w.unread, other.unread...)
	w.recalled += other.recalled
	w.known, w.unknown = append(w.known, other.known...), append(w.unknown, other.unknown...)
	w.failed, w.faulty = cmp.Or(w.failed, other.failed), w.faulty || other.faulty
}

// A folder is a directory whose path is an address.
type folder struct {
	part     tree.Part
	dir      string // in its part
	report   string // the path a report names
	hostname string // empty without HOSTNAME
	names    []string
	address  address.Address // once the path has been parsed

	metadata *metadataFile // of the folder of an address; nil without registry.hcl
	kept     *keptFolder   // replaces the folder's content, which cannot be read now; nil if it can
	unknown  bool          // it cannot be read, and there is no earlier result
}

// addressMetadata returns the metadata of the folder's address, before its versions are
// known.
func (f *folder) addressMetadata() addressMetadata {
	if f.metadata == nil {
		return addressMetadata{}
	}
	return addressMetadata{file: f.metadata.metadata}
}

// walkAddresses finds the directories with depth names below an optional HOSTNAME, in order.
func (w *walker) walkAddresses(part tree.Part, name string, depth int) []folder {
	var folders []folder
	var walk func(f folder)
	walk = func(f folder) {
		if len(f.names) == depth {
			folders = append(folders, f)
			return
		}
		entries, unreadable, bad := w.list(part, f.dir, f.report)
		if bad == nil && f.dir == "." && len(entries)+len(unreadable) == 0 {
			if bad = w.scan.emptied(f.report); bad != nil {
				w.withhold(f.report, bad)
			}
		}
		if bad != nil {
			folders = append(folders, w.keepFolders(f)...)
			return
		}
		w.known = append(w.known, f.report)
		for _, e := range unreadable {
			w.withhold(path.Join(f.report, e.Name), e.Bad)
			folders = append(folders, w.keepFolders(f.below(strings.Clone(e.Name)))...)
		}
		beside := newSiblings(entries)
		for _, e := range entries {
			if !e.Info.IsDir() {
				w.fileWithoutAddress(f, name, e, beside)
				continue
			}
			walk(f.below(strings.Clone(e.Name))) // addresses stay in memory longer than the names beside them
		}
	}
	walk(folder{part: part, dir: ".", report: name})
	return folders
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
	w.scan.watch.add(part, dir) // before the directory is read, so that no change is missed
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
				w.scan.watch.addPathTo(part.DiskPath(e.Path()))
			}
			usable = append(usable, e)
		}
	}
	return usable, unreadable, nil
}

// A spelling is a folder whose address other folders may have as well, since clients compare
// addresses in their normal form: acme/demo and ACME/Demo are the same.
type spelling struct {
	folder  *folder
	address address.Address
	empty   bool // it has no versions to offer
}

// oneSpellingEach chooses one folder for each address, keeping their order. It prefers the
// folder in normal form, then the first one, but chooses no empty folder if another one is
// not empty: a stray ACME/demo/README must not hide acme/demo. It merges the walkers of the
// folders it chooses, and reports the other folders.
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
			if s.folder.metadata != nil {
				bad := tree.Findingf(tree.Duplicate, "it is of the address of %s in another spelling: move it there", spellings[winner].folder.report)
				w.report.withhold(problemOf(bad, path.Join(s.folder.report, tree.MetadataName), s.address, ""))
			}
		default:
			bad := tree.Findingf(tree.Duplicate, "it has the address of %s in another spelling, and that folder is offered: move its content there", spellings[winner].folder.report)
			w.report.withhold(problemOf(bad, s.folder.report, s.address, ""))
		}
	}
	return chosen
}

// better reports whether a is preferred to b.
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

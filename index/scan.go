package index

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/changes"
	"github.com/caddy-terraform/caddy-terraform-registry/index/content"
	"github.com/caddy-terraform/caddy-terraform-registry/index/keys"
	"github.com/caddy-terraform/caddy-terraform-registry/index/layout"
	"github.com/caddy-terraform/caddy-terraform-registry/index/memo"
	"github.com/caddy-terraform/caddy-terraform-registry/index/offer"
	"github.com/caddy-terraform/caddy-terraform-registry/index/queue"
	"github.com/caddy-terraform/caddy-terraform-registry/index/watch"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// Scan scans the tree once, to the end, and reads every archive in it. The memo in the Store
// is only used for comparison: it has the bytes that an Index has offered first. Nothing is
// stored.
func Scan(ctx context.Context, o Options) (*Snapshot, error) {
	store, identity := o.Store, o.Identity
	o.Store = nil
	x := New(o)
	defer x.Close()
	x.scanner.once = true
	x.SetLedger(o.Ledger)
	if store != nil {
		// Without a usable memo, no file is known to have changed.
		_ = x.scanner.compared.Load(store, identity)
	}
	s, err := x.Rescan(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.Report().Failure(); err != nil {
		return nil, err
	}
	return s, nil
}

// A scanner scans a tree repeatedly and remembers the results. It runs one scan at a time.
type scanner struct {
	options  Options
	once     bool // no other scan follows if a file is too young to be offered, or cannot be read
	memo     memo.Memo
	compared memo.Memo // of an Index, see Scan
	copies   keys.CopyMemo
	sharing  *memo.Sharing  // nil: nothing is shared
	watch    *watch.Watcher // nil: nothing is watched
	seeks    bool           // the tree's file system is known to have seekable files
	last     *Snapshot      // nil before the first scan

	first   atomic.Pointer[listingRun] // of the first scan, while it is under way
	walked  chan struct{}              // closed when a first scan has found all folders
	walking sync.Once                  // closes walked
	ledger  atomic.Pointer[Ledger]

	caches caches
}

// caches are of all snapshots of a scanner: results that were read or
// made for one snapshot serve the next, too.
type caches struct {
	content     content.Reader
	derivedLast derivedLast
	signedURLs  offer.SignedURLs
}

// A scan has the inputs of all steps of one scan.
type scan struct {
	*scanner
	ctx     context.Context
	tree    tree.Tree
	now     time.Time     // when the scan began
	accepts bool          // a part of the tree may be empty all at once
	stale   changes.Paths // paths that may have changed since the last scan

	recalled atomic.Int64 // archives, in the listings whose entries have been made
}

// scan makes the entries of all folders again that may have changed. Archives that the memo
// does not know are left to be read: see unread. last is the last change that the scan
// sees.
func (x *scanner) scan(ctx context.Context, changed changes.Paths, accepts bool, last Change) (*Snapshot, error) {
	// The time is taken first: the listing of a Bucket may or may not have later changes.
	s := &scan{scanner: x, ctx: ctx, now: x.options.now(), accepts: accepts, stale: changed}
	if err := s.open(); err != nil {
		return nil, err
	}
	whole := s.stale[""]
	if whole {
		x.memo.Begin(s.now)
	}

	known := s.lastKeys()
	if s.stale.Has("keys") {
		known = s.readKeys()
	}
	way := s.walkTree()
	known = s.recallKeys(known, way)
	var folders []layout.Folder
	for _, v := range way {
		if !whole && known != x.last.keys {
			v.addOfKeys(known)
		}
		folders = append(folders, v.found...)
	}
	run := s.newListingRun(folders, way, known)
	if s.last == nil {
		x.first.Store(run)
		x.walking.Do(func() { close(x.walked) })
	}
	listings, entries := run.listAll()
	unread := s.recallShared(listings)
	failed := s.copyKeys(s.chosen(listings), known)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !x.seeks && len(unread) > 0 {
		var err error
		if x.seeks, err = checkSeeking(unread); err != nil {
			return nil, err
		}
	}
	entries = append(entries, s.entries(listings, known)...)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for _, e := range entries { // from now on the scan cannot fail
		e.takeOver()
	}
	n := s.next(found{entries: entries, way: way, keys: known})
	n.changes, n.Recalled, n.keysFailed = last, int(s.recalled.Load()), cmp.Or(known.Failed, failed)
	if n.isEmpty() {
		if n.Hint = layout.Hint(s.tree); n.Hint == layout.NothingYet && !known.IsEmpty() {
			n.Hint = "" // the keys came first
		}
	}
	if !whole {
		n.Taken = x.last.Taken
	} else {
		x.memo.Finish(s.now)
		x.watch.Finish()
	}
	x.last = n
	return n, nil
}

// open opens the tree. A scan of some folders keeps the tree of the last scan, unless another
// directory has taken its place: then it becomes a scan of everything.
func (s *scan) open() (err error) {
	if s.last == nil || s.options.Listed == nil && !s.last.tree.Same() {
		s.stale = changes.Everything()
	}
	if !s.stale[""] && s.options.Listed == nil {
		s.tree = s.last.tree
		return nil
	}
	for _, name := range s.options.Paths {
		s.watch.AddPathTo(name) // before it is taken
	}
	s.tree, err = s.options.open(s.ctx)
	return err
}

// chosen returns the listings that are offered: an address may have several spellings.
func (s *scan) chosen(listings []*listing) (chosen []*listing) {
	spellings := make(map[address.Address][]*entry)
	for _, l := range listings {
		f := l.folder()
		spellings[f.Address] = append(spellings[f.Address], &entry{folder: *f, empty: l.isEmpty()})
	}
	if !s.stale[""] { // others have not been listed
		for a, listed := range spellings {
			for _, e := range s.last.group(a).entries {
				if e.folder.Address == a && !slices.ContainsFunc(listed, func(l *entry) bool { return l.folder.Report == e.folder.Report }) {
					spellings[a] = append(spellings[a], e)
				}
			}
		}
	}
	for _, l := range listings {
		if f := l.folder(); chooseSpelling(spellings[f.Address], f.Address).folder.Report == f.Report {
			chosen = append(chosen, l)
		}
	}
	return chosen
}

// entries makes the entries of listings, from the archives that have been read by now. It sets
// each listing to nil then: the listings of a large tree take more memory than its entries.
func (s *scan) entries(listings []*listing, k *keys.Folder) []*entry {
	entries := make([]*entry, len(listings))
	queue.InParallel(s.options.workers(), len(listings), func(i int) { entries[i], listings[i] = s.entry(listings[i], k), nil })
	return entries
}

// complete makes the entries of these listings again, after further archives have been read,
// and returns the next snapshot. Entries that other listings have replaced meanwhile are
// left as they are.
func (x *scanner) complete(ctx context.Context, listings []*listing) *Snapshot {
	last := x.last
	s := &scan{scanner: x, ctx: ctx, tree: last.tree, now: x.options.now()}
	listings = slices.DeleteFunc(listings, func(l *listing) bool {
		f := l.folder()
		e := last.group(f.Address).entryOf(f.Report)
		if e == nil || e.listing != l {
			return true
		}
		l.walker.before = e.withoutListing() // so that what has not changed is not made again
		return false
	})
	return s.interimSnapshot(found{entries: s.entries(listings, last.keys), keys: last.keys})
}

// interimSnapshot returns the next snapshot, with what was found since the last scan.
func (s *scan) interimSnapshot(c found) *Snapshot {
	last, n := s.last, s.next(c)
	n.Taken, n.scanned, n.changes, n.Hint, n.Recalled, n.keysFailed = last.Taken, last.scanned, last.changes, last.Hint, last.Recalled, last.keysFailed
	s.last = n
	return n
}

// checkSeeking checks the first archive that can be opened. ok reports whether there is such
// an archive.
func checkSeeking(unread []*job) (ok bool, err error) {
	for _, a := range unread {
		if ok, err := a.part.CheckSeeking(cmp.Or(a.module.FirstFile(), a.unpacked.FirstFile(), a.Path())); ok {
			return err == nil, err
		}
	}
	return false, nil
}

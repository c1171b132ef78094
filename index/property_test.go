package index_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/index/keys"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
)

var (
	propertySeeds = flag.Int("seeds", 4, "number of random histories of TestAnIndexEqualsAFreshScan on each storage")
	propertySeed  = flag.Int64("seed", 1, "the first of them")
)

// After any sequence of events, faults and restarts, the snapshot of an index that has run
// all the time equals the snapshot of a fresh scan. More histories than usual are tried by
//
//	go test ./index -run TestAnIndexEqualsAFreshScan -seeds 300
//
// and one is repeated by -seed N -seeds 1.
//
// All of it runs in a bubble of testing/synctest: its clock only advances when the index has
// nothing to do but to wait, so that a sleep waits for the index without taking any time.
func TestAnIndexEqualsAFreshScan(t *testing.T) {
	for _, storage := range []string{"disk", "memory", "bucket"} {
		for seed := *propertySeed; seed < *propertySeed+int64(*propertySeeds); seed++ {
			t.Run(fmt.Sprintf("%s/%d", storage, seed), func(t *testing.T) {
				t.Parallel()
				h := newHistory(t, storage, seed)
				real := time.Now()
				synctest.Test(t, func(t *testing.T) {
					time.Sleep(time.Until(real.Add(time.Hour))) // files written now are old
					h.T = t
					h.run()
				})
			})
		}
	}
}

// A history is a sequence of random events in a tree, and an index that is told of them.
type history struct {
	*testing.T
	*randomTree
	open    func() (tree.Tree, error)
	options index.Options
	copies  *indextest.KeyCopies // nil: the index has none
	fault   randomFault
	index   *index.Index

	expires time.Time // when the key of one publisher expires

	// untold has the changes since the last scan of everything that the index was not told of:
	// the scopes that may differ, by the folder in which files have changed.
	untold map[string]map[scope]bool
	listed map[string]bool // the folders that the index can list again, see lists

	before    *index.Snapshot // the last that was equal to a fresh one
	touched   map[scope]bool  // since then
	restarted bool            // since then, while there was a fault

	completed bool
}

func newHistory(t *testing.T, storage string, seed int64) *history {
	publishers := []*indextest.Publisher{indextest.NewPublisher(t), indextest.NewPublisher(t)}
	h := &history{
		randomTree: newRandomTree(t, seed, publishers),
		untold:     make(map[string]map[scope]bool), touched: make(map[scope]bool),
	}
	// The key expires when the clock is advanced for the second time, see advance.
	h.expires = time.Now().Add(time.Hour + clockStep*3/2).Truncate(time.Second)
	h.publishers = append(h.publishers, indextest.NewExpiringPublisher(t, h.expires.Sub(indextest.Born), 24*time.Hour))
	h.options = options(t, nil)
	h.options.Store, h.options.Identity = new(memoryStore), "tree"
	h.options.RequireSignatures = h.chance(5)
	if h.chance(5) {
		h.options.Signer = nil
	}
	if !h.chance(4) {
		h.copies = new(indextest.KeyCopies)
	}
	switch storage {
	case "disk":
		h.dir = t.TempDir()
		h.Tree = indextest.OnDisk(t, h.dir)
		h.open = source.Directories{Root: h.dir}.Open
	case "memory":
		h.Tree = indextest.New(t)
		h.open = h.Tree.Open
	case "bucket":
		h.bucket = &treetest.Bucket{Page: 7}
		h.Tree = indextest.InBucket(t, h.bucket)
		h.bucket.Fail = h.fault.operation
	}
	return h
}

func (h *history) run() {
	h.plant()
	for range 20 {
		h.event()
	}
	clear(h.randomTree.touched)
	h.start()
	h.scanned()
	defer func() {
		if h.index.Close(); !h.completed {
			h.Logf("the events were:\n%s", strings.Join(h.events, "\n"))
		}
	}()
	h.settle()
	h.compare("at the start", nil)
	for range 12 {
		time.Sleep(time.Second) // two snapshots of one time would have the same documentation
		if h.chance(3) {
			h.faulty()
		} else {
			h.some()
		}
		h.settle()
		h.compare("after Changed and Refresh", h.excluded())
		if !h.chance(3) {
			continue
		}
		h.note("rescan")
		time.Sleep(time.Second)
		if _, err := h.index.Rescan(h.Context()); err != nil {
			h.Fatalf("the rescan fails: %v", err)
		}
		h.scanned()
		h.settle()
		h.compare("after Rescan", nil)
	}
	h.completed = true
}

// settle waits until the index has seen what it has been told of, and has tried again what
// it could not read: it does so at least twice a minute.
func (h *history) settle() {
	time.Sleep(time.Minute)
	synctest.Wait()
}

// start begins a new process.
func (h *history) start() { h.startOn(h.open) }

// startOn begins a new process on the tree that open opens, unless it is in a bucket.
func (h *history) startOn(open func() (tree.Tree, error)) {
	o := h.options
	if h.copies != nil {
		o.KeyCopies = h.copies
	}
	if h.bucket != nil {
		o.Listed = source.Directories{Root: "."}.Listed(h.bucket)
	} else {
		o.Open = func() (tree.Tree, error) {
			if !h.fault.active() {
				return open() // the disk has faster ways without a file system around it
			}
			return h.fault.open(open)
		}
	}
	h.index = index.New(o)
	h.index.Start()
}

// some lets a few things happen.
func (h *history) some() {
	for range 1 + h.Intn(4) {
		time.Sleep(time.Second)
		switch {
		case h.chance(12):
			h.restart()
		case h.chance(16):
			h.advance()
		default:
			h.event()
			h.tell(h.take())
		}
		if h.chance(2) {
			synctest.Wait()
		}
	}
}

func (h *history) restart() {
	h.note("restart")
	h.index.Close()
	h.restarted = h.fault.active()
	if h.bucket == nil && !h.restarted && h.chance(2) {
		h.restartSlowly()
	} else {
		h.start()
	}
	h.scanned() // apart from what cannot be read, see faulty
}

// restartSlowly begins a new process whose first scan takes until all addresses have been compared
// that are offered meanwhile.
func (h *history) restartSlowly() {
	h.note("slowly")
	slow, release := slowFolder(h.open, "providers/"+untouched+"/demo")
	defer release()
	h.options.Workers = 2
	h.startOn(slow)

	fresh := h.fresh()
	module := address.Address{Namespace: untouched, Name: "vpc", System: "aws"} // which depends on nothing else
	for _, a := range addressesIn(fresh) {
		ctx, cancel := context.WithTimeout(h.Context(), time.Second)
		s := h.index.SnapshotOf(ctx, index.Place{Address: a, Merged: true})
		cancel()
		if h.index.Snapshot() != nil {
			h.Fatal("the first scan has ended")
		}
		if s == nil { // it depends on the rest of the scan
			if a == module {
				h.Fatalf("%s is not offered during the first scan", a)
			}
			continue
		}
		now, then := &view{snapshot: s}, &view{snapshot: fresh}
		now.address(a)
		then.address(a)
		if d := difference(now, then, nil); d != "" {
			h.Fatalf("during the first scan %s is not offered as by a fresh one (-), but so (+)\n%s", a, d)
		}
	}
}

// clockStep is longer than any result of a verification is kept.
const clockStep = 26 * time.Hour

// advance lets time pass. The index is not told when a key expires, and has no periodic scan
// here.
func (h *history) advance() {
	if h.fault.active() {
		return
	}
	h.note("the clock advances by %v", clockStep)
	valid := time.Now().Before(h.expires)
	time.Sleep(clockStep)
	if valid && !time.Now().Before(h.expires) {
		h.untell("the clock", scope{})
	}
}

// tell tells the index of changed files in one of several ways, or not at all.
func (h *history) tell(names []string) {
	folders := make(map[string][]scope)
	for _, name := range names {
		if strings.HasPrefix(name, "incoming/") {
			continue
		}
		folder := folderOf(name)
		if !h.lists(name, folder) {
			folder = ""
		}
		folders[folder] = append(folders[folder], affected(name)...)
	}
	for _, scopes := range folders {
		for _, s := range scopes {
			h.touched[s] = true
		}
	}
	how := h.Intn(6)
	if scopes, ok := folders[""]; ok || how == 0 { // no folder can be named for what has no address
		if how == 0 {
			for _, folder := range slices.Sorted(maps.Keys(folders)) {
				h.untell(folder, folders[folder]...)
			}
			h.note("the index is not told")
			return
		}
		h.untell("", scopes...)
		delete(folders, "")
	}
	list := slices.Sorted(maps.Keys(folders))
	if len(list) == 0 {
		return
	}
	for _, folder := range list {
		delete(h.untold, folder)
	}
	if how < 4 {
		h.note("Changed %v", list)
		h.index.Changed(list...)
	} else {
		h.note("Refresh %v", list)
		h.index.Refresh(list...)
	}
}

// scanned notes that the index has scanned everything.
func (h *history) scanned() {
	clear(h.untold)
	h.listed = make(map[string]bool)
	for _, file := range h.files() {
		h.listed[exactFolder(file)] = true
	}
}

// lists reports whether the index finds a file when it is told the folder of its address. It
// looks for the folder in its normal spelling, and in the spellings that it has found before:
// the registry writes into these, and a watcher tells the spelling of what others write.
func (h *history) lists(name, folder string) bool {
	exact := exactFolder(name)
	if folder == tree.ReportedKeys || exact == folder {
		return true
	}
	listed := h.listed[exact]
	if len(h.filesBelow(exact)) == 0 {
		delete(h.listed, exact)
	}
	return listed
}

// exactFolder returns the folder of an address as it is spelled in a path.
func exactFolder(name string) string {
	names := strings.SplitAfter(name, "/")
	n := strings.Count(folderOf(name), "/") + 1
	return strings.TrimSuffix(strings.Join(names[:min(n, len(names))], ""), "/")
}

func (h *history) untell(folder string, scopes ...scope) {
	if h.untold[folder] == nil {
		h.untold[folder] = make(map[scope]bool)
	}
	for _, s := range scopes {
		h.untold[folder][s] = true
	}
}

// affected returns the scopes that a change of a file may affect. Keys verify the releases
// of their namespace, and are missing only where there are providers.
func affected(name string) []scope {
	switch s := scopeAt(name); s.kind {
	case keysKind:
		return []scope{{kind: keysKind}, {kind: "providers", namespace: s.namespace}}
	case "providers":
		return []scope{s, {kind: keysKind}}
	default:
		return []scope{s}
	}
}

// excluded returns the scopes that may differ from a fresh scan, because the index was not
// told of their changes.
func (h *history) excluded() (patterns []scope) {
	for _, scopes := range h.untold {
		patterns = slices.AppendSeq(patterns, maps.Keys(scopes))
	}
	return patterns
}

// fresh scans the tree as a new process without faults does. It stores no copies of keys:
// the index must have stored them before. It has no memo either. A memo would tell it which
// bytes an archive had before, which is not compared; see view.
func (h *history) fresh() *index.Snapshot {
	defer h.fault.pause()()
	o := h.options
	o.Open, o.Store = h.open, nil
	if h.copies != nil {
		o.KeyCopies = storedCopies{h.copies}
	}
	if h.bucket != nil {
		o.Listed = source.Directories{Root: "."}.Listed(h.bucket)
	}
	s, err := index.Scan(h.Context(), o)
	if err != nil {
		h.Fatalf("the fresh scan fails: %v", err)
	}
	return s
}

// storedCopies are copies of keys that stay as they are.
type storedCopies struct{ keys.Copies }

func (storedCopies) Store(context.Context, string, []byte) error {
	return errors.New("the index has not stored the copy")
}
func (storedCopies) Delete(context.Context, string) error { return nil }

// compare compares the snapshot with a fresh one, apart from the excluded scopes.
func (h *history) compare(when string, excluded []scope) {
	h.Helper()
	now, fresh := h.index.Snapshot(), h.fresh()
	addresses := addressesIn(now, fresh)
	if d := difference(look(now, addresses), look(fresh, addresses), excluded); d != "" {
		h.Fatalf("%s, the snapshot is not as a fresh one (-); it has (+)\n%s", when, d)
	}
	h.before, h.restarted = now, false
	clear(h.touched)
	for _, s := range excluded {
		h.touched[s] = true
	}
}

// faulty lets a few things happen while some files cannot be read.
func (h *history) faulty() {
	err := h.begin()
	h.some()
	if h.fault.active() && h.chance(3) {
		h.note("rescan with the fault")
		h.index.Rescan(h.Context()) // it may fail as a whole
	}
	time.Sleep(15 * time.Second) // until no file counts as still being written
	synctest.Wait()
	failed := h.fault.failures()
	h.note("these could not be read: %v", failed)
	h.checkOffers(failed, err)
	h.checkOthers(failed)

	h.fault.end()
	h.note("the fault is over")
	for _, name := range failed {
		if !errors.Is(err, fs.ErrPermission) {
			continue // the index tries again by itself
		}
		if folder := folderOf(name); folder == "" {
			h.untell("", related(name)...)
		} else {
			delete(h.untold, folder)
			h.index.Changed(folder) // a right that is given is an event
		}
	}
}

// begin makes operations fail from now on: one of the next ones, or all in a random place.
func (h *history) begin() (err error) {
	if h.bucket != nil {
		err = one(h.randomTree, []error{errDown, errDown, fs.ErrPermission})
	} else {
		err = one(h.randomTree, []error{syscall.EIO, syscall.ESTALE, syscall.EMFILE, syscall.EACCES})
	}
	if h.chance(3) {
		n := 1 + h.Intn(60)
		h.note("operation %d fails with %v", n, err)
		h.fault.begin(func(i int, _, _ string) error {
			if i == n {
				return err
			}
			return nil
		})
		return err
	}
	place := cmp.Or(h.place(), "providers")
	h.note("what is in %s fails with %v", place, err)
	h.fault.begin(func(_ int, operation, name string) error {
		// A bucket has one listing of all files. While it fails, nothing is seen.
		if !tree.IsBelow(name, place) || operation == "list" {
			return nil
		}
		return err
	})
	return err
}

// place returns a random file or folder; empty if there are none.
func (h *history) place() string {
	files := h.files()
	if len(files) == 0 {
		return ""
	}
	name := one(h.randomTree, files)
	names := strings.Split(name, "/")
	return strings.Join(names[:1+h.Intn(len(names))], "/")
}

// related returns the scopes that a file which cannot be read may affect.
func related(name string) []scope {
	if a, ok := addressOfPath(name); ok {
		return []scope{scopeOf(a), {kind: keysKind}}
	}
	part, rest, _ := strings.Cut(name, "/")
	first, _, _ := strings.Cut(rest, "/")
	switch {
	case part == tree.ReportedKeys:
		return []scope{{kind: keysKind}, {kind: "providers"}}
	case part != "providers" && part != "modules":
		return []scope{{}}
	case first == "" || address.IsHostname(first):
		return []scope{{kind: part}, {kind: keysKind}, {kind: outsideKind}}
	}
	return []scope{{kind: part, namespace: strings.ToLower(first)}, {kind: keysKind}, {kind: outsideKind}}
}

// checkOffers checks that what was offered before a fault, and has not been touched since,
// still is. After a restart there are no earlier results: then it may be pending, or absent
// if the server has no right to read it.
func (h *history) checkOffers(failed []string, err error) {
	now := h.index.Snapshot()
	if now == nil {
		return // nothing is answered yet
	}
	offered := make(map[string]bool)
	key := func(o index.Offer) string {
		return fmt.Sprint(o.Kind, o.Address, o.Version, o.Platforms, o.Signature)
	}
	for _, o := range now.Report().Offered {
		offered[key(o)] = true
	}
	for _, o := range h.before.Report().Offered {
		a, parseErr := address.Parse(o.Address)
		if parseErr != nil {
			h.Fatalf("%v", parseErr)
		}
		touched := slices.ContainsFunc(slices.Collect(maps.Keys(h.touched)), func(s scope) bool { return s.covers(scopeOf(a)) })
		if offered[key(o)] || touched || h.restarted && (now.Pending(index.PlaceOf(a), o.Version) || errors.Is(err, fs.ErrPermission)) {
			continue
		}
		h.Fatalf("while %v cannot be read, %+v is not offered as before; withheld is %+v, offered is %+v", failed, o, now.Report().Withheld, now.Report().Offered)
	}
}

// checkOthers checks that what a fault does not affect is up to date.
func (h *history) checkOthers(failed []string) {
	now := h.index.Snapshot()
	if now == nil || h.fault.listing() {
		return // a bucket that cannot be listed is not scanned at all
	}
	excluded := append(h.excluded(), scope{kind: totalsKind}, scope{kind: outsideKind})
	for _, name := range failed {
		excluded = append(excluded, related(name)...)
	}
	fresh := h.fresh()
	defer h.fault.pause()()
	addresses := addressesIn(now, fresh)
	if d := difference(look(now, addresses), look(fresh, addresses), excluded); d != "" {
		h.Fatalf("while %v cannot be read, the rest of the snapshot is not as a fresh one (-); it has (+)\n%s", failed, d)
	}
}

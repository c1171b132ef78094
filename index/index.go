package index

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index/changes"
	"github.com/caddy-terraform/caddy-terraform-registry/index/keys"
	"github.com/caddy-terraform/caddy-terraform-registry/index/memo"
	"github.com/caddy-terraform/caddy-terraform-registry/index/queue"
	"github.com/caddy-terraform/caddy-terraform-registry/index/report"
	"github.com/caddy-terraform/caddy-terraform-registry/index/scanlog"
	"github.com/caddy-terraform/caddy-terraform-registry/index/watch"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// Index keeps the latest Snapshot of a tree. Create it with New, begin with
// Start, end with Close. All methods are safe for concurrent use.
type Index struct {
	options  Options
	snapshot atomic.Pointer[Snapshot]
	observer atomic.Pointer[Observer]
	queue    *queue.Queue[*job, readResult]

	scanning sync.Mutex // one scan at a time; guards what follows
	prepare  sync.Once  // before the first scan
	scanner  scanner
	saving   *memo.Saving  // nil without a Store
	polling  string        // why nothing can be watched, which is logged once
	failing  string        // why the last scan failed, which is logged once
	retry    time.Duration // until the next scan after one that has failed
	retrying bool          // that scan will follow
	resting  bool          // a scan will follow of files that are too young, or may still be written
	watch    func(context.Context, func(error)) (*watch.Watcher, error)

	reported   *Snapshot  // the last snapshot that the observer knows
	unreported difference // the changes since then
	began      time.Time  // when the first scan since then began
	read       int        // archives that have been read since then
	unfinished report.Unfinished

	changes *changes.Log

	counting sync.Mutex
	stats    Stats

	start  sync.Once
	ready  chan struct{}
	hints  chan struct{}
	logged scanlog.Progress
	took   atomic.Int64    // how long the last scan of everything took, in nanoseconds
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	done   sync.WaitGroup

	renewing sync.Mutex
	renewed  chan struct{} // closed with the next snapshot; nil without a waiting request

	sharing      sync.Mutex      // guards sharingEnded
	sharingEnded bool            // by Close
	sharings     sync.WaitGroup  // running in the background
	sharingCtx   context.Context // ends when Close does
	stopSharing  context.CancelFunc
}

// New makes an Index that has not scanned anything yet.
func New(o Options) *Index {
	ctx, cancel := context.WithCancel(context.Background())
	sharingCtx, stopSharing := context.WithCancel(context.Background())
	if o.Digests == nil {
		o.Digests = new(Digests)
	}
	x := &Index{
		options: o,
		scanner: scanner{options: o, copies: keys.CopyMemo{Store: o.KeyCopies}},
		watch:   watch.New,
		retry:   firstRetry,
		queue:   queue.New[*job, readResult](ctx, o.workers()),
		ready:   make(chan struct{}),
		hints:   make(chan struct{}, 1),
		changes: changes.NewLog(),

		unreported: newDifference(),
		ctx:        ctx,
		cancel:     cancel,

		sharingCtx:  sharingCtx,
		stopSharing: stopSharing,
	}
	x.queue.Now, x.queue.Read, x.queue.Commit, x.queue.Progressed = o.now, x.readArchive, x.commit, x.advance
	if o.Store != nil {
		x.saving = memo.NewSaving(&x.scanner.memo, o.Store, o.Identity, func(reason string) {
			x.log(slog.LevelWarn, "the memo of digests cannot be kept, the next start will read archives again", "reason", reason)
		})
	}
	return x
}

// Start begins the first scan and the scans after it, in the background. Further calls have
// no effect.
func (x *Index) Start() {
	x.start.Do(func() { x.done.Go(x.run) })
}

// Ready is closed when there is a first Snapshot.
func (x *Index) Ready() <-chan struct{} { return x.ready }

// Snapshot returns the latest snapshot; nil until Ready.
func (x *Index) Snapshot() *Snapshot { return x.snapshot.Load() }

// Digests returns the Digests of the Options, to which packages can be added before scans
// find them.
func (x *Index) Digests() *Digests { return x.options.Digests }

// Progress returns how many of the archives have been read; nil if none is left to read.
func (x *Index) Progress() *Progress { return x.queue.Progress() }

// Hint asks for a scan of everything soon and returns at once.
func (x *Index) Hint() { x.request(changes.Everything()) }

// request asks for a scan of what may have changed, soon, and returns at once.
func (x *Index) request(changed changes.Paths) {
	x.changes.Add(changed)
	x.wake()
}

func (x *Index) wake() {
	select {
	case x.hints <- struct{}{}:
	default: // a scan has been requested already
	}
}

// Changed is called after this process has changed files in folders of the tree. It requests
// a scan and returns immediately. The Snapshot of that scan sees the Change, and the
// observer is called after it. Folders are the folders of addresses, by their path in the
// report, such as providers/acme/demo, and keys.
func (x *Index) Changed(folders ...string) Change {
	x.forget(folders...) // before a scan can count it
	c := x.changes.AddOwn(folders)
	x.wake()
	return c
}

// Refresh requests a scan that sees what other processes have changed in folders of the
// tree, or anywhere if there are no folders. It returns immediately.
func (x *Index) Refresh(folders ...string) {
	x.forget(folders...)
	x.request(changes.PathsOf(folders))
}

// forget has folders listed again if they are not listed in each scan.
func (x *Index) forget(folders ...string) {
	if x.options.Listed != nil {
		x.options.Listed.Forget(folders...)
	}
}

// Close ends scanning, and saves and shares new records of the scans. Snapshots remain
// usable: requests may still read them.
func (x *Index) Close() error {
	x.cancel()
	x.start.Do(func() {}) // Start has no effect from now on
	x.done.Wait()
	x.queue.Close()
	x.finishSharing()
	x.saving.Close()
	return nil
}

// Destruct is Close, for caddy.UsagePool.
func (x *Index) Destruct() error { return x.Close() }

// A scan that fails as a whole, because the root is gone, is repeated earlier than the next
// one is due.
const (
	firstRetry = time.Second
	lastRetry  = 30 * time.Second
)

// young is the time until the next scan if files were too young to be remembered or offered:
// slightly more than module folders must stay unchanged.
const young = folderRest + 50*time.Millisecond

func (x *Index) run() {
	for {
		_, _ = x.scan(x.ctx, nil, false) // the error has been logged
		w := x.watcher()
		var tick <-chan time.Time
		if x.options.Rescan > 0 {
			tick = time.After(x.untilRescan(w.IsBlind()))
		}
		select {
		case <-x.ctx.Done():
			return
		case <-tick:
			x.Refresh()
		case <-x.hints:
		case <-w.Changes():
			w.Settle(x.ctx, x.hints)
			x.request(w.Take())
		}
	}
}

// Where changes are not noticed by events, the tree is scanned again and again: the scans
// take at most a fiftieth of the time.
const (
	pollPause = 50
	firstPoll = 2 * time.Second
)

// untilRescan returns the time until everything is scanned again. blind reports whether some
// changes raise no events.
func (x *Index) untilRescan(blind bool) time.Duration {
	if !x.options.Watch || !blind {
		return x.options.Rescan
	}
	return min(max(pollPause*time.Duration(x.took.Load()), firstPoll), x.options.Rescan)
}

func (x *Index) watcher() *watch.Watcher {
	x.scanning.Lock()
	defer x.scanning.Unlock()
	return x.scanner.watch
}

// startWatching tries to watch the tree, before each scan until it succeeds: a system may
// have reached its limits only for a while. It reports whether it has begun to.
func (x *Index) startWatching() (started bool) {
	if !x.options.Watch || x.scanner.watch != nil {
		return false
	}
	w, err := x.watch(x.ctx, x.warnPolling)
	if err == nil {
		x.scanner.watch, x.polling = w, ""
		return true
	}
	if reason := err.Error(); reason != x.polling {
		x.polling = reason
		x.warnPolling(err)
	}
	return false
}

func (x *Index) warnPolling(err error) {
	x.log(slog.LevelWarn, "changes are not noticed at once, but when the tree is scanned again", "reason", err.Error(), "rescan", x.options.Rescan)
}

// recall loads the memo from the store, and reports whether the store had one.
func (x *Index) recall() bool {
	if x.options.Store == nil {
		return false
	}
	err := x.scanner.memo.Load(x.options.Store, x.options.Identity)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		x.log(slog.LevelWarn, "the memo of digests cannot be used, archives are read again", "reason", tree.WithoutPath(err).Error())
	}
	return err == nil
}

// Rescan scans the whole tree now, and waits until all archives have been read. If the scan
// fails as a whole, Rescan returns the error and the last good Snapshot stays. Rescan ends
// with ctx, and with the Index. A part of the tree may have become empty all at once; other
// scans would take it for a volume that is not mounted.
func (x *Index) Rescan(ctx context.Context) (*Snapshot, error) {
	x.forget()
	if _, err := x.scan(ctx, changes.Everything(), true); err != nil {
		return nil, err
	}
	if err := x.queue.Wait(ctx); err != nil {
		return nil, err
	}
	x.scanning.Lock() // until the last snapshot has been reported
	defer x.scanning.Unlock()
	return x.Snapshot(), nil
}

// scan scans what may have changed, and further folders, and publishes the snapshot. Archives
// that have to be read are queued.
func (x *Index) scan(ctx context.Context, further changes.Paths, accepts bool) (*Snapshot, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	asked := ctx
	ctx, cancel := context.WithCancel(x.ctx)
	defer cancel()
	defer context.AfterFunc(asked, cancel)()

	x.scanning.Lock()
	defer x.scanning.Unlock()
	if err := ctx.Err(); err != nil { // the Index has been closed meanwhile
		return nil, err
	}
	x.prepare.Do(func() { x.startSharing(x.recall()) })
	started := x.startWatching()

	changed, last, unscanned := x.changes.Take()
	what := maps.Clone(changed)
	maps.Copy(what, further)
	if started {
		what[""] = true // so that all of it is watched
	}
	if len(what) == 0 { // another scan has seen it
		return x.scanner.last, nil
	}
	began := time.Now()
	x.begin(began)
	x.commitRead()
	before := x.scanner.last
	s, err := x.scanner.scan(ctx, what, accepts, last)
	if err != nil {
		x.count(nil, time.Since(began))
		x.changes.Add(changed)
		switch {
		case ctx.Err() == nil:
			x.logFailure(slog.LevelError, "scan failed, what was offered before stays offered", err.Error())
			x.scanAgain(changes.Everything())
		case x.ctx.Err() == nil: // only the caller has given up
			x.wake()
		}
		return nil, err
	}
	if what[""] {
		x.took.Store(int64(time.Since(began)))
	}
	x.publish(before, s, nil)
	x.changes.HasScanned(unscanned)
	x.shareRead()
	return s, nil
}

// begin notes when the work began that the observer is told of next.
func (x *Index) begin(now time.Time) {
	if x.began.IsZero() {
		x.began = now
	}
}

// commit publishes a snapshot with the archives that have been read.
func (x *Index) commit() {
	x.scanning.Lock()
	defer x.scanning.Unlock()
	if x.ctx.Err() == nil {
		x.commitRead()
		x.shareRead()
	}
}

func (x *Index) commitRead() {
	done := x.queue.TakeFinished()
	if len(done) == 0 {
		x.queue.Update(nil, nil, false)
		return
	}
	listings := make(map[*listing]bool)
	for _, f := range done {
		f.Archive.apply(f.Result)
		listings[f.Archive.listing] = true
		if !f.Archive.Background {
			x.begin(time.Now())
			x.read++
		}
	}
	before := x.scanner.last
	x.publish(before, x.scanner.complete(x.ctx, slices.Collect(maps.Keys(listings))), done)
}

// publish publishes a snapshot. The archives that it lacks are queued. The observer is told
// of changes when their archives have been read, and of the first scan when all have been.
// read are the archives that have been read for it.
func (x *Index) publish(before, s *Snapshot, read []finished) {
	s.Read = x.read
	x.unreported.add(s.differs)
	if x.snapshot.Swap(s) == nil {
		close(x.ready)
	}
	added, dropped, left := unread(before, s)
	x.queue.Update(added, dropped, before == nil)
	x.renew()
	x.saving.Changed() // a crash does not lose the new records
	idle, current := x.queue.IsRead()
	x.logFaults(s, idle)
	archives := slices.DeleteFunc(slices.Clone(read), func(f finished) bool { return f.Archive.Background })
	isChange := left == 0 && before != nil
	if len(read) > 0 {
		isChange = slices.ContainsFunc(archives, func(f finished) bool { return !f.Archive.IsFirst() })
	}
	isNews := len(read) == 0 || len(archives) > 0 // and not only from the background
	if isNews && (idle || current && isChange) {
		took := time.Since(x.began)
		x.count(s, took)
		x.report(x.reported, s, took)
		x.reported, x.unreported, x.began, x.read = s, newDifference(), time.Time{}, 0
		if !idle { // the remaining reading has begun already
			x.began = time.Now()
		}
	}
	if x.scanner.once {
		return
	}
	x.scanAgain(s.unreadable())
	again := s.newlyChosen(before)
	maps.Copy(again, s.untitled())
	if len(again) > 0 {
		x.request(again)
	}
	switch {
	case x.resting:
	case len(s.young) > 0:
		x.scanResting(young)
	case len(x.unfinished) > 0:
		x.scanResting(report.CopyRest)
	}
}

// newlyChosen returns folders that were not offered before, since another folder with the
// same address was. Keys are copied for the folders that are offered only.
func (s *Snapshot) newlyChosen(before *Snapshot) changes.Paths {
	chosen := make(changes.Paths)
	for a := range s.differs.groups {
		if before == nil {
			break
		}
		for _, e := range s.groups[a].allOffered() {
			g, report := before.groups[a], e.folder.Report
			if last := g.at(e.folder.Address.Hostname); g.entryOf(report) != nil && last.folder.Report != report {
				chosen[report] = true
			}
		}
	}
	return chosen
}

// scanResting has a scan of the files follow that are too young, or may still be written.
func (x *Index) scanResting(after time.Duration) {
	x.resting = true
	time.AfterFunc(after, func() {
		x.scanning.Lock()
		defer x.scanning.Unlock()
		x.resting = false
		resting := make(changes.Paths)
		for _, report := range x.scanner.last.young {
			resting[report] = true
		}
		for report := range x.unfinished {
			resting[report] = true
		}
		x.request(resting)
	})
}

// unread returns the archives that are to be read for a snapshot and were not for the one
// before, which may be nil, and the other way round. left counts the unread archives of all
// addresses that differ.
func unread(before, now *Snapshot) (added, dropped []*job, left int) {
	archives := func(g *group, each func(*job)) {
		if g == nil {
			return
		}
		for _, e := range g.offered {
			if e.listing != nil {
				for _, a := range e.listing.walker.unread {
					each(a)
				}
			}
		}
	}
	known := make(map[*job]bool)
	if before != nil {
		for a := range now.differs.groups {
			archives(before.groups[a], func(a *job) { known[a] = true })
		}
	}
	for a := range now.differs.groups {
		archives(now.groups[a], func(a *job) {
			if !a.finished && !a.Background {
				left++
			}
			if !a.finished && (!known[a] || !a.IsQueued()) { // the same listing may have further ones
				added = append(added, a)
			}
			delete(known, a)
		})
	}
	for a := range known {
		dropped = append(dropped, a)
	}
	return added, dropped, left
}

// readArchive reads an archive for the queue.
func (x *Index) readArchive(a *job) readResult { return x.scanner.readArchive(x.ctx, a) }

// scanAgain has a scan of what could not be read follow, earlier than the next one is due.
func (x *Index) scanAgain(unreadable changes.Paths) {
	switch {
	case len(unreadable) == 0:
		x.retry = firstRetry
	case !x.retrying:
		x.retrying = true
		time.AfterFunc(x.retry, func() {
			x.scanning.Lock()
			defer x.scanning.Unlock()
			x.retrying = false
			x.request(unreadable)
		})
		x.retry = min(2*x.retry, lastRetry)
	}
}

// unreadable returns what could not be read, and may be readable a moment later.
func (s *Snapshot) unreadable() changes.Paths {
	if s.keysFailed != "" { // releases of the namespace may wait for it
		return changes.Everything()
	}
	unreadable := make(changes.Paths)
	for _, report := range s.faulty {
		unreadable[report] = true
	}
	return unreadable
}

// logFaults logs that archives or copies of keys could not be read. all reports whether
// everything has been read that could be.
func (x *Index) logFaults(s *Snapshot, all bool) {
	switch {
	case s.failed != "":
		x.logFailure(slog.LevelWarn, "some archives could not be read, they are tried again", s.failed)
	case s.keysFailed != "":
		x.logFailure(slog.LevelWarn, "the copies of keys cannot be read or written, they are tried again", s.keysFailed)
	case all:
		x.failing = ""
	}
}

// logFailure logs why a scan failed, once until a scan succeeds or fails for another reason:
// scans are repeated for as long as a store is down.
func (x *Index) logFailure(level slog.Level, message, reason string) {
	if failing := message + reason; failing != x.failing {
		x.failing = failing
		x.log(level, message, "error", reason)
	}
}

// renew wakes the requests that wait for a snapshot.
func (x *Index) renew() {
	x.renewing.Lock()
	defer x.renewing.Unlock()
	if x.renewed != nil {
		close(x.renewed)
		x.renewed = nil
	}
}

// news returns a channel that is closed with the next snapshot.
func (x *Index) news() <-chan struct{} {
	x.renewing.Lock()
	defer x.renewing.Unlock()
	if x.renewed == nil {
		x.renewed = make(chan struct{})
	}
	return x.renewed
}

// Next waits for a snapshot other than after. The selected archives are read before all
// others. Next returns nil when ctx or the Index ends first.
func (x *Index) Next(ctx context.Context, after *Snapshot, selections ...Selection) *Snapshot {
	defer x.queue.Hurry(selections)()
	for {
		news := x.news()
		if s := x.Snapshot(); s != nil && s != after {
			return s
		}
		select {
		case <-news:
		case <-ctx.Done():
			return nil
		case <-x.ctx.Done():
			return nil
		}
	}
}

package index

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
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

	scanning    sync.Mutex // one scan at a time; guards what follows
	prepare     sync.Once  // before the first scan
	scanner     scanner
	saving      *memo.Saving  // nil without a Store
	polling     string        // why nothing can be watched, which is logged once
	failing     string        // why the last scan failed, which is logged once
	retry       time.Duration // until the next scan after one that has failed
	retrying    changes.Paths // what that scan will be of; nil: none will follow
	scanned     time.Time     // when a scan of everything has ended last, or has failed
	youngScan   *time.Timer   // until a scan of files that are too young, or may still be written; nil: none will follow
	youngScanAt time.Time     // when that timer ends
	watch       func(context.Context, func(error)) (*watch.Watcher, error)

	reported   *Snapshot  // the last snapshot that the observer knows
	unreported difference // the changes since then
	began      time.Time  // when the first scan since then began
	read       int        // archives that have been read since then
	unfinished report.Unfinished

	changes *changes.Log
	counts  scanlog.Counts

	start  sync.Once
	ready  chan struct{}
	hints  chan struct{}
	logged scanlog.Progress
	took   atomic.Int64    // how long the last scan of everything took, in nanoseconds
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	done   sync.WaitGroup

	background *changes.Background // shares and announces
}

// New makes an Index that has not scanned anything yet.
func New(o Options) *Index {
	ctx, cancel := context.WithCancel(context.Background())
	if o.Digests == nil {
		o.Digests = new(Digests)
	}
	x := &Index{
		options: o,
		scanner: scanner{options: o, copies: keys.CopyMemo{Store: o.KeyCopies, Now: o.now}, walked: make(chan struct{})},
		watch:   watch.New,
		retry:   firstRetry,
		queue:   queue.New[*job, readResult](ctx, o.workers()),
		ready:   make(chan struct{}),
		hints:   make(chan struct{}, 1),
		changes: changes.NewLog(),

		unreported: newDifference(),
		ctx:        ctx,
		cancel:     cancel,
		background: changes.NewBackground(),
	}
	x.queue.Read = func(a *job) readResult { return x.scanner.readArchive(ctx, a) }
	x.queue.Now, x.queue.Commit, x.queue.Progressed = o.now, x.commit, x.advance
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

// Unread returns how many packages of the latest snapshot are still to be read.
func (x *Index) Unread() int {
	if s := x.Snapshot(); s != nil {
		return s.Totals.Pending
	}
	return 0
}

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

// closePatience is how long Close waits for a disk.
const closePatience = 5 * time.Second

// Close ends scanning, and saves and shares new records of the scans. Snapshots remain
// usable: requests may still read them. Calls of a network disk whose server is away return when it is
// back: Close does not wait for that, and the rest is done then.
func (x *Index) Close() error {
	x.cancel()
	x.start.Do(func() {}) // Start has no effect from now on
	stopped, closed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(closed)
		x.done.Wait()
		x.stopYoungScan()
		x.queue.Close()
		close(stopped)
		x.finishSharing()
		x.saving.Close()
	}()
	select {
	case <-stopped:
		<-closed
	case <-time.After(closePatience):
	}
	return nil
}

// IsClosed reports whether Close has been called: nothing is scanned any more.
func (x *Index) IsClosed() bool { return x.ctx.Err() != nil }

// Destruct is Close, for caddy.UsagePool.
func (x *Index) Destruct() error { return x.Close() }

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
func (x *Index) Rescan(ctx context.Context) (*Snapshot, error) { return x.rescan(ctx, true) }

// rescan is Rescan. A part of the tree that is empty all at once keeps its state unless that is
// accepted.
func (x *Index) rescan(ctx context.Context, accepts bool) (*Snapshot, error) {
	x.forget()
	if _, err := x.scan(ctx, changes.Everything(), accepts); err != nil {
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
	if x.startWatching() {
		x.changes.Add(changes.Everything()) // so that all of it is watched, also if this scan is given up
	}
	changed, last, unscanned := x.changes.Take()
	what := maps.Clone(changed)
	maps.Copy(what, further)
	if len(what) == 0 { // another scan has seen it
		return x.scanner.last, nil
	}
	began := time.Now()
	x.begin(began)
	x.commitRead()
	before := x.scanner.last
	defer x.scanner.first.Store(nil)
	s, err := x.scanner.scan(ctx, what, accepts, last)
	if what[""] && ctx.Err() == nil { // else the caller has given up
		x.scanned = time.Now()
	}
	if err != nil {
		x.counts.Failed(time.Since(began))
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

// Next waits for a snapshot other than after. The selected archives are read before all
// others. Next returns nil when ctx or the Index ends first.
func (x *Index) Next(ctx context.Context, after *Snapshot, selections ...Selection) *Snapshot {
	defer x.queue.Hurry(selections)()
	for {
		later := x.ready
		switch s := x.Snapshot(); {
		case s != nil && s != after:
			return s
		case s != nil:
			later = s.later
		}
		select {
		case <-later:
		case <-ctx.Done():
			return nil
		case <-x.ctx.Done():
			return nil
		}
	}
}

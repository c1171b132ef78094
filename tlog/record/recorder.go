package record

import (
	"context"
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
)

// Options say what a Recorder enters, and where.
type Options struct {
	// Open opens the log. It is called until it succeeds.
	Open func(context.Context) (*tlog.Log, error)

	// Hostnames are the registry's own.
	Hostnames []svchost.Hostname

	// Require has an index withhold what is not on record. It is entered nevertheless.
	Require bool

	// Dates returns when versions in the folder of an address were published at their
	// origin; none if that is not known. Nil: it never is.
	Dates func(folder address.Address) map[string]time.Time

	// Unread returns how many packages of the tree are still to be read. Few of the snapshots
	// that a first read makes are handed over. Nil: as many as in the latest snapshot.
	Unread func() int

	// Learned is called when the log has new entries of these addresses, or of any without
	// addresses: the offers have to be compared with them again. It may wait for a scan, which takes its
	// time. It may be nil.
	Learned func(addresses ...address.Address)

	// Changed is called when the State has got another Trouble, and at most every ten minutes
	// when the Trouble has got another Err. It may be nil.
	Changed func(State)
}

// A Trouble is why nothing can be added to a log.
type Trouble string

const (
	None   Trouble = ""       // there is none
	Behind Trouble = "behind" // tlog.ErrBehind
	Forked Trouble = "forked" // tlog.ErrForked
	Failed Trouble = "failed" // anything else, such as a disk that is full
)

// A State says how a Recorder gets on.
type State struct {
	Trouble Trouble
	Err     error // of the Trouble
	Waiting int   // folders with something that may have to be entered
}

// Intervals of a Recorder.
const (
	// refreshEvery is how often it reads entries of other instances.
	refreshEvery = 5 * time.Second
	tidyEvery    = time.Hour

	// After an error it waits, each time twice as long. Where the log has other entries than
	// it has signed, only an operator can help.
	minRetry = time.Second
	maxRetry = time.Minute

	// attempt is how long one attempt may take. A disk that hangs ends none: so it is told that
	// an attempt is overdue.
	attempt = 5 * time.Minute
	overdue = 10 * time.Second

	// chunk is about how many leaves are added at once.
	chunk = 1 << 13
)

// A Recorder enters what a tree offers in a log. It is safe for concurrent use.
type Recorder struct {
	ledger
	options Options
	opened  atomic.Pointer[tlog.Log]
	wake    chan struct{} // has an element when there is a snapshot to look at
	cancel  context.CancelFunc
	ended   chan struct{}

	mu       sync.Mutex
	state    State
	latest   *index.Snapshot
	changed  map[address.Address]bool // since run has taken the snapshot before
	progress chan struct{}            // closed after each addition and each attempt; nil: no request waits for it

	// What follows belongs to run.
	pending   map[address.Address]bool // addresses, without HOSTNAME, with something to enter
	resting   resting
	withdrawn withdrawn
	began     time.Time // when the first snapshot came, or later fewer packages were unread than ever before
	unread    int       // the packages that were unread then
	told      told      // the reason that Changed was called with last
	begun     bool
	tidied    time.Time
	learned   int64       // the entries that Learned was called for
	watch     *time.Timer // of the attempt under way; it ends when that is overdue
}

// New returns a Recorder that works until it is closed.
func New(o Options) *Recorder {
	ctx, cancel := context.WithCancel(context.Background())
	r := &Recorder{
		options: o, wake: make(chan struct{}, 1), cancel: cancel, ended: make(chan struct{}),
		changed: make(map[address.Address]bool), pending: make(map[address.Address]bool), withdrawn: make(withdrawn),
	}
	r.ledger = ledger{r.Log, o.Hostnames, o.Require}
	go r.run(ctx)
	return r
}

// Offered hands over the newest snapshot, and the addresses that have changed since the last
// call; nil: all. It does not wait.
func (r *Recorder) Offered(s *index.Snapshot, changed []address.Address) {
	r.mu.Lock()
	r.latest = s
	if changed == nil {
		for a := range s.Folders() {
			r.changed[a.WithHostname("")] = true
		}
	}
	for _, a := range changed {
		r.changed[a.WithHostname("")] = true
	}
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// take returns the newest snapshot; nil if there is none yet. What has changed becomes
// pending.
func (r *Recorder) take() *index.Snapshot {
	r.mu.Lock()
	maps.Copy(r.pending, r.changed)
	clear(r.changed)
	s := r.latest
	r.mu.Unlock()
	if s == nil {
		return nil
	}
	unread := s.Totals.Pending
	if r.options.Unread != nil {
		unread = r.options.Unread()
	}
	if r.began.IsZero() || unread < r.unread {
		r.began, r.unread = time.Now(), unread
	}
	return s
}

// Log returns the log; nil while it could not be opened yet.
func (r *Recorder) Log() *tlog.Log { return r.opened.Load() }

// State returns how the recorder gets on.
func (r *Recorder) State() State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state
}

// Close ends the recorder, saves the memo of the log, and closes the log. It does not wait for a
// folder of the log that hangs.
func (r *Recorder) Close() {
	r.cancel()
	if l := r.Log(); l != nil {
		_ = l.Remember()
	}
	go func() {
		<-r.ended
		if l := r.Log(); l != nil {
			l.Close()
		}
	}()
}

func (r *Recorder) run(ctx context.Context) {
	defer close(r.ended)
	retry := minRetry
	for {
		err := r.watched(ctx)
		r.wakeWaiting()
		if ctx.Err() != nil {
			return
		}
		r.tell(err)
		wait, wake := refreshEvery, r.wake
		if err != nil {
			wait, wake = retry, nil // a snapshot does not mend a log
			retry = min(2*retry, maxRetry)
		} else {
			retry = minRetry
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-wake:
			timer.Stop()
		case <-timer.C:
		}
	}
}

func (r *Recorder) attempt(parent context.Context) error {
	ctx, cancel := context.WithTimeoutCause(parent, attempt, errNoAnswer)
	defer cancel()
	r.take()
	r.waiting()
	l := r.Log()
	if l == nil {
		var err error
		if l, err = r.options.Open(ctx); err != nil {
			return err
		}
		r.opened.Store(l)
	}
	if err := l.Refresh(ctx); err != nil {
		return errors.Join(err, r.announceNewEntries(ctx, l)) // entries that were read before count
	}
	if err := r.announceNewEntries(ctx, l); err != nil {
		return err
	}
	// Learned may have taken long, which is no fault of the log.
	ctx, cancel = context.WithTimeoutCause(parent, attempt, errNoAnswer)
	defer cancel()
	s := r.take() // the index has left out versions that are on record with other bytes
	if s != nil {
		if err := r.enter(ctx, l, s); err != nil {
			return err
		}
		if err := r.announceNewEntries(ctx, l); err != nil { // others were first with some
			return err
		}
	}
	if time.Since(r.tidied) >= tidyEvery {
		r.tidied = time.Now()
		_ = l.Remember() // a memo that cannot be saved logs that
		_ = l.Tidy(ctx)  // old batches do no harm for another hour
	}
	return nil
}

// maxLearned is how many new entries are looked at one by one.
const maxLearned = 1 << 10

// announceNewEntries tells of entries that the log has got.
func (r *Recorder) announceNewEntries(ctx context.Context, l *tlog.Log) (err error) {
	h := l.Head()
	if h.Size == r.learned {
		return nil
	}
	var addresses []address.Address
	if h.Size-r.learned <= maxLearned {
		if addresses, err = l.Addresses(ctx, h, r.learned); err != nil {
			return err
		}
	}
	r.learned = h.Size
	if r.options.Learned != nil {
		r.watch.Stop() // an index that scans is no fault of the log
		r.options.Learned(addresses...)
		r.watch.Reset(attempt + overdue)
	}
	return nil
}

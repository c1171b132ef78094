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

	// Changed is called when the State has got another Trouble. It may be nil.
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
	// refreshEvery is how often it reads what other instances have added.
	refreshEvery = 5 * time.Second
	tidyEvery    = time.Hour

	// After an error it waits, each time twice as long. Where the log has other entries than
	// it has signed, only an operator can help.
	minRetry = time.Second
	maxRetry = time.Minute

	// attempt is how long one attempt may take. A disk that hangs would end none.
	attempt = 5 * time.Minute

	// chunk is about how many leaves are added at once.
	chunk = 1 << 13
)

// A Recorder enters what a tree offers in a log. It is safe for concurrent use.
type Recorder struct {
	options Options
	log     atomic.Pointer[tlog.Log]
	latest  atomic.Pointer[index.Snapshot]
	some    chan struct{} // has an element when there is a snapshot to look at
	cancel  context.CancelFunc
	ended   chan struct{}

	mu    sync.Mutex
	state State

	// What follows belongs to run.
	entered map[address.Address]any // what was entered of each folder, by Snapshot.Folders
	begun   bool
	tidied  time.Time
}

// New returns a Recorder that works until it is closed.
func New(o Options) *Recorder {
	ctx, cancel := context.WithCancel(context.Background())
	r := &Recorder{options: o, some: make(chan struct{}, 1), cancel: cancel, ended: make(chan struct{}), entered: make(map[address.Address]any)}
	go r.run(ctx)
	return r
}

// Offered tells the recorder what is offered now. It does not wait.
func (r *Recorder) Offered(s *index.Snapshot) {
	r.latest.Store(s)
	select {
	case r.some <- struct{}{}:
	default:
	}
}

// Log returns the log; nil while it could not be opened yet.
func (r *Recorder) Log() *tlog.Log { return r.log.Load() }

// State returns how the recorder gets on.
func (r *Recorder) State() State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state
}

// Close ends the recorder and closes the log. It does not wait for a disk that hangs.
func (r *Recorder) Close() {
	r.cancel()
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
		err := r.attempt(ctx)
		if ctx.Err() != nil {
			return
		}
		r.tell(err)
		wait, some := refreshEvery, r.some
		if err != nil {
			wait, some = retry, nil // a snapshot does not mend a log
			retry = min(2*retry, maxRetry)
		} else {
			retry = minRetry
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-some:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// tell sets the state by the error of an attempt.
func (r *Recorder) tell(err error) {
	trouble := None
	switch {
	case errors.Is(err, tlog.ErrForked):
		trouble = Forked
	case errors.Is(err, tlog.ErrBehind):
		trouble = Behind
	case err != nil:
		trouble = Failed
	}
	r.mu.Lock()
	changed := r.state.Trouble != trouble
	r.state.Trouble, r.state.Err = trouble, err
	state := r.state
	r.mu.Unlock()
	if changed && r.options.Changed != nil {
		r.options.Changed(state)
	}
}

func (r *Recorder) attempt(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	l := r.Log()
	if l == nil {
		var err error
		if l, err = r.options.Open(ctx); err != nil {
			return err
		}
		r.log.Store(l)
	}
	if err := l.Refresh(ctx); err != nil {
		return err
	}
	if s := r.latest.Load(); s != nil {
		if err := r.enter(ctx, l, s); err != nil {
			return err
		}
	}
	if time.Since(r.tidied) >= tidyEvery {
		r.tidied = time.Now()
		_ = l.Tidy(ctx) // what is left over harms nobody for another hour
	}
	return nil
}

// enter adds what has changed since it was entered.
func (r *Recorder) enter(ctx context.Context, l *tlog.Log, s *index.Snapshot) (err error) {
	changed := make(map[address.Address]any)
	known := 0
	for a, value := range s.Folders() {
		before, ok := r.entered[a]
		if ok {
			known++
		}
		if before != value {
			changed[a] = value
		}
	}
	if known < len(r.entered) {
		r.forget(s)
	}
	defer func() { r.waiting(len(changed)) }()
	r.waiting(len(changed))
	if !r.begun {
		if r.begun, err = l.Begun(ctx); err != nil {
			return err
		}
	}
	event := tlog.Offered
	if !r.begun {
		event = tlog.Found
	}
	var leaves []tlog.Leaf
	var of []address.Address
	add := func() error {
		if err := l.Append(ctx, leaves...); err != nil {
			return err
		}
		for _, a := range of {
			r.entered[a] = changed[a]
			delete(changed, a)
		}
		r.waiting(len(changed))
		leaves, of = nil, nil
		return nil
	}
	for a := range changed {
		leaves, of = append(leaves, l.News(leavesOf(s, a, r.options.Hostnames, event))...), append(of, a)
		if len(leaves) >= chunk {
			if err := add(); err != nil {
				return err
			}
		}
	}
	if err := add(); err != nil {
		return err
	}
	if !r.begun && s.Complete() {
		if err := l.SetBegun(ctx); err != nil {
			return err
		}
		r.begun = true
	}
	return nil
}

// forget forgets the folders that are gone.
func (r *Recorder) forget(s *index.Snapshot) {
	there := make(map[address.Address]bool)
	for a := range s.Folders() {
		there[a] = true
	}
	maps.DeleteFunc(r.entered, func(a address.Address, _ any) bool { return !there[a] })
}

func (r *Recorder) waiting(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state.Waiting = n
}

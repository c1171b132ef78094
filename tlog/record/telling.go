package record

import (
	"context"
	"errors"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
)

// tellEvery is how often a Recorder tells of one Trouble that its reason is another one now.
const tellEvery = 10 * time.Minute

var errNoAnswer = errors.New("the folder of the log does not answer in time")

// watched makes an attempt, and tells if it is overdue. Calls of a network disk whose server is
// away return when it is back, whatever their context says. No other attempt is made before.
func (r *Recorder) watched(ctx context.Context) error {
	r.watch = time.NewTimer(attempt + overdue)
	defer r.watch.Stop()
	ended := make(chan error, 1)
	go func() { ended <- r.attempt(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-r.watch.C:
	}
	if ctx.Err() == nil {
		r.tell(errNoAnswer)
	}
	if err := <-ended; !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return errNoAnswer
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
	changed := r.state.Trouble != trouble || r.told.isOutdatedBy(err)
	r.state.Trouble, r.state.Err = trouble, err
	state := r.state
	r.mu.Unlock()
	if !changed {
		return
	}
	r.told = told{err, time.Now()}
	if r.options.Changed != nil {
		r.options.Changed(state)
	}
}

// A told reason is the one that was told last.
type told struct {
	err error
	at  time.Time
}

// isOutdatedBy reports whether another reason may be told. A reason that alternates with others, or
// that has a number in it, would fill the log of the server.
func (t told) isOutdatedBy(now error) bool {
	return now != nil && t.err != nil && now.Error() != t.err.Error() && time.Since(t.at) >= tellEvery
}

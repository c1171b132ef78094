package tlog

import (
	"context"
	"errors"
	"time"
)

// catchUpEvery is how often a log looks for entries of other instances because a reader knows
// of some.
const catchUpEvery = time.Second

// errCatchingUp means that it is not known yet what other instances have added.
var errCatchingUp = errors.New("the log is being looked at for entries of other instances")

// AtLeast returns a head with at least that many entries, if there are so many: another
// instance may have added and signed them. It looks for them once a second at most. Until it has
// looked, and while that fails, a smaller head does not mean that there are no more: AtLeast
// returns an error.
func (l *Log) AtLeast(ctx context.Context, size int64) (*Head, error) {
	h := l.Head()
	if h.Size >= size {
		return h, nil
	}
	if !l.catchUps.Allow() {
		if failed := l.behind.Load(); failed != nil {
			return h, *failed
		}
		return l.Head(), nil
	}
	looking := errCatchingUp
	l.behind.Store(&looking)
	// This is done for all readers, and may sign what it finds: it goes on when one of them leaves.
	looked := make(chan error, 1)
	go func() { looked <- l.catchUp(context.WithoutCancel(ctx)) }()
	select {
	case err := <-looked:
		return l.Head(), err
	case <-ctx.Done():
		return h, context.Cause(ctx)
	}
}

// catchUp looks for entries of other instances.
func (l *Log) catchUp(ctx context.Context) error {
	ctx, cancel := limited(ctx)
	defer cancel()
	err := l.Refresh(ctx)
	if err != nil {
		l.behind.Store(&err)
	} else {
		l.behind.Store(nil)
	}
	return err
}

package flight

import (
	"cmp"
	"context"
	"fmt"
	"time"
)

// unlockPatience is how long a caller waits until its lock is given back.
const unlockPatience = 5 * time.Second

// Lock takes a lock that instances share. It waits no longer than ctx and patience last: the storage of the
// lock may hang, or its owner may have failed to give it back. The error is take's, or the cause of the end.
//
// Some storages renew a lock only as long as its context lives. So the context of a lock that was taken outlives
// ctx, and ends with the lock. unlock gives the lock back, and waits a moment for it.
func Lock(ctx context.Context, patience time.Duration, take func(context.Context) (unlock func(), err error)) (unlock func(), err error) {
	held, end := context.WithCancelCause(context.WithoutCancel(ctx))
	waiting := context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })
	timer := time.AfterFunc(patience, func() { end(fmt.Errorf("it was not to be had within %s", patience)) })
	giveBack, err := take(held)
	waited, inTime := waiting(), timer.Stop()
	if err != nil {
		end(nil)
		return nil, err
	}
	unlock = func() {
		given := make(chan struct{})
		go func() {
			defer close(given)
			defer end(nil)
			giveBack()
		}()
		select {
		case <-given:
		case <-time.After(unlockPatience):
		}
	}
	if !waited || !inTime { // the lock came at the last moment, and its context ends
		err = cmp.Or(context.Cause(held), context.Cause(ctx), context.DeadlineExceeded)
		unlock()
		return nil, err
	}
	return unlock, nil
}

package flight

import (
	"context"
	"fmt"
	"time"
)

// unlockPatience is how long a caller waits until its lock is given back.
const unlockPatience = 5 * time.Second

// Lock takes a lock that instances share, and waits for it no longer than patience: its storage may hang, or
// its owner may have failed to give it back. The error is take's. The context of a lock that was taken lives
// on after the wait, because some storages renew locks as long as it lives. unlock gives the lock back, and
// waits a moment for it.
func Lock(ctx context.Context, patience time.Duration, take func(context.Context) (unlock func(), err error)) (unlock func(), err error) {
	held, end := context.WithCancelCause(ctx)
	timer := time.AfterFunc(patience, func() { end(fmt.Errorf("it was not to be had within %s", patience)) })
	giveBack, err := take(held)
	timer.Stop()
	if err != nil {
		end(nil)
		return nil, err
	}
	return func() {
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
	}, nil
}

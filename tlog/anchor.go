package tlog

import (
	"context"
	"errors"
	"time"
)

// callLimit is how long one call of the anchor may take, and the creation of a batch. The
// answer may be lost with its connection. Without a limit, nothing would be added until the
// next start.
const callLimit = 30 * time.Second

var errNoAnswer = errors.New("it did not answer in time")

func limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, callLimit, errNoAnswer)
}

// A limitedAnchor ends calls that take too long.
type limitedAnchor struct{ Anchor }

func (a limitedAnchor) Load(ctx context.Context) ([]byte, error) {
	ctx, cancel := limited(ctx)
	defer cancel()
	return a.Anchor.Load(ctx)
}

func (a limitedAnchor) Store(ctx context.Context, checkpoint []byte) error {
	ctx, cancel := limited(ctx)
	defer cancel()
	return a.Anchor.Store(ctx, checkpoint)
}

package tlog

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// An Anchor keeps the newest signed checkpoint at another place than the Store. So a Store
// that was restored from a backup is noticed.
type Anchor interface {
	// Load returns the checkpoint. Only fs.ErrNotExist means that there is none.
	Load(ctx context.Context) ([]byte, error)

	Store(ctx context.Context, checkpoint []byte) error
}

// callLimit is how long one call of the anchor may take, and the creation of a batch. The
// answer may be lost with its connection. Without a limit, nothing would be added until the
// next start.
const callLimit = 30 * time.Second

var errNoAnswer = errors.New("it did not answer in time")

func limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, callLimit, errNoAnswer)
}

// anchored returns the checkpoint of the anchor; signed is nil if there is none.
func (l *Log) anchored(ctx context.Context) (c Checkpoint, signed []byte, err error) {
	ctx, cancel := limited(ctx)
	defer cancel()
	signed, err = l.options.Anchor.Load(ctx)
	return l.opened("reading the newest checkpoint of the log", signed, err)
}

func (l *Log) anchor(ctx context.Context, signed []byte) error {
	ctx, cancel := limited(ctx)
	defer cancel()
	if err := l.options.Anchor.Store(ctx, signed); err != nil {
		return fmt.Errorf("keeping the newest checkpoint of the log: %w", err)
	}
	return nil
}

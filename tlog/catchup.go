package tlog

import (
	"context"
	"time"
)

// catchUpEvery is how often a log looks for entries of other instances because a reader knows
// of some.
const catchUpEvery = time.Second

// AtLeast returns a head with at least that many entries, if there are so many: another
// instance may have added and signed them. It looks for them once a second at most.
func (l *Log) AtLeast(ctx context.Context, size int64) (*Head, error) {
	h := l.Head()
	if h.Size >= size || !l.catchUps.Allow() {
		return h, nil
	}
	err := l.Refresh(ctx)
	return l.Head(), err
}

package tlog

import (
	"context"
	"math"
	"time"

	sumdb "golang.org/x/mod/sumdb/tlog"
)

// catchUpEvery is how often a log looks for entries of other instances because a reader knows
// of some.
const catchUpEvery = time.Second

// AtLeast returns a head with at least that many entries, if there are so many: another
// instance may have added and signed them. It looks for them once a second at most.
func (l *Log) AtLeast(ctx context.Context, size int64) (*Head, error) {
	h := l.Head()
	if h.Size >= size {
		return h, nil
	}
	last := l.caughtUp.Load()
	if now := time.Now().UnixNano(); now-last < int64(catchUpEvery) || !l.caughtUp.CompareAndSwap(last, now) {
		return h, nil
	}
	err := l.Refresh(ctx)
	return l.Head(), err
}

// SizeWith returns the size of the smallest log that has a tile or bundle.
func SizeWith(t sumdb.Tile) int64 {
	level := max(t.L, 0)
	hashes := t.N<<tileHeight + int64(t.W)
	if level >= 7 || hashes > math.MaxInt64>>(tileHeight*level) {
		return math.MaxInt64
	}
	return hashes << (tileHeight * level)
}

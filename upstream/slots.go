package upstream

import (
	"context"
	"sync/atomic"
)

// What is done at the same time, for each origin. A client asks about all
// platforms and files of a release within moments, and anybody may ask for
// anything: neither the origin nor this server is to be overrun by it.
const (
	// mostDownloads fill any line, and leave the disk room to keep up. More of
	// them would each only come in more slowly.
	mostDownloads = 8

	// mostDocuments are small and wait for answers rather than for bytes.
	mostDocuments = 16

	// mostWaiting may be in the queue. Who waits costs a few kilobytes, and beyond
	// so many would be gone before it is their turn.
	mostWaiting = 256
)

// Slots bound how much is done at the same time, and how much waits for it.
type slots struct {
	taken   chan struct{}
	waiting atomic.Int32
}

func newSlots(n int) *slots { return &slots{taken: make(chan struct{}, n)} }

// take waits for a slot as long as ctx lasts. Not ok, with a nil error: too many
// wait already.
func (s *slots) take(ctx context.Context) (free func(), ok bool, err error) {
	free = func() { <-s.taken }
	select {
	case s.taken <- struct{}{}:
		return free, true, nil
	default:
	}
	defer s.waiting.Add(-1)
	if s.waiting.Add(1) > mostWaiting {
		return nil, false, nil
	}
	select {
	case s.taken <- struct{}{}:
		return free, true, nil
	case <-ctx.Done():
		return nil, false, context.Cause(ctx)
	}
}

// busy is the failure of who finds the queue full.
func busy(host string) *Failure {
	return &Failure{Host: host, Kind: ErrUnavailable, Detail: "too much that is to be had from it is waited for already: try again later"}
}

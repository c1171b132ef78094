package index_test

import (
	"sync/atomic"
	"time"
)

// Clocks that tests set. The queue asks for the time as well, after a scan has been answered.

// A clock that runs. It may be ahead, so that files count as unchanged for long.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

func (c *clock) set(ahead time.Duration) { c.ahead.Store(int64(ahead)) }

// A clock that stands still.
type stoppedClock struct{ at atomic.Pointer[time.Time] }

func (c *stoppedClock) now() time.Time { return *c.at.Load() }

func (c *stoppedClock) set(now time.Time) { c.at.Store(&now) }

func (c *stoppedClock) advance(d time.Duration) { c.set(c.now().Add(d)) }

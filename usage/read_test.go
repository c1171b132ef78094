package usage

import (
	"testing"
	"time"
)

// A day that is over is read once: storages charge for each call.
func TestDaysThatAreOverAreReadOnce(t *testing.T) {
	s, at := newShared(), newClock()
	i := &instance{shared: s}
	c := s.counterOf(at, i)
	for range 3 {
		c.Add(vpc)
		mustSync(t, c)
	}
	at.pass(5 * 24 * time.Hour)
	mustSync(t, c, c)
	var loads int
	i.fails = func(call string) error {
		if call == "load" {
			loads++
		}
		return nil
	}
	mustSync(t, c, c)
	if loads > 0 {
		t.Errorf("%d segments are read again", loads)
	}
	if n := c.Downloads(vpc.Address); n != 3 {
		t.Errorf("%d downloads of 3", n)
	}
}

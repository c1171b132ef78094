package flight_test

import (
	"errors"
	"runtime"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/pull/flight"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

// A flight that panics fails for all its callers, and the next call begins another.
func TestFlightsThatPanic(t *testing.T) {
	var told error
	f := flight.Group[string, int]{Panicked: func(err error, stack []byte) { told = err }}
	begun := make(chan struct{})
	first := f.Start(t.Context(), "key", func(*upstream.Clients) (int, error) {
		<-begun
		var none []int
		return none[1], nil
	})
	second := f.Start(t.Context(), "key", nil)
	close(begun)
	for _, f := range []*flight.Flight[int]{first, second} {
		if _, err := f.Wait(t.Context()); !errors.Is(err, flight.ErrPanicked) || told == nil || err.Error() != told.Error() {
			t.Errorf("a caller gets %v, the log gets %v", err, told)
		}
	}
	if n, err := f.Do(t.Context(), "key", func(*upstream.Clients) (int, error) { return 7, nil }); n != 7 || err != nil {
		t.Errorf("the next call gets %d, %v", n, err)
	}
}

// Nor has a flight a value whose goroutine ends before it returns one, as by a failed test.
func TestFlightsThatDoNotReturn(t *testing.T) {
	var f flight.Group[string, int]
	if n, err := f.Do(t.Context(), "key", func(*upstream.Clients) (int, error) { runtime.Goexit(); return 7, nil }); !errors.Is(err, flight.ErrPanicked) {
		t.Errorf("a caller gets %d, %v", n, err)
	}
}

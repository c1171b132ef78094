package upstream

import (
	"context"
	"errors"
	"time"

	"github.com/sony/gobreaker/v2"
)

// failuresInARow are what it takes to leave an origin alone. Each is a request
// with all its retries.
const failuresInARow = 3

// A breaker keeps a dead origin from costing every client a timeout: while it is
// open, requests fail at once; then one is let through to see.
type breaker struct {
	circuit *gobreaker.CircuitBreaker[struct{}]
}

func newBreaker(name string, pause time.Duration) breaker {
	return breaker{gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Name:        name,
		Timeout:     pause,
		ReadyToTrip: func(n gobreaker.Counts) bool { return n.ConsecutiveFailures >= failuresInARow },
		// An origin that says no is well.
		IsSuccessful: func(err error) bool {
			return !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrTimeout)
		},
		// A caller who went away says nothing about it.
		IsExcluded: func(err error) bool {
			return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
		},
	})}
}

// run asks, unless the breaker is open.
func (b breaker) run(host string, ask func() error) error {
	_, err := b.circuit.Execute(func() (struct{}, error) { return struct{}{}, ask() })
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		return &Failure{Host: host, Kind: ErrUnavailable, Detail: "it has failed several times in a row and is not asked for a while"}
	}
	return err
}

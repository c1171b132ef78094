package upstream

import (
	"context"
	"errors"
	"net"
	"net/url"
	"sync"

	"github.com/sony/gobreaker/v2"
)

// breakers keep a host of an origin that is down from costing every client a timeout. While the breaker of a
// host is open, requests fail at once. Then one request is sent as a test. The services of an origin may be on
// a few hosts, and one host may be down while the others are not. The zero value is ready for use.
type breakers struct {
	mutex sync.Mutex
	hosts map[string]*gobreaker.CircuitBreaker[struct{}] // by name and port
}

// forURL returns the breaker of a URL's host.
func (b *breakers) forURL(u *url.URL) *gobreaker.CircuitBreaker[struct{}] {
	host := net.JoinHostPort(bareHost(u.Hostname()), port(u))
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if known, ok := b.hosts[host]; ok {
		return known
	}
	if b.hosts == nil {
		b.hosts = make(map[string]*gobreaker.CircuitBreaker[struct{}])
	}
	b.hosts[host] = gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Name:        host,
		Timeout:     breakerPause,
		ReadyToTrip: func(n gobreaker.Counts) bool { return n.ConsecutiveFailures >= failuresInARow },
		// An origin that refuses a request is up.
		IsSuccessful: func(err error) bool { return !IsKind(err, ErrUnavailable, ErrTimeout) },
		// A caller who cancels says nothing about the origin.
		IsExcluded: func(err error) bool {
			return IsKind(err, errOptional, context.Canceled, context.DeadlineExceeded)
		},
	})
	return b.hosts[host]
}

type optionalKey struct{}

// optional returns the context of requests for documents that an origin may lack. Some
// registries fail on all such requests, which must not open the breaker.
func optional(ctx context.Context) context.Context {
	return context.WithValue(ctx, optionalKey{}, true)
}

// errOptional replaces the failure of an optional request.
var errOptional = errors.New("an optional request failed")

// run sends a request to a URL, unless the breaker of its host is open.
func (b *breakers) run(ctx context.Context, u *url.URL, request func() error) error {
	var failed error
	_, err := b.forURL(u).Execute(func() (struct{}, error) {
		failed = request()
		if failed != nil && ctx.Value(optionalKey{}) != nil {
			return struct{}{}, errOptional
		}
		return struct{}{}, failed
	})
	if errors.Is(err, errOptional) {
		return failed
	}
	isTested := errors.Is(err, gobreaker.ErrTooManyRequests)
	if !isTested && !errors.Is(err, gobreaker.ErrOpenState) {
		return err
	}
	refused := &Failure{Host: u.Host, Kind: ErrUnavailable, Detail: "it has failed several times in a row and gets no requests for a while"}
	if isTested {
		refused.Cause = ErrTested
	}
	return refused
}

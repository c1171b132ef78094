package tokenfile

import (
	"context"
	"fmt"
	"time"
)

const (
	// expiresSoon is the time before the expiry of a token at which the log mentions
	// it: time to hand out another one.
	expiresSoon = 14 * 24 * time.Hour

	// expiryInterval is the interval of checks for expiry while no client presents a
	// token.
	expiryInterval = time.Hour

	// maxNamed is the maximum number of tokens that a line of the log names.
	maxNamed = 10
)

// Run logs tokens that expire, even while no client presents one, until the context
// ends.
func (f *File) Run(ctx context.Context) {
	ticker := time.NewTicker(expiryInterval)
	defer ticker.Stop()
	for {
		f.current()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// logExpiry logs the tokens that since its last call have expired or have begun to
// expire soon. The first call logs all such tokens.
func (f *File) logExpiry(now time.Time) {
	since := f.expiryLogged
	if f.expiryLogged = now; !now.After(since) {
		return // the clock was set back
	}
	var soon, expired []string
	for _, t := range f.tokens.Load().tokens {
		passed := func(at time.Time) bool { return at.After(since) && !at.After(now) }
		switch named := t.Name + " " + t.Expires.Format(time.RFC3339); {
		case t.Expires.IsZero():
		case passed(t.Expires):
			expired = append(expired, named)
		case !t.Expired(now) && passed(t.Expires.Add(-expiresSoon)):
			soon = append(soon, named)
		}
	}
	if len(soon) > 0 {
		f.logger.Warn("tokens expire within 14 days: hand out new ones", "file", f.path, "tokens", someOf(soon))
	}
	if len(expired) > 0 {
		f.logger.Warn("tokens have expired: revoke them", "file", f.path, "tokens", someOf(expired))
	}
}

// someOf shortens a long list.
func someOf(names []string) []string {
	if more := len(names) - maxNamed; more > 0 {
		return append(names[:maxNamed:maxNamed], fmt.Sprintf("and %d more", more))
	}
	return names
}

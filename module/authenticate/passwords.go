package authenticate

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"runtime"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp/caddyauth"
	"golang.org/x/sync/semaphore"

	"github.com/caddy-terraform/caddy-terraform-registry/cache"
)

const (
	// passwordPatience is how long a request waits for the comparison of its password.
	passwordPatience = 8 * time.Second

	// maxKnownPasswords is the number of results that Caddy remembers, too.
	maxKnownPasswords = 1000
)

// ErrTooManyPasswords means that a password cannot be compared at the moment.
var ErrTooManyPasswords = errors.New("too many passwords are waiting to be compared")

// NewPasswordSlots returns slots that limit how many passwords are compared at the same
// time, for all senders together: each comparison occupies a processor for most of a
// second, and other requests have to be answered meanwhile.
func NewPasswordSlots() *semaphore.Weighted {
	return semaphore.NewWeighted(int64(min(2, max(1, runtime.GOMAXPROCS(0)/2))))
}

// boundedPasswords is Caddy's http_basic with limited comparisons. Users whose password
// was right before do not wait for users who try others.
type boundedPasswords struct {
	*caddyauth.HTTPBasicAuth
	slots *semaphore.Weighted
	known *cache.Cache[[sha256.Size]byte, bool] // names with passwords that are right
}

// BoundPasswords returns http_basic that compares a password only while it has one of
// the slots.
func BoundPasswords(basic *caddyauth.HTTPBasicAuth, slots *semaphore.Weighted) caddyauth.Authenticator {
	return boundedPasswords{basic, slots, &cache.Cache[[sha256.Size]byte, bool]{MaxEntries: maxKnownPasswords}}
}

// Authenticate implements caddyauth.Authenticator. The error is ErrTooManyPasswords if the
// password could not be compared.
func (b boundedPasswords) Authenticate(w http.ResponseWriter, r *http.Request) (caddyauth.User, bool, error) {
	name, password, ok := r.BasicAuth()
	if !ok {
		return b.HTTPBasicAuth.Authenticate(w, r)
	}
	id := sha256.Sum256([]byte(name + ":" + password)) // as it is sent: no name has a colon
	if known, _ := b.known.Get(id); !known || b.HashCache == nil {
		ctx, cancel := context.WithTimeout(r.Context(), passwordPatience)
		defer cancel()
		if b.slots.Acquire(ctx, 1) != nil {
			return caddyauth.User{}, false, ErrTooManyPasswords
		}
		defer b.slots.Release(1)
	}
	user, right, err := b.HTTPBasicAuth.Authenticate(w, r)
	if right {
		b.known.Put(id, true, cache.UntilEvicted)
	}
	return user, right, err
}

var _ caddyauth.Authenticator = boundedPasswords{}

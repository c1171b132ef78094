package pull

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/cache"
	"github.com/caddy-terraform/caddy-terraform-registry/pull/versionlist"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

// failures are the reasons why versions or files were refused a short time ago, so that clients who ask again
// do not have an origin asked each time. A failure ends early when it is out of date: another instance may
// have listed the version meanwhile.
type failures[K comparable] struct{ cache.Cache[K, error] }

// remember keeps a failure for its lifetime.
func (r *failures[K]) remember(id K, err error) {
	if life := lifetimeOf(err); life > 0 {
		r.Put(id, err, life)
	}
}

// forgetUnlisted ends the failure of a version that a list has now.
func (r *failures[K]) forgetUnlisted(id K) {
	if err, ok := r.Get(id); ok && isUnlisted(err) {
		r.Remove(id)
	}
}

// forgetNoAdditions ends the failure to get further packages of a release if the list has other platforms than
// the list before, which may be nil: a client may have asked for a platform before it was listed.
func (f *Filler) forgetNoAdditions(id releaseID, platforms []address.Platform, before *versionlist.Record) {
	if err, ok := f.unextended.Get(id); !ok || !errors.Is(err, errNoAdditions) {
		return
	}
	if before != nil {
		if d, ok := before.Find(id.version); ok && slices.Equal(d.Platforms, platforms) {
			return
		}
	}
	f.unextended.Remove(id)
}

// isUnlisted reports whether a failure ends when a list has the version.
func isUnlisted(err error) bool { return upstream.IsKind(err, ErrUnlisted, errNotListedYet) }

// refusal returns why a version was refused a short time ago; nil: it may be tried. That no list had it counts
// only until another instance has listed it, or the origin may be asked for its list again.
func (r *failures[K]) refusal(ctx context.Context, f *Filler, a address.Address, id K) error {
	err, _ := r.Get(id)
	if c, ok := f.lists.Get(a); ok && isUnlisted(err) {
		c.takeOver(ctx, checkEvery)
		if err, _ = r.Get(id); errors.Is(err, errNotListedYet) && c.mayAsk() {
			r.Remove(id)
			return nil
		}
	}
	return err
}

// mayAsk reports whether no failure keeps the origin from being asked for a list now.
func (c *originList) mayAsk() bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.failure == nil || !time.Now().Before(c.retry)
}

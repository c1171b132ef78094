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

// A refusal of a version is remembered, so that clients who ask again do not have its origin asked each
// time. It ends early when it is out of date: another instance may have listed the version meanwhile.

// forgetUnlisted ends the refusal of a version that a list has now.
func forgetUnlisted[K comparable](refusals *cache.Cache[K, error], id K) {
	if err, ok := refusals.Get(id); ok && isUnlisted(err) {
		refusals.Remove(id)
	}
}

// forgetNoAdditions ends the refusal of further packages of a release if the list has other platforms than the
// list before, which may be nil: a client may have asked for a platform before it was listed.
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

// isUnlisted reports whether a refusal ends when a list has the version.
func isUnlisted(err error) bool { return upstream.IsKind(err, ErrUnlisted, errNotListedYet) }

// refused returns why a version was refused a short time ago; nil: it may be tried. That no list had it counts
// only until another instance has listed it, or the origin may be asked for its list again.
func refused[K comparable](ctx context.Context, f *Filler, a address.Address, refusals *cache.Cache[K, error], id K) error {
	err, _ := refusals.Get(id)
	if c, ok := f.catalogs.Get(a); ok && isUnlisted(err) {
		c.takeOver(ctx, checkEvery)
		if err, _ = refusals.Get(id); errors.Is(err, errNotListedYet) && c.mayAsk() {
			refusals.Remove(id)
			return nil
		}
	}
	return err
}

// mayAsk reports whether no failure keeps the origin from being asked for a list now.
func (c *catalog) mayAsk() bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.failure == nil || !time.Now().Before(c.retry)
}

package pull

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/caddy-terraform/caddy-terraform-registry/pull/versionlist"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

// An origin sends the publication date of one version a request. A provider may have
// hundreds of versions, so only this many are requested each time its list is renewed,
// newest first. The rest follow with the next requests for the list.
const (
	maxDates      = 128
	parallelDates = 8 // fewer than an origin's slots, so that lists are still renewed
)

// needsDate reports whether the origin may know an earlier date for a version than this
// mirror does.
func (c *originList) needsDate(d versionlist.DatedVersion, now time.Time) bool {
	return !d.Asked && d.Matures(c.source.Policy.MinAge).After(now)
}

func (c *originList) lacksDates(r *versionlist.Record, now time.Time) bool {
	return slices.ContainsFunc(r.Versions, func(d versionlist.DatedVersion) bool { return c.needsDate(d, now) })
}

// fetchDates adds dates to a record that is not shared yet. If there is an error,
// versions without a date count from when they were first seen.
func (c *originList) fetchDates(ctx context.Context, r *versionlist.Record) error {
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(parallelDates)
	asked := 0
	for i := range r.Versions {
		d := &r.Versions[i]
		if !c.needsDate(*d, r.Fetched) || asked == maxDates {
			continue
		}
		asked++
		all.Go(func() (err error) {
			*d, err = c.dated(upstream.NewClients(ctx).Context(ctx), *d)
			return err
		})
	}
	return all.Wait()
}

// fetchDate adds the date of a version that is requested before its turn.
func (c *originList) fetchDate(ctx context.Context, version string) error {
	_, err := c.dating.Do(ctx, version, func(clients *upstream.Clients) (struct{}, error) {
		d, ok := c.version(version)
		if !ok || d.Asked {
			return struct{}{}, nil
		}
		c.mutex.Lock()
		failure, retry := c.failure, c.retry
		c.mutex.Unlock()
		if upstream.IsKind(failure, upstream.ErrUnavailable, upstream.ErrTimeout, upstream.ErrRefused) && time.Now().Before(retry) {
			return struct{}{}, failure
		}
		d, err := c.dated(clients.Context(c.ctx), d)
		if err != nil {
			if life := lifetimeOf(err); life > 0 {
				c.mutex.Lock()
				c.failure, c.retry = err, time.Now().Add(life)
				c.mutex.Unlock()
			}
			return struct{}{}, err
		}
		c.mutex.Lock()
		r := c.record.WithPastOf(&versionlist.Record{Versions: []versionlist.DatedVersion{d}})
		c.set(r)
		c.mutex.Unlock()
		c.keep(r)
		return struct{}{}, nil
	})
	return err
}

// dated asks the origin when a version was published. The error means that the origin
// may say so another time.
func (c *originList) dated(ctx context.Context, d versionlist.DatedVersion) (versionlist.DatedVersion, error) {
	if c.address.Hostname == "" { // a repository does not say when a tag was pushed
		d.Asked = true
		return d, nil
	}
	date, err := c.source.Client.Published(ctx, c.address, d.Version)
	if err != nil && !saysNoDate(err) {
		return d, err
	}
	d.Asked = true
	if err == nil {
		d.Published = date
	}
	return d, nil
}

// saysNoDate reports whether an error is the origin's last word on a date. An origin that
// refuses access may grant it later: the version would count from when it was first seen.
func saysNoDate(err error) bool {
	return upstream.IsKind(err, upstream.ErrNotFound, upstream.ErrMalformed, upstream.ErrTooLarge)
}

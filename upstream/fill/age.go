package fill

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// At first sight of a provider it may have hundreds of versions, most of them
// old. They are asked about from the newest on, until so many in a row are old
// enough; what is listed behind them is taken to be older still, until somebody
// wants one.
const (
	enoughOld = 3
	mostDates = 24 // asked for at a time
)

// A dated version is one with what is known of its age.
type dated struct {
	wire.ProviderVersion
	Published time.Time // as the origin says; zero: it does not, or was not asked
	Seen      time.Time // when it was new in the list; zero: it was there at first sight
}

// matures is when a version becomes old enough. One whose date nobody tells
// counts from when it was seen. If that was at first sight it is old, unless it
// could not be found out then which versions are.
func (r *record) matures(d dated, age time.Duration) time.Time {
	since := r.Unsettled
	switch {
	case age == 0:
		return time.Time{}
	case !d.Published.IsZero():
		since = d.Published
	case !d.Seen.IsZero():
		since = d.Seen
	}
	if since.IsZero() {
		return time.Time{}
	}
	return since.Add(age)
}

// mature are the versions that are old enough, and when there will be more.
func (c *catalog) mature(now time.Time) (list *upstream.Listing, until time.Time) {
	list = new(upstream.Listing)
	for _, d := range c.record.Versions {
		at := c.record.matures(d, c.source.Policy.MinAge)
		if !at.After(now) {
			list.Versions = append(list.Versions, d.ProviderVersion)
		} else if until.IsZero() || at.Before(until) {
			until = at
		}
	}
	return list, until
}

// dated makes the record of a list, with what was known before. It returns both
// a record and an error when the origin could not be asked for a date.
func (c *catalog) dated(ctx context.Context, list upstream.Listing, before *record) (*record, error) {
	now := time.Now()
	r := &record{Fetched: now, Versions: make([]dated, len(list.Versions))}
	known := make(map[string]dated)
	if before != nil {
		for _, d := range before.Versions {
			known[d.Version] = d
		}
	}
	for i, v := range list.Versions {
		d, ok := known[v.Version]
		if d.ProviderVersion = v; !ok && before != nil {
			d.Seen = now
		}
		r.Versions[i] = d
	}
	if r.Unsettled = now; before != nil {
		r.Unsettled = before.Unsettled
	}
	switch {
	case c.source.Policy.MinAge == 0:
		return r, nil // it may be asked for later, and then is found out
	case !r.Unsettled.IsZero():
		return r, c.dateFirst(ctx, r)
	}
	return r, c.dateNew(ctx, r)
}

// dateFirst finds out at first sight which versions are old. An error has cut
// it short.
func (c *catalog) dateFirst(ctx context.Context, r *record) error {
	inARow, asked := 0, 0
	for i := range r.Versions {
		d := &r.Versions[i]
		if d.Published.IsZero() && asked == mostDates {
			if d.Seen.IsZero() {
				d.Seen = r.Fetched
			}
			continue
		}
		if d.Published.IsZero() {
			asked++
			if err := c.ask(ctx, d); err != nil {
				return err
			}
		}
		// One whose date the origin does not tell, as most do not, is old then.
		settled := record{}
		if inARow++; settled.matures(*d, c.source.Policy.MinAge).After(r.Fetched) {
			inARow = 0
		}
		if inARow == enoughOld {
			break
		}
	}
	r.Unsettled = time.Time{}
	return nil
}

// dateNew asks for the dates of versions that are new, and of those that the
// origin did not tell when they were.
func (c *catalog) dateNew(ctx context.Context, r *record) error {
	asked := 0
	for i := range r.Versions {
		d := &r.Versions[i]
		if d.Published.IsZero() && r.matures(*d, c.source.Policy.MinAge).After(r.Fetched) && asked < mostDates {
			asked++
			if err := c.ask(ctx, d); err != nil {
				return err
			}
		}
	}
	return nil
}

// ask gets the date of a version if the origin tells it. The error is that it
// may tell another time.
func (c *catalog) ask(ctx context.Context, d *dated) error {
	at, err := c.source.Client.Published(ctx, c.address, d.Version)
	switch {
	case err == nil:
		d.Published = at
	case upstream.IsKind(err, upstream.ErrUnavailable, upstream.ErrTimeout) || givenUp(err):
		return err
	}
	return nil
}

// date asks for the date of a version that somebody wants, if it counts as old
// only for its place in the list. A backport stands behind much that is older.
func (c *catalog) date(ctx context.Context, version string) error {
	c.mutex.Lock()
	d, guessed := c.guessed(version)
	c.mutex.Unlock()
	if !guessed {
		return nil
	}
	_, err := c.dating.do(ctx, version, func(by *upstream.Clients) (struct{}, error) {
		if err := c.ask(by.In(c.ctx), &d); err != nil {
			return struct{}{}, err
		}
		c.mutex.Lock()
		if c.told == nil {
			c.told = make(map[string]time.Time)
		}
		c.told[version] = d.Published
		c.record = c.record.with(c.told)
		if c.record.matures(d, c.source.Policy.MinAge).After(time.Now()) {
			c.offered = nil // it was in there
		}
		r := c.record
		c.mutex.Unlock()
		if err := c.keepRecord(r); err != nil {
			c.log(slog.LevelDebug, "the date of a version cannot be kept, it will be asked for again after a restart", "error", err.Error())
		}
		return struct{}{}, nil
	})
	return err
}

// guessed finds a version whose date was not asked for, although the origin
// tells those of others. The mutex is held.
func (c *catalog) guessed(version string) (d dated, ok bool) {
	if _, asked := c.told[version]; asked || c.source.Policy.MinAge == 0 || !c.record.Unsettled.IsZero() {
		return d, false
	}
	i := slices.IndexFunc(c.record.Versions, func(d dated) bool { return d.Version == version })
	if i < 0 || !c.record.Versions[i].Published.IsZero() || !c.record.Versions[i].Seen.IsZero() {
		return d, false
	}
	return c.record.Versions[i], slices.ContainsFunc(c.record.Versions, func(d dated) bool { return !d.Published.IsZero() })
}

// with is the record with dates that were not known when it was made.
func (r *record) with(told map[string]time.Time) *record {
	if len(told) == 0 {
		return r
	}
	changed := *r
	changed.Versions = slices.Clone(r.Versions)
	for i := range changed.Versions {
		if d := &changed.Versions[i]; d.Published.IsZero() {
			d.Published = told[d.Version]
		}
	}
	return &changed
}

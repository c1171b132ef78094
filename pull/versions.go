package pull

import (
	"context"
	"fmt"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// patience is how long a request waits for the renewal of a list that is far out of
// date, before it is answered with the old list.
const patience = 3 * time.Second

// An Offering lists the versions of a provider or module that can be mirrored.
type Offering struct {
	// Versions are ordered newest first. Versions of a module have only a number.
	Versions []wire.ProviderVersion

	// Age is the time since the origin sent the list.
	Age time.Duration

	// Stale reports whether the list should have been renewed by now.
	Stale bool

	// Empty reports whether the origin lists no version at all, or none that clients accept.
	Empty bool
}

// listAge returns the Age of a list that should have been renewed by now; zero for others.
func (o Offering) listAge() time.Duration {
	if !o.Stale {
		return 0
	}
	return o.Age
}

// Versions returns the versions of a provider or module that its origin lists and that
// have the minimum release age. The origin is asked once for all callers, and the
// request continues when they have left. A known list is returned at once, even if the
// origin fails. If the list is more than twice as old as it should be, Versions first
// waits a moment for a new one.
func (f *Filler) Versions(ctx context.Context, a address.Address) (Offering, error) {
	return f.versions(ctx, a, false)
}

// CurrentVersions is Versions for a caller who must not miss a new version: it waits for a
// list that need not be renewed. The error says why there is none.
func (f *Filler) CurrentVersions(ctx context.Context, a address.Address) (Offering, error) {
	return f.versions(ctx, a, true)
}

func (f *Filler) versions(ctx context.Context, a address.Address, current bool) (Offering, error) {
	c, err := f.originList(ctx, a)
	if err != nil {
		return Offering{}, err
	}
	if err := c.wait(ctx, current, ""); err != nil {
		return Offering{}, err
	}
	return c.offering()
}

// mustList is listed for a version that is to be fetched. If the list lacks the version, mustList looks for a
// newer list: a client may have got the version from another instance. The error is ErrUnlisted if there is
// none with the version. If the origin does not send a newer list, it is the failure of the origin.
func (f *Filler) mustList(ctx context.Context, a address.Address, version string) (wire.ProviderVersion, error) {
	v, ok, err := f.listed(ctx, a, version, version)
	if err == nil && !ok {
		err = fmt.Errorf("version %s: %w", version, ErrUnlisted)
	}
	return v, err
}

// listed finds a version in the list. The error is ErrTooYoung if the version has not
// reached the minimum release age. For needed, see wait.
func (f *Filler) listed(ctx context.Context, a address.Address, version, needed string) (v wire.ProviderVersion, ok bool, err error) {
	c, err := f.originList(ctx, a)
	if err != nil {
		return v, false, err
	}
	if err := c.wait(ctx, false, needed); err != nil {
		return v, false, err
	}
	d, ok := c.version(version)
	if ok && c.needsDate(d, time.Now()) {
		if err := c.fetchDate(ctx, version); err != nil {
			return v, false, err
		}
		d, ok = c.version(version)
	}
	if ok && d.Matures(c.source.Policy.MinAge).After(time.Now()) {
		return v, false, ErrTooYoung
	}
	return d.ProviderVersion, ok, nil
}

// offering returns the versions that can be mirrored, after wait.
func (c *originList) offering() (Offering, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	now := time.Now()
	list := c.matureVersions(now)
	if len(list) == 0 && c.lacksDates(c.record, now) { // versions may exist although none is mature
		if c.failure != nil {
			return Offering{}, c.failure
		}
		return Offering{}, c.stillAsked("it is still being asked for the dates of the versions")
	}
	o := Offering{Versions: list, Age: c.age(now), Empty: len(c.record.Versions) == 0}
	if o.Stale = o.Age > c.source.Policy.VersionsTTL; o.Stale {
		c.observe(Event{Kind: VersionsStale, Hostname: c.address.Hostname}, nil)
	}
	return o, nil
}

// matureVersions returns the versions with the minimum release age, and of their platforms those of the
// policy. The caller holds the mutex.
func (c *originList) matureVersions(now time.Time) []wire.ProviderVersion {
	list := c.record.Mature(c.source.Policy.MinAge, now)
	for i := range list {
		list[i].Platforms = c.source.Policy.including(list[i].Platforms)
	}
	return list
}

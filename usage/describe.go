package usage

import (
	"cmp"
	"maps"
	"slices"

	"github.com/hashicorp/go-version"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// Options of by.
const (
	BySubject = "subject"
	ByGroup   = "group"
)

// Describe returns the usage of an address: its versions, newest first, the downloads of the last
// days, and, if asked for, the users.
func (c *Counter) Describe(a address.Address, days int, users bool) *wire.Usage {
	u := &wire.Usage{Address: a.String(), Since: c.since().String(), Versions: []wire.VersionUsage{}, Days: []wire.DayUsage{}}
	for v, s := range c.Versions(a) {
		if v == "" {
			u.Downloads, u.Recent, u.LastUsed = s.Downloads, s.Recent, s.Last.String()
			continue
		}
		u.Versions = append(u.Versions, wire.VersionUsage{Version: v, Downloads: s.Downloads, Recent: s.Recent, LastUsed: s.Last.String()})
	}
	slices.SortFunc(u.Versions, func(a, b wire.VersionUsage) int { return -compareVersions(a.Version, b.Version) })
	for _, count := range c.byDay(a, days) {
		u.Days = append(u.Days, wire.DayUsage{Day: count.Day.String(), Version: count.Version, Platform: count.Platform, Downloads: count.Count})
	}
	if !users {
		return u
	}
	for of, s := range c.users(a) {
		u.By = append(u.By, wire.UserUsage{Who: of.By, Version: of.Version, Requests: s.Downloads, LastUsed: s.Last.String()})
	}
	slices.SortFunc(u.By, func(a, b wire.UserUsage) int {
		return cmp.Or(cmp.Compare(a.Who, b.Who), -compareVersions(a.Version, b.Version))
	})
	return u
}

// compareVersions compares texts that are no versions as texts.
func compareVersions(a, b string) int {
	va, errA := version.NewVersion(a)
	vb, errB := version.NewVersion(b)
	if errA != nil || errB != nil {
		return cmp.Compare(a, b)
	}
	return cmp.Or(address.CompareVersions(va, vb), cmp.Compare(a, b))
}

// since returns the first day on which downloads were counted; zero if that is not known yet.
func (c *Counter) since() Day {
	if days := c.countedDays(); len(days) > 0 {
		return days[0]
	}
	return 0
}

// All returns the usage of everything, with the downloads of the last days, and the users.
func (c *Counter) All(days int) *wire.TreeUsage {
	all := &wire.TreeUsage{Counted: []string{}, Addresses: []wire.Usage{}}
	for _, day := range c.countedDays() {
		all.Counted = append(all.Counted, day.String())
	}
	for _, a := range c.addresses() {
		all.Addresses = append(all.Addresses, *c.Describe(a, days, true))
	}
	return all
}

// Downloads returns how often an address was downloaded, in all days that are kept.
func (c *Counter) Downloads(a address.Address) uint64 {
	if c == nil {
		return 0
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if of := c.counts.addresses[a]; of != nil {
		return of.downloads
	}
	return 0
}

// Versions returns how often each version of an address was downloaded, and under "" all.
func (c *Counter) Versions(a address.Address) map[string]Summary {
	if c == nil {
		return nil
	}
	today := DayOf(c.options.Now())
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.counts.versions(a, today)
}

// users returns how often each user or group was told where a version of an address is.
func (c *Counter) users(a address.Address) map[userOf]Summary {
	today := DayOf(c.options.Now())
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.counts.users(a, today)
}

// byDay returns the downloads of an address in the last days, newest day first. If there are too
// many, the oldest days are left out.
func (c *Counter) byDay(a address.Address, days int) []dayOfUse {
	today := DayOf(c.options.Now())
	first := today - Day(min(days, int(today))) + 1
	c.mutex.Lock()
	all := c.counts.byDay(a, first, maxCounts)
	c.mutex.Unlock()
	place := make(map[string]int) // of a version among all: there are few, and comparing two takes long
	for _, count := range all {
		place[count.Version] = 0
	}
	for i, v := range slices.SortedFunc(maps.Keys(place), compareVersions) {
		place[v] = i
	}
	slices.SortFunc(all, func(a, b dayOfUse) int {
		return cmp.Or(cmp.Compare(b.Day, a.Day), cmp.Compare(place[a.Version], place[b.Version]), cmp.Compare(a.Platform, b.Platform))
	})
	return all
}

// maxCounts limits the counts of byDay.
const maxCounts = 20_000

// addresses returns all that has been counted, by address.
func (c *Counter) addresses() (all []address.Address) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for a := range c.counts.addresses {
		all = append(all, a)
	}
	slices.SortFunc(all, address.Address.Compare)
	return all
}

// Known reports whether what all instances have counted has been read since the start, as far as it
// can be read. Before, a count that is missing or low says nothing.
func (c *Counter) Known() bool {
	if c == nil {
		return false
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.known
}

// countedDays returns the days on which all downloads were counted, even if there were none,
// oldest first. It is empty until the segments have been read for the first time. On all other
// days, it is not known what was downloaded.
func (c *Counter) countedDays() []Day {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return slices.DeleteFunc(slices.Clone(c.counted), func(d Day) bool { return c.partial[d] || d <= c.counts.floor })
}

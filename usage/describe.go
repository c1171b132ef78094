package usage

import (
	"cmp"
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

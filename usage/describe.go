package usage

import (
	"cmp"
	"slices"

	"github.com/hashicorp/go-version"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// What is counted of users.
const (
	BySubject = "subject"
	ByGroup   = "group"
)

// Describe returns the usage of an address: its versions, newest first, the last days with their
// downloads, and, if asked for, the users.
func (c *Counter) Describe(a address.Address, days int, users bool) *wire.Usage {
	u := &wire.Usage{Address: a.String(), Since: c.Since().String()}
	for v, s := range c.Versions(a) {
		if v == "" {
			u.Downloads, u.Recent, u.LastUsed = s.Downloads, s.Recent, s.Last.String()
			continue
		}
		u.Versions = append(u.Versions, wire.VersionUsage{Version: v, Downloads: s.Downloads, Recent: s.Recent, LastUsed: s.Last.String()})
	}
	slices.SortFunc(u.Versions, func(a, b wire.VersionUsage) int { return -compareVersions(a.Version, b.Version) })
	first := DayOf(c.options.Now()) - Day(days) + 1
	type userOf struct{ who, version string }
	by := make(map[userOf]*wire.UserUsage)
	for _, count := range c.Of(a) { // newest day first
		switch {
		case count.By == "" && count.Day >= first:
			u.Days = append(u.Days, wire.DayUsage{Day: count.Day.String(), Version: count.Version, Platform: count.Platform, Downloads: count.Count})
		case count.By != "" && users:
			id := userOf{count.By, count.Version}
			if by[id] == nil {
				by[id] = &wire.UserUsage{Who: count.By, Version: count.Version, LastUsed: count.Day.String()}
			}
			by[id].Requests += count.Count
		}
	}
	for _, user := range by {
		u.By = append(u.By, *user)
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

// Since returns the first day on which downloads were counted; zero if that is not known yet.
func (c *Counter) Since() Day {
	if days := c.CountedDays(); len(days) > 0 {
		return days[0]
	}
	return 0
}

// All returns the usage of everything, with the users.
func (c *Counter) All(days int) *wire.TreeUsage {
	all := &wire.TreeUsage{Counted: []string{}, Addresses: []wire.Usage{}}
	for _, day := range c.CountedDays() {
		all.Counted = append(all.Counted, day.String())
	}
	for _, a := range c.Addresses() {
		all.Addresses = append(all.Addresses, *c.Describe(a, days, true))
	}
	return all
}

package usage

import (
	"cmp"
	"slices"

	"github.com/dustin/go-humanize"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// Limits of counts in memory. A use has about 200 bytes, and a day of it 16.
const (
	maxUses  = 100_000
	maxDays  = 4_000_000   // of all uses
	maxBy    = 1000        // of an address, for each of its users, versions and platforms
	maxByAll = maxUses / 2 // of all addresses: the other half is for downloads
)

// counts are the counts of all uses by day, in memory. Its methods are not safe for concurrent
// use.
type counts struct {
	addresses  map[address.Address]*addressCounts
	uses, days int
	by         int  // uses with a user or group
	floor      Day  // it and the days before were dropped, since there were too many
	refused    bool // something was not counted, since there is too much
}

type addressCounts struct {
	downloads uint64 // of all days
	uses      map[part]*series
	by        int // uses with a user or group
}

// A part is a Use without its address.
type part struct{ version, platform, by string }

// A series has the counts of a use by day, oldest first.
type series []dayCount

type dayCount struct {
	day   Day
	count uint64
}

// add adds to the count of a use. It returns the use that was counted, which is by Others if
// there are too many users, and reports whether anything was.
func (c *counts) add(day Day, u Use, n uint64) (Use, bool) {
	if day <= c.floor {
		c.refused = true
		return u, false
	}
	a := c.addresses[u.Address]
	if a == nil {
		a = &addressCounts{uses: make(map[part]*series)}
	}
	s := a.uses[part{u.Version, u.Platform, u.By}]
	if s == nil && u.By != "" && u.By != Others && (a.by >= maxBy || c.by >= maxByAll || c.uses >= maxUses) {
		u.By = Others
		s = a.uses[part{u.Version, u.Platform, u.By}]
	}
	if s == nil {
		if c.uses >= maxUses {
			c.refused = true
			return u, false
		}
		u = u.clone()
		if c.addresses == nil {
			c.addresses = make(map[address.Address]*addressCounts)
		}
		if c.addresses[u.Address] == nil {
			c.addresses[u.Address] = a
		}
		s = new(series)
		a.uses[part{u.Version, u.Platform, u.By}] = s
		c.uses++
		if u.By != "" {
			a.by++
			c.by++
		}
	}
	if s.add(day, n) {
		c.days++
	}
	if u.By == "" {
		a.downloads += n
	}
	for c.days > maxDays {
		c.refused = true
		c.floor, _ = c.span()
		c.drop(func(d Day) bool { return d <= c.floor })
	}
	return u, true
}

// add reports whether the day is new.
func (s *series) add(day Day, n uint64) bool {
	at, known := len(*s)-1, false
	if at < 0 || (*s)[at].day != day { // usually it is the last one
		at, known = slices.BinarySearchFunc(*s, day, func(d dayCount, day Day) int { return cmp.Compare(d.day, day) })
		if !known {
			*s = slices.Insert(*s, at, dayCount{day: day})
		}
		known = !known
	}
	(*s)[at].count += n
	return known
}

// span returns the oldest and the newest day with a count.
func (c *counts) span() (oldest, newest Day) {
	for _, a := range c.addresses {
		for _, s := range a.uses {
			if day := (*s)[0].day; oldest == 0 || day < oldest {
				oldest = day
			}
			newest = max(newest, (*s)[len(*s)-1].day)
		}
	}
	return oldest, newest
}

// drop removes the counts of days.
func (c *counts) drop(which func(Day) bool) {
	for name, a := range c.addresses {
		for p, s := range a.uses {
			kept := slices.DeleteFunc(*s, func(d dayCount) bool {
				gone := which(d.day)
				if gone && p.by == "" {
					a.downloads -= d.count
				}
				return gone
			})
			c.days -= len(*s) - len(kept)
			if *s = kept; len(kept) > 0 {
				continue
			}
			delete(a.uses, p)
			c.uses--
			if p.by != "" {
				a.by--
				c.by--
			}
		}
		if len(a.uses) == 0 {
			delete(c.addresses, name)
		}
	}
}

// A Summary says how often something was downloaded.
type Summary struct {
	Downloads uint64 // in all days that are kept
	Recent    uint64 // in the last RecentDays
	Last      Day    // when it was downloaded last; zero: it was not
}

// RecentDays is the number of days of Summary.Recent, today included.
const RecentDays = 30

// String says it in a few words.
func (s Summary) String() string {
	if s.Downloads == 0 {
		return "no downloads"
	}
	return humanize.Comma(int64(s.Recent)) + " in 30 days, last on " + s.Last.Time().Format("2 Jan 2006")
}

func (s *Summary) add(d dayCount, today Day) {
	s.Downloads += d.count
	if d.day > today-RecentDays {
		s.Recent += d.count
	}
	s.Last = max(s.Last, d.day)
}

func (s Summary) plus(more Summary) Summary {
	return Summary{s.Downloads + more.Downloads, s.Recent + more.Recent, max(s.Last, more.Last)}
}

// A dayOfUse is how often there was a use on a day.
type dayOfUse struct {
	Use
	Day   Day
	Count uint64
}

// byDay returns the downloads of an address from a day on. If there are more counts than most, the
// oldest days are left out.
func (c *counts) byDay(a address.Address, first Day, most int) (all []dayOfUse) {
	known := c.addresses[a]
	if known == nil {
		return nil
	}
	each := func(do func(p part, d dayCount)) {
		for p, s := range known.uses {
			if p.by != "" {
				continue
			}
			for _, d := range slices.Backward(*s) {
				if d.day < first {
					break
				}
				do(p, d)
			}
		}
	}
	newest := first - 1
	for _, s := range known.uses {
		newest = max(newest, (*s)[len(*s)-1].day)
	}
	perDay := make([]int, newest-first+1)
	each(func(_ part, d dayCount) { perDay[d.day-first]++ })
	for i, n := range slices.Backward(perDay) {
		if most -= n; most < 0 {
			first += Day(i) + 1
			break
		}
	}
	each(func(p part, d dayCount) {
		all = append(all, dayOfUse{Use{Address: a, Version: p.version, Platform: p.platform}, d.day, d.count})
	})
	return all
}

// versions returns how often each version of an address was downloaded, and under "" all.
func (c *counts) versions(a address.Address, today Day) map[string]Summary {
	all := make(map[string]Summary)
	c.sum(a, today, func(p part, s Summary) {
		if p.by == "" {
			all[p.version], all[""] = all[p.version].plus(s), all[""].plus(s)
		}
	})
	return all
}

// A userOf is a user or group, and a version that they were told of.
type userOf struct{ By, Version string }

// users returns how often each user or group was told where a version is.
func (c *counts) users(a address.Address, today Day) map[userOf]Summary {
	all := make(map[userOf]Summary)
	c.sum(a, today, func(p part, s Summary) {
		if p.by != "" {
			id := userOf{p.by, p.version}
			all[id] = all[id].plus(s)
		}
	})
	return all
}

// sum calls do with each use of an address.
func (c *counts) sum(a address.Address, today Day, do func(part, Summary)) {
	if known := c.addresses[a]; known != nil {
		for p, s := range known.uses {
			var sum Summary
			for _, d := range *s {
				sum.add(d, today)
			}
			do(p, sum)
		}
	}
}

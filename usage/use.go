package usage

import (
	"cmp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// A Use is counted.
type Use struct {
	Address  address.Address // of something hosted: without HOSTNAME
	Version  string
	Platform string // OS_ARCH; empty for a module

	// By is the user or group that was told where the package is. Empty: the package was
	// downloaded, for which clients use no credentials. The two are counted apart.
	By string
}

// Others are the users that are not counted each, since there are too many.
const Others = "(others)"

// maxName limits the name of a user, in bytes.
const maxName = 200

// normal returns the use in the form that is kept.
func (u Use) normal() Use {
	if len(u.By) > maxName || !utf8.ValidString(u.By) {
		u.By = cmp.Or(strings.ToValidUTF8(u.By[:min(len(u.By), maxName)], ""), Others)
	}
	return u
}

// clone returns a use that can be kept: its parts may share memory with a request.
func (u Use) clone() Use {
	return Use{u.Address.Clone(), strings.Clone(u.Version), strings.Clone(u.Platform), strings.Clone(u.By)}
}

// A Day is a day in UTC: the days since the beginning of 1970. Zero is no day.
type Day int32

// DayOf returns the day of a time, and the first one if a clock was never set.
func DayOf(t time.Time) Day { return Day(max(1, t.Unix()/(24*60*60))) }

// Time returns the beginning of the day.
func (d Day) Time() time.Time { return time.Unix(int64(d)*24*60*60, 0).UTC() }

// String returns the day as 2006-01-02; empty for no day.
func (d Day) String() string {
	if d == 0 {
		return ""
	}
	return d.Time().Format(time.DateOnly)
}

// A dayTally has counts of one day.
type dayTally struct {
	uses    map[Use]uint64
	partial bool // some downloads were not counted, or their counts are lost
}

func newDayTally() *dayTally { return &dayTally{uses: make(map[Use]uint64)} }

func (t *dayTally) add(more *dayTally) {
	for u, n := range more.uses {
		t.uses[u] += n
	}
	t.partial = t.partial || more.partial
}

// daysIn returns the number of days in a duration, at least one.
func daysIn(d time.Duration) Day { return max(1, Day(d/(24*time.Hour))) }

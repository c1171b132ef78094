package usage

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestUsersAreBounded(t *testing.T) {
	var c counts
	for n := range maxBy + 10 {
		u := vpc
		u.By = fmt.Sprint("user ", n)
		c.add(1, u, 1)
	}
	others := c.users(vpc.Address, 1)[userOf{Others, vpc.Version}].Downloads
	if others != 10 || c.uses != maxBy+1 {
		t.Errorf("%d uses, %d of others", c.uses, others)
	}
	if u := (Use{By: strings.Repeat("ü", 300)}).normal(); u.By != strings.Repeat("ü", maxName/2) {
		t.Errorf("a long name becomes %q", u.By)
	}
	if u := (Use{By: "\xff"}).normal(); u.By != Others {
		t.Errorf("a name without a letter becomes %q, and nobody is a download", u.By)
	}
}

func TestUsesAreBounded(t *testing.T) {
	var c counts
	for n := range maxUses + 10 {
		u := vpc
		u.Version = fmt.Sprint(n)
		if _, ok := c.add(1, u, 1); ok != (n < maxUses) {
			t.Fatalf("%d is counted: %v", n, ok)
		}
	}
	if !c.refused {
		t.Error("it does not say so")
	}
	user := vpc
	user.By = "ci"
	if _, ok := c.add(1, user, 1); ok {
		t.Error("a user is counted")
	}
	c.drop(func(Day) bool { return true })
	if c.uses != 0 || c.days != 0 || len(c.addresses) != 0 {
		t.Errorf("left: %d uses, %d days, %d addresses", c.uses, c.days, len(c.addresses))
	}
}

// Users leave room for downloads.
func TestUsersOfAllAddressesAreBounded(t *testing.T) {
	var c counts
	for n := range maxUses {
		u := vpc
		u.Address.Name = fmt.Sprint("m", n%1000)
		u.By = fmt.Sprint("user ", n)
		c.add(1, u, 1)
	}
	if c.by > maxByAll+1000 {
		t.Errorf("%d users are counted", c.by)
	}
	if _, ok := c.add(1, vpc, 1); !ok || c.refused {
		t.Error("there is no room for a download")
	}
}

// skipInShort skips a test that counts or stores very often, in one goroutine.
func skipInShort(t *testing.T) {
	if t.Helper(); testing.Short() {
		t.Skip("it takes long with the race detector")
	}
}

// versionsOf returns uses that differ in their version.
func versionsOf(u Use, n int) []Use {
	uses := make([]Use, n)
	for i := range uses {
		uses[i] = u
		uses[i].Version = fmt.Sprintf("1.%d.0", i)
	}
	return uses
}

// The oldest days go first, each once.
func TestDaysAreBounded(t *testing.T) {
	skipInShort(t)
	var c counts
	uses := versionsOf(vpc, 20_000)
	days := Day(maxDays/len(uses) + 5)
	for day := range days {
		for _, u := range uses {
			c.add(day+1, u, 1)
		}
	}
	if oldest, newest := c.span(); c.days > maxDays || c.floor != 5 || oldest != 6 || newest != days {
		t.Errorf("%d counts of the days %d to %d, without %d", c.days, oldest, newest, c.floor)
	}
	if _, ok := c.add(5, vpc, 1); ok {
		t.Error("a day comes back that has gone")
	}
}

// A day on which not everything was counted says so to all instances, also when it is merged.
func TestPartialDaysAreNoCountedDays(t *testing.T) {
	s, at := newShared(), newClock()
	c := s.counter(at)
	mustSync(t, c)
	at.pass(24 * time.Hour)
	c.counts.uses = maxUses - 1 // of others
	c.Add(vpc)
	c.Add(null)
	first := DayOf(at.Now()) - 1
	for range 2 {
		mustSync(t, c)
		fresh := s.counter(at)
		mustSync(t, fresh)
		for name, c := range map[string]*Counter{"the instance": c, "a new one": fresh} {
			if days := c.countedDays(); len(days) == 0 || days[0] != first || slices.Contains(days, first+1) {
				t.Errorf("%s: counted on %v", name, days)
			}
		}
		at.pass(24 * time.Hour)
	}
}

// An answer has the newest days if there are too many counts.
func TestCountsOfAnAddressAreBounded(t *testing.T) {
	var c counts
	for day := Day(1); day <= 10; day++ {
		for n := range 3 {
			u := vpc
			u.Version = fmt.Sprint(n)
			c.add(day, u, 1)
		}
	}
	for most, want := range map[int]int{2: 0, 3: 3, 8: 6, 100: 24} {
		if got := c.byDay(vpc.Address, 3, most); len(got) != want {
			t.Errorf("of %d, there are %d", most, len(got))
		}
	}
}

// Anyone may ask for a long answer, which is not kept: it must not take long to make.
func TestLongAnswersAreCheap(t *testing.T) {
	at := newClock()
	c := newShared().counter(at)
	today := DayOf(at.Now())
	for n := range maxCounts {
		u := null
		u.Version = fmt.Sprintf("1.%d.0", n%200)
		c.counts.add(today-Day(n/200), u, 1)
	}
	ask := func() { c.byDay(null.Address, 400) }
	if perCount := testing.AllocsPerRun(1, ask) / maxCounts; perCount > 10 {
		t.Errorf("each count takes %.1f allocations", perCount)
	}
}

func TestAnyNumberOfDays(t *testing.T) {
	at := newClock()
	c := newShared().counter(at)
	c.Add(vpc)
	at.pass(10 * 24 * time.Hour)
	c.Add(vpc)
	for days, want := range map[int64]int{0: 0, 1: 1, 10: 1, 11: 2, math.MaxInt32: 2, math.MaxInt32 + 1: 2, 1 << 32: 2, math.MaxInt64: 2} {
		days := int(min(days, math.MaxInt)) // an int may have 32 bits
		if got := c.byDay(vpc.Address, days); len(got) != want {
			t.Errorf("in %d days, there are %d counts of %d", days, len(got), want)
		}
	}
}

// Some storages limit values to half a megabyte.
func TestSegmentsAreBounded(t *testing.T) {
	skipInShort(t)
	s, at := newShared(), newClock()
	c := s.counter(at)
	mustSync(t, c)
	mirrored := Use{Address: vpc.Address.WithHostname("registry.example.com"), Platform: "linux_amd64"}
	uses := versionsOf(mirrored, 30_000)
	for minute := range maxMinutes + 5 {
		for _, u := range uses {
			c.Add(u)
		}
		if minute%12 == 0 {
			mustSync(t, c)
		}
	}
	mustSync(t, c)
	all := 0
	for name, content := range s.values {
		if all += len(content); len(content) > maxSegment {
			t.Errorf("%s has %d bytes", name, len(content))
		}
	}
	if all > 10<<20 {
		t.Errorf("a day of a million downloads has %d bytes", all)
	}
	fresh := s.counter(at)
	mustSync(t, fresh)
	if n := fresh.Downloads(mirrored.Address); n != (maxMinutes+5)*30_000 {
		t.Errorf("%d downloads are counted", n)
	}
}

func TestDamagedSegmentsCountNothing(t *testing.T) {
	s, at := newShared(), newClock()
	c := s.counter(at)
	c.Add(vpc)
	mustSync(t, c)
	for name := range s.values {
		s.values[name] = []byte("no segment")
	}
	s.values["1-20261126-minute-00"], s.values["1-20261120-day-00"] = []byte("{}"), []byte("{}")
	s.values["2-20261126-minute-00"], s.values["1-20261301-day-00"], s.values["README"] = nil, nil, nil
	fresh := s.counter(at)
	fresh.Add(vpc)
	mustSync(t, fresh)
	mustSync(t, fresh)
	if n := fresh.Downloads(vpc.Address); n != 1 {
		t.Errorf("%d downloads", n)
	}
	if days := fresh.countedDays(); len(days) != 0 {
		t.Errorf("it is known what was downloaded on %v", days)
	}
}

func FuzzSegment(f *testing.F) {
	f.Add("1-20261126-minute-00", []byte("{}"))
	f.Fuzz(func(t *testing.T, name string, content []byte) {
		n, ok := parseSegmentName(name)
		if !ok {
			return
		}
		if s, err := decodeSegment(nameSegment(n.day, n.kind, content), content); err == nil {
			s.sumInto(newDayTally())
		}
	})
}

package usage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// A day that is over is read once: storages charge for each call.
func TestDaysThatAreOverAreReadOnce(t *testing.T) {
	s, at := newShared(), newClock()
	i := &instance{shared: s}
	c := s.counterOf(at, i)
	for range 3 {
		c.Add(vpc)
		mustSync(t, c)
	}
	at.pass(5 * 24 * time.Hour)
	mustSync(t, c, c)
	var loads int
	i.fails = func(call string) error {
		if call == "load" {
			loads++
		}
		return nil
	}
	mustSync(t, c, c)
	if loads > 0 {
		t.Errorf("%d segments are read again", loads)
	}
	if n := c.Downloads(vpc.Address); n != 3 {
		t.Errorf("%d downloads of 3", n)
	}
}

// A picky storage fails for some segments.
type picky struct {
	*instance
	fails func(call, name string) error
}

func (p *picky) Load(ctx context.Context, name string) ([]byte, error) {
	if err := p.fails("load", name); err != nil {
		return nil, err
	}
	return p.instance.Load(ctx, name)
}

func (p *picky) Delete(ctx context.Context, name string) error {
	if err := p.fails("delete", name); err != nil {
		return err
	}
	return p.instance.Delete(ctx, name)
}

// A segment that cannot be read or deleted hinders only its day.
func TestDayThatFailsHindersNoOther(t *testing.T) {
	for _, test := range []struct {
		rule, call string
		keep       Day // counts are kept for that many days
		known      int // days on which everything is known to be counted
	}{
		{"a segment that cannot be read", "load", 400, 40},
		{"an expired segment that cannot be deleted", "delete", 41, 41},
	} {
		t.Run(test.rule, func(t *testing.T) {
			s, at := newShared(), newClock()
			other := s.counter(at)
			other.Add(null)
			mustSync(t, other)
			first := at.Now().Format(dayInName)
			for range 40 {
				at.pass(24 * time.Hour)
				other.Add(vpc)
				mustSync(t, other)
			}
			away := errors.New("away")
			p := &picky{instance: &instance{shared: s}, fails: func(call, name string) error {
				if call == test.call && strings.Contains(name, first) {
					return fmt.Errorf("%s: %w", name, away)
				}
				return nil
			}}
			c := NewCounter(Options{Storage: p, Keep: time.Duration(test.keep) * 24 * time.Hour, Now: at.Now})
			if test.call == "delete" {
				at.pass(24 * time.Hour)
				other.Add(vpc)
				mustSync(t, other)
			}
			for range maxMinutes + 1 {
				other.Add(vpc)
				if err := other.write(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			want := other.Downloads(vpc.Address)
			if err := c.Sync(t.Context()); !errors.Is(err, away) {
				t.Errorf("it does not say so: %v", err)
			}
			if n := c.Downloads(vpc.Address); n != want {
				t.Errorf("%d downloads of %d on other days", n, want)
			}
			if days := c.countedDays(); len(days) != test.known {
				t.Errorf("it is known what was downloaded on %d days", len(days))
			}
			if n := len(s.ofDay(DayOf(at.Now()), ofMinute)); n > 0 {
				t.Errorf("%d segments of today were not merged", n)
			}
		})
	}
}

// ofDay returns the segments of a day and a kind.
func (s *shared) ofDay(day Day, kind string) (names []string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for text := range s.values {
		if name, ok := parseSegmentName(text); ok && name.day == day && name.kind == kind {
			names = append(names, text)
		}
	}
	slices.Sort(names)
	return names
}

// The counts of other segments are known although a part of a merged one is lost, and it is known
// that the day lacks some.
func TestLostPartHindersNothing(t *testing.T) {
	s, at := newShared(), newClock()
	c := s.counter(at)
	c.most = 100
	today := DayOf(at.Now())
	for n := range maxMinutes + 1 {
		c.Add(use(fmt.Sprintf("acme/vpc/aws 1.%d.0", n)))
		if err := c.write(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	mustSync(t, c)
	parts := s.ofDay(today, ofPart)
	if len(parts) == 0 {
		t.Fatal("there is no part")
	}
	delete(s.values, parts[0])
	c.Add(null)
	mustSync(t, c)
	fresh := s.counter(at)
	mustSync(t, fresh)
	if n := fresh.Downloads(null.Address); n != 1 {
		t.Errorf("%d downloads of 1", n)
	}
	if days := fresh.countedDays(); len(days) > 0 {
		t.Errorf("it is known what was downloaded on %v", days)
	}
}

// A clock that is wrong for some days, and so has counted on days before what it takes for today,
// removes nothing.
func TestClockThatIsWrongForDays(t *testing.T) {
	s, at := newShared(), newClock()
	c := s.counter(at)
	const days = 10
	for range days {
		c.Add(vpc)
		mustSync(t, c)
		at.pass(24 * time.Hour)
	}
	const jump = 70 * 365 * 24 * time.Hour
	at.pass(jump)
	for range 3 {
		c.Add(null)
		mustSync(t, c)
		at.pass(24 * time.Hour)
	}
	at.pass(-jump)
	mustSync(t, c)
	if n := c.Downloads(vpc.Address); n != days {
		t.Errorf("%d downloads of %d", n, days)
	}
}

// Counts are written every minute, however long reading takes.
func TestCountsAreWrittenWhileSegmentsAreRead(t *testing.T) {
	s, at := newShared(), newClock()
	other := s.counter(at)
	for range 10 {
		other.Add(vpc)
		mustSync(t, other)
		at.pass(24 * time.Hour)
	}
	before := at.Now()
	var c *Counter
	i := &instance{shared: s, fails: func(call string) error {
		if call == "load" { // which takes a minute
			at.pass(time.Minute)
			c.Add(null)
		}
		return nil
	}}
	c = s.counterOf(at, i)
	mustSync(t, c)
	minutes := uint64(at.Now().Sub(before) / time.Minute)
	fresh := s.counter(at)
	mustSync(t, fresh)
	if n := fresh.Downloads(null.Address); minutes < 5 || n < minutes-1 {
		t.Errorf("after %d minutes, each with a download, %d are written", minutes, n)
	}
}

// The fields of what is told are always there: who reads them need not ask.
func TestUsageIsDescribedInFull(t *testing.T) {
	at := newClock()
	c := newShared().counter(at)
	c.Add(use("acme/demo 1.0.0 linux_arm64 ci")) // a user, and no download
	got, err := json.Marshal(c.All(0))
	want := `{"counted":[],"addresses":[{"address":"acme/demo","since":"","downloads":0,"downloads_30_days":0,"last_used":"","versions":[],"days":[],` +
		`"by":[{"who":"ci","version":"1.0.0","requests":1,"last_used":"2026-11-26"}]}]}`
	if err != nil || string(got) != want {
		t.Errorf("got\n%s, %v\nwant\n%s", got, err, want)
	}
}

// A storage that takes nothing, as a full disk, can still be read.
func TestSegmentsAreReadThoughNoneCanBeWritten(t *testing.T) {
	s, at := newShared(), newClock()
	other := s.counter(at)
	for range 40 {
		other.Add(vpc)
		mustSync(t, other)
		at.pass(24 * time.Hour)
	}
	full := errors.New("no space left on device")
	i := &instance{shared: s, fails: func(call string) error {
		if call == "store" {
			return full
		}
		return nil
	}}
	c := s.counterOf(at, i)
	for n := range uint64(3) {
		c.Add(vpc)
		if err := c.Sync(t.Context()); !errors.Is(err, full) {
			t.Errorf("it does not say so: %v", err)
		}
		if got := c.Downloads(vpc.Address); got != 40+n+1 {
			t.Errorf("it has %d downloads, want %d", got, 40+n+1)
		}
	}
	if days := c.countedDays(); len(days) != 40 || days[39] != DayOf(at.Now())-1 {
		t.Errorf("it is known what was downloaded on %v", days)
	}
}

// A segment whose storing was not confirmed is in the counts already: it is not added from the
// storage, whatever makes its day be read again.
func TestUnconfirmedSegmentsAreNotReadAgain(t *testing.T) {
	for _, test := range []struct {
		rule  string
		merge bool // the other instance merges what was stored
	}{
		{"as it was stored", false},
		{"merged with others", true},
	} {
		t.Run(test.rule, func(t *testing.T) {
			s, at := newShared(), newClock()
			other := s.counter(at)
			other.Add(vpc)
			mustSync(t, other)
			i := &instance{shared: s}
			c := s.counterOf(at, i)
			mustSync(t, c)
			i.failed = func(call string) error {
				if call == "store" {
					return errors.New("no answer")
				}
				return nil
			}
			want := uint64(1)
			for minute := range 3 {
				c.Add(vpc)
				_ = c.Sync(t.Context())
				want++
				for range maxMinutes + 1 {
					other.Add(vpc)
					if err := other.write(t.Context()); err != nil {
						t.Fatal(err)
					}
					want++
				}
				if test.merge {
					mustSync(t, other)
				}
				_ = c.Sync(t.Context())
				if n := c.Downloads(vpc.Address); n != want {
					t.Errorf("in minute %d it has %d downloads, want %d", minute, n, want)
				}
			}
			i.failed = nil
			mustSync(t, c, other, c)
			fresh := s.counter(at)
			mustSync(t, fresh)
			for _, c := range []*Counter{c, other, fresh} {
				if n := c.Downloads(vpc.Address); n != want {
					t.Errorf("in the end there are %d downloads, want %d", n, want)
				}
			}
		})
	}
}

// Counts are known when everything that can be read has been read once, and stay known.
func TestCountsAreKnownOnceTheyAreRead(t *testing.T) {
	s, at := newShared(), newClock()
	other := s.counter(at)
	other.Add(vpc)
	mustSync(t, other)
	for _, fails := range []string{"list", "load"} {
		failing := true
		i := &instance{shared: s, fails: func(call string) error {
			if failing && call == fails {
				return errors.New("away")
			}
			return nil
		}}
		c := s.counterOf(at, i)
		known := func(want bool) {
			t.Helper()
			_ = c.Sync(t.Context())
			if c.Known() != want {
				t.Errorf("while %s fails: %t, it is %t that the counts are known", fails, failing, c.Known())
			}
		}
		known(false)
		failing = false
		known(true)
		failing = true
		known(true)
	}
	if (*Counter)(nil).Known() {
		t.Error("no counter knows counts")
	}
}

// What cannot be read as it was written, as when a network disk returns half of a file, counts when it
// can. Until then it is looked at each minute, and nothing else of its day is.
func TestDamageMayPass(t *testing.T) {
	for _, test := range []struct {
		rule    string
		damaged string // the kind of the segment
		days    int    // that pass before
	}{
		{"a segment of today", ofMinute, 0},
		{"a part of a merged segment", ofPart, 0},
		{"a merged segment", ofDay, 0},
		{"a part of a merged segment of a day that is over", ofPart, 5},
	} {
		t.Run(test.rule, func(t *testing.T) {
			s, at := newShared(), newClock()
			other := s.counter(at)
			other.most = 100
			today, want := DayOf(at.Now()), uint64(0)
			count := func(n int) {
				for range n {
					other.Add(use(fmt.Sprintf("acme/vpc/aws 1.%d.0", want)))
					if err := other.write(t.Context()); err != nil {
						t.Fatal(err)
					}
					want++
				}
			}
			count(maxMinutes + 1)
			mustSync(t, other)
			count(2)
			at.pass(time.Duration(test.days) * 24 * time.Hour)
			if test.days > 0 {
				mustSync(t, other)
			}
			names := s.ofDay(today, test.damaged)
			if len(names) == 0 {
				t.Fatal("there is no such segment")
			}
			whole := s.values[names[0]]
			s.values[names[0]] = whole[:len(whole)/2]
			loads := 0
			c := s.counterOf(at, &instance{shared: s, fails: func(call string) error {
				if call == "load" {
					loads++
				}
				return nil
			}})
			mustSync(t, c)
			if n := c.Downloads(vpc.Address); n >= want || slices.Contains(c.countedDays(), today) {
				t.Errorf("%d downloads of %d are known, and the day is counted", n, want)
			}
			for minute := range 3 {
				loads = 0
				mustSync(t, c)
				if most := 2 + len(s.ofDay(today, ofPart)); loads > most {
					t.Errorf("in minute %d, %d segments are loaded", minute, loads)
				}
			}
			s.values[names[0]] = whole
			mustSync(t, c)
			mustSync(t, c)
			if n := c.Downloads(vpc.Address); n != want {
				t.Errorf("when it can be read, there are %d downloads of %d", n, want)
			}
		})
	}
}

package usage

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// An instance that is paused loses the lock of a file storage. Wherever it goes on, while another
// one merges, is killed in that or has done it: nothing is lost or counted twice.
func TestMergeThatIsPaused(t *testing.T) {
	skipInShort(t)
	const minutes = 4
	before, at := newClock(), newClock()
	at.pass(25 * time.Hour) // the day is over
	day := DayOf(before.Now())
	killed := errors.New("killed")
	begin := newShared()
	addTo := func(s *shared) {
		writer := s.counter(before)
		for n := range minutes {
			writer.Add(use(fmt.Sprintf("acme/vpc/aws 1.%d.0", n)))
			if err := writer.write(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	addTo(begin)
	// run merges in one instance, in another before the call with the number pausedAt, which is
	// killed at its call killedAt, and reports whether the first got so far.
	run := func(pausedAt, killedAt int, dies bool) (paused bool) {
		s := newShared()
		s.broken, s.values = true, maps.Clone(begin.values)
		one, two := &instance{shared: s}, &instance{shared: s}
		a, b := s.counterOf(at, one), s.counterOf(at, two)
		a.most, b.most = 300, 300 // a merged segment has parts
		calls := 0
		two.fails = func(string) error {
			if calls++; calls > killedAt {
				return killed
			}
			return nil
		}
		called := 0
		one.fails = func(string) error {
			if called++; called == pausedAt {
				paused = true
				_ = b.mergeDay(t.Context(), day)
			}
			if dies && called >= pausedAt {
				return killed
			}
			return nil
		}
		_ = a.mergeDay(t.Context(), day)
		for round := range 2 {
			fresh := s.counter(at)
			if _, err := fresh.readSegments(t.Context()); err != nil {
				t.Fatal(err)
			}
			n, want := fresh.Downloads(vpc.Address), uint64(minutes*(round+1))
			if known := slices.Contains(fresh.countedDays(), day); n != want || !known {
				t.Errorf("paused at call %d, which ends it: %v, while the other was killed at call %d: after %d more merges, %d downloads of %d, are they all: %v", pausedAt, dies, killedAt, round, n, want, known)
			}
			addTo(s)
			if err := fresh.mergeDay(t.Context(), day); err != nil {
				t.Error(err)
			}
		}
		return paused
	}
	for pausedAt, paused := 1, true; paused; pausedAt++ {
		for killedAt := 0; killedAt < 30; killedAt += 3 {
			for _, dies := range []bool{false, true} {
				paused = run(pausedAt, killedAt, dies)
			}
		}
	}
}

// A storage may store a merged segment after that was given up, and another instance has merged the
// same.
func TestMergedSegmentThatIsStoredLate(t *testing.T) {
	for range 10 { // which names come first is random
		before, at := newClock(), newClock()
		at.pass(25 * time.Hour)
		day := DayOf(before.Now())
		s := newShared()
		for n := range 4 {
			c := s.counter(before)
			c.Add(use(fmt.Sprintf("acme/vpc/aws 1.%d.0", n)))
			mustSync(t, c)
		}
		late := make(map[string][]byte)
		i := &instance{shared: s, failed: func(call string) error {
			names := s.ofDay(day, ofDay)
			if call != "store" || len(names) == 0 {
				return nil
			}
			late[names[0]] = s.values[names[0]]
			delete(s.values, names[0])
			return errors.New("this took too long")
		}}
		one, two := s.counterOf(at, i), s.counter(at)
		one.most, two.most = 300, 300
		if err := one.mergeDay(t.Context(), day); err == nil || len(late) != 1 {
			t.Fatalf("got %v, and %d segments are late", err, len(late))
		}
		mustSync(t, two)
		maps.Copy(s.values, late)
		for _, c := range []*Counter{two, s.counter(at), s.counter(at)} {
			mustSync(t, c)
			if n := c.Downloads(vpc.Address); n != 4 || !slices.Contains(c.countedDays(), day) {
				t.Errorf("%d downloads of 4 on %v", n, c.countedDays())
			}
		}
		if names := s.ofDay(day, ofDay); len(names) != 1 {
			t.Errorf("left are %v", names)
		}
	}
}

// A segment that was taken although the storage did not say so is stored again. Meanwhile, it may
// have been merged, and the merged one again.
func TestSegmentThatIsStoredAgainAfterMerges(t *testing.T) {
	s, at := newShared(), newClock()
	i := &instance{shared: s, failed: func(string) error { return errors.New("no answer") }}
	c, other := s.counterOf(at, i), s.counter(at)
	c.Add(vpc)
	if err := c.write(t.Context()); err == nil {
		t.Fatal("the storage answers")
	}
	want := uint64(1)
	for range 3 {
		for range maxMinutes + 1 {
			other.Add(vpc)
			want++
			if err := other.write(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := other.mergeDay(t.Context(), DayOf(at.Now())); err != nil {
			t.Fatal(err)
		}
	}
	i.failed = nil
	for _, c := range []*Counter{c, other, s.counter(at)} {
		mustSync(t, c)
		if n := c.Downloads(vpc.Address); n != want {
			t.Errorf("%d downloads of %d", n, want)
		}
	}
}

// A day with a damaged segment is not merged every minute.
func TestDayThatCannotBeMergedIsLeft(t *testing.T) {
	s, at := newShared(), newClock()
	i := &instance{shared: s}
	c := s.counterOf(at, i)
	for range 2 {
		c.Add(vpc)
		mustSync(t, c)
	}
	s.values[s.ofDay(DayOf(at.Now()), ofMinute)[0]] = []byte("no segment")
	at.pass(3 * 24 * time.Hour)
	mustSync(t, c, c)
	calls := make(map[string]int)
	i.fails = func(call string) error {
		calls[call]++
		return nil
	}
	mustSync(t, c)
	if want := map[string]int{"list": 1}; !maps.Equal(calls, want) {
		t.Errorf("got %v, want %v", calls, want)
	}
}

// The text of a merged segment here is "NAME: WHAT IT REPLACES / ITS PARTS".
func TestSegmentsThatCount(t *testing.T) {
	for _, test := range []struct {
		rule   string
		merged []string
		others string // that are listed
		live   string
		lost   bool
	}{
		{"what a merged one replaces does not count", []string{"a: 1 2"}, "1 2 3", "3 a", false},
		{"nor does a merged one that was merged", []string{"a: 1 2", "b: a 3"}, "1 4", "4 b", false},
		{"nor do segments that an earlier merge has left and a later one replaces, too", []string{"a: 1 2", "b: a 1 2 3"}, "1 2", "b", false},
		{"of two that replace the same, one counts", []string{"a: 1 2", "b: 1 2"}, "1 2", "a", false},
		{"it is the one that replaces more", []string{"a: 1 2", "b: 1 2 3"}, "", "b", false},
		{"unless a part of it is lost", []string{"a: 1 2 / p", "b: 1 2 3 / q"}, "p", "a", true},
		{"the rest of the other counts by itself", []string{"a: 1 2 3", "b: 3 4"}, "3 4", "4 a", false},
		{"and is lost if it is not there", []string{"a: 1 2 3", "b: 3 4"}, "3", "a", true},
	} {
		d := &readDay{merged: make(map[string]*segment)}
		var names []segmentName
		for _, text := range strings.Fields(test.others) {
			kind := ofMinute
			if text >= "p" {
				kind = ofPart
			}
			names = append(names, segmentName{kind: kind, text: text})
		}
		for _, text := range test.merged {
			name, of, _ := strings.Cut(text, ": ")
			of, parts, _ := strings.Cut(of, " / ")
			d.merged[name] = &segment{Replaces: strings.Fields(of), Parts: strings.Fields(parts)}
			names = append(names, segmentName{kind: ofDay, text: name})
		}
		var live []string
		replaced := d.replaced(names)
		for _, name := range names {
			if name.kind != ofPart && !replaced[name.text] {
				live = append(live, name.text)
			}
		}
		if got := strings.Join(live, " "); got != test.live || d.lost != test.lost {
			t.Errorf("%s: %q count, lost: %v", test.rule, got, d.lost)
		}
	}
}

// A lock that is never given back keeps the segments of all days from being merged. That is told before
// they are so many that some are not read.
func TestLockThatIsNeverGivenBack(t *testing.T) {
	skipInShort(t)
	for minutes, told := range map[int]bool{maxMinutes + 1: false, maxUnmerged + 1: true} {
		synctest.Test(t, func(t *testing.T) {
			s, at := newShared(), newClock()
			other := s.counter(at)
			for range 3 {
				for range minutes {
					other.Add(vpc)
					if err := other.write(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				at.pass(24 * time.Hour)
			}
			s.locked = make(chan struct{}, 1)
			s.locked <- struct{}{}
			c := s.counter(at)
			began := time.Now()
			if err := c.Sync(t.Context()); (err != nil) != told {
				t.Errorf("of %d segments, it says %v", minutes, err)
			}
			if took := time.Since(began); took > mergePatience {
				t.Errorf("it waits %s", took)
			}
			if n := c.Downloads(vpc.Address); n != uint64(3*minutes) {
				t.Errorf("%d downloads", n)
			}
		})
	}
}

package usage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// A shared is a storage that instances share, in memory.
type shared struct {
	mutex  sync.Mutex
	values map[string][]byte
	locked chan struct{}
	broken bool // the lock locks nothing
}

func newShared() *shared {
	return &shared{values: make(map[string][]byte), locked: make(chan struct{}, 1)}
}

// An instance is the view of one instance, which can be made to fail.
type instance struct {
	*shared
	fails  func(call string) error // before a call
	failed func(call string) error // after a call that has done its work
}

func (i *instance) call(name string, do func() error) error {
	if i.fails != nil {
		if err := i.fails(name); err != nil {
			return err
		}
	}
	i.mutex.Lock()
	err := do()
	i.mutex.Unlock()
	if err == nil && i.failed != nil {
		err = i.failed(name)
	}
	return err
}

func (i *instance) List(context.Context) (names []string, err error) {
	err = i.call("list", func() error {
		names = slices.Collect(maps.Keys(i.values))
		return nil
	})
	return names, err
}

func (i *instance) Load(_ context.Context, name string) (content []byte, err error) {
	err = i.call("load", func() (err error) {
		var ok bool
		if content, ok = i.values[name]; !ok {
			err = fs.ErrNotExist
		}
		return err
	})
	return content, err
}

func (i *instance) Store(_ context.Context, name string, content []byte) error {
	return i.call("store", func() error {
		i.values[name] = content
		return nil
	})
}

func (i *instance) Delete(_ context.Context, name string) error {
	return i.call("delete", func() error {
		if _, ok := i.values[name]; !ok {
			return fs.ErrNotExist
		}
		delete(i.values, name)
		return nil
	})
}

func (i *instance) Lock(ctx context.Context) (func(), error) {
	if i.broken {
		return func() {}, nil
	}
	select {
	case i.locked <- struct{}{}:
		return func() { <-i.locked }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// A clock is set by tests.
type clock struct {
	mutex sync.Mutex
	now   time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.now = c.now.Add(d)
}

func (s *shared) counter(c *clock) *Counter { return s.counterOf(c, &instance{shared: s}) }

func (s *shared) counterOf(c *clock, i *instance) *Counter {
	return NewCounter(Options{Storage: i, Keep: 400 * 24 * time.Hour, Now: c.Now})
}

func use(text string) Use {
	words := strings.Fields(text)
	a, err := address.Parse(words[0])
	if err != nil {
		panic(err)
	}
	u := Use{Address: a, Version: words[1]}
	if len(words) > 2 {
		u.Platform = words[2]
	}
	if len(words) > 3 {
		u.By = words[3]
	}
	return u
}

func mustSync(t *testing.T, counters ...*Counter) {
	t.Helper()
	for _, c := range counters {
		if err := c.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

var (
	vpc  = use("acme/vpc/aws 1.0.0")
	null = use("registry.terraform.io/hashicorp/null 3.2.4 linux_amd64")
)

// Instances that have counted the same count it each.
func TestInstancesCountTheSame(t *testing.T) {
	s, at := newShared(), newClock()
	a, b := s.counter(at), s.counter(at)
	a.Add(vpc)
	b.Add(vpc)
	mustSync(t, a, b, a)
	for _, c := range []*Counter{a, b} {
		if n := c.Downloads(vpc.Address); n != 2 {
			t.Errorf("%d downloads of 2", n)
		}
	}
}

// An instance does not read again what it has when another has merged it.
func TestMergedSegmentsAreNotReadAgain(t *testing.T) {
	s, at := newShared(), newClock()
	i := &instance{shared: s}
	a, b := s.counter(at), s.counterOf(at, i)
	for range maxMinutes + 1 {
		a.Add(vpc)
		if err := a.write(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.readSegments(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustSync(t, a)
	loads := 0
	i.fails = func(call string) error {
		if call == "load" {
			loads++
		}
		return nil
	}
	mustSync(t, b)
	if n := b.Downloads(vpc.Address); loads != 1 || n != maxMinutes+1 {
		t.Errorf("%d segments were read to know what the merged one replaces, and there are %d downloads", loads, n)
	}
}

func TestInstancesCountTogether(t *testing.T) {
	s, at := newShared(), newClock()
	a, b := s.counter(at), s.counter(at)
	mustSync(t, a, b)
	a.Add(vpc)
	a.Add(vpc)
	a.Add(null)
	b.Add(vpc)
	if n := a.Downloads(vpc.Address); n != 2 {
		t.Errorf("before the others have written, there are %d", n)
	}
	mustSync(t, a, b, a)
	for name, c := range map[string]*Counter{"one": a, "the other": b} {
		if n := c.Downloads(vpc.Address); n != 3 {
			t.Errorf("%s has counted %d", name, n)
		}
		if got := c.byDay(null.Address, 1); len(got) != 1 || got[0] != (dayOfUse{null, DayOf(at.Now()), 1}) {
			t.Errorf("%s has %v", name, got)
		}
	}
	if c := s.counter(at); true {
		mustSync(t, c)
		if n := c.Downloads(vpc.Address); n != 3 {
			t.Errorf("a new instance has counted %d", n)
		}
	}
}

// Segments are merged by instances that come, go and are killed at any call. Nothing that was
// written is lost or counted twice.
func TestMergingKeepsSums(t *testing.T) {
	skipInShort(t)
	for name, broken := range map[string]bool{"with a lock": false, "without a lock": true} {
		t.Run(name, func(t *testing.T) {
			seed := rand.Uint64()
			random := rand.New(rand.NewPCG(seed, 0))
			s, at := newShared(), newClock()
			s.broken = broken
			uses := []Use{vpc, null, use("acme/vpc/aws 1.1.0"), use("acme/demo 1.0.0 linux_arm64 ci")}
			want := make(map[Use]uint64)
			killed := errors.New("killed")
			var counters []*Counter
			var instances []*instance
			begin := func() {
				i := &instance{shared: s}
				c := s.counterOf(at, i)
				c.most = 100 // a merged segment has parts
				instances, counters = append(instances, i), append(counters, c)
			}
			for range 3 {
				begin()
			}
			for range 400 {
				n := random.IntN(len(counters))
				c, i := counters[n], instances[n]
				u := uses[random.IntN(len(uses))]
				c.Add(u)
				mustStore := func() {
					i.fails = nil
					if err := c.write(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				mustStore()
				want[u]++
				left := random.IntN(60)
				i.fails = func(string) error {
					if left--; left < 0 {
						return killed
					}
					return nil
				}
				if err := c.Sync(t.Context()); err != nil {
					if !errors.Is(err, killed) {
						t.Fatalf("%v (seed %d)", err, seed)
					}
					counters, instances = slices.Delete(counters, n, n+1), slices.Delete(instances, n, n+1)
					begin()
				}
				at.pass(time.Duration(random.IntN(200)) * time.Second)
			}
			counters = append(counters, s.counter(at))
			for k, c := range counters {
				if k < len(instances) {
					instances[k].fails = nil
				}
				mustSync(t, c)
				for u, n := range want {
					var got uint64
					if u.By != "" {
						got = c.users(u.Address)[userOf{u.By, u.Version}].Downloads
					}
					for _, count := range c.byDay(u.Address, 30) {
						if count.Use == u {
							got += count.Count
						}
					}
					if got != n {
						t.Errorf("instance %d has counted %d of %v, want %d (seed %d)", k, got, u, n, seed)
					}
				}
			}
			if n := len(s.values); n > 300 {
				t.Errorf("%d segments are left", n)
			}
		})
	}
}

// Without a lock, two instances merge the same segments at the same time.
func TestMergesAtTheSameTime(t *testing.T) {
	rounds := 10
	if testing.Short() {
		rounds = 3
	}
	for range rounds {
		s, at := newShared(), newClock()
		s.broken = true
		var counters []*Counter
		for range 3 {
			counters = append(counters, s.counter(at))
		}
		for k := range 120 {
			c := counters[k%len(counters)]
			c.Add(vpc)
			if err := c.write(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		var all sync.WaitGroup
		for _, c := range counters {
			all.Go(func() {
				for range 3 {
					if err := c.Sync(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		counters = append(counters, s.counter(at))
		mustSync(t, counters...)
		for _, c := range counters {
			if n := c.Downloads(vpc.Address); n != 120 {
				t.Fatalf("%d downloads are counted", n)
			}
		}
	}
}

// Counts that a storage does not take are written later, once, also if it has taken them and the
// answer was lost.
func TestStorageThatFails(t *testing.T) {
	s, at := newShared(), newClock()
	failure := errors.New("away")
	away := func(call string) error {
		if call == "store" {
			return failure
		}
		return nil
	}
	for name, i := range map[string]*instance{
		"it takes nothing":         {shared: s, fails: away},
		"it takes it and says not": {shared: s, failed: away},
	} {
		t.Run(name, func(t *testing.T) {
			before := func() uint64 {
				c := s.counter(at)
				mustSync(t, c)
				return c.Downloads(vpc.Address)
			}
			had := before()
			c := s.counterOf(at, i)
			var told []string
			c.options.Warn = func(message string, err error) { told = append(told, fmt.Sprint(message, err)) }
			for range 3 {
				c.Add(vpc)
				c.sync(t.Context(), time.Minute)
			}
			if len(told) != 1 || !strings.Contains(told[0], "away") {
				t.Errorf("it says %q", told)
			}
			i.fails, i.failed = nil, nil
			mustSync(t, c)
			mustSync(t, c)
			if n := before() - had; n != 3 {
				t.Errorf("%d of 3 are written", n)
			}
			if n := c.Downloads(vpc.Address) - had; n != 3 {
				t.Errorf("it has %d itself", n)
			}
		})
	}
}

func TestCloseWritesTheLastMinute(t *testing.T) {
	s, at := newShared(), newClock()
	running := s.counter(at)
	running.Run()
	never := s.counter(at)
	i := &instance{shared: s, fails: func(string) error { return errors.New("away") }}
	failing := s.counterOf(at, i)
	failing.Add(vpc)
	failing.sync(t.Context(), time.Minute)
	i.fails = nil
	for _, c := range []*Counter{running, never, failing} {
		c.Add(vpc)
		c.Close()
	}
	c := s.counter(at)
	mustSync(t, c)
	if n := c.Downloads(vpc.Address); n != 4 {
		t.Errorf("%d of 4 are written", n)
	}
}

// A reload may end a Counter while downloads go on.
func TestDownloadsThatEndAfterCloseAreWritten(t *testing.T) {
	for _, test := range []struct {
		rule  string
		fails int // calls of the storage, before it works
	}{
		{"at once", 0},
		{"when the storage works again", 3},
	} {
		t.Run(test.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, at := newShared(), newClock()
				fails := test.fails
				c := s.counterOf(at, &instance{shared: s, fails: func(string) error {
					if fails--; fails >= 0 {
						return errors.New("away")
					}
					return nil
				}})
				c.Add(vpc)
				if err := c.Close(); (err != nil) != (test.fails > 0) {
					t.Errorf("closing it says %v", err)
				}
				for range 3 {
					c.Add(vpc)
				}
				time.Sleep(time.Duration(test.fails) * interval)
				synctest.Wait()
				c.Add(vpc)
				synctest.Wait()
				other := s.counter(at)
				mustSync(t, other)
				if n := other.Downloads(vpc.Address); n != 5 {
					t.Errorf("%d of 5 are written", n)
				}
			})
		})
	}
}

func TestCountsAreKeptForATime(t *testing.T) {
	s, at := newShared(), newClock()
	c := NewCounter(Options{Storage: &instance{shared: s}, Keep: 3 * 24 * time.Hour, Now: at.Now})
	for range 5 {
		c.Add(vpc)
		mustSync(t, c)
		at.pass(24 * time.Hour)
	}
	at.pass(-24 * time.Hour)
	mustSync(t, c)
	fresh := NewCounter(Options{Storage: &instance{shared: s}, Keep: 3 * 24 * time.Hour, Now: at.Now})
	mustSync(t, fresh)
	for name, c := range map[string]*Counter{"that has counted": c, "that has begun": fresh} {
		if n := c.Downloads(vpc.Address); n != 3 {
			t.Errorf("an instance %s has %d downloads of three days", name, n)
		}
		if days := c.countedDays(); len(days) != 3 {
			t.Errorf("an instance %s has the days %v", name, days)
		}
	}
	for name := range s.values {
		if n, _ := parseSegmentName(name); n.day < DayOf(at.Now())-2 {
			t.Errorf("%s is still there", name)
		}
	}
}

// On a day without downloads, it is known that there were none. On a day without an instance, it
// is not.
// For how long counts are kept may change while they are counted.
func TestKeepingForAnotherTime(t *testing.T) {
	s, at := newShared(), newClock()
	c := s.counter(at)
	for range 20 {
		c.Add(vpc)
		mustSync(t, c)
		at.pass(24 * time.Hour)
	}
	c.Keep(10 * 24 * time.Hour)
	mustSync(t, c)
	if n := c.Downloads(vpc.Address); n != 9 { // and of today, on which there was none
		t.Errorf("of ten days, there are %d downloads", n)
	}
}

func TestDaysWithoutDownloadsAreCounted(t *testing.T) {
	s, at := newShared(), newClock()
	c := s.counter(at)
	if days := c.countedDays(); days != nil {
		t.Errorf("before anything is read, these days are known: %v", days)
	}
	first := DayOf(at.Now())
	mustSync(t, c)
	at.pass(2 * 24 * time.Hour)
	mustSync(t, c)
	if days := c.countedDays(); !slices.Equal(days, []Day{first, first + 2}) {
		t.Errorf("%v", days)
	}
	if len(s.values) != 2 {
		t.Errorf("%d segments", len(s.values))
	}
}

func TestSummaries(t *testing.T) {
	s, at := newShared(), newClock()
	c := s.counter(at)
	c.Add(vpc)
	at.pass(40 * 24 * time.Hour)
	newer := use("acme/vpc/aws 1.1.0")
	c.Add(newer)
	c.Add(newer)
	c.Add(use("acme/vpc/aws 1.1.0 - ci")) // a user, which is counted apart
	today := DayOf(at.Now())
	want := map[string]Summary{
		"":      {Downloads: 3, Recent: 2, Last: today},
		"1.0.0": {Downloads: 1, Recent: 0, Last: today - 40},
		"1.1.0": {Downloads: 2, Recent: 2, Last: today},
	}
	if got := c.Versions(vpc.Address); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	var none *Counter
	none.Add(vpc)
	if none.Downloads(vpc.Address) != 0 || len(none.Versions(vpc.Address)) != 0 || none.Generation() != 0 {
		t.Error("no counter has counts")
	}
}

// Answers with counts are kept for a minute, also if there was no download: otherwise it could be
// measured that there was one of something that is hidden.
func TestGenerationChangesWithASync(t *testing.T) {
	s, at := newShared(), newClock()
	c := s.counter(at)
	mustSync(t, c)
	before := c.Generation()
	c.Add(vpc)
	if c.Generation() != before {
		t.Error("it changes with each download")
	}
	for range 2 {
		mustSync(t, c)
		after := c.Generation()
		if after == before {
			t.Error("it does not change")
		}
		before = after
	}
}

// A day whose segments were not all listed, or were gone for a while, is read again when they are
// back. Nothing is counted twice.
func TestSegmentsThatAreNotListedForAWhile(t *testing.T) {
	s, at := newShared(), newClock()
	c := s.counter(at)
	for range 3 {
		c.Add(vpc)
		mustSync(t, c)
	}
	at.pass(5 * 24 * time.Hour)
	names := slices.Collect(maps.Keys(s.values))
	for _, listed := range [][]string{names[:1], nil} {
		hidden := s.values
		s.values = make(map[string][]byte)
		for _, name := range listed {
			s.values[name] = hidden[name]
		}
		mustSync(t, c)
		maps.Copy(s.values, hidden)
		mustSync(t, c)
		if n := c.Downloads(vpc.Address); n != 3 {
			t.Errorf("after %d were listed, there are %d of 3", len(listed), n)
		}
	}
}

// A clock that is wrong for a while neither removes counts nor moves them to a day that has not
// come.
func TestClockThatJumps(t *testing.T) {
	for rule, jump := range map[string]time.Duration{
		"far ahead": 70 * 365 * 24 * time.Hour,
		"far back":  -30 * 365 * 24 * time.Hour,
		"never set": time.Unix(3600, 0).Sub(newClock().Now()),
	} {
		t.Run(rule, func(t *testing.T) {
			s, at := newShared(), newClock()
			other := s.counter(at)
			other.Add(vpc)
			mustSync(t, other)
			at.pass(-10 * 24 * time.Hour)
			c := s.counter(at)
			c.Add(vpc)
			mustSync(t, c)
			at.pass(10 * 24 * time.Hour)
			mustSync(t, c)
			at.pass(jump)
			for range 3 {
				c.Add(null)
				mustSync(t, c)
				at.pass(time.Minute)
			}
			at.pass(-jump)
			for range 2 {
				mustSync(t, c)
			}
			fresh := s.counter(at)
			mustSync(t, fresh)
			for name, c := range map[string]*Counter{"the instance": c, "a new one": fresh} {
				if n := c.Downloads(vpc.Address); n != 2 {
					t.Errorf("%s has %d downloads of 2", name, n)
				}
				if n := c.Downloads(null.Address); n != 0 {
					t.Errorf("%s has %d downloads of other days", name, n)
				}
				if days := c.countedDays(); len(days) != 2 || days[1] != DayOf(at.Now()) {
					t.Errorf("%s has the days %v", name, days)
				}
			}
			if n := len(s.values); n > 6 {
				t.Errorf("%d segments are left", n)
			}
		})
	}
	if d := DayOf(time.Unix(0, 0)); d != 1 {
		t.Errorf("the day of a clock that was never set is %d", d)
	}
}

// Who ends a Counter is told if its last minute could not be written, also if it was at work, and
// whatever failed before.
func TestCloseSaysWhatIsLost(t *testing.T) {
	s, at := newShared(), newClock()
	away := errors.New("away")
	for _, test := range []struct {
		rule string
		add  bool
		lost bool
	}{
		{"nothing to write", false, false},
		{"the last minute", true, true},
	} {
		t.Run(test.rule, func(t *testing.T) {
			i := &instance{shared: s}
			c := s.counterOf(at, i)
			mustSync(t, c)
			i.fails = func(string) error { return away }
			if test.add {
				c.Add(vpc)
			}
			if err := c.Close(); errors.Is(err, away) != test.lost {
				t.Errorf("it says %v", err)
			}
		})
	}
}

// A Counter whose storage hangs does not end quietly with counts that are lost.
func TestCloseOfAStorageThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		listing := make(chan struct{}, 1)
		i := &instance{shared: newShared(), fails: func(call string) error {
			if call == "list" {
				listing <- struct{}{}
				<-release
			}
			return nil
		}}
		c := NewCounter(Options{Storage: i, Keep: 400 * 24 * time.Hour})
		c.Run()
		<-listing
		c.Add(vpc)
		if err := c.Close(); err == nil {
			t.Error("it says nothing")
		}
		close(release)
	})
}

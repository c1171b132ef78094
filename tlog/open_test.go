package tlog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A log in a bucket is read in several attempts. Each may take only five minutes.
func TestALargeLogInASlowBucketIsOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		l := open(t, m)
		mustAppend(t, l, leavesFrom(0, 9_000)...)
		mustAppend(t, l, leavesFrom(9_000, 17_000)...)
		mustAppend(t, l, Leaf{Event: Withdrawn, Address: moduleLeaf(1).Address, Version: moduleLeaf(1).Version})
		l.Close()
		fails := 0
		a := &access{memory: m, before: func(o operation) error {
			if o.does == "read" && strings.HasPrefix(o.name, "tile/") {
				time.Sleep(40 * time.Second)
			}
			if o.name == "tile/entries/040" && fails < 2 {
				fails++
				return errFault
			}
			return nil
		}}
		var x Opening
		for attempt := range 20 {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			o := optionsFor(a)
			o.Store = impatient{a}
			opened, err := x.Open(ctx, o)
			cancel()
			if err != nil {
				continue
			}
			defer opened.Close()
			a.before = nil
			if attempt == 0 {
				t.Error("one attempt was enough")
			}
			if opened.Head().Size != 17_001 || len(opened.ledger.leaves) != 17_001 {
				t.Errorf("it has %d entries, and the ledger %d", opened.Head().Size, len(opened.ledger.leaves))
			}
			leaves, err := opened.Leaves(t.Context(), opened.Head(), moduleLeaf(1).Address, moduleLeaf(1).Version)
			if got := fmt.Sprint(eventsOf(leaves)); err != nil || got != "[offered withdrawn]" {
				t.Errorf("a version has the leaves %s, %v", got, err)
			}
			mustAppend(t, opened, moduleLeaf(17_000))
			checkMemory(t, m)
			return
		}
		t.Error("it is never opened")
	})
}

// An impatient store ends a read with its context.
type impatient struct{ *access }

func (s impatient) Read(ctx context.Context, name string) ([]byte, error) {
	content, err := s.access.Read(ctx, name)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return content, err
}

// The store may be replaced between two attempts.
func TestAStoreThatIsReplacedWhileItIsOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := newMemory(), newMemory()
		for i, m := range []*memory{one, two} {
			l := open(t, m)
			mustAppend(t, l, leavesFrom(i*10_000, i*10_000+600)...)
			l.Close()
		}
		var x Opening
		broken := &access{memory: one, before: func(o operation) error {
			if o.name == "batch/512" {
				return errFault
			}
			return nil
		}}
		if _, err := x.Open(t.Context(), optionsFor(broken)); !errors.Is(err, errFault) || x.edge.size != 512 {
			t.Fatalf("the first attempt says %v", err)
		}
		if _, err := x.Open(t.Context(), optionsFor(&access{memory: two})); !errors.Is(err, ErrForked) {
			t.Errorf("the other store says %v", err)
		}
		l, err := x.Open(t.Context(), optionsFor(&access{memory: two}))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if news := l.News(leavesFrom(10_000, 10_600)); len(news) > 0 {
			t.Errorf("of its leaves %d are new", len(news))
		}
		if news := l.News(leavesFrom(0, 600)); len(news) < 600 {
			t.Errorf("of the other store's leaves %d are new", len(news))
		}
	})
}

// A client of a network disk takes the batch of another instance for absent, because it has
// asked for that batch before.
func TestAStoreThatShowsEntriesLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		other := open(t, m)
		defer other.Close()
		s := lateStore{&access{memory: m}, make(map[string]time.Time)}
		o := optionsFor(s.access)
		o.Store = s
		l, err := Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		mustAppend(t, other, leavesFrom(0, 5)...)
		if err := l.Append(t.Context(), moduleLeaf(9)); errors.Is(err, ErrBehind) {
			t.Errorf("within a minute it says %v", err)
		}
		if err := l.Refresh(t.Context()); errors.Is(err, ErrBehind) {
			t.Errorf("refreshing says %v", err)
		}
		time.Sleep(time.Minute)
		mustAppend(t, l, moduleLeaf(9))
		time.Sleep(time.Hour)

		// The next time is another one.
		mustAppend(t, other, leavesFrom(10, 15)...)
		if err := l.Append(t.Context(), moduleLeaf(20)); errors.Is(err, ErrBehind) {
			t.Errorf("an hour later it says %v", err)
		}
		checkMemory(t, m)
	})
}

type lateStore struct {
	*access
	absent map[string]time.Time // until when
}

func (s lateStore) Create(ctx context.Context, name string, content []byte) error {
	delete(s.absent, name)
	return s.access.Create(ctx, name, content)
}

func (s lateStore) Read(ctx context.Context, name string) ([]byte, error) {
	if time.Now().Before(s.absent[name]) {
		return nil, fs.ErrNotExist
	}
	content, err := s.access.Read(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		s.absent[name] = time.Now().Add(time.Minute)
	}
	return content, err
}

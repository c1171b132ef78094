package tlog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
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

// Signed entries can be read, whatever fails after them. The next attempt to add an entry reports the
// failure.
func TestALogIsOpenedThatCannotBeAddedTo(t *testing.T) {
	writes := func(o operation) bool { return o.does == "create" || o.does == "replace" || o.does == "remove" }
	for _, test := range []struct {
		rule  string
		fails func(operation) bool
		err   error
	}{
		{"the disk is full", writes, syscall.ENOSPC},
		{"the disk has room for a tile, and not for its bundle", func(o operation) bool { return writes(o) && o.name == "tile/entries/000" }, syscall.ENOSPC},
		{"the folder is read-only", writes, syscall.EROFS},
		{"an entry that is not signed cannot be read", func(o operation) bool { return o.name == batchName(200) }, fs.ErrPermission},
	} {
		t.Run(test.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := unfinished(t)
				fails := true
				l, err := Open(t.Context(), optionsFor(failing(m, test.err, func(o operation) bool { return fails && test.fails(o) })))
				if err != nil {
					t.Fatalf("it is not opened: %v", err)
				}
				defer l.Close()
				if l.Head().Size != 200 || len(l.News(leavesFrom(0, 200))) > 0 {
					t.Errorf("it has %d entries", l.Head().Size)
				}
				if _, err := l.Lookup(t.Context(), l.Head(), moduleLeaf(199).Version, moduleLeaf(199).Address); err != nil {
					t.Error(err)
				}
				if err := l.Refresh(t.Context()); !errors.Is(err, test.err) {
					t.Errorf("it says %v", err)
				}
				fails = false
				mustAppend(t, l, leavesFrom(200, 300)...)
				fresh := open(t, m)
				defer fresh.Close()
				mustBeAlike(t, l, fresh)
				checkMemory(t, m)
			})
		})
	}
}

// unfinished is a log of 200 signed entries, and of others that fill its first bundle and are not
// signed: the disk had no room for its tile.
func unfinished(t *testing.T) *memory {
	t.Helper()
	m := newMemory()
	l := openBy(t, failing(m, syscall.ENOSPC, func(o operation) bool { return strings.HasPrefix(o.name, "tile/") && o.does == "create" }))
	defer l.Close()
	mustAppend(t, l, leavesFrom(0, 200)...)
	if err := l.Append(t.Context(), leavesFrom(200, 300)...); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("adding says %v", err)
	}
	return m
}

// Signed entries are not left out because a write fails, and entries that are not signed are
// not left out of a log that is only read.
func TestALogIsNotOpenedWithoutAllThatCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := unfinished(t)
		unreadable := optionsFor(failing(m, errFault, func(o operation) bool { return o.name == batchName(200) }))
		if _, err := OpenToRead(t.Context(), unreadable); !errors.Is(err, errFault) {
			t.Errorf("reading it without its last batch says %v", err)
		}
		l := open(t, m)
		mustAppend(t, l, moduleLeaf(300))
		l.Close()
		delete(m.files, TilePath(fullTile(-1, 0))) // it is made again of its batches
		full := optionsFor(failing(m, syscall.ENOSPC, func(o operation) bool { return o.does == "create" }))
		if _, err := Open(t.Context(), full); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("opening it without a bundle says %v", err)
		}
	})
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
		broken := failing(one, errFault, func(o operation) bool { return o.name == "batch/512" })
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

package storage

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/certmagic"
)

// memoryStorage is a storage with a single value, which can fail.
type memoryStorage struct {
	certmagic.Storage // nil

	mutex sync.Mutex
	value []byte
	fails error
}

func (s *memoryStorage) Load(context.Context, string) ([]byte, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.value == nil && s.fails == nil {
		return nil, fs.ErrNotExist
	}
	return bytes.Clone(s.value), s.fails
}

// fail makes the storage fail from now on, or work again.
func (s *memoryStorage) fail(err error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.fails = err
}

func (s *memoryStorage) Store(_ context.Context, _ string, value []byte) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.fails == nil {
		s.value = bytes.Clone(value)
	}
	return s.fails
}

// A changeReader is an instance with its change log, and the folders that it was told
// to look at.
type changeReader struct {
	*ChangeLog
	refreshed []string
}

func newChangeReader(storage certmagic.Storage, log *bytes.Buffer) *changeReader {
	r := new(changeReader)
	refresh := func(folders ...string) {
		r.refreshed = append(r.refreshed, cmp.Or(strings.Join(folders, " "), "everything"))
	}
	r.ChangeLog = NewChangeLog(alone(storage), "tree", refresh, slog.New(slog.NewTextHandler(log, nil)))
	return r
}

// looks makes the instance look once, and returns the folders that it was told to look
// at.
func (r *changeReader) looks(t *testing.T) []string {
	r.refreshed = nil
	r.look(t.Context())
	return r.refreshed
}

func TestInstancesTellEachOtherOfChanges(t *testing.T) {
	demo, vpc := "providers/acme/demo", "modules/acme/vpc/aws"
	begin := func() (storage *memoryStorage, a, b *changeReader, log *bytes.Buffer) {
		storage, log = new(memoryStorage), new(bytes.Buffer)
		return storage, newChangeReader(storage, log), newChangeReader(storage, log), log
	}
	wants := func(t *testing.T, what string, got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s looks at %q, want %q", what, got, want)
		}
	}
	t.Run("the others look at what one has changed, once", func(t *testing.T) {
		_, a, b, _ := begin()
		b.looks(t)
		a.Announce([]string{demo, "keys"})
		wants(t, "the one that changed it", a.looks(t))
		wants(t, "another", b.looks(t), "keys "+demo)
		wants(t, "another, again,", b.looks(t))
		wants(t, "the one that changed it, again,", a.looks(t))
	})
	t.Run("an instance that starts looks at what has just changed", func(t *testing.T) {
		_, a, b, _ := begin()
		a.Announce([]string{demo})
		a.looks(t)
		wants(t, "one that starts", b.looks(t), demo)
	})
	t.Run("of two that tell at once, none is lost", func(t *testing.T) {
		storage, a, b, _ := begin()
		c := newChangeReader(storage, new(bytes.Buffer))
		c.looks(t)
		a.Announce([]string{demo})
		b.Announce([]string{vpc})
		a.looks(t)
		storage.value = nil // as if b had loaded it before a stored, and stored after
		b.looks(t)
		first := c.looks(t)
		a.looks(t)
		b.looks(t)
		wants(t, "a third", append(first, c.looks(t)...), vpc, demo)
	})
	for _, earlier := range []int{0, 1, maxChanges, 2 * maxChanges} {
		t.Run(fmt.Sprintf("of two that tell at once after %d others, none is lost, however late one is stored", earlier), func(t *testing.T) {
			storage, a, b, _ := begin()
			c := newChangeReader(storage, new(bytes.Buffer))
			for range earlier {
				c.Announce([]string{"modules/acme/earlier/aws"})
				c.looks(t)
			}
			c.looks(t)
			a.looks(t)
			b.looks(t)
			before := storage.value
			a.Announce([]string{demo})
			a.looks(t)
			a.looks(t) // it has seen its entry
			b.Announce([]string{vpc})
			storage.value = before // as if b had loaded it before a stored, and stored after
			b.looks(t)
			first := c.looks(t)
			a.looks(t)
			wants(t, "a third", append(first, c.looks(t)...), vpc, demo)
			wants(t, "the other", b.looks(t), demo)
			after := storage.value
			for range 3 {
				a.looks(t)
				b.looks(t)
			}
			if !bytes.Equal(storage.value, after) {
				t.Error("they add entries again that are there")
			}
		})
	}
	t.Run("an entry that newer ones have pushed out is not added again", func(t *testing.T) {
		storage, a, b, _ := begin()
		a.Announce([]string{demo})
		a.looks(t)
		a.looks(t)
		for range maxChanges {
			b.Announce([]string{vpc})
			b.looks(t)
			a.looks(t)
		}
		if a.looks(t); bytes.Contains(storage.value, []byte(demo)) || len(a.own) != 0 {
			t.Errorf("it keeps %d changes, and the document is %s", len(a.own), storage.value)
		}
	})
	t.Run("one that has missed too many looks at everything", func(t *testing.T) {
		_, a, b, _ := begin()
		a.Announce([]string{demo})
		a.looks(t)
		b.looks(t)
		for range 2 * maxChanges {
			a.Announce([]string{demo})
			a.looks(t)
		}
		wants(t, "another", b.looks(t), "everything")
	})
	t.Run("one that has missed few looks at these", func(t *testing.T) {
		_, a, b, _ := begin()
		a.Announce([]string{demo})
		a.looks(t)
		b.looks(t)
		for i := range maxChanges - 1 {
			a.Announce([]string{fmt.Sprintf("modules/acme/m%02d/aws", i)})
			a.looks(t)
		}
		if got := b.looks(t); len(got) != 1 || strings.Count(got[0], "modules/") != maxChanges-1 {
			t.Errorf("it looks at %q", got)
		}
	})
	t.Run("a change without folders is one of everything", func(t *testing.T) {
		_, a, b, _ := begin()
		b.looks(t)
		a.Announce(nil)
		a.looks(t)
		wants(t, "another", b.looks(t), "everything")
	})
	t.Run("changes that a failing storage does not accept are announced later, and logged once", func(t *testing.T) {
		storage, a, b, log := begin()
		b.looks(t)
		storage.fails = errors.New("connection refused")
		a.Announce([]string{demo})
		for range 3 {
			wants(t, "an instance without storage", a.looks(t))
		}
		storage.fails = nil
		a.looks(t)
		wants(t, "another", b.looks(t), demo)
		if n := strings.Count(log.String(), "connection refused"); n != 1 || !strings.Contains(log.String(), "works again") {
			t.Errorf("it logs:\n%s", log)
		}
	})
	t.Run("a storage that is away for long is told one change of everything", func(t *testing.T) {
		storage, a, b, _ := begin()
		b.looks(t)
		storage.fails = errors.New("connection refused")
		for range 3 * maxChanges {
			a.Announce([]string{demo})
		}
		storage.fails = nil
		a.looks(t)
		if got := b.looks(t); !slices.Contains(got, "everything") {
			t.Errorf("another looks at %q", got)
		}
	})
	t.Run("a document that is damaged is replaced", func(t *testing.T) {
		storage, a, b, _ := begin()
		storage.value = []byte(`{"not":"a list"`)
		wants(t, "an instance", b.looks(t))
		a.Announce([]string{demo})
		a.looks(t)
		wants(t, "another", b.looks(t), demo)
	})
}

// A look without news at each interval, and one at once for an announcement.
func TestChangesAreLookedForAtAnInterval(t *testing.T) {
	storage := new(memoryStorage)
	refreshed := make(chan string, 8)
	reader := NewChangeLog(alone(storage), "tree", func(folders ...string) { refreshed <- strings.Join(folders, " ") }, slog.New(slog.DiscardHandler))
	writer := NewChangeLog(alone(storage), "tree", func(...string) {}, slog.New(slog.DiscardHandler))
	go reader.Run(t.Context(), time.Millisecond)
	go writer.Run(t.Context(), time.Hour)
	writer.Announce([]string{"providers/acme/demo"})
	if got := <-refreshed; got != "providers/acme/demo" {
		t.Errorf("it looks at %q", got)
	}
}

// A reload or a stop must not lose an announcement made just before.
func TestClosingAddsAnnouncements(t *testing.T) {
	storage := new(memoryStorage)
	ctx, stop := context.WithCancel(t.Context())
	writer := newChangeReader(storage, new(bytes.Buffer))
	stop()
	writer.Run(ctx, time.Hour)
	writer.Announce([]string{"providers/acme/demo"})
	writer.Close()
	reader := newChangeReader(storage, new(bytes.Buffer))
	if got := reader.looks(t); !slices.Equal(got, []string{"providers/acme/demo"}) {
		t.Errorf("another instance looks at %q", got)
	}
}

// Before the process ends, announcements are added that the storage has not taken, while others may
// still come. The end does not wait long for a storage that hangs.
func TestFlushingAddsAnnouncements(t *testing.T) {
	t.Run("the storage has failed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			storage, log := new(memoryStorage), new(bytes.Buffer)
			ctx, stop := context.WithCancel(t.Context())
			writer := newChangeReader(storage, log)
			go writer.Run(ctx, time.Hour)
			synctest.Wait()
			storage.fail(errors.New("connection refused"))
			writer.Announce([]string{"providers/acme/demo"})
			synctest.Wait()
			storage.fail(nil)
			writer.Flush()
			reader := newChangeReader(storage, new(bytes.Buffer))
			for _, folder := range []string{"providers/acme/demo", "modules/acme/vpc/aws"} {
				if got := reader.looks(t); !slices.Equal(got, []string{folder}) {
					t.Errorf("another instance looks at %q", got)
				}
				writer.Announce([]string{"modules/acme/vpc/aws"})
				synctest.Wait()
			}
			stop()
			writer.Close()
		})
	})
	t.Run("the storage hangs", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &hangingStorage{call: "Load", until: make(chan struct{})}
			defer close(s.until)
			ctx, stop := context.WithCancel(t.Context())
			writer := newChangeReader(s, new(bytes.Buffer))
			go writer.Run(ctx, time.Hour)
			writer.Announce([]string{"providers/acme/demo"})
			began := time.Now()
			writer.Flush()
			stop()
			writer.Close()
			if took := time.Since(began); took != 2*closePatience {
				t.Errorf("it takes %s", took)
			}
		})
	})
}

// The document comes from a storage that others can write to.
func FuzzDecodeChanges(f *testing.F) {
	f.Add([]byte(`[{"id":"A","folders":["providers/acme/demo","keys"]}]`))
	f.Add([]byte(`[{"id":"A","folders":["../../etc"]},{"id":"","folders":null},null]`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		changes := decodeChanges(content)
		if len(changes) > maxChanges {
			t.Errorf("%d entries", len(changes))
		}
		for _, c := range changes {
			for _, folder := range c.Folders {
				if !fs.ValidPath(folder) {
					t.Errorf("a folder %q", folder)
				}
			}
		}
		if encoded, err := json.Marshal(changes); err != nil || len(decodeChanges(encoded)) != len(changes) {
			t.Errorf("%q is not decoded as it was encoded (%v)", encoded, err)
		}
	})
}

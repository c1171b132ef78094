package module

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
)

// TestLinkKeysWithAStorageThatHangs runs on a clock of its own.
func TestLinkKeysWithAStorageThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var storage sharedStorage
		i := newLinkInstance(t, &storage)
		i.keys.now = time.Now
		i.clock = time.Now()
		i.mustLoad(t)
		known := i.keys.Keys()
		storage.hang()
		waits := func(rule string, do func(), want time.Duration) {
			t.Helper()
			begun := time.Now()
			do()
			if took := time.Since(begun); took != want {
				t.Errorf("%s waits for %v, want %v", rule, took, want)
			}
			i.wantKey(t, known)
		}
		waits("an unknown key", i.keys.Unknown, linkKeysWait)
		synctest.Wait()
		waits("the next one", i.keys.Unknown, linkKeysWait)
		time.Sleep(linkKeyLife)
		waits("an old key", func() { i.keys.Keys() }, 0)
		time.Sleep(linkKeyTooOld - linkKeyLife)
		waits("a key that is too old", func() { i.keys.Keys() }, linkKeysWait)
		waits("the next link of the document", func() { i.keys.Keys() }, 0)
		if n := i.logged("level=ERROR"); n != 2 {
			t.Errorf("the log is:\n%s", i.log.String())
		}
	})
}

func TestClosingLinkKeysEndsWhatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var storage sharedStorage
		i := newLinkInstance(t, &storage)
		i.mustLoad(t)
		query := i.sign(t)
		storage.hang()
		i.clock = i.clock.Add(linkKeyTooOld)
		go i.keys.Unknown()
		go i.keys.Keys()
		synctest.Wait()
		if storage.under != 2 {
			t.Fatalf("%d operations are under way", storage.under)
		}
		begun := time.Now()
		i.keys.Close()
		if storage.under != 0 || time.Since(begun) != 0 {
			t.Errorf("%d operations are under way after %v", storage.under, time.Since(begun))
		}

		// Requests of the old configuration may still be under way.
		storage.fail("", nil)
		i.clock = i.clock.Add(linkKeyTooOld)
		operations := storage.operations
		i.keys.Unknown()
		i.wantVerified(t, query, nil)
		i.settle()
		if storage.operations != operations {
			t.Error("something was begun after that")
		}
		i.keys.Close()
		if n := i.logged("level=ERROR"); n != 0 {
			t.Errorf("the log is:\n%s", i.log.String())
		}
	})
}

// A linkInstance is one of those that share a storage.
type linkInstance struct {
	keys  *linkKeys
	links access.Links
	clock time.Time
	log   bytes.Buffer
}

func newLinkInstance(t *testing.T, storage certmagic.Storage) *linkInstance {
	i := &linkInstance{clock: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	logger := slog.New(slog.NewTextHandler(&i.log, nil))
	i.keys = newLinkKeys(t.Context(), storage, logger, func() time.Time { return i.clock })
	i.links = access.Links{Life: time.Hour, Keys: i.keys.Keys, Unknown: i.keys.Unknown}
	t.Cleanup(i.keys.Close)
	return i
}

func (i *linkInstance) mustLoad(t *testing.T) {
	t.Helper()
	if err := i.keys.Load(); err != nil {
		t.Fatal(err)
	}
}

// settle waits until nothing runs in the background.
func (i *linkInstance) settle() { i.keys.running.Wait() }

// sign makes a link that does not expire.
func (i *linkInstance) sign(t *testing.T) string {
	t.Helper()
	query, err := i.links.AppendQuery(nil, "registry.example.com", "/file.zip", 1<<40)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(string(query), "?")
}

func (i *linkInstance) wantVerified(t *testing.T, query string, want error) {
	t.Helper()
	if err := i.links.Verify("registry.example.com", "/file.zip", query, i.clock); err != want {
		t.Errorf("the link is verified with %v, want %v", err, want)
	}
}

func (i *linkInstance) wantKey(t *testing.T, want *access.LinkKeys) {
	t.Helper()
	if got := i.keys.known.Load().Current().ID(); got != want.Current().ID() {
		t.Errorf("the current key is %s, want %s", got, want.Current().ID())
	}
}

// logged counts the lines with that in them.
func (i *linkInstance) logged(text string) (lines int) {
	for line := range strings.Lines(i.log.String()) {
		if strings.Contains(line, text) {
			lines++
		}
	}
	return lines
}

// A sharedStorage keeps the one document in memory.
type sharedStorage struct {
	certmagic.Storage // nil: there is no need for the rest

	mu            sync.Mutex
	document      []byte
	locked        chan struct{}
	before        func(ctx context.Context, operation string) error
	loaded        func()
	loads, stores int
	operations    int // begun
	under         int // under way
}

// fail makes an operation fail, and no other.
func (s *sharedStorage) fail(operation string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = func(_ context.Context, o string) error {
		if o == operation {
			return err
		}
		return nil
	}
}

// hang makes all operations take as long as they may.
func (s *sharedStorage) hang() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = func(ctx context.Context, _ string) error {
		<-ctx.Done()
		return ctx.Err()
	}
}

// begin is called with every operation.
func (s *sharedStorage) begin(ctx context.Context, operation, name string) error {
	if name != linkKeysName {
		return errors.New("it is not for " + name)
	}
	s.mu.Lock()
	if s.locked == nil {
		s.locked = make(chan struct{}, 1)
	}
	s.operations++
	s.under++
	before := s.before
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.under--
	}()
	if before == nil {
		return ctx.Err()
	}
	return before(ctx, operation)
}

func (s *sharedStorage) Load(ctx context.Context, name string) ([]byte, error) {
	if err := s.begin(ctx, "load", name); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.loads++
	document, loaded := s.document, s.loaded
	s.mu.Unlock()
	if loaded != nil {
		loaded()
	}
	if document == nil {
		return nil, fs.ErrNotExist
	}
	return document, nil
}

func (s *sharedStorage) Store(ctx context.Context, name string, document []byte) error {
	if err := s.begin(ctx, "store", name); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.document = document
	s.stores++
	return nil
}

func (s *sharedStorage) Lock(ctx context.Context, name string) error {
	if err := s.begin(ctx, "lock", name); err != nil {
		return err
	}
	select {
	case s.locked <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *sharedStorage) Unlock(context.Context, string) error {
	<-s.locked
	return nil
}

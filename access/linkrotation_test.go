package access

import (
	"context"
	"io/fs"
	"log/slog"
	"testing/synctest"

	"bytes"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestLinkKeysAreGeneratedByOneInstance(t *testing.T) {
	var store sharedStore
	instances := make([]*linkInstance, 8)
	var done sync.WaitGroup
	for i := range instances {
		instances[i] = newLinkInstance(t, &store)
		done.Go(func() {
			if err := instances[i].keys.Load(); err != nil {
				t.Error(err)
			}
		})
	}
	done.Wait()
	if store.stores != 1 {
		t.Errorf("keys were stored %d times", store.stores)
	}
	query := instances[0].sign(t)
	for _, i := range instances {
		i.wantVerified(t, query, nil)
	}
}

func TestRotatingLinkKeys(t *testing.T) {
	var store sharedStore
	a, b := newLinkInstance(t, &store), newLinkInstance(t, &store)
	a.mustLoad(t)
	b.mustLoad(t)
	before := a.sign(t)

	first := a.keys.Keys()

	a.clock = a.clock.Add(linkKeyLife - time.Second)
	a.keys.Keys()
	a.settle()
	a.wantKey(t, first) // not old enough yet
	a.clock = a.clock.Add(time.Second)
	if a.keys.Keys() != first {
		t.Error("a request waited for the next key")
	}
	a.settle()
	after := a.sign(t)
	if before == after {
		t.Fatal("the key was not rotated")
	}
	a.wantVerified(t, before, nil)
	b.wantVerified(t, after, nil) // at once: it reloads the unknown key
	b.wantVerified(t, before, nil)
	b.wantKey(t, a.keys.Keys())

	b.clock = a.clock
	b.keys.Keys()
	b.settle()
	if store.stores != 2 {
		t.Errorf("keys were stored %d times, want once at the start and once for the rotation", store.stores)
	}
}

// Of several instances with an old key, one rotates it and the others load the new
// one.
func TestLinkKeysAreRotatedByOneInstance(t *testing.T) {
	var store sharedStore
	instances := make([]*linkInstance, 8)
	for n := range instances {
		instances[n] = newLinkInstance(t, &store)
		instances[n].mustLoad(t)
	}
	for _, i := range instances {
		i.clock = i.clock.Add(linkKeyLife)
		i.keys.Keys()
	}
	for _, i := range instances {
		i.settle()
		i.wantKey(t, instances[0].keys.Keys())
	}
	if store.stores != 2 {
		t.Errorf("keys were stored %d times", store.stores)
	}
}

// An instance that was idle while others rotated twice has keys that no other
// instance knows.
func TestLinkKeysThatAreTooOldDoNotSign(t *testing.T) {
	var store sharedStore
	idle, active := newLinkInstance(t, &store), newLinkInstance(t, &store)
	idle.mustLoad(t)
	active.mustLoad(t)
	for range 2 {
		active.clock = active.clock.Add(linkKeyLife)
		active.keys.Keys()
		active.settle()
	}
	idle.clock = active.clock
	active.wantVerified(t, idle.sign(t), nil)
	if store.stores != 3 {
		t.Errorf("keys were stored %d times", store.stores)
	}
	// No link outlives its key, even with a rounded expiry.
	if linkKeyMaxAge+MaxLinkLife+MaxLinkLife/16 >= 2*linkKeyLife {
		t.Error("links may be valid for longer than the keys that signed them")
	}
}

func TestUnknownLinkKeysAreReloadedOnceASecond(t *testing.T) {
	var store sharedStore
	i := newLinkInstance(t, &store)
	i.mustLoad(t)
	forged := "exp=9999999999&sig=" + strings.Repeat("A", 48)
	loaded := store.loads
	for range 100 {
		i.wantVerified(t, forged, ErrLinkInvalid)
	}
	if n := store.loads - loaded; n != 1 {
		t.Errorf("the keys were loaded %d times", n)
	}
	i.clock = i.clock.Add(time.Second)
	i.wantVerified(t, forged, ErrLinkInvalid)
	if n := store.loads - loaded; n != 2 {
		t.Errorf("a second later the keys were loaded %d times", n)
	}
}

// A reload that read the store before a rotation ends after it.
func TestOvertakenReloadDoesNotRestoreOldLinkKeys(t *testing.T) {
	var store sharedStore
	i := newLinkInstance(t, &store)
	i.mustLoad(t)
	i.clock = i.clock.Add(linkKeyLife)
	store.loaded = func() { // after the reload has read
		store.loaded = nil
		if err := i.keys.rotateNow(t.Context()); err != nil {
			t.Error(err)
		}
	}
	i.keys.Reload()
	stored, err := decodeLinkKeys(store.document)
	if err != nil || store.stores != 2 {
		t.Fatalf("stored %d times, %v", store.stores, err)
	}
	i.wantKey(t, stored)
}

// damage cuts off the end of the document.
func (s *sharedStore) damage() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.document = s.document[:len(s.document)-10]
}

func TestDamagedLinkKeysAreMadeAgainByOneInstance(t *testing.T) {
	var store sharedStore
	newLinkInstance(t, &store).mustLoad(t)
	store.damage()
	instances := make([]*linkInstance, 8)
	var done sync.WaitGroup
	for i := range instances {
		instances[i] = newLinkInstance(t, &store)
		done.Go(func() {
			if err := instances[i].keys.Load(); err != nil {
				t.Error(err)
			}
		})
	}
	done.Wait()
	if store.stores != 2 {
		t.Errorf("keys were stored %d times, want once before the damage and once after it", store.stores)
	}
	query, lines := instances[0].sign(t), 0
	for _, i := range instances {
		i.wantVerified(t, query, nil)
		lines += i.logged("level=")
	}
	if lines != 1 {
		t.Errorf("%d lines were logged", lines)
	}
	if !slices.ContainsFunc(instances, func(i *linkInstance) bool { return i.logged("level=WARN") == 1 && i.logged("were damaged") == 1 }) {
		t.Error("no instance logged the damage")
	}
}

// An instance that has keys when the document is damaged still verifies its links.
func TestLinksSurviveDamagedLinkKeys(t *testing.T) {
	for _, found := range []struct {
		when string
		by   func(i *linkInstance)
	}{
		{"reloading", func(i *linkInstance) { i.keys.Reload() }},
		{"rotating", func(i *linkInstance) { i.clock = i.clock.Add(linkKeyLife); i.keys.Keys() }},
	} {
		t.Run(found.when, func(t *testing.T) {
			var store sharedStore
			i := newLinkInstance(t, &store)
			i.mustLoad(t)
			query := i.sign(t)
			store.damage()
			found.by(i)
			i.settle()
			i.wantVerified(t, query, nil)
			stored, err := decodeLinkKeys(store.document)
			if err != nil {
				t.Fatal(err)
			}
			i.wantKey(t, stored)
			other := newLinkInstance(t, &store)
			other.mustLoad(t)
			other.wantVerified(t, query, nil)
			if store.stores != 2 || i.logged("level=WARN") != 1 || i.logged("level=ERROR") != 0 {
				t.Errorf("keys were stored %d times, the log is:\n%s", store.stores, i.log.String())
			}
		})
	}
}

// A store may lose the document, as when its volume is not mounted. An instance that has keys still
// verifies its links after it has rotated them.
func TestLinksSurviveLostLinkKeys(t *testing.T) {
	var store sharedStore
	i := newLinkInstance(t, &store)
	i.mustLoad(t)
	query := i.sign(t)
	store.mu.Lock()
	store.document = nil
	store.mu.Unlock()
	i.clock = i.clock.Add(linkKeyLife)
	i.keys.Keys()
	i.settle()
	i.wantVerified(t, query, nil)
	other := newLinkInstance(t, &store)
	other.mustLoad(t)
	other.wantVerified(t, query, nil)
}

// After a downgrade, the keys of the later release are not replaced.
func TestLinkKeysOfALaterReleaseAreNotReplaced(t *testing.T) {
	later := []byte(`{"version":2}`)
	store := sharedStore{document: later}
	if err := newLinkInstance(t, &store).keys.Load(); !errors.Is(err, errLaterLinkKeys) {
		t.Errorf("at the start: %v", err)
	}
	if !bytes.Equal(store.document, later) {
		t.Error("the document was replaced")
	}
}

func TestLinkKeysOutliveAStoreThatFails(t *testing.T) {
	var store sharedStore
	i := newLinkInstance(t, &store)
	i.mustLoad(t)
	known, query := i.keys.Keys(), i.sign(t)

	for _, failing := range []string{"load", "lock", "store"} {
		store.fail(failing, errors.New("no route to host"))
		for range 5 {
			i.clock = i.clock.Add(linkKeyLife)
			i.keys.Keys()
			i.keys.Reload()
			i.settle()
			i.wantKey(t, known)
			i.wantVerified(t, query, nil)
		}
		if failing == "load" {
			if n := i.logged("level=ERROR"); n != 2 || i.logged("no route to host") != 2 {
				t.Errorf("want one error for each task, the log is:\n%s", i.log.String())
			}
		}
	}
	store.fail("", nil)
	i.clock = i.clock.Add(linkKeyLife)
	i.keys.Keys()
	i.settle()
	if i.keys.Keys() == known {
		t.Error("after the store is back, the key is not rotated")
	}
	if i.logged("rotating the keys of signed links works again") != 1 || i.logged("reloading the keys of signed links works again") != 1 {
		t.Errorf("the log is:\n%s", i.log.String())
	}
}

// While the store fails, an unknown key may be one that another instance has made: neither its
// links nor what it has sealed are called invalid.
func TestUnknownLinkKeysWhileTheStoreFails(t *testing.T) {
	for _, fails := range []struct {
		rule string
		do   func(*sharedStore)
	}{
		{"the store fails", func(s *sharedStore) { s.fail("load", errors.New("no route to host")) }},
		{"the store hangs", (*sharedStore).hang},
	} {
		t.Run(fails.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var store sharedStore
				a, b := newLinkInstance(t, &store), newLinkInstance(t, &store)
				a.mustLoad(t)
				b.mustLoad(t)
				a.clock = a.clock.Add(linkKeyLife)
				a.keys.Keys()
				a.settle()
				query, sealed := a.sign(t), a.seal(t, "session", "alice")
				fails.do(&store)
				for _, when := range []string{"first", "in the pause after that", "a second later"} {
					if when == "a second later" {
						b.settle()
						b.clock = b.clock.Add(time.Second)
					}
					b.wantVerified(t, query, ErrNoLinkKeys)
					if _, err := b.sealer().Open("session", sealed); !errors.Is(err, ErrNoLinkKeys) {
						t.Errorf("%s: opening got %v", when, err)
					}
				}
				b.settle()
				store.fail("", nil)
				b.clock = b.clock.Add(time.Second)
				b.wantVerified(t, query, nil)
				if plaintext, err := b.sealer().Open("session", sealed); err != nil || string(plaintext) != "alice" {
					t.Errorf("when the store is back: %q, %v", plaintext, err)
				}
				b.wantVerified(t, "exp=9999999999&sig="+strings.Repeat("A", 48), ErrLinkInvalid)
			})
		})
	}
}

func TestLinkKeysAreNotGeneratedWhenTheStoreFails(t *testing.T) {
	for _, failing := range []string{"load", "lock", "store"} {
		for name, document := range map[string][]byte{"without keys": nil, "with damaged keys": []byte("{")} {
			t.Run(failing+" "+name, func(t *testing.T) {
				store := sharedStore{document: document}
				store.fail(failing, errors.New("no route to host"))
				i := newLinkInstance(t, &store)
				err := i.keys.Load()
				if err == nil || !strings.Contains(err.Error(), "no route to host") {
					t.Errorf("got %v", err)
				}
				if i.keys.Keys() != nil || !bytes.Equal(store.document, document) {
					t.Error("there are keys")
				}
			})
		}
	}
}

// TestLinkKeysWithAStoreThatHangs runs with a fake clock.
func TestLinkKeysWithAStoreThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store sharedStore
		i := newLinkInstance(t, &store)
		i.keys.now = time.Now
		i.clock = time.Now()
		i.mustLoad(t)
		known := i.keys.Keys()
		store.hang()
		waits := func(rule string, do func(), want time.Duration) {
			t.Helper()
			begun := time.Now()
			do()
			if took := time.Since(begun); took != want {
				t.Errorf("%s waits for %v, want %v", rule, took, want)
			}
			i.wantKey(t, known)
		}
		waits("an unknown key", func() { i.keys.Reload() }, linkKeysWait)
		synctest.Wait()
		waits("the next one", func() { i.keys.Reload() }, linkKeysWait)
		time.Sleep(linkKeyLife)
		waits("an old key", func() { i.keys.Keys() }, 0)
		time.Sleep(linkKeyMaxAge - linkKeyLife)
		waits("a key that is too old", func() { i.keys.Keys() }, linkKeysWait)
		waits("the next link of the document", func() { i.keys.Keys() }, 0)
		if n := i.logged("level=ERROR"); n != 2 {
			t.Errorf("the log is:\n%s", i.log.String())
		}
	})
}

func TestClosingLinkKeysEndsTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store sharedStore
		i := newLinkInstance(t, &store)
		i.mustLoad(t)
		query := i.sign(t)
		store.hang()
		i.clock = i.clock.Add(linkKeyMaxAge)
		go i.keys.Reload()
		go i.keys.Keys()
		synctest.Wait()
		if store.running != 2 {
			t.Fatalf("%d operations are running", store.running)
		}
		begun := time.Now()
		i.keys.Close()
		if store.running != 0 || time.Since(begun) != 0 {
			t.Errorf("%d operations are running after %v", store.running, time.Since(begun))
		}

		// Requests of the old configuration may still be running.
		store.fail("", nil)
		i.clock = i.clock.Add(linkKeyMaxAge)
		operations := store.operations
		i.keys.Reload()
		i.wantVerified(t, query, nil)
		i.settle()
		if store.operations != operations {
			t.Error("an operation was started after that")
		}
		i.keys.Close()
		if n := i.logged("level=ERROR"); n != 0 {
			t.Errorf("the log is:\n%s", i.log.String())
		}
	})
}

// A linkInstance is one of several that share a store.
type linkInstance struct {
	keys  *RotatingLinkKeys
	links Links
	clock time.Time
	log   bytes.Buffer
}

func newLinkInstance(t *testing.T, store LinkKeyStore) *linkInstance {
	i := &linkInstance{clock: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	logger := slog.New(slog.NewTextHandler(&i.log, nil))
	i.keys = NewRotatingLinkKeys(t.Context(), store, logger, func() time.Time { return i.clock })
	i.links = Links{Life: time.Hour, Keys: i.keys.Keys, Reload: i.keys.Reload}
	t.Cleanup(i.keys.Close)
	return i
}

func (i *linkInstance) mustLoad(t *testing.T) {
	t.Helper()
	if err := i.keys.Load(); err != nil {
		t.Fatal(err)
	}
}

// settle waits until no task is running.
func (i *linkInstance) settle() { i.keys.running.Wait() }

// sign returns the query of a link that does not expire.
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

func (i *linkInstance) wantKey(t *testing.T, want *LinkKeys) {
	t.Helper()
	if got := i.keys.cached.Load().current().id; got != want.current().id {
		t.Errorf("the current key is %x, want %x", got, want.current().id)
	}
}

// logged counts the lines that contain a text.
func (i *linkInstance) logged(text string) (lines int) {
	for line := range strings.Lines(i.log.String()) {
		if strings.Contains(line, text) {
			lines++
		}
	}
	return lines
}

// A sharedStore keeps the document in memory.
type sharedStore struct {
	mu            sync.Mutex
	document      []byte
	locked        chan struct{}
	before        func(ctx context.Context, operation string) error
	loaded        func()
	loads, stores int
	operations    int // started
	running       int // running
}

// fail makes one of the operations fail.
func (s *sharedStore) fail(operation string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = func(_ context.Context, o string) error {
		if o == operation {
			return err
		}
		return nil
	}
}

// hang makes all operations run until they are cancelled.
func (s *sharedStore) hang() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = func(ctx context.Context, _ string) error {
		<-ctx.Done()
		return ctx.Err()
	}
}

// begin is called for every operation.
func (s *sharedStore) begin(ctx context.Context, operation string) error {
	s.mu.Lock()
	if s.locked == nil {
		s.locked = make(chan struct{}, 1)
	}
	s.operations++
	s.running++
	before := s.before
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.running--
	}()
	if before == nil {
		return ctx.Err()
	}
	return before(ctx, operation)
}

func (s *sharedStore) Load(ctx context.Context) ([]byte, error) {
	if err := s.begin(ctx, "load"); err != nil {
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

func (s *sharedStore) Store(ctx context.Context, document []byte) error {
	if err := s.begin(ctx, "store"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.document = document
	s.stores++
	return nil
}

func (s *sharedStore) Lock(ctx context.Context) (unlock func(), err error) {
	if err := s.begin(ctx, "lock"); err != nil {
		return nil, err
	}
	select {
	case s.locked <- struct{}{}:
		return func() { <-s.locked }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

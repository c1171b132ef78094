package storage

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/certmagic"
)

func TestNamedLocks(t *testing.T) {
	t.Run("one at a time has the lock of a name", func(t *testing.T) {
		var l namedLocks
		var users sync.WaitGroup
		count := 0 // the race detector reports access without the lock
		for range 100 {
			users.Go(func() {
				release, err := l.acquire(t.Context(), "a")
				if err != nil {
					t.Error(err)
					return
				}
				count++
				release()
			})
		}
		users.Wait()
		if count != 100 || len(l.named) != 0 {
			t.Errorf("%d had it, and %d locks are left", count, len(l.named))
		}
	})
	t.Run("names do not wait for each other", func(t *testing.T) {
		var l namedLocks
		a, err := l.acquire(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		b, err := l.acquire(t.Context(), "b")
		if err != nil {
			t.Fatal(err)
		}
		a()
		b()
	})
	t.Run("the wait ends with the context", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var l namedLocks
			release, err := l.acquire(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := l.acquire(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got error %v", err)
			}
			release()
			again, err := l.acquire(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			again()
			if len(l.named) != 0 {
				t.Errorf("%d locks are left", len(l.named))
			}
		})
	})
}

// alone has a storage that no other one follows.
func alone(s certmagic.Storage) func() (certmagic.Storage, error) {
	return func() (certmagic.Storage, error) { return s, nil }
}

// locksIn returns the locks of a process in a storage.
func locksIn(s certmagic.Storage) Lock {
	var l Locks
	return func(ctx context.Context, name string) (unlock func(), err error) {
		return l.Lock(ctx, alone(s), slog.New(slog.DiscardHandler), name)
	}
}

// A lock is shared by all instances with the same storage.
func TestLockIsShared(t *testing.T) {
	s := &certmagic.FileStorage{Path: t.TempDir()}
	var one, other Locks // of two processes
	unlock, err := one.Lock(t.Context(), alone(s), slog.Default(), "terraform_registry/publish/acme@demo@1.0.0")
	if err != nil {
		t.Fatal(err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := other.Lock(canceled, alone(s), slog.Default(), "terraform_registry/publish/acme@demo@1.0.0"); err == nil {
		t.Error("two instances have the lock")
	}
	unlock()
	unlock, err = other.Lock(t.Context(), alone(s), slog.Default(), "terraform_registry/publish/acme@demo@1.0.0")
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}

// Many requests of a process for one lock take it one after the other, without waiting
// for the storage's next look at it.
func TestLockOfOneProcess(t *testing.T) {
	s := &certmagic.FileStorage{Path: t.TempDir()}
	var l Locks
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // the storage would take 49
	defer cancel()
	var users sync.WaitGroup
	for range 50 {
		users.Go(func() {
			unlock, err := l.Lock(ctx, alone(s), slog.Default(), "a")
			if err != nil {
				t.Error(err)
				return
			}
			unlock()
		})
	}
	users.Wait()
}

// A unlockableStorage has one lock.
type unlockableStorage struct {
	certmagic.Storage
	lock   func(ctx context.Context) error
	unlock func() error
}

func (s unlockableStorage) Lock(ctx context.Context, _ string) error { return s.lock(ctx) }
func (s unlockableStorage) Unlock(context.Context, string) error     { return s.unlock() }

// newStorageLock returns a lock in a storage. released counts how often a lock was released for other requests of the process.
func newStorageLock(s certmagic.Storage) (l *storageLock, released *atomic.Int32, log *bytes.Buffer) {
	released, log = new(atomic.Int32), new(bytes.Buffer)
	return &storageLock{
		storage: s, now: alone(s), name: "publish/a", release: func() { released.Add(1) },
		logger: slog.New(slog.NewTextHandler(log, nil)),
	}, released, log
}

// Whatever a storage does with a lock, a request waits no longer than its context, and
// its error names the lock.
func TestLocksThatAStorageDoesNotGive(t *testing.T) {
	for _, test := range []struct {
		rule string
		lock func(ctx context.Context) error
	}{
		{"it waits", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }},
		{"it refuses", func(context.Context) error { return errors.New("connection refused") }},
	} {
		t.Run(test.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, released, _ := newStorageLock(unlockableStorage{lock: test.lock})
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				if err := l.take(ctx); err == nil || !strings.Contains(err.Error(), "publish/a") {
					t.Errorf("got %v", err)
				}
				synctest.Wait()
				if released.Load() != 1 {
					t.Errorf("it was released %d times", released.Load())
				}
			})
		})
	}
	t.Run("it hangs, and gives the lock when nobody waits any more", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			unlocked := false
			l, released, _ := newStorageLock(unlockableStorage{
				lock:   func(context.Context) error { time.Sleep(time.Hour); return nil },
				unlock: func() error { unlocked = true; return nil },
			})
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			began := time.Now()
			if err := l.take(ctx); err == nil || time.Since(began) != 30*time.Second || released.Load() != 0 {
				t.Errorf("after %s: %v, released %d times", time.Since(began), err, released.Load())
			}
			time.Sleep(time.Hour)
			synctest.Wait()
			if !unlocked || released.Load() != 1 {
				t.Errorf("unlocked: %t, released %d times", unlocked, released.Load())
			}
		})
	})
}

// A lock that a storage does not release is released later, and does not become another
// request's meanwhile.
func TestLocksThatAStorageDoesNotTakeBack(t *testing.T) {
	for _, test := range []struct {
		rule  string
		fails int // attempts
		err   error
		after time.Duration
		says  string
	}{
		{"it fails once", 1, errors.New("input/output error"), time.Second, ""},
		{"it fails for a while", 4, errors.New("input/output error"), 15 * time.Second, ""},
		{"there is none", 1000, fs.ErrNotExist, 0, ""},
		{"it fails for good", 1000, errors.New("input/output error"), 10*time.Minute + 31*time.Second, "stays"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				attempts := 0
				l, released, log := newStorageLock(unlockableStorage{unlock: func() error {
					if attempts++; attempts <= test.fails {
						return test.err
					}
					return nil
				}})
				l.giveBack(t.Context())
				if test.after > 0 && released.Load() > 0 {
					t.Error("it was released at once")
				}
				time.Sleep(test.after)
				synctest.Wait()
				if released.Load() != 1 || !strings.Contains(log.String(), test.says) {
					t.Errorf("released %d times, and the log says %s", released.Load(), log)
				}
			})
		})
	}
}

// A storage that hangs while it takes a lock back delays who had it by seconds only.
func TestUnlockingInAStorageThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, released, _ := newStorageLock(unlockableStorage{unlock: func() error { time.Sleep(time.Hour); return nil }})
		began := time.Now()
		l.giveBack(t.Context())
		if took := time.Since(began); took > 5*time.Second || released.Load() != 0 {
			t.Errorf("after %s it was released %d times", took, released.Load())
		}
		time.Sleep(time.Hour)
		if released.Load() != 1 {
			t.Errorf("it was released %d times", released.Load())
		}
	})
}

// A reload closes a storage while a request has a lock in it. Its lock is the same in the storage of
// the next configuration.
func TestLockInAStorageThatIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closed, unlocked := false, false
		before := unlockableStorage{
			lock:   func(context.Context) error { return nil },
			unlock: func() error { return errors.New("the client is closed") },
		}
		after := unlockableStorage{unlock: func() error { unlocked = true; return nil }}
		var l Locks
		unlock, err := l.Lock(t.Context(), func() (certmagic.Storage, error) {
			if closed {
				return after, nil
			}
			return before, nil
		}, slog.New(slog.DiscardHandler), "publish/a")
		if err != nil {
			t.Fatal(err)
		}
		closed = true
		unlock()
		time.Sleep(minUnlockRetry)
		synctest.Wait()
		if !unlocked || len(l.named.named) != 0 {
			t.Errorf("unlocked: %t, and %d locks are left", unlocked, len(l.named.named))
		}
	})
}

// A storage of files keeps a lock as long as a process refreshes it. No process
// refreshes a lock that is dated in the future or truncated.
func TestLockFilesThatAreLeftovers(t *testing.T) {
	for _, test := range []struct {
		rule    string
		content string
	}{
		{"dated in the future", `{"created":"2100-01-01T00:00:00Z","updated":"2100-01-01T00:00:00Z"}`},
		{"cut off", `{"created":"2000-01-`},
		{"empty", ""},
		{"old", `{"created":"1999-01-01T00:00:00Z","updated":"1999-01-01T00:00:00Z"}`},
	} {
		t.Run(test.rule, func(t *testing.T) {
			files := &certmagic.FileStorage{Path: t.TempDir()}
			synctest.Test(t, func(t *testing.T) {
				l, _, _ := newStorageLock(files)
				if err := files.Store(t.Context(), l.file(), []byte(test.content)); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				if err := l.take(ctx); err != nil {
					t.Fatal(err)
				}
				l.giveBack(t.Context())
			})
		})
	}
	t.Run("of an instance that was killed soon after this one had the lock", func(t *testing.T) {
		files := &certmagic.FileStorage{Path: t.TempDir()}
		synctest.Test(t, func(t *testing.T) {
			before, _, _ := newStorageLock(files)
			if err := before.take(t.Context()); err != nil {
				t.Fatal(err)
			}
			before.giveBack(t.Context())
			now := time.Now().Format(time.RFC3339Nano)
			if err := files.Store(t.Context(), before.file(), []byte(`{"created":"`+now+`","updated":"`+now+`"}`)); err != nil {
				t.Fatal(err)
			}
			l, _, _ := newStorageLock(files)
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			if err := l.take(ctx); err != nil {
				t.Fatal(err)
			}
			l.giveBack(t.Context())
		})
	})
	t.Run("of an instance that is at work", func(t *testing.T) {
		files := &certmagic.FileStorage{Path: t.TempDir()}
		synctest.Test(t, func(t *testing.T) {
			holder, _, _ := newStorageLock(files)
			if err := holder.take(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(lockRetry / 2) // two processes rarely use the file at the same moment
			l, _, _ := newStorageLock(files)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			if err := l.take(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "delete locks/") {
				t.Errorf("got %v", err)
			}
			if !files.Exists(t.Context(), l.file()) {
				t.Error("it was taken away")
			}
			holder.giveBack(t.Context())
			again, _, _ := newStorageLock(files)
			if err := again.take(t.Context()); err != nil {
				t.Fatal(err)
			}
			again.giveBack(t.Context())
		})
	})
}

// A process that was stopped for long, as a laptop that sleeps is, has lost its locks when it goes on.
func TestALockFileThatAnotherProcessTook(t *testing.T) {
	name := filepath.Join(t.TempDir(), "locks", "a.lock")
	synctest.Test(t, func(t *testing.T) {
		l, err := createLockFile(name)
		if err != nil {
			t.Fatal(err)
		}
		const others = `{"created":"1999-12-31T23:59:59Z","updated":"1999-12-31T23:59:59Z"}`
		if err := os.WriteFile(name, []byte(others), 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * lockRefresh)
		if err := l.giveBack(); err != nil {
			t.Fatal(err)
		}
		if content, err := os.ReadFile(name); err != nil || string(content) != others {
			t.Errorf("got %q, %v", content, err)
		}
	})
}

// A lock file that cannot be read may be the file of another process.
func TestALockFileThatCannotBeRead(t *testing.T) {
	name := filepath.Join(t.TempDir(), "locks", "a.lock")
	synctest.Test(t, func(t *testing.T) {
		l, err := createLockFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.Remove(name), os.Mkdir(name, 0o755)); err != nil { // reading a folder fails
			t.Fatal(err)
		}
		if err := l.giveBack(); err == nil {
			t.Error("it is given back")
		}
		if _, err := os.Stat(name); err != nil {
			t.Error(err)
		}
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
		if err := l.giveBack(); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("when it is gone: %v", err)
		}
	})
}

package module

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"
)

// lock waits for the lock of a name that all instances of a cluster share, or for the
// end of ctx. An error means that the lock was not to be had.
//
// The requests of this process wait for each other first: while a lock of a storage is
// taken, certmagic looks at it once a second.
func (a *App) lock(ctx context.Context, name string) (unlock func(), err error) {
	release, err := a.locks.acquire(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("a request to this instance has the lock %s: %w", name, err)
	}
	l := &storageLock{storage: a.ctx.Storage(), name: name, logger: a.logger, release: release}
	if err := l.take(ctx); err != nil {
		return nil, err
	}
	return func() { l.giveBack(context.WithoutCancel(ctx)) }, nil
}

// A storageLock is a lock in Caddy's storage. A storage may fail in any way: it may hang,
// refuse, or not let go of a lock. The requests for one lock may then fail, but none waits
// longer than its context.
type storageLock struct {
	storage certmagic.Storage
	name    string
	logger  *slog.Logger
	release func() // once the storage does not have the lock for this process
}

// take takes the lock. Without it, its release is called as soon as that is certain.
func (l *storageLock) take(ctx context.Context) error {
	taken := make(chan error, 1)
	go func() { taken <- l.obtain(ctx) }()
	select {
	case err := <-taken:
		if err == nil {
			return nil
		}
		l.release()
		return l.notTaken(cmp.Or(context.Cause(ctx), err))
	case <-ctx.Done(): // which not every storage heeds
		go func() {
			if err := <-taken; err == nil {
				l.giveBack(context.WithoutCancel(ctx))
				return
			}
			l.release()
		}()
		return l.notTaken(context.Cause(ctx))
	}
}

// notTaken says which lock it is, and what can be done if nobody has it.
func (l *storageLock) notTaken(err error) error {
	if _, ok := l.storage.(*certmagic.FileStorage); ok {
		return fmt.Errorf("the lock %s: %w: if no instance is at work on this, delete %s in the storage", l.name, err, l.file())
	}
	return fmt.Errorf("the lock %s: %w: if no instance is at work on this, delete it in the storage", l.name, err)
}

// file is the key of a lock in a storage of files.
func (l *storageLock) file() string { return "locks/" + certmagic.StorageKeys.Safe(l.name) + ".lock" }

// How a storage of files works: who has a lock writes the time into its file every five
// seconds. certmagic takes a lock for a leftover if that time is old. A file with a time in
// the future, or one that was cut off, is none for it, and would stay for ever; but nobody
// writes to it.
const (
	lockLookInterval = 5 * time.Second
	lockDeadAfter    = 20 * time.Second
	lockRetry        = time.Second
)

// obtain waits until the storage gives the lock, or refuses it for good.
func (l *storageLock) obtain(ctx context.Context) error {
	files, ok := l.storage.(*certmagic.FileStorage)
	if !ok {
		return l.storage.Lock(ctx, l.name)
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	go l.removeDead(watching, files)
	for {
		present := files.Exists(ctx, l.file())
		err := files.Lock(ctx, l.name)
		if err == nil || ctx.Err() != nil || !present && !files.Exists(ctx, l.file()) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(lockRetry):
		}
	}
}

// removeDead removes the file of the lock once nobody has written to it for long enough.
// It reads the file each time: what a network file system knows of it may be old.
func (l *storageLock) removeDead(ctx context.Context, files *certmagic.FileStorage) {
	var last []byte
	var since time.Time
	look := time.NewTicker(lockLookInterval)
	defer look.Stop()
	for {
		content, err := files.Load(ctx, l.file())
		switch now := time.Now(); {
		case err != nil:
			since = time.Time{}
		case since.IsZero() || !bytes.Equal(content, last):
			last, since = content, now
		case now.Sub(since) >= lockDeadAfter:
			since = time.Time{}
			if err := files.Delete(ctx, l.file()); err == nil {
				l.logger.Warn("removed a lock that nobody keeps up", "lock", l.name)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
	}
}

// How often and for how long it is tried to give back a lock. certmagic keeps a lock of a
// storage of files fresh for as long as its file is there and the process lives.
const (
	minUnlockRetry = time.Second
	maxUnlockRetry = 30 * time.Second
	unlockPatience = 10 * time.Minute
)

// giveBack unlocks. If the storage fails, that is tried again in the background. Until it
// has succeeded, no other request of this process takes the lock: what is unlocked late
// must not be somebody else's.
func (l *storageLock) giveBack(ctx context.Context) {
	err := l.unlock(ctx)
	if err == nil {
		l.release()
		return
	}
	l.logger.Warn("releasing a lock that instances share", "lock", l.name, "error", err.Error())
	go func() {
		defer l.release()
		began := time.Now()
		for wait := minUnlockRetry; time.Since(began) < unlockPatience; wait = min(2*wait, maxUnlockRetry) {
			time.Sleep(wait)
			if err = l.unlock(ctx); err == nil {
				return
			}
		}
		l.logger.Error("a lock that instances share stays", "lock", l.name, "error", l.notTaken(err).Error())
	}()
}

// unlock unlocks once. A lock that is not there is given back: the answer to an earlier
// attempt may have been lost.
func (l *storageLock) unlock(ctx context.Context) error {
	err := l.storage.Unlock(ctx, l.name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// namedLocks are locks by name, within this process. The zero value is ready for use.
type namedLocks struct {
	mutex sync.Mutex
	named map[string]*namedLock
}

type namedLock struct {
	taken chan struct{} // has an element while it is taken
	users int           // that have taken it or wait for it
}

// acquire takes the lock of a name, unless ctx ends before.
func (l *namedLocks) acquire(ctx context.Context, name string) (release func(), err error) {
	lock := l.use(name)
	select {
	case lock.taken <- struct{}{}:
		return func() {
			<-lock.taken
			l.leave(name)
		}, nil
	case <-ctx.Done():
		l.leave(name)
		return nil, context.Cause(ctx)
	}
}

func (l *namedLocks) use(name string) *namedLock {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	lock := l.named[name]
	if lock == nil {
		if l.named == nil {
			l.named = make(map[string]*namedLock)
		}
		lock = &namedLock{taken: make(chan struct{}, 1)}
		l.named[name] = lock
	}
	lock.users++
	return lock
}

func (l *namedLocks) leave(name string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if lock := l.named[name]; lock.users > 1 {
		lock.users--
		return
	}
	delete(l.named, name)
}

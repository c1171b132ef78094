package storage

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

// A Lock waits for a lock that all instances share, or for the end of ctx.
type Lock = func(ctx context.Context, name string) (unlock func(), err error)

// Locks are locks that all instances of a cluster share. The zero value is ready for use.
type Locks struct {
	named namedLocks
}

// Lock waits for the lock of a name in a storage, or for the end of ctx. An error means that
// it could not take the lock. storage is called again if unlocking fails: a reload may have
// closed the storage that had the lock, and the next one can have the same lock.
//
// The requests of this process wait for each other first, since certmagic checks a
// taken lock of a storage only once a second.
func (l *Locks) Lock(ctx context.Context, storage func() (certmagic.Storage, error), logger *slog.Logger, name string) (unlock func(), err error) {
	s, err := storage()
	if err != nil {
		return nil, err
	}
	release, err := l.named.acquire(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("a request to this instance has the lock %s: %w", name, err)
	}
	lock := &storageLock{storage: s, now: storage, name: name, logger: logger, release: release}
	if err := lock.take(ctx); err != nil {
		return nil, err
	}
	return func() { lock.giveBack(context.WithoutCancel(ctx)) }, nil
}

// A storageLock is a lock in Caddy's storage. A storage may fail in any way: it may
// hang, refuse a lock, or not release it. The requests for one lock may then fail, but
// none waits longer than its context.
type storageLock struct {
	storage certmagic.Storage
	now     func() (certmagic.Storage, error) // the storage that is in use now
	name    string
	logger  *slog.Logger
	release func() // called when this process certainly does not have the lock in the storage

	taken *lockFile // nil: the storage is not one of files, or has not given the lock
}

// take takes the lock. If it fails, it calls release as soon as the failure is certain.
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
	case <-ctx.Done(): // not every storage respects it
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

// notTaken returns an error with the name of the lock, and with a remedy if the lock is
// dead.
func (l *storageLock) notTaken(err error) error {
	if _, ok := l.storage.(*certmagic.FileStorage); ok {
		return fmt.Errorf("the lock %s: %w: if no instance is at work on this, delete %s in the storage", l.name, err, l.file())
	}
	return fmt.Errorf("the lock %s: %w: if no instance is at work on this, delete it in the storage", l.name, err)
}

// file returns the key of a lock in a storage of files.
func (l *storageLock) file() string { return "locks/" + certmagic.StorageKeys.Safe(l.name) + ".lock" }

// A lock file with a time in the future, or a truncated one, is a leftover too if no process writes to
// it.
const (
	lockLookInterval = 5 * time.Second
	lockDeadAfter    = 20 * time.Second
	lockRetry        = time.Second
)

// obtain waits until the storage grants the lock, or refuses it permanently.
func (l *storageLock) obtain(ctx context.Context) error {
	files, ok := l.storage.(*certmagic.FileStorage)
	if !ok {
		return l.storage.Lock(ctx, l.name)
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	go l.removeDead(watching, files)
	name := files.Filename(l.file())
	for {
		present := files.Exists(ctx, l.file()) // the error need not say so where a file is being removed
		var err error
		if l.taken, err = createLockFile(name); err == nil || !present && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if removeStale(name) && ctx.Err() == nil {
			continue
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(lockRetry):
		}
	}
}

// removeDead removes the file of the lock if no process has written to it for long
// enough. It reads the file each time, since a network file system may have old
// metadata.
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
				l.logger.Warn("removed an abandoned lock", "lock", l.name)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
	}
}

// How often and for how long unlocking is attempted, and how long those who had the lock wait for it.
const (
	unlockWait     = 5 * time.Second
	minUnlockRetry = time.Second
	maxUnlockRetry = 30 * time.Second
	unlockPatience = 10 * time.Minute
)

// giveBack unlocks. It does not wait long for a storage that hangs, and one that fails is asked again in
// the background. Until that succeeds, no other request of this process takes the lock: a late unlock
// must not release another request's lock.
func (l *storageLock) giveBack(ctx context.Context) {
	tried := make(chan struct{})
	go func() {
		err := l.unlock(ctx)
		if err == nil {
			l.release()
			close(tried)
			return
		}
		l.logger.Warn("releasing a lock that instances share", "lock", l.name, "error", err.Error())
		close(tried)
		l.unlockLater(ctx)
	}()
	select {
	case <-tried:
	case <-time.After(unlockWait):
	}
}

func (l *storageLock) unlockLater(ctx context.Context) {
	defer l.release()
	var err error
	began := time.Now()
	for wait := minUnlockRetry; time.Since(began) < unlockPatience; wait = min(2*wait, maxUnlockRetry) {
		time.Sleep(wait)
		if now, failed := l.now(); failed == nil {
			l.storage = now
		}
		if err = l.unlock(ctx); err == nil {
			return
		}
	}
	l.logger.Error("a lock that instances share stays", "lock", l.name, "error", l.notTaken(err).Error())
}

// unlock unlocks once. A missing lock counts as unlocked, since the answer to an
// earlier attempt may have been lost.
func (l *storageLock) unlock(ctx context.Context) error {
	var err error
	if l.taken != nil {
		err = l.taken.giveBack()
	} else {
		err = l.storage.Unlock(ctx, l.name)
	}
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
	taken chan struct{} // has an element while the lock is taken
	users int           // requests that have taken the lock or wait for it
}

// acquire takes the lock with a name, unless ctx ends before.
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

package module

import (
	"context"
	"sync"
)

// lock waits for the lock of a name that all instances of a cluster share, or for the
// end of ctx. An error means that the storage cannot lock at the moment.
//
// The requests of this process wait for each other first: while a lock of a storage is
// taken, certmagic looks at it once a second.
func (a *App) lock(ctx context.Context, name string) (unlock func(), err error) {
	release, err := a.locks.acquire(ctx, name)
	if err != nil {
		return nil, err
	}
	storage := a.ctx.Storage()
	if err := storage.Lock(ctx, name); err != nil {
		release()
		return nil, err
	}
	return func() {
		defer release()
		// A lock that stays behind becomes stale, and is then ignored.
		if err := storage.Unlock(context.WithoutCancel(ctx), name); err != nil {
			a.logger.Warn("releasing a lock that instances share", "lock", name, "error", err.Error())
		}
	}, nil
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

package access

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// linkKeyLife is how long a key signs. It verifies for as long again.
	linkKeyLife = 24 * time.Hour

	// MaxLinkLife is the longest Life of Links, so that no key is dropped before
	// the links it signed have expired.
	MaxLinkLife = linkKeyLife / 2

	// linkKeyMaxAge is the age of a key from which it must not sign any more: other
	// instances may be about to drop it. Only an instance that was idle for hours
	// has such a key.
	linkKeyMaxAge = linkKeyLife + linkKeyLife/4

	// linkKeysWait is how long a request waits for the store.
	linkKeysWait = 2 * time.Second

	// linkKeysTimeout is how long loading at the start and rotating may take: another
	// instance may hold the lock.
	linkKeysTimeout = 2 * time.Minute
)

// A LinkKeyStore stores the document with the link keys of all instances of a
// registry. Implementations are safe for concurrent use, and return when ctx ends.
type LinkKeyStore interface {
	// Load returns the document. The error is an fs.ErrNotExist only if there is
	// none.
	Load(ctx context.Context) ([]byte, error)

	// Store replaces the document.
	Store(ctx context.Context, document []byte) error

	// Lock acquires the lock that instances hold while they replace the document.
	// An abandoned lock expires. Close may have to wait for unlock, which returns within seconds.
	Lock(ctx context.Context) (unlock func(), err error)
}

// RotatingLinkKeys are the link keys in a store: all instances that share it sign
// with the same key and verify each other's links. One of them replaces the key
// when it is a day old, and the others reload the keys when they get a link signed
// with the new one. A damaged document is replaced by new keys; if the store fails,
// the keys stay as they are. It is safe for concurrent use.
//
// The store is accessed in the background. Requests wait for it in two cases
// only, and no longer than two seconds: if the current key is too old to sign, and
// if a link names an unknown key.
type RotatingLinkKeys struct {
	store  LinkKeyStore
	logger *slog.Logger
	now    func() time.Time
	cached atomic.Pointer[LinkKeys]

	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu     sync.Mutex // guards what follows
	closed bool
	rotate linkKeysTask
	reload linkKeysTask
}

// A linkKeysTask accesses the store. It does not run twice at a time. It is no load of a
// cache.Cache: all requests that wait for a run share one deadline, the run goes on
// without them, and after each run there is a pause, whether it succeeded or failed.
type linkKeysTask struct {
	name    string
	pause   time.Duration // at least, between the starts of two runs
	timeout time.Duration
	do      func(context.Context) error

	started time.Time
	wait    <-chan struct{} // see start; nil: it is not running
	failing bool
}

// NewRotatingLinkKeys returns the keys in a store. Before Load there are no keys.
// The keys must be closed. Now is the clock.
func NewRotatingLinkKeys(ctx context.Context, store LinkKeyStore, logger *slog.Logger, now func() time.Time) *RotatingLinkKeys {
	k := &RotatingLinkKeys{store: store, logger: logger, now: now}
	k.ctx, k.cancel = context.WithCancel(ctx)
	k.rotate = linkKeysTask{name: "rotating", pause: time.Minute, timeout: linkKeysTimeout, do: k.rotateNow}
	k.reload = linkKeysTask{name: "reloading", pause: time.Second, timeout: linkKeysWait, do: k.reloadNow}
	return k
}

// Load loads the keys, and generates them if there are none or if they are damaged. It
// is called at the start, which is the best time to find that the store does not work.
func (k *RotatingLinkKeys) Load() error {
	ctx, cancel := context.WithTimeout(k.ctx, linkKeysTimeout)
	defer cancel()
	keys, err := k.load(ctx)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errDamaged) {
		keys, err = k.renew(ctx)
	}
	if err != nil {
		return err
	}
	k.cached.Store(keys)
	return nil
}

// Keys returns the cached keys; nil before they are loaded. It is called for every
// link, so this is where the age of the key is checked.
func (k *RotatingLinkKeys) Keys() *LinkKeys {
	keys := k.cached.Load()
	if keys == nil {
		return nil
	}
	age := k.now().Sub(keys.rotated)
	if age < linkKeyLife {
		return keys
	}
	wait := k.start(&k.rotate)
	if age < linkKeyMaxAge {
		return keys
	}
	if wait != nil {
		<-wait
	}
	return k.cached.Load()
}

// Reload loads the keys again, as another instance may have rotated them. It
// waits for the result, since clients do not retry. It does so at most once a
// second, so that forged links do not load the store. It reports whether the last time
// succeeded; after Close, it did not.
func (k *RotatingLinkKeys) Reload() bool {
	if wait := k.start(&k.reload); wait != nil {
		<-wait
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.reload.wait == nil && !k.reload.failing && !k.closed
}

// Close cancels the access to the store and waits until it has ended. The cached
// keys remain, for requests that are still being answered.
func (k *RotatingLinkKeys) Close() {
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	k.cancel()
	k.running.Wait()
}

// start starts a task in the background, unless it was started a moment ago. The
// channel it returns is closed when the current run has ended, or when requests
// have waited for it long enough; nil if the task is not running.
func (k *RotatingLinkKeys) start(t *linkKeysTask) (wait <-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if t.wait != nil {
		return t.wait
	}
	now := k.now()
	if k.closed || !t.started.IsZero() && now.Sub(t.started) < t.pause {
		return nil
	}
	// One deadline for all that wait: a document has many links, and each asks for
	// the keys.
	deadline, end := context.WithTimeout(k.ctx, linkKeysWait)
	t.started, t.wait = now, deadline.Done()
	k.running.Go(func() {
		defer end()
		ctx, cancel := context.WithTimeout(k.ctx, t.timeout)
		defer cancel()
		err := t.do(ctx)
		k.mu.Lock()
		defer k.mu.Unlock()
		t.wait = nil
		k.report(t, err)
	})
	return t.wait
}

// report logs when a task begins to fail, and when it works again, but not the
// failures in between.
func (k *RotatingLinkKeys) report(t *linkKeysTask, err error) {
	switch {
	case k.ctx.Err() != nil: // it was cancelled
	case err != nil && !t.failing:
		k.logger.Error(t.name+" the keys of signed links failed, the cached ones stay in use", "error", err.Error())
	case err == nil && t.failing:
		k.logger.Info(t.name + " the keys of signed links works again")
	}
	t.failing = err != nil
}

func (k *RotatingLinkKeys) reloadNow(ctx context.Context) error {
	before := k.cached.Load()
	keys, err := k.load(ctx)
	if errors.Is(err, errDamaged) {
		keys, err = k.renew(ctx)
	}
	if err != nil {
		return err
	}
	// If they were rotated meanwhile, these may be the keys from before.
	k.cached.CompareAndSwap(before, keys)
	return nil
}

func (k *RotatingLinkKeys) rotateNow(ctx context.Context) error {
	keys, err := k.renew(ctx)
	if err != nil {
		return err
	}
	k.cached.Store(keys)
	return nil
}

// errDamaged is wrapped by the error for a document that was loaded and makes no sense.
var errDamaged = errors.New("the document is damaged")

// load loads the keys. The error is an fs.ErrNotExist only if there are none, and
// errDamaged only if there is a document: a store that fails says neither.
func (k *RotatingLinkKeys) load(ctx context.Context) (*LinkKeys, error) {
	document, err := k.store.Load(ctx)
	if err != nil {
		return nil, fmt.Errorf("loading them: %w", err)
	}
	keys, err := decodeLinkKeys(document)
	switch {
	case errors.Is(err, errLaterLinkKeys):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	return keys, nil
}

// renew generates, replaces or rotates the keys in the store, unless another instance
// was first.
func (k *RotatingLinkKeys) renew(ctx context.Context) (*LinkKeys, error) {
	unlock, err := k.store.Lock(ctx)
	if err != nil {
		return nil, fmt.Errorf("locking them: %w", err)
	}
	defer unlock()
	keys, err := k.load(ctx)
	damage, now := err, k.now()
	switch cached := k.cached.Load(); {
	case cached != nil && (errors.Is(err, errDamaged) || errors.Is(err, fs.ErrNotExist)):
		keys = cached.rotate(now) // the links that this instance has signed stay valid
	case errors.Is(err, errDamaged), errors.Is(err, fs.ErrNotExist):
		keys = NewLinkKeys(now)
	case err != nil:
		return nil, err
	// A key from the future is kept: two instances whose clocks differ by more than
	// its life would rotate it again and again.
	case now.Sub(keys.rotated) < linkKeyLife:
		return keys, nil
	default:
		keys = keys.rotate(now)
	}
	if err := k.store.Store(ctx, keys.encode()); err != nil {
		return nil, fmt.Errorf("storing them: %w", err)
	}
	if errors.Is(damage, errDamaged) {
		k.logger.Warn("the keys of signed links were damaged, new ones were made", "key", keys.current().name(), "error", damage.Error())
	} else {
		k.logger.Info("made a new key for signed links", "key", keys.current().name())
	}
	return keys, nil
}

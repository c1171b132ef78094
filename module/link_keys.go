package module

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
)

const (
	// linkKeysName is where the keys of signed links are in Caddy's storage. All
	// instances that share the storage sign with the same key, and verify each
	// other's links.
	linkKeysName = "terraform_registry/link_keys.json"

	// linkKeyLife is how long a key signs. It verifies for as long again.
	linkKeyLife = 24 * time.Hour

	// maxLinkLife is the longest life that links may be given, so that no key is
	// dropped before the links which it signed have expired.
	maxLinkLife = linkKeyLife / 2

	// linkKeyTooOld is the age of a key that nothing is to be signed with any
	// more: other instances may be about to drop it. Only one that has had nothing
	// to do for hours finds it has such a key.
	linkKeyTooOld = linkKeyLife + linkKeyLife/4

	// linkKeysWait is how long a request waits for the storage.
	linkKeysWait = 2 * time.Second
)

// linkKeys has the keys of signed links at hand, and the storage in step with
// them. What reads or writes the storage runs beside the requests, which wait
// for it in two cases only, and not for long.
type linkKeys struct {
	storage certmagic.Storage
	logger  *slog.Logger
	now     func() time.Time
	known   atomic.Pointer[access.LinkKeys]

	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
	mu      sync.Mutex // guards what follows
	closed  bool
	rotate  linkKeysTask
	reload  linkKeysTask
}

// A linkKeysTask is one that runs now and then, and once at a time.
type linkKeysTask struct {
	name     string
	every    time.Duration // at most
	patience time.Duration
	do       func(context.Context) error

	begun   time.Time
	waiting <-chan struct{} // of the run that is under way, see begin; nil: none is
	failing bool
}

// newLinkKeys returns what has no keys yet, see Load. It must be closed.
func newLinkKeys(ctx context.Context, storage certmagic.Storage, logger *slog.Logger, now func() time.Time) *linkKeys {
	k := &linkKeys{storage: storage, logger: logger, now: now}
	k.ctx, k.cancel = context.WithCancel(ctx)
	k.rotate = linkKeysTask{name: "rotating", every: time.Minute, patience: ownKeyPatience, do: k.rotateNow}
	k.reload = linkKeysTask{name: "reloading", every: time.Second, patience: linkKeysWait, do: k.reloadNow}
	return k
}

// Load loads the keys, which are generated when there are none. It is for the
// start: keys that cannot be read are better found then.
func (k *linkKeys) Load() error {
	ctx, cancel := context.WithTimeout(k.ctx, ownKeyPatience)
	defer cancel()
	keys, err := k.load(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		keys, err = k.renew(ctx)
	}
	if err != nil {
		return fmt.Errorf("the keys of signed links, %s in Caddy's storage: %w", linkKeysName, err)
	}
	k.known.Store(keys)
	return nil
}

// Keys returns the keys at hand; nil before they are loaded. It is for
// access.Links, so this is where old keys are noticed.
func (k *linkKeys) Keys() *access.LinkKeys {
	keys := k.known.Load()
	if keys == nil {
		return nil
	}
	age := k.now().Sub(keys.Rotated())
	if age < linkKeyLife {
		return keys
	}
	waiting := k.begin(&k.rotate)
	if age < linkKeyTooOld {
		return keys
	}
	if waiting != nil {
		<-waiting
	}
	return k.known.Load()
}

// Unknown has the keys loaded again, as another instance may have rotated them,
// and waits for that: a client makes one attempt only. A second has to pass
// between two times, so that made-up links do not make the storage work. It is
// for access.Links.
func (k *linkKeys) Unknown() {
	if waiting := k.begin(&k.reload); waiting != nil {
		<-waiting
	}
}

// Close ends what is running, and waits until it has ended. The keys at hand
// remain, for the requests that are still being answered.
func (k *linkKeys) Close() {
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	k.cancel()
	k.running.Wait()
}

// begin has a task run in the background, unless it has run a moment ago. What
// it returns is closed when the run under way has ended, or has taken so long
// that no request is to wait for it any more; nil if none is under way.
func (k *linkKeys) begin(t *linkKeysTask) (waiting <-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if t.waiting != nil {
		return t.waiting
	}
	now := k.now()
	if k.closed || !t.begun.IsZero() && now.Sub(t.begun) < t.every {
		return nil
	}
	// One for all that wait: a document has many links, and each asks for keys.
	enough, end := context.WithTimeout(k.ctx, linkKeysWait)
	t.begun, t.waiting = now, enough.Done()
	k.running.Go(func() {
		defer end()
		ctx, cancel := context.WithTimeout(k.ctx, t.patience)
		defer cancel()
		err := t.do(ctx)
		k.mu.Lock()
		defer k.mu.Unlock()
		t.waiting = nil
		k.report(t, err)
	})
	return t.waiting
}

// report logs that a task has begun to fail, or has ceased to. In between it is
// silent, however often links make it run.
func (k *linkKeys) report(t *linkKeysTask, err error) {
	switch {
	case k.ctx.Err() != nil: // closed: it failed because of that
	case err != nil && !t.failing:
		k.logger.Error(t.name+" the keys of signed links failed, the known ones stay in use", "name", linkKeysName, "error", err.Error())
	case err == nil && t.failing:
		k.logger.Info(t.name + " the keys of signed links works again")
	}
	t.failing = err != nil
}

func (k *linkKeys) reloadNow(ctx context.Context) error {
	before := k.known.Load()
	keys, err := k.load(ctx)
	if err != nil {
		return err
	}
	// If they were rotated meanwhile, these may be the ones of before.
	k.known.CompareAndSwap(before, keys)
	return nil
}

func (k *linkKeys) rotateNow(ctx context.Context) error {
	keys, err := k.renew(ctx)
	if err != nil {
		return err
	}
	k.known.Store(keys)
	return nil
}

// load loads the keys. The error is fs.ErrNotExist only if there are none: a
// document that cannot be read is for a human to look at, never to be replaced.
func (k *linkKeys) load(ctx context.Context) (*access.LinkKeys, error) {
	document, err := k.storage.Load(ctx, linkKeysName)
	if err != nil {
		return nil, fmt.Errorf("loading them: %w", err)
	}
	keys, err := access.DecodeLinkKeys(document)
	if err != nil {
		return nil, fmt.Errorf("the document is damaged, restore it or delete it to have new keys: %w", err)
	}
	return keys, nil
}

// renew generates or rotates the keys in the storage, unless another instance
// has been first.
func (k *linkKeys) renew(ctx context.Context) (*access.LinkKeys, error) {
	if err := k.storage.Lock(ctx, linkKeysName); err != nil {
		return nil, fmt.Errorf("locking them: %w", err)
	}
	defer func() {
		// A lock that is left behind is found to be stale in time.
		if err := k.storage.Unlock(context.WithoutCancel(ctx), linkKeysName); err != nil {
			k.logger.Warn("unlocking the keys of signed links", "error", err.Error())
		}
	}()
	keys, err := k.load(ctx)
	now := k.now()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		keys = access.NewLinkKeys(now)
	case err != nil:
		return nil, err
	// One from the future is left alone: it would be rotated again and again by
	// two instances whose clocks differ by more than its life.
	case now.Sub(keys.Rotated()) < linkKeyLife:
		return keys, nil
	default:
		keys = keys.Rotate(now)
	}
	if err := k.storage.Store(ctx, linkKeysName, keys.Encode()); err != nil {
		return nil, fmt.Errorf("storing them: %w", err)
	}
	k.logger.Info("made a new key for signed links", "key", keys.Current().ID())
	return keys, nil
}

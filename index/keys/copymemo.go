package keys

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/caddy-terraform/caddy-terraform-registry/signing"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A CopyMemo remembers the copies that were last loaded or stored. The zero value has no
// store and remembers nothing.
type CopyMemo struct {
	Store Copies           // does not change; nil: there are no copies
	Now   func() time.Time // does not change

	mutex    sync.Mutex
	known    map[Namespace]*keyCopy // nil: it is known that there is no copy
	compared *Folder                // whose files were last compared with their copies
	again    map[Namespace]bool     // to compare again, though the keys stay the same
	retry    time.Time              // when copies that could not be loaded are loaded again
}

// retryAfter is how long scans do without the copies that could not be loaded: if their storage
// hangs, each attempt takes copyPatience.
const retryAfter = time.Minute

// Has reports whether the copy of a namespace is known to have a release.
func (m *CopyMemo) Has(n Namespace, r Release) bool {
	c, _ := m.recall(n)
	return c.has(r)
}

// HasKeys reports whether the copy of a namespace is known to have the keys of its file.
func (m *CopyMemo) HasKeys(n Namespace, file *File) bool {
	c, _ := m.recall(n)
	return c != nil && c.hasKeys(file)
}

// outdated returns the namespaces in a folder whose copies are to be renewed or dropped. While
// the keys stay the same, it compares those again whose copies have changed or were outdated, and
// not thousands of others for each change in the tree.
func (m *CopyMemo) outdated(k *Folder) (namespaces []Namespace) {
	retries := m.retries()
	m.mutex.Lock()
	compare := maps.Keys(m.again)
	if m.compared != k || retries {
		compare = maps.Keys(k.files)
	}
	m.compared, m.again = k, make(map[Namespace]bool)
	m.mutex.Unlock()
	for n := range compare {
		if file := k.files[n]; file != nil && m.isOutdated(n, file, retries) {
			namespaces = append(namespaces, n)
		}
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for _, n := range namespaces { // storing their copies may fail
		m.again[n] = true
	}
	return namespaces
}

// isOutdated reports whether the copy of a namespace has other keys than its file, or may have
// because it could not be loaded: a key that was removed from the file must not count again when
// the file is lost. A file that has no key, or has just been changed, may be half-written, and
// the copy stays. A file that says "unsigned" needs no copy.
func (m *CopyMemo) isOutdated(n Namespace, file *File, retries bool) bool {
	c, known := m.recall(n)
	switch {
	case known && c == nil:
		return false
	case file.unsigned:
		return true
	case !file.settled, !file.Verifies():
		return false
	case !known:
		return retries
	}
	return !c.hasKeys(file)
}

// Load loads the copies of the keys files in a folder that can be read. Keep tries again to load
// those that cannot be loaded now.
func (m *CopyMemo) Load(ctx context.Context, k *Folder) {
	if m.Store == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, copyPatience)
	defer cancel()
	eachCopy(slices.Collect(maps.Keys(k.files)), func(_ int, n Namespace) {
		if k.files[n].IsFile() && !k.files[n].unsigned {
			_, _ = m.load(ctx, n)
		}
	})
}

func (m *CopyMemo) recall(n Namespace) (c *keyCopy, known bool) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	c, known = m.known[n]
	return c, known
}

func (m *CopyMemo) remember(n Namespace, c *keyCopy) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.known == nil {
		m.known = make(map[Namespace]*keyCopy)
	}
	m.known[n] = c
	if m.again != nil {
		m.again[n] = true
	}
}

// load returns the current copy of a namespace; nil if there is no copy.
func (m *CopyMemo) load(ctx context.Context, n Namespace) (*keyCopy, error) {
	content, err := m.Store.Load(ctx, n.String())
	if errors.Is(err, fs.ErrNotExist) {
		m.remember(n, nil)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if c, _ := m.recall(n); c != nil && c.sum == wire.SHA256Of(content) {
		return c, nil
	}
	c, err := decodeCopy(content)
	if err != nil {
		return nil, err
	}
	m.remember(n, c)
	return c, nil
}

// keep stores the copy of a namespace. It keeps releases that another instance has stored
// meanwhile.
func (m *CopyMemo) keep(ctx context.Context, n Namespace, keys string, releases []Release) error {
	last, err := m.load(ctx, n)
	if err != nil && !errors.Is(err, errCopyDamaged) {
		return err
	}
	next := last.withKeys(keys, releases)
	if err := m.Store.Store(ctx, n.String(), next.encode()); err != nil {
		return err
	}
	m.remember(n, next)
	return nil
}

// drop removes the copy of a namespace unless it is known that there is no copy.
func (m *CopyMemo) drop(ctx context.Context, n Namespace) error {
	if c, known := m.recall(n); known && c == nil {
		return nil
	}
	if err := m.Store.Delete(ctx, n.String()); err != nil {
		return err
	}
	m.remember(n, nil)
	return nil
}

// Keep adds releases that the keys files verify to the copies of keys, renews copies whose files
// have other keys now, and drops the copies of namespaces that are not signed. failed says which
// copy could not be stored, and why; empty: all could.
func (m *CopyMemo) Keep(ctx context.Context, k *Folder, verified map[Namespace][]Release) (failed string) {
	chosen := make(map[Namespace]bool)
	for _, n := range m.outdated(k) {
		chosen[n] = true
	}
	for n, releases := range verified {
		if len(releases) > 0 && k.files[n] != nil {
			chosen[n] = true
		}
	}
	namespaces := slices.Collect(maps.Keys(chosen))
	ctx, cancel := context.WithTimeout(ctx, copyPatience)
	defer cancel()
	errs := make([]error, len(namespaces))
	eachCopy(namespaces, func(i int, n Namespace) {
		if k.files[n].unsigned {
			errs[i] = m.drop(ctx, n)
		} else {
			errs[i] = m.add(ctx, n, k.files[n], verified[n])
		}
	})
	for i, err := range errs {
		if err != nil {
			failed = tree.AsFinding(fmt.Errorf("its copy cannot be stored: %w", tree.WithoutPath(err))).Line(namespaces[i].File())
		}
	}
	return failed
}

// retries reports whether it is time to load copies again that could not be loaded.
func (m *CopyMemo) retries() bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	now := m.Now()
	due := !now.Before(m.retry)
	if due {
		m.retry = now.Add(retryAfter)
	}
	return due
}

// add adds the releases that the keys of a file verify to the copy of the file.
func (m *CopyMemo) add(ctx context.Context, n Namespace, file *File, verified []Release) (err error) {
	c, known := m.recall(n)
	if !known {
		c, err = m.load(ctx, n)
	}
	var missing []Release
	for _, r := range verified {
		if !c.has(r) {
			missing = append(missing, r)
		}
	}
	if err == nil && (len(missing) > 0 || c != nil && !c.hasKeys(file)) || errors.Is(err, errCopyDamaged) {
		err = m.keep(ctx, n, armored(file.Keys()), missing)
	}
	return err
}

// eachCopy calls do for each namespace, for several at once.
func eachCopy(namespaces []Namespace, do func(i int, n Namespace)) {
	var g errgroup.Group
	g.SetLimit(copiesAtOnce)
	for i, n := range namespaces {
		g.Go(func() error {
			do(i, n)
			return nil
		})
	}
	_ = g.Wait() // do has no error
}

// substitute returns the copy that replaces a keys file, as a file; nil if the namespace
// needs no keys. gone tells that there is no file; otherwise there may be one that cannot be
// read. If there is an error, the copy is the last known one.
func (m *CopyMemo) substitute(ctx context.Context, n Namespace, gone bool) (file *File, err error) {
	unread := &File{unread: true, gone: gone}
	c, known := m.recall(n)
	switch {
	case m.Store == nil || gone && known && c == nil:
	default:
		var now *keyCopy
		if now, err = m.load(ctx, n); err == nil {
			c = now
		} else if c == nil {
			return unread, err
		}
	}
	switch {
	case c == nil && gone:
		return nil, nil
	case c == nil:
		return unread, nil
	}
	ring, _ := signing.ReadKeyring([]byte(c.keys)) // the file's problems were reported
	return &File{Keyring: ring, sum: c.sum, copied: c, gone: gone}, err
}

// Forget removes the copy of a namespace. The error is ErrNoCopy if there is none.
func (m *CopyMemo) Forget(ctx context.Context, n Namespace) error {
	if m.Store == nil {
		return ErrNoCopy
	}
	ctx, cancel := context.WithTimeout(ctx, copyPatience)
	defer cancel()
	_, err := m.Store.Load(ctx, n.String())
	if errors.Is(err, fs.ErrNotExist) {
		return ErrNoCopy
	}
	if err := m.Store.Delete(ctx, n.String()); err != nil { // also a copy that cannot be read
		return err
	}
	m.remember(n, nil)
	return nil
}

package index

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"strings"
	"sync"
	"time"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/report"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// KeyCopies keep copies of keys files outside of the tree, so that a namespace that had
// keys goes on requiring them. Namespaces are named as users write them: acme, or
// registry.terraform.io/hashicorp.
type KeyCopies interface {
	// Load returns the copy of a namespace. The error wraps fs.ErrNotExist only if there is
	// no copy.
	Load(ctx context.Context, namespace string) ([]byte, error)

	// Store creates or replaces the copy of a namespace, whole or not at all.
	Store(ctx context.Context, namespace string, copied []byte) error

	// Delete removes the copy of a namespace, if there is one.
	Delete(ctx context.Context, namespace string) error
}

// ErrKeysMissing means that a namespace had keys, and their file is gone.
var ErrKeysMissing = errors.New("the keys of the namespace are missing")

// keysMissing returns the finding for missing keys, which says what to do.
func keysMissing(n keysOf) *tree.Finding {
	return tree.Findingf(tree.KeysMissing, "%s is gone, or cannot be read, and the namespace had keys: put the file back; "+
		"if its releases are no longer signed, write the line `unsigned` into it, or run `caddy-terraform-registry keys forget %s`", n.file(), n)
}

// RequireKeys is for a namespace without a keys file. It returns an ErrKeysMissing if there
// is a copy of a file, and an ErrNotWritable if that is unknown. The hostname is empty for a
// hosted namespace. If copies is nil, no keys are required.
func RequireKeys(ctx context.Context, copies KeyCopies, hostname svchost.Hostname, namespace string) error {
	if copies == nil {
		return nil
	}
	n := keysOf{hostname, namespace}
	ctx, cancel := context.WithTimeout(ctx, copyPatience)
	defer cancel()
	switch _, err := copies.Load(ctx, n.String()); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("%w: whether %s had keys is not known", tree.ErrNotWritable, n)
	}
	return fmt.Errorf("%w: %s", ErrKeysMissing, keysMissing(n).Detail)
}

// copyPatience is the longest time that a scan spends on loading copies, and on storing
// them. The remaining copies are tried again.
const copyPatience = 20 * time.Second

// copiesAtOnce is how many copies are loaded or stored at once: they may lie on another
// machine.
const copiesAtOnce = 16

// A keyCopy is the copy of a keys file, with the releases that its keys have verified: it
// verifies no other releases. It is immutable.
type keyCopy struct {
	keys     string            // in ASCII armor
	releases map[string]string // digests in hex, by type and version
	sum      wire.SHA256       // of all that
}

// A keyCopyDocument is the stored form of a keyCopy.
type keyCopyDocument struct {
	Keys     string            `json:"keys"`
	Releases map[string]string `json:"releases"`
}

// errCopyDamaged means that the stored document is not a copy of keys.
var errCopyDamaged = errors.New("the copy of its keys is damaged")

func decodeKeyCopy(content []byte) (*keyCopy, error) {
	var d keyCopyDocument
	if err := json.Unmarshal(content, &d); err != nil || d.Keys == "" {
		return nil, errCopyDamaged
	}
	return &keyCopy{keys: d.Keys, releases: d.Releases, sum: wire.SHA256Of(content)}, nil
}

func (c *keyCopy) encode() []byte {
	content, _ := json.Marshal(keyCopyDocument{c.keys, c.releases}) // texts always encode
	return content
}

// has reports whether the keys have verified a release. A nil copy has none.
func (c *keyCopy) has(r copiedRelease) bool { return c != nil && c.releases[r.name] == r.digest }

// withKeys returns a copy with these keys instead of its own, and with further releases.
// Releases that are gone stay: they may only be unreadable at the moment.
func (c *keyCopy) withKeys(keys string, releases []copiedRelease) *keyCopy {
	next := &keyCopy{keys: keys, releases: make(map[string]string)}
	if c != nil {
		maps.Copy(next.releases, c.releases)
	}
	for _, r := range releases {
		next.releases[r.name] = r.digest
	}
	next.sum = wire.SHA256Of(next.encode())
	return next
}

// A copiedRelease identifies a release in a copy.
type copiedRelease struct{ name, digest string }

func newCopiedRelease(typ, version string, checksums, signature []byte) copiedRelease {
	sum := wire.SHA256Of(checksums)
	return copiedRelease{typ + " " + version, wire.SHA256Of(append(sum[:], signature...)).String()}
}

// armored returns the keys of a file in the form of a copy.
func armored(keys []signing.PublicKey) string {
	var b strings.Builder
	for _, key := range keys {
		b.Write(bytes.TrimSpace([]byte(key.Armor)))
		b.WriteString("\n")
	}
	return b.String()
}

// keyCopyMemo remembers the copies that were last loaded or stored. The zero value has no
// store and remembers nothing.
type keyCopyMemo struct {
	store KeyCopies // nil: there are no copies

	mutex sync.Mutex
	known map[keysOf]*keyCopy // nil: it is known that there is no copy
}

func (m *keyCopyMemo) recall(n keysOf) (c *keyCopy, known bool) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	c, known = m.known[n]
	return c, known
}

func (m *keyCopyMemo) remember(n keysOf, c *keyCopy) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.known == nil {
		m.known = make(map[keysOf]*keyCopy)
	}
	m.known[n] = c
}

// load returns the current copy of a namespace; nil if there is no copy.
func (m *keyCopyMemo) load(ctx context.Context, n keysOf) (*keyCopy, error) {
	content, err := m.store.Load(ctx, n.String())
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
	c, err := decodeKeyCopy(content)
	if err != nil {
		return nil, err
	}
	m.remember(n, c)
	return c, nil
}

// keep stores the copy of a namespace. It keeps releases that another instance has stored
// meanwhile.
func (m *keyCopyMemo) keep(ctx context.Context, n keysOf, keys string, releases []copiedRelease) error {
	last, err := m.load(ctx, n)
	if err != nil && !errors.Is(err, errCopyDamaged) {
		return err
	}
	next := last.withKeys(keys, releases)
	if err := m.store.Store(ctx, n.String(), next.encode()); err != nil {
		return err
	}
	m.remember(n, next)
	return nil
}

// drop removes the copy of a namespace unless it is known that there is no copy.
func (m *keyCopyMemo) drop(ctx context.Context, n keysOf) error {
	if c, known := m.recall(n); known && c == nil {
		return nil
	}
	if err := m.store.Delete(ctx, n.String()); err != nil {
		return err
	}
	m.remember(n, nil)
	return nil
}

// substitute returns the copy that replaces a keys file, as a file; nil if the namespace
// needs no keys. gone tells that there is no file; otherwise there may be one that cannot be
// read. If there is an error, the copy is the last known one.
func (m *keyCopyMemo) substitute(ctx context.Context, n keysOf, gone bool) (file *keysFile, err error) {
	unread := &keysFile{unread: true, gone: gone}
	c, known := m.recall(n)
	switch {
	case m.store == nil || gone && known && c == nil:
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
	return &keysFile{Keyring: ring, sum: c.sum, copied: c, gone: gone}, err
}

// recallKeys returns the keys, with copies in place of the keys files that are gone or cannot
// be read. It looks for the namespaces of the folders that a walk has found and, if the keys
// have been read again, of all others.
func (s *scan) recallKeys(k *keysFolder, v *wayWalk) *keysFolder {
	var needed []keysOf
	seen := make(map[keysOf]bool)
	need := func(a address.Address) {
		if n := namespaceOf(a); !seen[n] && !k.keysFor(n).isFile() {
			seen[n], needed = true, append(needed, n)
		}
	}
	for i := range v.found {
		need(v.found[i].Address)
	}
	if k != s.lastKeys() && !s.stale[""] {
		for _, g := range s.last.groups {
			for _, e := range g.entries {
				if !e.folder.Address.IsModule() {
					need(e.folder.Address)
				}
			}
		}
	}
	ctx, cancel := context.WithTimeout(s.ctx, copyPatience)
	defer cancel()
	files, errs := make([]*keysFile, len(needed)), make([]error, len(needed))
	inParallel(copiesAtOnce, len(needed), func(i int) {
		files[i], errs[i] = s.copies.substitute(ctx, needed[i], k.isGone(needed[i]))
	})
	changed := k
	for i, n := range needed {
		if files[i] == nil && errs[i] == nil && k.files[n] == nil {
			continue
		}
		if changed == k {
			changed = k.clone()
		}
		changed.replace(n, files[i], errs[i])
	}
	if changed != k {
		changed.finish()
	}
	return changed
}

// clone returns a copy that can be changed.
func (k *keysFolder) clone() *keysFolder {
	other := *k
	other.files, other.missing = maps.Clone(k.files), make(map[keysOf]*tree.Finding)
	maps.Copy(other.missing, k.missing)
	return &other
}

// replace replaces the keys of a namespace by the copy of its keys file, which may be nil.
// err says why there may be a copy that cannot be read.
func (k *keysFolder) replace(n keysOf, file *keysFile, err error) {
	delete(k.missing, n)
	if file == nil {
		delete(k.files, n)
	} else {
		k.files[n] = file
	}
	switch {
	case err != nil:
		k.missing[n] = tree.Faultf(tree.Passing, tree.Unreadable, "whether the namespace had keys cannot be read: %v", tree.WithoutPath(err))
	case file != nil && file.gone && file.copied != nil:
		k.missing[n] = keysMissing(n)
	}
}

// finish adds what is missing to the report.
func (k *keysFolder) finish() {
	k.report, k.failed = report.New(), ""
	k.report.Merge(k.walked)
	for n, f := range k.missing {
		k.report.Withhold(n.file(), address.Address{}, "", f)
		if f.Passes() {
			k.failed = failureAt(n.file(), f)
		}
	}
}

// verifiedReleases are the releases of a namespace that its keys file verifies.
type verifiedReleases map[*releaseFiles]copiedRelease

// copyKeys adds all releases that the keys files verify to the copies of keys, before the
// first of them is offered, and drops the copies of namespaces that are not signed. failed
// says which copy could not be stored, and why; empty: all could.
func (s *scan) copyKeys(listings []*listing, keys *keysFolder) (failed string) {
	if s.copies.store == nil {
		return ""
	}
	verified := s.verifiedReleases(listings, keys)
	var namespaces []keysOf
	for n, file := range keys.files {
		if file.unsigned || len(verified[n]) > 0 {
			namespaces = append(namespaces, n)
		}
	}
	ctx, cancel := context.WithTimeout(s.ctx, copyPatience)
	defer cancel()
	errs := make([]error, len(namespaces))
	inParallel(copiesAtOnce, len(namespaces), func(i int) {
		if n := namespaces[i]; keys.keysFor(n).unsigned {
			errs[i] = s.copies.drop(ctx, n)
		} else {
			errs[i] = s.copyKeysOf(ctx, n, keys.keysFor(n), verified[n])
		}
	})
	for i, err := range errs {
		if err != nil {
			failed = failureAt(namespaces[i].file(), tree.AsFinding(fmt.Errorf("its copy cannot be stored: %w", tree.WithoutPath(err))))
		}
	}
	return failed
}

// verifiedReleases verifies signatures in all folders that have changed.
func (s *scan) verifiedReleases(listings []*listing, folder *keysFolder) map[keysOf]verifiedReleases {
	all := make(map[keysOf]verifiedReleases)
	var mutex sync.Mutex
	inParallel(s.options.workers(), len(listings), func(i int) {
		p := listings[i].provider
		if p == nil || listings[i].entry != nil {
			return
		}
		keys := folder.keysFor(namespaceOf(p.Address))
		if !keys.isFile() || !keys.verifies() {
			return
		}
		for _, files := range p.ordered {
			r, ok := s.verifiedRelease(p, files, keys)
			if !ok {
				continue
			}
			mutex.Lock()
			if all[namespaceOf(p.Address)] == nil {
				all[namespaceOf(p.Address)] = make(verifiedReleases)
			}
			all[namespaceOf(p.Address)][files] = r
			mutex.Unlock()
		}
	})
	return all
}

// copyKeysOf adds the releases that the keys verify to the copy of a keys file.
func (s *scan) copyKeysOf(ctx context.Context, n keysOf, keys *keysFile, verified verifiedReleases) error {
	c, known := s.copies.recall(n)
	var err error
	if !known {
		c, err = s.copies.load(ctx, n)
	}
	text := armored(keys.Keys())
	var missing []copiedRelease
	for _, r := range verified {
		if !c.has(r) {
			missing = append(missing, r)
		}
	}
	if err == nil && (len(missing) > 0 || c.keys != text) || errors.Is(err, errCopyDamaged) {
		if err = s.copies.keep(ctx, n, text, missing); err == nil {
			c, _ = s.copies.recall(n)
		}
	}
	for files, r := range verified {
		files.copied = c.has(r)
	}
	return err
}

// verifiedRelease identifies a release if the keys verify it. Other faults of the release
// are found later.
func (s *scan) verifiedRelease(p *providerFolder, files *releaseFiles, keys *keysFile) (r copiedRelease, ok bool) {
	if files.checksums == nil || files.signature == nil || len(files.packages) == 0 {
		return r, false
	}
	checksums, bad := s.readDocument(files.checksums)
	if bad != nil {
		return r, false
	}
	signature, bad := s.readDocument(files.signature)
	if bad != nil {
		return r, false
	}
	if _, err := s.memo.Verify(&files.signature.Location, checksums, signature, keys, s.now); err != nil {
		return r, false
	}
	return newCopiedRelease(p.Address.Name, files.text, checksums, signature), true
}

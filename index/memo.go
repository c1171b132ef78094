package index

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/signing"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A memo remembers what reading an archive gave, and which signatures verified,
// so that a scan reads and verifies only what is new. What a whole scan did not
// ask for is forgotten.
type memo struct {
	mutex      sync.Mutex
	digests    generations[string, digest] // by path in the report
	signatures generations[wire.SHA256, verifiedSignature]
	changed    bool          // since it was last saved
	young      bool          // something was too young to be remembered
	verified   atomic.Uint64 // signatures, without those remembered
}

// A verifiedSignature is the key that made a signature.
type verifiedSignature struct {
	at      int64 // when it was verified, in nanoseconds
	keyID   string
	expires int64 // the key, in seconds; zero: never
}

func (s verifiedSignature) key() signing.PublicKey {
	key := signing.PublicKey{ID: s.keyID}
	if s.expires != 0 {
		key.Expires = time.Unix(s.expires, 0)
	}
	return key
}

// begin starts a scan.
func (m *memo) begin() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.digests.begin()
	m.signatures.begin()
	m.young = false
}

// finish ends a scan that has seen the whole tree.
func (m *memo) finish() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	forgotten := m.digests.finish()
	forgotten = m.signatures.finish() || forgotten
	m.changed = m.changed || forgotten
}

// get returns what is known of path as it is now.
func (m *memo) get(path string, now stamp) (digest, bool) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	d, ok := m.digests.get(path)
	if !ok || d.stamp != now {
		return digest{}, false
	}
	m.digests.put(path, d)
	return d, true
}

// retain keeps the records of a release that were not asked for because it is
// known in this process. The next process will ask.
func (m *memo) retain(documents []*document, signature wire.SHA256) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for _, d := range documents {
		m.digests.retain(d.report)
	}
	m.signatures.retain(signature)
}

// put remembers d, unless the file is so young that it could still change
// without its stamp changing, or the failure may pass by itself.
func (m *memo) put(path string, d digest, now time.Time) {
	if m.tooYoung(d.stamp, 0, now) {
		return
	}
	if d.bad != nil && (d.bad.reason == Unreadable || d.bad.reason == BeingWritten || d.bad.reason == exhausted) {
		return
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.digests.put(path, d)
	m.changed = true
}

// tooYoung reports whether a file's last change is so recent that there may be
// others, and notes that it is worth another look.
func (m *memo) tooYoung(s stamp, rest time.Duration, now time.Time) bool {
	if s.settled(now) && s.rested(now, rest) {
		return false
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.young = true
	return true
}

// forgot reports whether the last scan read something too young to be remembered,
// which is worth another look.
func (m *memo) forgot() bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.young
}

// signatureMemory is how long a signature that verified is remembered, since
// verifying those of a large tree takes most of a restart. It is not longer, as a
// signature can have a lifetime of its own.
const signatureMemory = 24 * time.Hour

// verify is the keyring's Verify, or what it said of the same before. record is
// the sha256 of the document, the signature and the keys together.
func (m *memo) verify(document, signature []byte, keys *keysFile, now time.Time) (key signing.PublicKey, record wire.SHA256, err error) {
	sum := sha256Of(document)
	record = sha256Of(slices.Concat(sum[:], keys.sum[:], signature))
	if known, ok := m.recent(record, now); ok {
		return known.key(), record, nil
	}
	m.verified.Add(1)
	key, err = keys.Verify(document, signature)
	if err != nil {
		return key, record, err
	}
	verified := verifiedSignature{at: now.UnixNano(), keyID: key.ID}
	if !key.Expires.IsZero() {
		verified.expires = key.Expires.Unix()
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.signatures.put(record, verified)
	m.changed = true
	return key, record, nil
}

// recent returns a signature that is not older than signatureMemory.
func (m *memo) recent(record wire.SHA256, now time.Time) (verifiedSignature, bool) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	s, ok := m.signatures.get(record)
	if age := now.Sub(time.Unix(0, s.at)); !ok || age < 0 || age > signatureMemory {
		return verifiedSignature{}, false
	}
	m.signatures.put(record, s)
	return s, true
}

// generations is a map that forgets what a whole scan did not put into it. A scan
// that is broken off forgets nothing.
type generations[K comparable, V any] struct {
	before, seen map[K]V // seen is of the scan that runs, nil between scans
}

// begin starts a scan. It is the end of one that was broken off.
func (g *generations[K, V]) begin() {
	g.before = g.all()
	g.seen = make(map[K]V, len(g.before))
}

// finish ends a scan, and reports whether something was forgotten or is new.
func (g *generations[K, V]) finish() (changed bool) {
	changed = len(g.seen) != len(g.before)
	g.before, g.seen = g.seen, nil
	return changed
}

func (g *generations[K, V]) get(key K) (V, bool) {
	if v, ok := g.seen[key]; ok {
		return v, true
	}
	v, ok := g.before[key]
	return v, ok
}

func (g *generations[K, V]) put(key K, v V) { g.seen[key] = v }

// retain puts what is known of key.
func (g *generations[K, V]) retain(key K) {
	if v, ok := g.before[key]; ok {
		g.seen[key] = v
	}
}

// all is everything known, also in the middle of a scan.
func (g *generations[K, V]) all() map[K]V {
	if g.seen == nil {
		return g.before
	}
	all := maps.Clone(g.before)
	if all == nil {
		all = make(map[K]V, len(g.seen))
	}
	maps.Copy(all, g.seen)
	return all
}

// A Store keeps an index's memo across restarts. It is a convenience: an index
// without one, or with one that fails, reads its archives again.
type Store interface {
	// Load returns what Save was last given. The error wraps fs.ErrNotExist
	// when there is nothing yet.
	Load() ([]byte, error)

	// Save replaces what is kept, whole or not at all.
	Save(memo []byte) error
}

// A memo file is a line that names its format, the identity of the tree it is
// of, the digests, the signatures, and the sha256 of all that. A file that is
// damaged, or of another tree or format, is not used. A digest is only used for a
// file whose stamp has not changed.
const memoFormat = "caddy-terraform-registry memo 3\n"

var (
	errMemoDamaged = errors.New("it is damaged")
	errMemoForeign = errors.New("it is of another version or another tree")
)

// encode writes the memo of the tree called identity, ordered by path.
func (m *memo) encode(identity string) []byte {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	known, signatures := m.digests.all(), m.signatures.all()
	b := make([]byte, 0, 64+256*len(known)+64*len(signatures))
	b = append(b, memoFormat...)
	b = appendString(b, identity)
	b = binary.AppendUvarint(b, uint64(len(known)))
	for _, path := range slices.Sorted(maps.Keys(known)) {
		d := known[path]
		b = appendString(b, path)
		b = d.stamp.append(b)
		b = append(b, d.sha256[:]...)
		b = appendString(b, d.h1)
		b = binary.AppendVarint(b, d.size)
		b = binary.AppendUvarint(b, uint64(d.checksum))
		var reason, detail string
		if d.bad != nil {
			reason, detail = string(d.bad.reason), d.bad.detail
		}
		b = appendString(b, reason)
		b = appendString(b, detail)
		b = appendString(b, string(d.content))
	}
	b = binary.AppendUvarint(b, uint64(len(signatures)))
	for _, record := range slices.SortedFunc(maps.Keys(signatures), func(a, b wire.SHA256) int { return bytes.Compare(a[:], b[:]) }) {
		s := signatures[record]
		b = append(b, record[:]...)
		b = binary.AppendVarint(b, s.at)
		b = appendString(b, s.keyID)
		b = binary.AppendVarint(b, s.expires)
	}
	sum := sha256.Sum256(b)
	return append(b, sum[:]...)
}

// decode reads what encode wrote, all of it or nothing.
func (m *memo) decode(content []byte, identity string) error {
	format, rest, ok := bytes.Cut(content, []byte("\n"))
	if !ok || string(format)+"\n" != memoFormat {
		return errMemoForeign
	}
	if len(rest) < sha256.Size {
		return errMemoDamaged
	}
	body := content[:len(content)-sha256.Size]
	if sum := sha256.Sum256(body); !bytes.Equal(sum[:], content[len(body):]) {
		return errMemoDamaged
	}
	r := memoReader{rest: body[len(memoFormat):]}
	if r.text() != identity {
		return errMemoForeign
	}
	count := r.count()
	known := make(map[string]digest, count)
	for range count {
		path := r.text()
		var d digest
		d.stamp = stamp{size: r.signed(), modTime: r.signed(), inode: r.unsigned(), changed: r.signed(), files: r.sum()}
		d.sha256 = r.sum()
		d.h1 = r.text()
		d.size = r.signed()
		d.checksum = uint32(r.unsigned())
		if reason, detail := r.text(), r.text(); reason != "" {
			d.bad = &finding{Reason(reason), detail}
		}
		d.content = r.bytes()
		known[path] = d
	}
	count = r.count()
	signatures := make(map[wire.SHA256]verifiedSignature, count)
	for range count {
		signatures[r.sum()] = verifiedSignature{at: r.signed(), keyID: r.text(), expires: r.signed()}
	}
	if r.bad || len(r.rest) > 0 {
		return errMemoDamaged
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.digests.before, m.signatures.before, m.changed = known, signatures, false
	return nil
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// A memoReader reads values until one is missing.
type memoReader struct {
	rest []byte
	bad  bool
}

func (r *memoReader) take(n int) []byte {
	if r.bad || n < 0 || n > len(r.rest) {
		r.bad = true
		return nil
	}
	taken := r.rest[:n]
	r.rest = r.rest[n:]
	return taken
}

func (r *memoReader) unsigned() uint64 {
	v, n := binary.Uvarint(r.rest)
	r.take(max(n, -1))
	r.bad = r.bad || n <= 0
	return v
}

// count is a number of records. There are no more than bytes left.
func (r *memoReader) count() uint64 {
	n := r.unsigned()
	if n > uint64(len(r.rest)) {
		r.bad = true
		return 0
	}
	return n
}

func (r *memoReader) signed() int64 {
	v, n := binary.Varint(r.rest)
	r.take(max(n, -1))
	r.bad = r.bad || n <= 0
	return v
}

func (r *memoReader) run() []byte {
	n := r.unsigned()
	if n > uint64(len(r.rest)) {
		r.bad = true
		return nil
	}
	return r.take(int(n))
}

func (r *memoReader) text() string { return string(r.run()) }

// bytes are a copy: a small document must not keep the whole file in memory.
func (r *memoReader) bytes() []byte { return bytes.Clone(r.run()) }

func (r *memoReader) sum() (s wire.SHA256) {
	copy(s[:], r.take(len(s)))
	return s
}

// load takes over what the store has kept, or says why not.
func (m *memo) load(store Store, identity string) error {
	content, err := store.Load()
	if err != nil {
		return err
	}
	return m.decode(content, identity)
}

// save keeps the memo if it has changed.
func (m *memo) save(store Store, identity string) error {
	m.mutex.Lock()
	changed := m.changed
	m.changed = false
	m.mutex.Unlock()
	if !changed {
		return nil
	}
	if err := store.Save(m.encode(identity)); err != nil {
		m.mutex.Lock()
		m.changed = true
		m.mutex.Unlock()
		return fmt.Errorf("keeping the memo: %w", withoutPath(err))
	}
	return nil
}

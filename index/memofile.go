package index

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

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
// of, the records, and the sha256 of all that. A memo that is not whole, or of
// another tree or format, is worth nothing; one that is whole is still only
// believed of files whose stamp has not changed.
const memoFormat = "caddy-terraform-registry memo 2\n"

var (
	errMemoDamaged = errors.New("it is damaged")
	errMemoForeign = errors.New("it is of another version or another tree")
)

// encode writes the memo of the tree called identity, ordered by path.
func (m *memo) encode(identity string) []byte {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	known := m.all()
	b := make([]byte, 0, 64+256*len(known))
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
	count := r.unsigned()
	if count > uint64(len(r.rest)) {
		return errMemoDamaged
	}
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
	if r.bad || len(r.rest) > 0 {
		return errMemoDamaged
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.before, m.changed = known, false
	return nil
}

func (s stamp) append(b []byte) []byte {
	b = binary.AppendVarint(b, s.size)
	b = binary.AppendVarint(b, s.modTime)
	b = binary.AppendUvarint(b, s.inode)
	b = binary.AppendVarint(b, s.changed)
	return append(b, s.files[:]...)
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// A memoReader reads values until one is not there.
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

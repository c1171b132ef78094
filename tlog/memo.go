package tlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"

	sumdb "golang.org/x/mod/sumdb/tlog"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// A Memo keeps what an instance knows of a log across restarts, so that a start reads new
// entries only. It is a convenience: a log without one, or with one that fails, reads all
// entries again.
type Memo interface {
	// Load returns the content that Save was last given. The caller does not modify it.
	Load() ([]byte, error)

	// Save replaces the content, whole or not at all.
	Save(content []byte) error
}

// The content of a memo is a line that names its format, the origin of the log, the edge and
// the ledger of a signed log, and a checksum. The edge has all hashes that the root of that log
// follows from, so the log that is opened either begins with the same entries or the memo is
// not used. The checksum finds damage by disks.
//
// The ledger has no leaf for an entry that this release does not understand. A release that
// understands more entries, or compares more of them, needs another format.
const memoFormat = "caddy-terraform-registry log 1\n"

// Remember saves the newest head to the memo, unless the memo has it.
func (l *Log) Remember() error {
	h := l.Head()
	if l.options.Memo == nil || l.remembered.Load() == h.Size {
		return nil
	}
	if err := l.options.Memo.Save(encodeMemo(l.options.Origin, h.edge, l.ledger)); err != nil {
		return fmt.Errorf("keeping what is known of the log: %w", err)
	}
	l.remembered.Store(h.Size)
	return nil
}

// remembered returns the edge and the ledger of a log from its memo. ok is false if it has none
// that can be used.
func remembered(o Options) (e *edge, known *ledger, ok bool) {
	if o.Memo == nil {
		return nil, nil, false
	}
	content, err := o.Memo.Load()
	if err != nil {
		return nil, nil, false
	}
	e, known, err = decodeMemo(o.Origin, content)
	return e, known, err == nil
}

// encodeMemo writes the edge, and the ledger as far as the edge goes.
func encodeMemo(origin string, e *edge, known *ledger) []byte {
	leaves, versions, platforms := known.upTo(e.size)
	b := make([]byte, 0, len(memoFormat)+len(leaves)*leafWidth+len(versions)*versionWidth+1<<16)
	b = appendText(append(b, memoFormat...), origin)
	b = binary.AppendUvarint(b, uint64(e.size))
	b = binary.AppendVarint(b, e.batch)
	b = append(b, e.last[:]...)
	b = binary.AppendUvarint(b, uint64(len(e.levels)))
	for _, hashes := range e.levels {
		b = append(b, byte(len(hashes)))
		b = append(b, encodeHashes(hashes)...)
	}
	b = appendText(b, string(EncodeBundle(e.entries)))
	b = binary.AppendUvarint(b, uint64(len(platforms)))
	for _, p := range platforms {
		b = appendText(appendText(b, p.OS), p.Arch)
	}
	for i := range leaves {
		b = leaves[i].append(b)
	}
	b = binary.AppendUvarint(b, uint64(len(versions)))
	for _, v := range versions {
		b = append(b, v.key[:]...)
		b = binary.BigEndian.AppendUint32(b, uint32(v.newest))
	}
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var errNoMemo = errors.New("it is damaged, or of another log or format")

// decodeMemo reads what encodeMemo has written.
func decodeMemo(origin string, content []byte) (*edge, *ledger, error) {
	body := content[:max(0, len(content)-crc32.Size)]
	if !bytes.HasPrefix(body, []byte(memoFormat)) || binary.BigEndian.Uint32(content[len(body):]) != crc32.Checksum(body, castagnoli) {
		return nil, nil, errNoMemo
	}
	r := memoReader{rest: body[len(memoFormat):]}
	if r.text() != origin {
		return nil, nil, errNoMemo
	}
	e := r.edge()
	known := r.ledger(e.size)
	if r.bad || len(r.rest) > 0 {
		return nil, nil, errNoMemo
	}
	return e, known, nil
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// A memoReader reads values until one is missing or wrong.
type memoReader struct {
	rest []byte
	bad  bool
}

func (r *memoReader) take(n int) []byte {
	if r.bad || n > len(r.rest) {
		r.bad = true
		return make([]byte, n)
	}
	taken := r.rest[:n]
	r.rest = r.rest[n:]
	return taken
}

// count reads a number of things that have so many bytes each, or more.
func (r *memoReader) count(width int) int {
	n, read := binary.Uvarint(r.rest)
	if r.bad || read <= 0 || n > uint64(len(r.rest)/width) {
		r.bad = true
		return 0
	}
	r.rest = r.rest[read:]
	return int(n)
}

func (r *memoReader) text() string { return string(r.take(r.count(1))) }

func (r *memoReader) hash() (h sumdb.Hash) {
	copy(h[:], r.take(len(h)))
	return h
}

// edge reads the edge. Its parts follow from its size.
func (r *memoReader) edge() *edge {
	e := &edge{size: int64(r.count(leafWidth))}
	batch, read := binary.Varint(r.rest)
	if read <= 0 {
		r.bad = true
		return e
	}
	r.rest = r.rest[read:]
	e.batch, e.last = batch, r.hash()
	e.levels = make([][]sumdb.Hash, r.count(1))
	for l := range e.levels {
		hashes := int(r.take(1)[0])
		r.bad = r.bad || l > 7 || int64(hashes) != e.size>>(tileHeight*l)%BundleSize
		e.levels[l] = decodeHashes(r.take(hashes * sumdb.HashSize))
	}
	entries, err := DecodeBundle([]byte(r.text()))
	e.entries = entries
	r.bad = r.bad || err != nil || int64(len(entries)) != e.size%BundleSize || e.size>>(tileHeight*len(e.levels)) != 0 ||
		e.batch < 0 || e.batch >= e.size
	return e
}

// ledger reads a ledger with so many leaves.
func (r *memoReader) ledger(size int64) *ledger {
	known := &ledger{platforms: make(map[address.Platform]uint32)}
	for n := range r.count(2) {
		known.platforms[address.Platform{OS: r.text(), Arch: r.text()}] = uint32(n)
	}
	if r.bad || size*leafWidth > int64(len(r.rest)) {
		r.bad = true
		return known
	}
	known.leaves = make([]shortLeaf, size)
	for i := range known.leaves {
		leaf := decodeShortLeaf(r.take(leafWidth))
		known.leaves[i] = leaf
		r.bad = r.bad || int(leaf.previous) >= i || leaf.previous < -1 ||
			int(leaf.platform) >= len(known.platforms) || int(leaf.event) >= len(events)
	}
	versions := r.count(versionWidth)
	known.newest = make(map[versionKey]int32, versions)
	for range versions {
		key, newest := versionKey(r.take(len(versionKey{}))), binary.BigEndian.Uint32(r.take(4))
		known.newest[key] = int32(newest)
		r.bad = r.bad || int64(newest) >= size
	}
	return known
}

const (
	leafWidth    = 4*4 + 2 + 2*16
	versionWidth = len(versionKey{}) + 4
)

func (s *shortLeaf) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(s.previous))
	b = binary.BigEndian.AppendUint32(b, s.seconds)
	b = binary.BigEndian.AppendUint32(b, s.origin)
	b = binary.BigEndian.AppendUint32(b, s.platform)
	files := byte(0)
	if s.files {
		files = 1
	}
	b = append(b, byte(s.event), files)
	return append(append(b, s.h1[:]...), s.zh[:]...)
}

func decodeShortLeaf(b []byte) (s shortLeaf) {
	s.previous = int32(binary.BigEndian.Uint32(b))
	s.seconds = binary.BigEndian.Uint32(b[4:])
	s.origin = binary.BigEndian.Uint32(b[8:])
	s.platform = binary.BigEndian.Uint32(b[12:])
	s.event, s.files = eventCode(b[16]), b[17] != 0
	copy(s.h1[:], b[18:])
	copy(s.zh[:], b[34:])
	return s
}

// A newestLeaf is the newest leaf of a version.
type newestLeaf struct {
	key    versionKey
	newest int32
}

// upTo returns what a ledger has of a log of that size: the leaves, the newest leaf of each
// version, and the platforms in the order of their numbers. Leaves stay as they are once they
// are added.
func (l *ledger) upTo(size int64) (leaves []shortLeaf, versions []newestLeaf, platforms []address.Platform) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	leaves = l.leaves[:size]
	versions = make([]newestLeaf, 0, len(l.newest))
	for k, n := range l.newest {
		for int64(n) >= size {
			n = l.leaves[n].previous
		}
		if n >= 0 {
			versions = append(versions, newestLeaf{k, n})
		}
	}
	platforms = make([]address.Platform, len(l.platforms))
	for p, n := range l.platforms {
		platforms[n] = p
	}
	return slices.Clip(leaves), versions, platforms
}

package tlog

import (
	"bytes"
	"encoding/binary"
	"encoding/gob"
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

// A memo is a line that names its format, the origin of the log, the edge and the ledger of a
// signed log, and a checksum. The edge has all hashes that the root of that log
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
	content, err := encodeMemo(l.options.Origin, h.edge, l.ledger)
	if err == nil {
		err = l.options.Memo.Save(content)
	}
	if err != nil {
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

// A memoContent is the content of a memo. encoding/gob writes its exported fields. The others are
// many rows of one width, for which gob would take ten times as long: they follow, as they are.
type memoContent struct {
	Origin      string
	Size, Batch int64
	Last        sumdb.Hash
	Levels      [][]byte // encodeHashes
	Entries     []byte   // EncodeBundle
	Platforms   []address.Platform

	leaves, versions []byte
}

// encodeMemo writes the edge, and the ledger as far as the edge goes.
func encodeMemo(origin string, e *edge, known *ledger) ([]byte, error) {
	leaves, versions, platforms := known.upTo(e.size)
	c := memoContent{Origin: origin, Size: e.size, Batch: e.batch, Last: e.last, Entries: EncodeBundle(e.entries), Platforms: platforms}
	for _, hashes := range e.levels {
		c.Levels = append(c.Levels, encodeHashes(hashes))
	}
	var head bytes.Buffer
	head.WriteString(memoFormat)
	if err := gob.NewEncoder(&head).Encode(c); err != nil {
		return nil, err
	}
	b := slices.Grow(head.Bytes(), len(leaves)*leafWidth+len(versions)*versionWidth+crc32.Size)
	for i := range leaves {
		b = leaves[i].append(b)
	}
	for _, v := range versions {
		b = binary.BigEndian.AppendUint32(append(b, v.key[:]...), uint32(v.newest))
	}
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli)), nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var errNoMemo = errors.New("it is damaged, or of another log or format")

// decodeMemo reads what encodeMemo has written.
func decodeMemo(origin string, content []byte) (*edge, *ledger, error) {
	body := content[:max(0, len(content)-crc32.Size)]
	if !bytes.HasPrefix(body, []byte(memoFormat)) || binary.BigEndian.Uint32(content[len(body):]) != crc32.Checksum(body, castagnoli) {
		return nil, nil, errNoMemo
	}
	var c memoContent
	r := bytes.NewReader(body[len(memoFormat):])
	if gob.NewDecoder(r).Decode(&c) != nil || c.Origin != origin || c.Size < 0 || c.Size > int64(r.Len()/leafWidth) {
		return nil, nil, errNoMemo
	}
	rows := body[len(body)-r.Len():]
	c.leaves, c.versions = rows[:c.Size*leafWidth], rows[c.Size*leafWidth:]
	e, known := c.edge(), c.ledger()
	if e == nil || known == nil {
		return nil, nil, errNoMemo
	}
	return e, known, nil
}

// edge returns the edge; nil if its parts do not follow from its size.
func (c *memoContent) edge() *edge {
	entries, err := DecodeBundle(c.Entries)
	if err != nil || c.Batch < 0 || c.Batch >= c.Size || int64(len(entries)) != c.Size%BundleSize || c.Size>>(tileHeight*len(c.Levels)) != 0 {
		return nil
	}
	e := &edge{size: c.Size, batch: c.Batch, last: c.Last, entries: entries}
	for l, hashes := range c.Levels {
		if int64(len(hashes)) != c.Size>>(tileHeight*l)%BundleSize*sumdb.HashSize {
			return nil
		}
		e.levels = append(e.levels, decodeHashes(hashes))
	}
	return e
}

// ledger returns the ledger; nil if it refers to leaves or platforms that it has not.
func (c *memoContent) ledger() *ledger {
	if len(c.versions)%versionWidth != 0 {
		return nil
	}
	l := &ledger{
		platforms: make(map[address.Platform]uint32), leaves: make([]shortLeaf, c.Size),
		newest: make(map[versionKey]int32, len(c.versions)/versionWidth),
	}
	for n, p := range c.Platforms {
		l.platforms[p] = uint32(n)
	}
	for i := range l.leaves {
		leaf := decodeShortLeaf(c.leaves[i*leafWidth:])
		if int(leaf.previous) >= i || leaf.previous < -1 || int(leaf.platform) >= len(c.Platforms) || int(leaf.event) >= len(events) {
			return nil
		}
		l.leaves[i] = leaf
	}
	for row := range slices.Chunk(c.versions, versionWidth) {
		newest := binary.BigEndian.Uint32(row[len(versionKey{}):])
		if int64(newest) >= c.Size {
			return nil
		}
		l.newest[versionKey(row[:len(versionKey{})])] = int32(newest)
	}
	return l
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

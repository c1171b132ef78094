package memo

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"slices"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A Store keeps an index's memo across restarts. It is a convenience: an index
// without one, or with one that fails, reads its archives again.
type Store interface {
	// Open opens the content that was saved last. A later Save does not change what the reader
	// reads. The error wraps fs.ErrNotExist when nothing has been saved yet.
	Open() (io.ReadSeekCloser, error)

	// Save replaces the content by what write writes, whole or not at all.
	Save(write func(io.Writer) error) error
}

// A memo file is a line that names its format, the identity of its tree, the folders with
// their records, the paths of the records that have not been shared with other instances
// yet, the names of shared segments whose records are known, if there are any, and a checksum
// of all that. A file that is damaged, or of another tree or format, is not used. A digest is
// only used for a file whose stamp has not changed.
//
// The checksum is CRC-32C, as every start computes it before anything else. It finds damage
// by disks; anyone who can replace the file can write any digest anyway.
const (
	memoVersion = "7"
	memoFormat  = "caddy-terraform-registry memo " + memoVersion + "\n"
)

var (
	errMemoDamaged = errors.New("it is damaged")
	errMemoForeign = errors.New("it is of another version or another tree")
)

// Encode encodes the memo of the tree called identity, ordered by path.
func (m *Memo) Encode(identity string) []byte {
	var b bytes.Buffer
	_ = m.write(&b, identity) // a buffer takes all of it
	return b.Bytes()
}

// write writes what Encode returns: of a large tree that is hundreds of megabytes. Records may
// change meanwhile. Each folder is written as it is at its time.
func (m *Memo) write(w io.Writer, identity string) error {
	sum := crc32.New(castagnoli)
	out := bufio.NewWriterSize(io.MultiWriter(w, sum), bufferSize)
	var b []byte // is reused for each folder
	put := func() error {
		_, err := out.Write(b)
		b = b[:0]
		return err
	}
	m.mutex.Lock()
	dirs := slices.Sorted(maps.Keys(m.folders))
	loaded := maps.Clone(m.loaded) // the records that are written later have been loaded, too
	m.mutex.Unlock()
	b = appendString(append(b, memoFormat...), identity)
	b = binary.AppendUvarint(b, uint64(len(dirs)))
	var folder []byte // is reused, too
	for _, dir := range dirs {
		m.mutex.Lock()
		folder = cmp.Or(m.folders[dir], new(folderRecords)).append(folder[:0])
		m.mutex.Unlock()
		b = binary.AppendUvarint(appendString(b, dir), uint64(len(folder)))
		b = append(b, folder...)
		if err := put(); err != nil {
			return err
		}
	}
	m.mutex.Lock()
	b = appendNames(b, m.learned)
	m.mutex.Unlock()
	if len(loaded) > 0 { // segments have none
		b = appendNames(b, loaded)
	}
	if err := errors.Join(put(), out.Flush()); err != nil {
		return err
	}
	_, err := w.Write(binary.BigEndian.AppendUint32(nil, sum.Sum32()))
	return err
}

// appendNames appends the number of names, and the names in order.
func appendNames(b []byte, names map[string]bool) []byte {
	b = binary.AppendUvarint(b, uint64(len(names)))
	for _, name := range slices.Sorted(maps.Keys(names)) {
		b = appendString(b, name)
	}
	return b
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Decode decodes the content that Encode returned, all of it or nothing.
func (m *Memo) Decode(content []byte, identity string) error {
	return m.read(bytes.NewReader(content), identity)
}

// read reads what write has written, all of it or nothing. It reads the file twice, since the
// checksum is at its end.
func (m *Memo) read(file io.ReadSeeker, identity string) error {
	body, err := checkedBody(file)
	if err != nil {
		return err
	}
	r := memoStream{in: bufio.NewReaderSize(file, bufferSize), left: body}
	if r.text() != identity {
		return cmp.Or(r.failed, errMemoForeign)
	}
	folders := r.folders()
	learned, loaded := r.names(), make(map[string]bool)
	if r.left > 0 {
		loaded = r.names()
	}
	if r.bad || r.left > 0 {
		return cmp.Or(r.failed, errMemoDamaged)
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.folders, m.learned, m.loaded, m.changed = folders, learned, loaded, false
	return nil
}

// checkedBody checks the format and the checksum of a file. It leaves the file behind the line of
// the format, and returns the number of bytes from there to the checksum.
func checkedBody(file io.ReadSeeker) (body int64, err error) {
	sum := crc32.New(castagnoli)
	format := make([]byte, len(memoFormat))
	if n, err := io.ReadFull(file, format); string(format[:n]) != memoFormat {
		return 0, cmp.Or(exceptEnd(err), errMemoForeign)
	}
	sum.Write(format)
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, err
	}
	if body = size - int64(len(memoFormat)) - crc32.Size; body < 0 {
		return 0, errMemoDamaged
	}
	behind := func() error {
		_, err := file.Seek(int64(len(memoFormat)), io.SeekStart)
		return err
	}
	var known [crc32.Size]byte
	err = behind()
	if err == nil {
		_, err = io.CopyBuffer(sum, io.LimitReader(file, body), make([]byte, bufferSize))
	}
	if err == nil {
		_, err = io.ReadFull(file, known[:])
	}
	if err != nil {
		return 0, cmp.Or(exceptEnd(err), errMemoDamaged)
	}
	if binary.BigEndian.Uint32(known[:]) != sum.Sum32() {
		return 0, errMemoDamaged
	}
	return body, behind()
}

// append appends the records of a folder: their number, all texts in them, and the rest of
// each. Decoding allocates the texts at once.
func (f *folderRecords) append(b []byte) []byte {
	texts := 0
	for _, r := range f.records {
		texts += len(r.name) + len(r.fileHashes)
	}
	b = binary.AppendUvarint(b, uint64(len(f.records)))
	b = binary.AppendUvarint(b, uint64(texts))
	for _, r := range f.records {
		b = append(append(b, r.name...), r.fileHashes...)
	}
	for _, r := range f.records {
		b = r.append(b)
	}
	return b
}

// append appends the record without its texts.
func (r *compactRecord) append(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(r.name)))
	b = binary.AppendUvarint(b, uint64(len(r.fileHashes)))
	b = append(appendStamp(b, r.stamp), r.sha256[:]...)
	return r.more.append(b)
}

// decodeFolder decodes the records that append wrote. A folder whose records are invalid has
// no records.
func decodeFolder(encoded []byte) []*compactRecord {
	r := memoReader{rest: encoded}
	block := make([]compactRecord, r.count(leastRecord)) // a single allocation
	records := make([]*compactRecord, len(block))
	texts := r.text()
	text := func(n uint64) string {
		if n > uint64(len(texts)) {
			r.bad = true
			return ""
		}
		t := texts[:n]
		texts = texts[n:]
		return t
	}
	for i := range records {
		c := &block[i]
		records[i] = c
		name, hashes := r.unsigned(), r.unsigned()
		c.name, c.fileHashes = text(name), wire.FileHashes(text(hashes))
		c.stamp, c.sha256 = r.stamp(), r.sum()
		c.more = r.detail()
		if r.bad || i > 0 && c.name <= records[i-1].name {
			return nil
		}
	}
	if r.bad || len(r.rest) > 0 {
		return nil
	}
	return records
}

// Kinds of records: whether one has a detail, and whether the detail has a verified signature
// or earlier bytes. No file has both. A release that does not know a kind reads the files of
// the folder again. A further kind that instances share needs another memoVersion, so that
// older instances do not merge its segments.
const (
	withoutDetail = iota
	withDetail
	withSignature
	withEarlier
)

func (d *compactDetail) append(b []byte) []byte {
	if d == nil {
		return binary.AppendUvarint(b, withoutDetail)
	}
	kind := uint64(withDetail)
	switch {
	case d.verified != nil:
		kind = withSignature
	case d.earlier != nil:
		kind = withEarlier
	}
	b = binary.AppendUvarint(b, kind)
	b = binary.AppendVarint(b, d.size)
	b = binary.AppendUvarint(b, uint64(d.checksum))
	b = appendFinding(b, d.bad)
	b = appendString(b, string(d.content))
	switch v, e := d.verified, d.earlier; kind {
	case withSignature:
		b = append(b, v.of[:]...)
		b = binary.AppendVarint(b, v.at)
		b = appendString(b, v.keyID)
		b = binary.AppendVarint(b, v.expires)
	case withEarlier:
		b = append(b, e.SHA256[:]...)
		b = appendString(b, e.H1)
		b = binary.AppendVarint(b, e.Noticed)
	}
	return b
}

// appendFinding appends the reason why a file is not offered, which may be nil.
func appendFinding(b []byte, f *tree.Finding) []byte {
	if f == nil {
		f = new(tree.Finding)
	}
	return appendString(appendString(b, string(f.Reason)), f.Detail)
}

// appendString appends the length of a string and the string.
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
	taken := r.rest[:n:n]
	r.rest = r.rest[n:]
	return taken
}

func (r *memoReader) unsigned() uint64 {
	v, n := binary.Uvarint(r.rest)
	r.take(max(n, -1))
	r.bad = r.bad || n <= 0
	return v
}

// The least bytes of a folder and of a record: they limit the memory that a number can
// claim.
const (
	leastFolder = 2
	leastRecord = 8 + len(wire.SHA256{})
)

// count reads the number of things of at least so many bytes. It is invalid if the bytes
// left are fewer.
func (r *memoReader) count(least int) int {
	n := r.unsigned()
	if n > uint64(len(r.rest)/least) {
		r.bad = true
		return 0
	}
	return int(n)
}

func (r *memoReader) signed() int64 {
	v, n := binary.Varint(r.rest)
	r.take(max(n, -1))
	r.bad = r.bad || n <= 0
	return v
}

func (r *memoReader) run() []byte { return r.take(r.count(1)) }

func (r *memoReader) text() string { return string(r.run()) }

// bytes reads bytes and copies them: a small document must not keep the whole file in
// memory.
func (r *memoReader) bytes() []byte { return bytes.Clone(r.run()) }

func (r *memoReader) sum() (s wire.SHA256) {
	copy(s[:], r.take(len(s)))
	return s
}

func (r *memoReader) stamp() tree.Stamp {
	return tree.Stamp{Size: r.signed(), ModTime: r.signed(), Inode: r.unsigned(), Changed: r.signed(), Files: r.text()}
}

func (r *memoReader) finding() *tree.Finding {
	reason, detail := r.text(), r.text()
	if reason == "" {
		return nil
	}
	return &tree.Finding{Reason: tree.Reason(reason), Detail: detail}
}

func (r *memoReader) detail() *compactDetail {
	kind := r.unsigned()
	if kind == withoutDetail {
		return nil
	}
	d := &compactDetail{size: r.signed(), checksum: uint32(r.unsigned()), bad: r.finding(), content: r.bytes()}
	switch kind {
	case withDetail:
	case withSignature:
		d.verified = &verifiedSignature{of: r.sum(), at: r.signed(), keyID: r.text(), expires: r.signed()}
	case withEarlier:
		d.earlier = &EarlierBytes{SHA256: r.sum(), H1: r.text(), Noticed: r.signed()}
	default:
		r.bad = true
	}
	return d
}

// Load reads the memo that the store keeps. The error says why it cannot be used.
func (m *Memo) Load(store Store, identity string) error {
	file, err := store.Open()
	if err != nil {
		return err
	}
	defer file.Close()
	return m.read(file, identity)
}

// save saves the memo if it has changed. saved reports whether it did.
func (m *Memo) save(store Store, identity string) (saved bool, err error) {
	m.mutex.Lock()
	changed := m.changed
	m.changed = false
	m.mutex.Unlock()
	if !changed {
		return false, nil
	}
	if err := store.Save(func(w io.Writer) error { return m.write(w, identity) }); err != nil {
		m.mutex.Lock()
		m.changed = true
		m.mutex.Unlock()
		return false, fmt.Errorf("keeping the memo: %w", tree.WithoutPath(err))
	}
	return true, nil
}

// appendStamp appends a stamp.
func appendStamp(b []byte, s tree.Stamp) []byte {
	b = binary.AppendVarint(b, s.Size)
	b = binary.AppendVarint(b, s.ModTime)
	b = binary.AppendUvarint(b, s.Inode)
	b = binary.AppendVarint(b, s.Changed)
	return appendString(b, s.Files)
}

package archive

import (
	"archive/zip"
	"bufio"
	"encoding/binary"
	"hash"
	"hash/crc32"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/flate"
)

// A zip has its directory at the end, and clients read what the directory says. Unpacking is
// the work, though, and it can begin with the first byte: each entry has a header of its own
// before its content. So a zip is walked from the front, and the digest of each content is
// kept with its place. When the directory is there, it alone decides, and everything is
// checked as if nothing had been walked. Only where the directory leads to exactly such a
// content, with the same place, length, method, size and checksum, the content is not read
// again. A walk refuses nothing: it ends at whatever it does not understand, and the rest is
// read from the file.

// A walkedEntry is the content of an entry, as it was walked.
type walkedEntry struct {
	name       string // in the header before the content; empty if names are not kept
	start, end int64  // of the content in the zip
	size       uint64 // unpacked
	checksum   uint32 // CRC-32
	method     uint16
	described  bool // a data descriptor follows, and has the checksum
	sum        fileSum
}

// walkedEntries are the entries of a zip in the order of their places.
type walkedEntries []walkedEntry

// find returns what was walked of an entry of the directory; nil if that does not agree.
func (w walkedEntries) find(entry *zip.File) *walkedEntry {
	if len(w) == 0 {
		return nil
	}
	start, err := entry.DataOffset()
	if err != nil {
		return nil
	}
	i, found := slices.BinarySearchFunc(w, start, func(e walkedEntry, start int64) int { return int(min(max(e.start-start, -1), 1)) })
	if !found {
		return nil
	}
	e := &w[i]
	if e.method != entry.Method || uint64(e.end-e.start) != entry.CompressedSize64 || e.size != entry.UncompressedSize64 ||
		e.checksum != entry.CRC32 || e.described != (entry.Flags&hasDescriptor != 0) {
		return nil
	}
	return e
}

// are reports whether a directory has exactly the walked entries, in their order and with
// their names, and nothing but regular files and folders.
func (w walkedEntries) are(entries []*zip.File) bool {
	if len(w) != len(entries) {
		return false
	}
	for i, entry := range entries {
		isFolder := strings.HasSuffix(entry.Name, "/")
		if entry.Name != w[i].name || w.find(entry) != &w[i] || isFolder && entry.UncompressedSize64 != 0 || !isFolder && !entry.Mode().IsRegular() {
			return false
		}
	}
	return true
}

// The header before the content of an entry (PKWARE's APPNOTE, section 4.3.7), and flags in it.
const (
	entrySignature      = "PK\x03\x04"
	entryHeaderSize     = 30
	descriptorSignature = "PK\x07\x08"

	isEncrypted    = 1 << 0
	hasDescriptor  = 1 << 3
	isPatch        = 1 << 5
	isMasked       = 1 << 13
	notUnderstood  = isEncrypted | isPatch | isMasked
	isInZip64Extra = 1<<32 - 1
)

// A zipWalk walks a zip.
type zipWalk struct {
	// visit is called with the content of each entry, in place of its digest, and with nil for
	// a folder. An error ends the walk. Nil: the digest of each content is computed.
	visit func(name string, content io.Reader) error

	from     countingReader
	buffered *bufio.Reader
	inflater flateReader
	copying  []byte // a buffer
	entries  walkedEntries
	names    int   // bytes
	unpacked int64 // bytes
}

type flateReader interface {
	io.Reader
	io.WriterTo
	flate.Resetter
}

// zipWalks has zipWalks that were used, since most zips are small and their buffers are not.
var zipWalks = sync.Pool{New: func() any {
	return &zipWalk{buffered: bufio.NewReaderSize(nil, 64<<10), inflater: flate.NewReader(nil).(flateReader), copying: make([]byte, 32<<10)}
}}

// walkZip walks a zip. It reads r as far as it understands it.
func walkZip(r io.Reader, visit func(name string, content io.Reader) error) walkedEntries {
	w := zipWalks.Get().(*zipWalk)
	w.visit, w.from, w.entries, w.names, w.unpacked = visit, countingReader{r: r}, nil, 0, 0
	w.buffered.Reset(&w.from)
	for w.next() == nil { // any error is found again in the file
	}
	entries := w.entries
	w.visit, w.from, w.entries = nil, countingReader{}, nil
	w.buffered.Reset(nil)
	zipWalks.Put(w)
	return entries
}

// errNotWalked ends a walk where the zip has to be read from the file. Nobody sees it.
var errNotWalked = zip.ErrFormat

// offset returns how much of the zip has been walked.
func (w *zipWalk) offset() int64 { return w.from.n - int64(w.buffered.Buffered()) }

// next walks an entry.
func (w *zipWalk) next() error {
	header, err := w.buffered.Peek(entryHeaderSize)
	if err != nil {
		return err
	}
	flags, method := binary.LittleEndian.Uint16(header[6:]), binary.LittleEndian.Uint16(header[8:])
	packed := binary.LittleEndian.Uint32(header[18:])
	nameSize, extraSize := int(binary.LittleEndian.Uint16(header[26:])), int(binary.LittleEndian.Uint16(header[28:]))
	w.names += nameSize
	switch {
	case string(header[:4]) != entrySignature, flags&notUnderstood != 0, len(w.entries) >= maxEntries, w.names > maxDirectory:
		return errNotWalked
	case method == zip.Store && (flags&hasDescriptor != 0 || packed == isInZip64Extra): // it is not known where the content ends
		return errNotWalked
	}
	name := make([]byte, 0)
	if w.buffered.Discard(entryHeaderSize); w.visit != nil {
		name = make([]byte, nameSize)
	}
	if _, err := io.ReadFull(w.buffered, name); err != nil {
		return err
	}
	if _, err := w.buffered.Discard(nameSize - len(name) + extraSize); err != nil {
		return err
	}
	e := walkedEntry{name: string(name), start: w.offset(), method: method, described: flags&hasDescriptor != 0}
	if err := w.content(&e, packed); err != nil {
		return err
	}
	e.end = w.offset()
	if e.described {
		if err := w.descriptor(&e); err != nil {
			return err
		}
	}
	w.entries = append(w.entries, e)
	return nil
}

// content reads the content of an entry to its end.
func (w *zipWalk) content(e *walkedEntry, packed uint32) error {
	var content io.Reader
	stored := &io.LimitedReader{R: w.buffered, N: int64(packed)}
	switch e.method {
	case zip.Store:
		content = stored
	case zip.Deflate:
		if err := w.inflater.Reset(w.buffered, nil); err != nil {
			return err
		}
		content = w.inflater
	default:
		return errNotWalked
	}
	to := contentDigest{walk: w}
	var visited io.Reader
	if !strings.HasSuffix(e.name, "/") { // no reader of a zip reads the content of a folder
		visited = io.TeeReader(content, &to)
	}
	if w.visit == nil {
		to.hash = newFileHash()
	} else if err := w.visit(e.name, visited); err != nil {
		return err
	}
	if _, err := io.CopyBuffer(&to, content, w.copying); err != nil {
		return err
	}
	if e.method == zip.Store && stored.N > 0 {
		return io.ErrUnexpectedEOF
	}
	e.size, e.checksum = uint64(to.size), to.checksum
	if to.hash != nil {
		to.hash.Sum(e.sum[:0])
	}
	return nil
}

// descriptor reads the data descriptor of an entry. Its signature is optional, and its sizes
// have 32 or 64 bits: it is the one that agrees with the content. Readers of the directory
// compare the checksum alone, and take the signature for one whenever it is there.
func (w *zipWalk) descriptor(e *walkedEntry) error {
	const shortest, longest = 12, 24
	at, err := w.buffered.Peek(longest)
	if err != nil {
		return err
	}
	size := shortest
	if string(at[:4]) == descriptorSignature {
		size, at = size+4, at[4:]
	}
	packed := uint64(e.end - e.start)
	switch {
	case binary.LittleEndian.Uint32(at) != e.checksum:
		return errNotWalked
	case uint64(binary.LittleEndian.Uint32(at[4:])) == packed && uint64(binary.LittleEndian.Uint32(at[8:])) == e.size:
	case binary.LittleEndian.Uint64(at[4:]) == packed && binary.LittleEndian.Uint64(at[12:]) == e.size:
		size += 8
	default:
		return errNotWalked
	}
	_, err = w.buffered.Discard(size)
	return err
}

// A contentDigest is a writer for an unpacked content. It ends the walk of a zip that unpacks
// to more than any zip may that is as long as what has been walked.
type contentDigest struct {
	walk     *zipWalk
	hash     hash.Hash // nil: not needed
	checksum uint32
	size     int64
}

func (d *contentDigest) Write(p []byte) (int, error) {
	d.size += int64(len(p))
	if d.walk.unpacked += int64(len(p)); d.walk.unpacked > maxUnpackedFrom(d.walk.from.n) {
		return 0, errNotWalked
	}
	d.checksum = crc32.Update(d.checksum, crc32.IEEETable, p)
	if d.hash != nil {
		d.hash.Write(p)
	}
	return len(p), nil
}

// A countingReader counts the bytes that are read.
type countingReader struct {
	r io.Reader
	n int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

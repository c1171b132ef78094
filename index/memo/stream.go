package memo

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"slices"
	"sync"
)

// bufferSize is the size of reads and writes of a memo file. Most segments are smaller: each change
// stores one, and would need fresh pages for a larger buffer.
const bufferSize = 32 << 10

// exceptEnd returns an error of reading; nil for the end of a file.
func exceptEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// A memoStream reads values from a file until one is missing.
type memoStream struct {
	in     *bufio.Reader
	left   int64 // bytes that may be read
	bad    bool
	failed error  // why the file could not be read, if it was not because of its end
	buffer []byte // of run
}

// ReadByte implements io.ByteReader.
func (r *memoStream) ReadByte() (byte, error) {
	if r.left == 0 {
		return 0, io.ErrUnexpectedEOF
	}
	r.left--
	b, err := r.in.ReadByte()
	r.failed = exceptEnd(err)
	return b, err
}

func (r *memoStream) unsigned() uint64 {
	if r.bad {
		return 0
	}
	n, err := binary.ReadUvarint(r)
	r.bad = err != nil
	return n
}

// count reads the number of things of at least so many bytes, as a memoReader does.
func (r *memoStream) count(least int) int {
	n := r.unsigned()
	if n > uint64(r.left)/uint64(least) {
		r.bad = true
	}
	if r.bad {
		return 0
	}
	return int(n)
}

// run reads bytes, which are valid until the next call.
func (r *memoStream) run() []byte {
	n := r.count(1)
	r.buffer = slices.Grow(r.buffer[:0], n)[:n]
	r.left -= int64(n)
	if _, err := io.ReadFull(r.in, r.buffer); err != nil {
		r.bad, r.failed = true, exceptEnd(err)
		return nil
	}
	return r.buffer
}

func (r *memoStream) text() string { return string(r.run()) }

// names reads the names that appendNames wrote.
func (r *memoStream) names() map[string]bool {
	names := make(map[string]bool)
	for range r.count(1) {
		names[r.text()] = true
	}
	return names
}

// folders reads the folders with their records. Other cores decode the records meanwhile: a start
// waits for the memo, and they would be idle.
func (r *memoStream) folders() map[string]*folderRecords {
	count := r.count(leastFolder)
	folders := make(map[string]*folderRecords, count)
	buffers := make(chan []byte, runtime.GOMAXPROCS(0)+1)
	for range cap(buffers) {
		buffers <- nil
	}
	var decoding sync.WaitGroup
	for range count {
		r.buffer = <-buffers
		dir, f := r.text(), new(folderRecords)
		encoded := r.run()
		folders[dir] = f
		decoding.Go(func() {
			f.records = decodeFolder(encoded)
			buffers <- encoded
		})
	}
	decoding.Wait()
	return folders
}

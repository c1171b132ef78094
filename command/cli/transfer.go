package cli

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dustin/go-humanize"
)

// A Transfer is the progress of files that are sent or fetched. It is safe for concurrent use.
type Transfer struct {
	*progressBar
	began time.Time
	files int64
	size  int64 // of all files, in bytes; zero: each becomes known when its transfer begins

	done     atomic.Int64 // files
	moved    atomic.Int64 // bytes
	sized    atomic.Int64 // files with a known size, or without a transfer
	expected atomic.Int64 // bytes of these files
}

// NewTransfer shows its progress on standard error.
func NewTransfer() *Transfer { return &Transfer{progressBar: newProgressBar(os.Stderr)} }

// Begin begins the transfer of files. size is zero if it is not known.
func (t *Transfer) Begin(files int, size int64) {
	t.began, t.files, t.size = time.Now(), int64(files), size
}

func (t *Transfer) draw() {
	done := t.done.Load()
	t.Line(done >= t.files, func(now time.Time) string { return t.text(now, done) })
}

// text has the number of files that are done, and the bytes moved, expected and per second.
func (t *Transfer) text(now time.Time, done int64) string {
	moved := t.moved.Load()
	if t.size > 0 {
		moved = min(max(moved, 0), t.size) // a request that was given up may go on for a moment
	}
	rate := int64(float64(moved) / max(now.Sub(t.began).Seconds(), 0.001))
	text := fmt.Sprintf("%d of %d, %s", done, t.files, humanBytes(moved))
	if t.size > 0 {
		return Bar(moved, t.size, fmt.Sprintf("%s of %s, %s/s", text, humanBytes(t.size), humanBytes(rate)))
	}
	sized := t.sized.Load()
	if sized == 0 {
		return Bar(done, t.files, fmt.Sprintf("%s, %s/s", text, humanBytes(rate)))
	}
	expected, about := t.expected.Load(), ""
	if sized < t.files { // the other files are taken to be as large
		expected, about = expected/sized*t.files, "about "
	}
	expected = max(expected, moved)
	text += fmt.Sprintf(" of %s%s, %s/s", about, humanBytes(expected), humanBytes(rate))
	if rate > 0 {
		text += fmt.Sprintf(", %s left", time.Duration((expected-moved)/rate)*time.Second)
	}
	return Bar(done, t.files, text)
}

func humanBytes(n int64) string { return humanize.Bytes(uint64(n)) }

// A FileTransfer is the progress of one file.
type FileTransfer struct {
	of *Transfer

	mutex       sync.Mutex
	moved, size int64 // bytes
	sized       bool
}

// File begins a file. size is its size if the sizes of all files are known.
func (t *Transfer) File(size int64) *FileTransfer {
	return &FileTransfer{of: t, size: size}
}

// Update notes how many bytes of the file have been moved of how many; zero: it is not known.
func (f *FileTransfer) Update(moved, size int64) {
	f.mutex.Lock()
	f.note(moved, size)
	f.mutex.Unlock()
	f.of.draw()
}

// Add notes that more bytes have been moved. The number is negative for bytes that have to be
// moved again.
func (f *FileTransfer) Add(n int64) {
	f.mutex.Lock()
	f.note(f.moved+n, 0)
	f.mutex.Unlock()
	f.of.draw()
}

func (f *FileTransfer) note(moved, size int64) {
	f.of.moved.Add(moved - f.moved)
	f.moved = moved
	if f.of.size > 0 {
		return
	}
	if size > 0 && !f.sized {
		f.sized = true
		f.of.sized.Add(1)
	}
	if f.sized {
		f.of.expected.Add(max(size, moved) - f.size)
		f.size = max(size, moved)
	}
}

// Moved returns how many bytes of the file have been moved.
func (f *FileTransfer) Moved() int64 {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.moved
}

// End ends the file, also if nothing of it had to be moved.
func (f *FileTransfer) End() {
	f.mutex.Lock()
	if f.of.size > 0 {
		f.note(f.size, 0)
	} else {
		if !f.sized {
			f.of.sized.Add(1)
		}
		f.of.expected.Add(f.moved - f.size)
	}
	f.mutex.Unlock()
	f.of.done.Add(1)
	f.of.draw()
}

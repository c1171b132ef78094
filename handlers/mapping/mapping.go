package mapping

import (
	"io"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

const (
	// window is how many bytes are written at once.
	window = 256 << 10

	// requestInterval is how long pages are taken to stay in memory after a request.
	requestInterval = time.Second
)

// Files are the files that are being sent. The zero value is ready to use, also
// concurrently.
type Files struct {
	mutex  sync.Mutex
	mapped map[identity]*mapped
}

// An identity is the identity of a file while it is open. Files on a network file system
// may have none, and are not mapped.
type identity struct {
	device, inode uint64
	size          int64
}

// A mapped file is in memory as long as it has senders.
type mapped struct {
	identity
	senders int // under the mutex
	bytes   []byte
	since   time.Time

	// requested has the time since since at which the pages of each window were requested
	// last, in nanoseconds; zero: never.
	requested []atomic.Int64
}

// Send writes n bytes of a file from its current offset, and moves the offset behind them.
// It writes fewer bytes and returns no error if the others have to be read: the file cannot
// be mapped, or not as a whole, or it is too small for that. It returns tree.ErrChanged if
// the file becomes shorter meanwhile; then it is unknown how much w has written.
func (s *Files) Send(w io.Writer, f *os.File, n int64) (sent int64, err error) {
	if n < window {
		return 0, nil
	}
	offset, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, err
	}
	m := s.acquire(f)
	if m == nil {
		return 0, nil
	}
	defer s.release(m)
	if end := offset + n; end <= m.size {
		sent, err = m.send(w, offset, end)
	}
	if err == nil {
		_, err = f.Seek(offset+sent, io.SeekStart)
	}
	return sent, err
}

// acquire returns a mapping of the file, which may have other senders. It returns nil if
// the file cannot be mapped.
func (s *Files) acquire(f *os.File) *mapped {
	id, ok := identify(f)
	if !ok {
		return nil
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	m := s.mapped[id]
	if m == nil {
		bytes, err := mapFile(f, id.size)
		if err != nil {
			return nil
		}
		m = &mapped{identity: id, bytes: bytes, since: time.Now(), requested: make([]atomic.Int64, id.size/window+1)}
		if s.mapped == nil {
			s.mapped = make(map[identity]*mapped)
		}
		s.mapped[id] = m
	}
	m.senders++
	return m
}

func (s *Files) release(m *mapped) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if m.senders--; m.senders == 0 {
		delete(s.mapped, m.identity)
		unmap(m.bytes)
	}
}

// send writes the bytes from offset to end. It stops without an error before pages that
// cannot be had.
func (m *mapped) send(w io.Writer, offset, end int64) (sent int64, err error) {
	for offset < end {
		next := min((offset/window+1)*window, end)
		if !m.request(offset / window) {
			return sent, nil
		}
		n, err := write(w, m.bytes[offset:next])
		sent, offset = sent+int64(n), next
		if err != nil {
			return sent, err
		}
	}
	return sent, nil
}

// request has the pages of a window read, and reports whether all of them are there.
func (m *mapped) request(i int64) bool {
	now, last := int64(time.Since(m.since)), m.requested[i].Load()
	if last > 0 && now-last < int64(requestInterval) {
		return true
	}
	if requestPages(m.bytes[i*window:min((i+1)*window, m.size)]) != nil {
		return false
	}
	m.requested[i].Store(now)
	return true
}

// write writes bytes of a mapping.
func write(w io.Writer, b []byte) (n int, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		// The panic of a nil pointer has no address.
		if _, ok := p.(interface{ Addr() uintptr }); !ok {
			panic(p)
		}
		n, err = 0, tree.ErrChanged
	}()
	return w.Write(b)
}

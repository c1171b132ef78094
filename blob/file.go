package blob

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"

	gocloud "gocloud.dev/blob"
)

const (
	// headSize is how much of a file is read when it is opened, in bytes. Most files of
	// a tree are smaller and so take a single request.
	headSize = 64 << 10

	// leastAhead and mostAhead are how much ReadAt reads ahead, in bytes: leastAhead
	// after a jump, and twice as much each time it continues from there, up to
	// mostAhead. The directory of a zip with thousands of files takes a handful of
	// requests.
	leastAhead, mostAhead = 256 << 10, 1 << 20

	// mostResumed is how many times in a row reading resumes after the store broke off
	// within less than headSize bytes. After more bytes the count starts again, since
	// stores close the connections that a slow client leaves idle.
	mostResumed = 3
)

// Open implements fs.FS. It reads the first bytes of a file in the same request. Later
// reads return bytes of the same object, or ErrChanged.
func (b *Bucket) Open(name string) (fs.File, error) {
	if name == "." {
		return &directory{bucket: b, name: name}, nil
	}
	if _, err := b.key("open", name); err != nil {
		return nil, err
	}
	f, err := b.openFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := b.statDirectory("open", name); err != nil {
			return nil, err
		}
		return &directory{bucket: b, name: name}, nil
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (b *Bucket) openFile(name string) (*file, error) {
	ctx, w := b.patience.wait(context.Background(), b.patience.answer)
	defer w.stop()
	f := &file{bucket: b, name: name}
	r, err := b.reader(ctx, name, 0, headSize, "")
	if err != nil {
		// An empty object has no ranges.
		if _, status := b.dialect.refusal(err); status == rangeNotSatisfiable {
			if f.info, err = b.head(ctx, "open", name); err != nil {
				return nil, err
			}
			return f, nil
		}
		return nil, b.pathError(ctx, "open", name, err)
	}
	defer r.Close()
	if f.info, err = fileInfo("open", name, r.Size(), r.ModTime(), b.dialect.readerTag(r)); err != nil {
		return nil, err
	}
	w.renew(b.patience.idle)
	head := make([]byte, min(headSize, r.Size()))
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, b.pathError(ctx, "open", name, noEOF(err))
	}
	f.window = window{0, head}
	if b.cache != nil && f.info.size > headSize {
		f.cached = b.cache.open(f.content())
	}
	return f, nil
}

const rangeNotSatisfiable = 416

// reader requests bytes of an object as they are stored. Unless the tag is empty, the
// object must have that tag.
func (b *Bucket) reader(ctx context.Context, name string, offset, length int64, tag string) (r *gocloud.Reader, err error) {
	defer refuseIncomplete(&err)
	return b.store.NewRangeReader(undecoded(ctx), b.prefix+name, offset, length, &gocloud.ReaderOptions{BeforeRead: b.dialect.beforeRead(tag)})
}

// noEOF returns the error of reading bytes that must exist: an end is unexpected.
func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// A file is an open object. Reading sequentially takes a single request, seeking takes
// none, and ReadAt reads ahead.
type file struct {
	bucket *Bucket
	name   string
	info   *info

	mutex   sync.Mutex
	closed  bool
	offset  int64
	window  window
	ahead   int64        // how much ReadAt last read ahead
	body    *body        // of a sequential read; nil if there is none
	resumed int          // number of times in a row
	cached  *os.File     // nil: not in the cache
	caching *cacheWriter // nil: not being written to it
}

// A window is a part of a file in memory.
type window struct {
	start int64
	bytes []byte
}

func (w window) end() int64 { return w.start + int64(len(w.bytes)) }

// copy copies bytes of the window that begin at an offset of the file.
func (w window) copy(p []byte, offset int64) int {
	if offset < w.start || offset >= w.end() {
		return 0
	}
	return copy(p, w.bytes[offset-w.start:])
}

func (f *file) content() content {
	return content{key: f.bucket.prefix + f.name, tag: f.info.tag, size: f.info.size}
}

// Stat implements fs.File.
func (f *file) Stat() (fs.FileInfo, error) { return f.info, nil }

// Seek implements io.Seeker.
func (f *file) Seek(offset int64, whence int) (int64, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	switch whence {
	case io.SeekCurrent:
		offset += f.offset
	case io.SeekEnd:
		offset += f.info.size
	}
	if offset < 0 {
		return 0, &fs.PathError{Op: "seek", Path: f.name, Err: fs.ErrInvalid}
	}
	f.offset = offset
	return offset, nil
}

// Read implements fs.File.
func (f *file) Read(p []byte) (int, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	switch {
	case f.closed:
		return 0, &fs.PathError{Op: "read", Path: f.name, Err: fs.ErrClosed}
	case len(p) == 0:
		return 0, nil
	case f.offset >= f.info.size:
		return 0, io.EOF
	}
	n, err := f.read(p)
	f.addToCache(p[:n])
	f.offset += int64(n)
	return n, err
}

func (f *file) read(p []byte) (int, error) {
	if f.cached != nil {
		if n := f.readCached(p, f.offset); n > 0 {
			return n, nil
		}
	}
	if f.body == nil || f.body.at != f.offset {
		if n := f.window.copy(p, f.offset); n > 0 {
			return n, nil
		}
	}
	p = p[:min(int64(len(p)), f.info.size-f.offset)]
	for {
		if err := f.readOnFrom(f.offset); err != nil {
			return 0, err
		}
		n, err := f.body.Read(p)
		if n > 0 {
			return n, nil
		}
		if err == nil {
			continue
		}
		err = f.bucket.pathError(f.body.ctx, "read", f.name, noEOF(err))
		if f.body.at-f.body.start >= headSize {
			f.resumed = 0
		}
		f.closeBody()
		if f.resumed++; f.resumed > mostResumed {
			return 0, err
		}
	}
}

// readOnFrom requests the bytes from an offset on, unless they are next in the body.
func (f *file) readOnFrom(offset int64) error {
	if f.body != nil && f.body.at == offset {
		return nil
	}
	f.closeBody()
	var err error
	f.body, err = f.request(offset, -1)
	return err
}

func (f *file) closeBody() {
	if f.body != nil {
		f.body.Close()
		f.body = nil
	}
}

// request requests a range of the opened object. A negative length means up to the end.
func (f *file) request(offset, length int64) (*body, error) {
	b := f.bucket
	ctx, w := b.patience.wait(context.Background(), b.patience.answer)
	r, err := b.reader(ctx, f.name, offset, length, f.info.tag)
	if err == nil && (b.dialect.readerTag(r) != f.info.tag || r.Size() != f.info.size) {
		r.Close()
		err = ErrChanged
	}
	if err != nil {
		if b.changed(err) {
			err = ErrChanged
		}
		err = b.pathError(ctx, "read", f.name, err)
		w.stop()
		return nil, err
	}
	w.pause()
	return &body{r, ctx, w, b.patience.idle, offset, offset}, nil
}

// ReadAt implements io.ReaderAt.
func (f *file) ReadAt(p []byte, offset int64) (n int, err error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	switch {
	case f.closed:
		return 0, &fs.PathError{Op: "read", Path: f.name, Err: fs.ErrClosed}
	case offset < 0:
		return 0, &fs.PathError{Op: "read", Path: f.name, Err: fs.ErrInvalid}
	}
	for n < len(p) {
		at := offset + int64(n)
		if at >= f.info.size {
			return n, io.EOF
		}
		m := 0
		if f.cached != nil {
			m = f.readCached(p[n:], at)
		} else {
			m = f.window.copy(p[n:], at)
		}
		if n += m; m > 0 || f.cached != nil {
			continue
		}
		if err := f.lookAhead(at, int64(len(p)-n)); err != nil {
			return n, err
		}
	}
	return n, nil
}

// lookAhead fills the window with bytes that include those at an offset.
func (f *file) lookAhead(offset, length int64) error {
	onward := f.ahead > 0 && offset == f.window.end()
	if onward {
		f.ahead = min(2*f.ahead, mostAhead)
	} else {
		f.ahead = leastAhead
	}
	start := offset
	length = min(max(length, f.ahead), mostAhead)
	if start+length > f.info.size {
		length = min(length, f.info.size)
		if onward {
			length = f.info.size - start
		}
		// Readers of a zip begin at its end and go back to the beginning of its
		// directory.
		start = f.info.size - length
	}
	for {
		bytes, err := f.part(start, length)
		if err == nil {
			f.window, f.resumed = window{start, bytes}, 0
			return nil
		}
		if f.resumed++; f.resumed > mostResumed || errors.Is(err, ErrChanged) {
			return err
		}
	}
}

// part reads a range of the object into memory.
func (f *file) part(start, length int64) ([]byte, error) {
	body, err := f.request(start, length)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	bytes := make([]byte, length)
	if _, err := io.ReadFull(body, bytes); err != nil {
		return nil, f.bucket.pathError(body.ctx, "read", f.name, noEOF(err))
	}
	return bytes, nil
}

// Close implements fs.File.
func (f *file) Close() error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.closed {
		return &fs.PathError{Op: "close", Path: f.name, Err: fs.ErrClosed}
	}
	f.closed = true
	f.closeBody()
	f.stopCaching()
	if f.cached != nil {
		f.cached.Close()
	}
	f.window = window{}
	return nil
}

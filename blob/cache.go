package blob

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

const (
	// recount is the longest time between two counts of the files in a cache, as other
	// processes may add files to it.
	recount = time.Minute

	// unfinished is the age at which an incomplete file counts as left behind by a
	// process that has ended.
	unfinished = time.Hour

	unfinishedSuffix = ".part"
)

// A cache stores the contents of objects in a folder on the local disk, by their tags.
// A file appears in the folder only when it is complete, under a name that no other
// content has. So several processes can share the folder, and a killed process leaves
// no wrong file behind. The least recently used contents are removed first.
type cache struct {
	directory string
	limit     int64
	store     string
	log       func() *zap.Logger
	finishing sync.WaitGroup
	failing   atomic.Bool // the last content could not be stored

	// readFolder is os.ReadDir, except in tests.
	readFolder func(name string) ([]os.DirEntry, error)

	// The mutex is not held while the disk is used: reads of other objects wait for it, and
	// a disk may hang.
	mutex     sync.Mutex
	size      int64
	counted   time.Time       // when the last count began
	counting  bool            // a goroutine counts the files
	meanwhile int64           // the size of the contents that were added since that count began
	writers   map[string]bool // unfinished writers by file
	closed    bool            // finishWriting has been called
}

// content identifies the bytes of an object.
type content struct {
	key, tag string
	size     int64
}

// openCache returns the cache of a store in a folder, which it creates so that other users
// of the machine cannot read it.
func openCache(directory string, limit int64, store string, log func() *zap.Logger) (*cache, error) {
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	c := &cache{directory: directory, limit: limit, store: store, log: log, readFolder: os.ReadDir, writers: make(map[string]bool)}
	c.added(0)
	return c, nil
}

func (c *cache) file(o content) string {
	sum := sha256.Sum256([]byte(c.store + "\x00" + o.key + "\x00" + o.tag))
	name := hex.EncodeToString(sum[:])
	return filepath.Join(c.directory, name[:2], name)
}

// open returns the content from the disk; nil if it is not there.
func (c *cache) open(o content) *os.File {
	name := c.file(o)
	f, err := os.Open(name)
	if err != nil {
		return nil
	}
	if info, err := f.Stat(); err != nil || info.Size() != o.size {
		f.Close()
		os.Remove(name) // incomplete, since the machine stopped
		return nil
	}
	now := time.Now()
	os.Chtimes(name, now, now) // if that fails, the file is removed earlier
	return f
}

// newWriter returns a writer for a content. It returns nil if the content should not be
// written, because it is in the cache, is being written already, is too large, or there is
// no room until a count has ended.
func (c *cache) newWriter(o content) *cacheWriter {
	w := &cacheWriter{cache: c, name: c.file(o), size: o.size}
	if !c.reserve(w) {
		return nil
	}
	if _, err := os.Stat(w.name); err == nil {
		w.forget()
		return nil
	}
	var err error
	if w.file, err = c.create(w.name); err != nil {
		w.forget()
		c.failed(err)
		return nil
	}
	return w
}

// reserve reserves the name of a writer, and reports whether its content may be written.
func (c *cache) reserve(w *cacheWriter) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.writers[w.name] || w.size > c.limit || c.counting && c.size > c.limit {
		return false
	}
	c.writers[w.name] = true
	return true
}

func (c *cache) create(name string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return nil, err
	}
	return os.CreateTemp(filepath.Dir(name), "*"+unfinishedSuffix)
}

// failed logs that nothing can be stored. It logs this once, until something can be
// stored.
func (c *cache) failed(err error) {
	if !c.failing.Swap(true) {
		c.log().Warn("objects cannot be kept on the local disk, and are read from the store each time", zap.Error(err))
	}
}

// finish lets a writer finish in the background.
func (c *cache) finish(w *cacheWriter) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.closed {
		go w.finish()
		return
	}
	c.finishing.Go(w.finish)
}

// finishWriting waits for the writers that are finishing.
func (c *cache) finishWriting() {
	c.mutex.Lock()
	c.closed = true // a WaitGroup must not grow during Wait
	c.mutex.Unlock()
	c.finishing.Wait()
}

// A cacheWriter writes a content to the cache. It is used by one goroutine at a time.
type cacheWriter struct {
	cache         *cache
	name          string
	file          *os.File
	written, size int64
}

// write writes the next bytes. It reports whether the writer needs more.
func (w *cacheWriter) write(p []byte) (more bool) {
	n, err := w.file.Write(p)
	w.written += int64(n)
	if err != nil {
		w.cache.failed(err)
		w.abandon()
		return false
	}
	if w.written < w.size {
		return true
	}
	// Readers do not wait for the disk.
	w.cache.finish(w)
	return false
}

// finish gives the content its name when it is on the disk.
func (w *cacheWriter) finish() {
	defer w.forget()
	err := w.file.Sync()
	err = cmp.Or(w.file.Close(), err)
	if err == nil {
		err = os.Rename(w.file.Name(), w.name)
	}
	if err != nil {
		os.Remove(w.file.Name())
		w.cache.failed(err)
		return
	}
	w.cache.failing.Store(false)
	w.cache.added(w.size)
}

// abandon removes the written bytes.
func (w *cacheWriter) abandon() {
	defer w.forget()
	w.file.Close()
	os.Remove(w.file.Name())
}

func (w *cacheWriter) forget() {
	w.cache.mutex.Lock()
	defer w.cache.mutex.Unlock()
	delete(w.cache.writers, w.name)
}

// added makes room after a content was added. One goroutine at a time counts the files. What
// others add during a count may be in it or not, so it is added to the result: until the next
// count, the size may be too large, but is not too small.
func (c *cache) added(size int64) {
	before, due := c.add(size)
	for due {
		before, due = c.endCount(c.count(before))
	}
}

// add adds the size of a content, and reports whether the caller has to count the files now.
// before is the size so far.
func (c *cache) add(size int64) (before int64, due bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.size += size
	c.meanwhile += size
	if c.counting || c.size <= c.limit && time.Since(c.counted) <= recount {
		return 0, false
	}
	return c.beginCount(), true
}

// beginCount begins a count, and returns the size so far. The caller holds the mutex.
func (c *cache) beginCount() (before int64) {
	c.counting, c.counted, c.meanwhile = true, time.Now(), 0
	return c.size
}

// endCount ends a count with its result, unless it has to be repeated: what was added meanwhile
// may need room again.
func (c *cache) endCount(size int64) (before int64, again bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.size = size + c.meanwhile
	if c.meanwhile > 0 && c.size > c.limit {
		return c.beginCount(), true
	}
	c.counting = false
	return 0, false
}

// count adds up the sizes of the cache's files. If they exceed the limit, it removes files
// down to nine tenths of it, so that not every addition has to remove some. Other files in
// the folder stay: it may be the folder of Caddy's storage, by mistake. before is the size so
// far.
func (c *cache) count(before int64) (size int64) {
	type entry struct {
		name string
		size int64
		used time.Time
	}
	var entries []entry
	unread := false
	for first := range 1 << 8 {
		prefix := fmt.Sprintf("%02x", first)
		folder := filepath.Join(c.directory, prefix)
		files, err := c.readFolder(folder)
		unread = unread || err != nil && !errors.Is(err, fs.ErrNotExist) // there may be no content with that prefix
		for _, f := range files {
			name, complete := filepath.Join(folder, f.Name()), isContent(f.Name(), prefix)
			if !complete && !strings.HasSuffix(name, unfinishedSuffix) {
				continue
			}
			info, err := f.Info()
			if err != nil || !info.Mode().IsRegular() {
				continue // another process has removed it
			}
			if complete {
				entries = append(entries, entry{name, info.Size(), info.ModTime()})
			} else if time.Since(info.ModTime()) > unfinished {
				os.Remove(name)
				continue
			}
			size += info.Size()
		}
	}
	if unread { // else the cache could outgrow its limit
		size = max(size, before)
	}
	if size <= c.limit {
		return size
	}
	slices.SortFunc(entries, func(a, b entry) int { return a.used.Compare(b.used) })
	for _, e := range entries {
		if size <= c.limit/10*9 {
			break
		}
		if err := os.Remove(e.name); err == nil || os.IsNotExist(err) {
			size -= e.size
		}
	}
	return size
}

// isContent reports whether a file in the folder of a prefix is named like a content.
func isContent(name, prefix string) bool {
	sum, err := hex.DecodeString(name)
	return err == nil && len(sum) == sha256.Size && strings.HasPrefix(name, prefix)
}

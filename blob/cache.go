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

	mutex   sync.Mutex
	size    int64
	counted time.Time
	writers map[string]bool // unfinished writers by file
	closed  bool            // finishWriting has been called
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
	c := &cache{directory: directory, limit: limit, store: store, log: log, writers: make(map[string]bool)}
	c.count()
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
// written, because it is in the cache, is being written already, or is too large.
func (c *cache) newWriter(o content) *cacheWriter {
	name := c.file(o)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.writers[name] || o.size > c.limit {
		return nil
	}
	if _, err := os.Stat(name); err == nil {
		return nil
	}
	f, err := c.create(name)
	if err != nil {
		c.failed(err)
		return nil
	}
	c.writers[name] = true
	return &cacheWriter{cache: c, name: name, file: f, size: o.size}
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

// added makes room after a content was added.
func (c *cache) added(size int64) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.size += size
	if c.size > c.limit || time.Since(c.counted) > recount {
		c.count()
	}
}

// count adds up the sizes of the cache's files. If they exceed the limit, it removes files
// down to nine tenths of it, so that not every addition has to remove some. Other files in
// the folder stay: it may be the folder of Caddy's storage, by mistake.
func (c *cache) count() {
	type entry struct {
		name string
		size int64
		used time.Time
	}
	var entries []entry
	before, unread := c.size, false
	c.size, c.counted = 0, time.Now()
	for first := range 1 << 8 {
		prefix := fmt.Sprintf("%02x", first)
		folder := filepath.Join(c.directory, prefix)
		files, err := os.ReadDir(folder)
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
			c.size += info.Size()
		}
	}
	if unread { // else the cache could outgrow its limit
		c.size = max(c.size, before)
	}
	if c.size <= c.limit {
		return
	}
	slices.SortFunc(entries, func(a, b entry) int { return a.used.Compare(b.used) })
	for _, e := range entries {
		if c.size <= c.limit/10*9 {
			return
		}
		if err := os.Remove(e.name); err == nil || os.IsNotExist(err) {
			c.size -= e.size
		}
	}
}

// isContent reports whether a file in the folder of a prefix is named like a content.
func isContent(name, prefix string) bool {
	sum, err := hex.DecodeString(name)
	return err == nil && len(sum) == sha256.Size && strings.HasPrefix(name, prefix)
}

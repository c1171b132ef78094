package blob

// addToCache passes bytes that were read at the file's offset to the cache. A file is
// cached if it is read from start to end, in reads of any size.
func (f *file) addToCache(p []byte) {
	c := f.bucket.cache
	if c == nil || f.cached != nil || len(p) == 0 || f.info.size <= headSize {
		return
	}
	if f.caching != nil && f.caching.written != f.offset {
		f.stopCaching()
	}
	if f.caching == nil && f.offset == 0 {
		f.caching = c.newWriter(f.content())
	}
	if f.caching != nil && !f.caching.write(p) {
		f.caching = nil
	}
}

// stopCaching discards the cached part of a file that is not read to its end.
func (f *file) stopCaching() {
	if f.caching != nil {
		f.caching.abandon()
		f.caching = nil
	}
}

// readCached reads from the local disk. If that fails, the rest is read from the store.
func (f *file) readCached(p []byte, offset int64) int {
	n, err := f.cached.ReadAt(p[:min(int64(len(p)), f.info.size-offset)], offset)
	if err != nil && n == 0 {
		f.cached.Close()
		f.cached = nil
	}
	return n
}

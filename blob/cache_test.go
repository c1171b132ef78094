package blob

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// cached returns the files in the folder of a cache.
func cached(t *testing.T, folder string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// reads reads a file to its end, and waits until it is in the cache if it should be
// cached.
func reads(t *testing.T, b *Bucket, name, want string) {
	t.Helper()
	content, err := fs.ReadFile(b, name)
	if err != nil || string(content) != want {
		t.Errorf("%s: %d bytes of %d, %v", name, len(content), len(want), err)
	}
	b.cache.finishing.Wait()
}

func TestObjectsAreReadOnceFromS3(t *testing.T) {
	s, folder := newStore(t), t.TempDir()
	b := openBucket(t, options{url: s.url, cacheSize: 1 << 20, cacheDirectory: folder})
	first, second := letters(3*headSize), letters(3*headSize + 1)[1:]
	put(t, b, "a", first)
	for _, step := range []struct {
		rule   string
		before func()
		want   string
		asked  string
	}{
		{"at first it comes from the store", func() {}, first, "[get:2]"},
		{"then the store is asked whether it has changed", func() {}, first, "[get:1]"},
		{"a replaced object is read again", func() { put(t, b, "a", second) }, second, "[get:2]"},
		{"a content that the machine lost half of is read again", func() {
			for _, name := range cached(t, folder) {
				os.Truncate(name, headSize)
			}
		}, second, "[get:2]"},
		{"and is there once more", func() {}, second, "[get:1]"},
	} {
		step.before()
		s.requests()
		reads(t, b, "a", step.want)
		if asked := s.requests(); asked != step.asked {
			t.Errorf("%s: the store is asked %s, should be %s", step.rule, asked, step.asked)
		}
	}
}

func TestCachedFiles(t *testing.T) {
	large := letters(3 * headSize)
	begin := func(t *testing.T, size int64) (*Bucket, string) {
		folder := filepath.Join(t.TempDir(), "cache")
		b := openBucket(t, options{url: "mem://", cacheSize: size, cacheDirectory: folder})
		put(t, b, "small", "small")
		for _, name := range []string{"a", "b", "c"} {
			put(t, b, name, large)
		}
		return b, folder
	}
	t.Run("nothing that comes with the first request", func(t *testing.T) {
		b, folder := begin(t, 1<<20)
		reads(t, b, "small", "small")
		if names := cached(t, folder); len(names) > 0 {
			t.Error(names)
		}
	})
	t.Run("nothing that was not read to its end", func(t *testing.T) {
		b, folder := begin(t, 1<<20)
		f, err := b.Open("a")
		if err != nil {
			t.Fatal(err)
		}
		io.CopyN(io.Discard, f, 2*headSize)
		f.Close()
		if names := cached(t, folder); len(names) > 0 {
			t.Error(names)
		}
	})
	t.Run("no more than its size", func(t *testing.T) {
		b, folder := begin(t, 2*int64(len(large))+1)
		for _, name := range []string{"a", "b", "c"} {
			reads(t, b, name, large)
		}
		if names := cached(t, folder); len(names) != 1 && len(names) != 2 {
			t.Error(names)
		}
	})
	t.Run("nothing that is larger", func(t *testing.T) {
		b, folder := begin(t, int64(len(large))-1)
		reads(t, b, "a", large)
		if names := cached(t, folder); len(names) > 0 {
			t.Error(names)
		}
	})
	t.Run("only for this user", func(t *testing.T) {
		b, folder := begin(t, 1<<20)
		reads(t, b, "a", large)
		for _, name := range append(cached(t, folder), folder) {
			if info, err := os.Stat(name); err != nil || info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%v, %v", info.Mode(), err)
			}
		}
	})
}

// The folder may have been named by mistake, such as the folder of Caddy's storage.
func TestACacheRemovesOnlyItsOwnFiles(t *testing.T) {
	const digest = "3a7bd3e2360a3d29eea436fcfb7e44c735d117c42d1c1835420b6b9942dd4f1b"
	for _, test := range []struct {
		rule, name string
		stays      bool
	}{
		{"an object", "3a/" + digest, false},
		{"an object of a process that was killed", "3a/1234.part", false},
		{"a key", "signing_key.asc", true},
		{"a key in a folder", "keys/signing_key.asc", true},
		{"a key in a folder that is named like the cache's", "3a/signing_key.asc", true},
		{"an incomplete file", "x.part", true},
		{"an incomplete file in a folder", "tlog/x.part", true},
		{"a digest that is no object", digest, true},
		{"a digest in the folder of another one", "3b/" + digest, true},
		{"a digest in a further folder", "3a/3a/" + digest, true},
	} {
		t.Run(test.rule, func(t *testing.T) {
			folder := t.TempDir()
			name := filepath.Join(folder, filepath.FromSlash(test.name))
			if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte("content"), 0o600); err != nil {
				t.Fatal(err)
			}
			old := time.Now().Add(-2 * unfinished)
			if err := os.Chtimes(name, old, old); err != nil {
				t.Fatal(err)
			}
			openBucket(t, options{url: "mem://", cacheSize: 1, cacheDirectory: folder})
			if _, err := os.Stat(name); (err == nil) != test.stays {
				t.Errorf("%s: %v", test.name, err)
			}
		})
	}
}

// A full or broken disk costs requests to the store, and is logged once.
func TestACacheThatCannotBeWrittenIsLeftOut(t *testing.T) {
	core, log := observer.New(zapcore.WarnLevel)
	folder := filepath.Join(t.TempDir(), "cache")
	b, err := open(options{url: "mem://", cacheSize: 1 << 20, cacheDirectory: folder}, func() *zap.Logger { return zap.New(core) })
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(folder); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(folder, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	want := letters(3 * headSize)
	put(t, b, "a", want)
	for range 3 {
		reads(t, b, "a", want)
	}
	if log.Len() != 1 {
		t.Errorf("it logs %v", log.All())
	}
}

// Requests continue to read while a configuration ends.
func TestACacheIsClosedWhileItIsUsed(t *testing.T) {
	b := openBucket(t, options{url: "mem://", cacheSize: 1 << 20, cacheDirectory: t.TempDir()})
	want := letters(2 * headSize)
	for _, name := range strings.Split("abcdefgh", "") {
		put(t, b, name, want)
	}
	var wait sync.WaitGroup
	for _, name := range strings.Split("abcdefgh", "") {
		wait.Go(func() {
			if content, err := fs.ReadFile(b, name); err != nil || string(content) != want {
				t.Errorf("%s: %d bytes, %v", name, len(content), err)
			}
		})
	}
	wait.Go(func() { b.Destruct() })
	wait.Wait()
	for writing := true; writing; runtime.Gosched() { // otherwise the folder could not be removed
		b.cache.mutex.Lock()
		writing = len(b.cache.writers) > 0
		b.cache.mutex.Unlock()
	}
}

// A folder of the cache that cannot be read at the moment is not empty: the cache keeps to its limit.
func TestACacheCountsWhatItCannotRead(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "00"), nil, 0o600); err != nil { // no folder
		t.Fatal(err)
	}
	c := &cache{directory: dir, limit: 100, readFolder: os.ReadDir}
	if size := c.count(60); size != 60 {
		t.Errorf("it counts %d bytes", size)
	}
}

// Counting the files of a large cache takes long, and a disk may hang. Reads of other objects do not
// wait for it. The cache keeps to its limit, although the count does not know of these objects.
func TestReadsDoNotWaitForACacheThatCounts(t *testing.T) {
	folder, large := t.TempDir(), letters(3*headSize)
	b := openBucket(t, options{url: "mem://", cacheSize: 2*int64(len(large)) + 1, cacheDirectory: folder})
	for _, name := range []string{"a", "b", "c", "d"} {
		put(t, b, name, large)
	}
	counting, resumed := make(chan struct{}), make(chan struct{})
	begin, resume := sync.OnceFunc(func() { close(counting) }), sync.OnceFunc(func() { close(resumed) })
	defer resume()
	b.cache.readFolder = func(name string) ([]os.DirEntry, error) {
		files, err := os.ReadDir(name)
		if filepath.Base(name) == "ff" { // the last one
			begin()
			<-resumed
		}
		return files, err
	}
	b.cache.counted = time.Time{} // long ago
	read := func(name string) {
		t.Helper()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if content, err := fs.ReadFile(b, name); err != nil || string(content) != large {
				t.Errorf("%s: %d bytes, %v", name, len(content), err)
			}
		}()
		select {
		case <-ended:
		case <-time.After(30 * time.Second):
			t.Fatalf("reading %s waits for the count", name)
		}
	}
	size := func() (size int64, writers int) {
		b.cache.mutex.Lock()
		defer b.cache.mutex.Unlock()
		return b.cache.size, len(b.cache.writers)
	}
	read("a")
	<-counting
	for _, name := range []string{"b", "c", "d"} { // there is no room for d
		read(name)
		for writers := 2; writers > 1; runtime.Gosched() { // one of them counts
			_, writers = size()
		}
	}
	if names := cached(t, folder); len(names) != 3 {
		t.Errorf("during the count the cache has %q", names)
	}
	resume()
	b.cache.finishing.Wait()
	names := cached(t, folder)
	if size, _ := size(); len(names) == 0 || len(names) > 2 || size != int64(len(names)*len(large)) {
		t.Errorf("after the count the cache has %q, and counts %d bytes", names, size)
	}
}

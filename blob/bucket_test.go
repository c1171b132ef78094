package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/iotest"
	"time"

	"go.uber.org/zap"
	gocloud "gocloud.dev/blob"
)

// localBuckets runs a test on the stores that need no server.
func localBuckets(t *testing.T, test func(*testing.T, *Bucket)) {
	for _, scheme := range []string{"mem", "file"} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			u := "mem://"
			if scheme == "file" {
				u = "file://" + filepath.ToSlash(t.TempDir())
			}
			test(t, openBucket(t, options{url: u}))
		})
	}
}

func openBucket(t *testing.T, o options) *Bucket {
	t.Helper()
	b, err := open(o, zap.NewNop)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Destruct() })
	return b
}

func put(t *testing.T, b *Bucket, name, content string) fs.FileInfo {
	t.Helper()
	info, err := b.Replace(t.Context(), name, strings.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func etag(t *testing.T, info fs.FileInfo) string {
	t.Helper()
	tag := info.(interface{ ETag() string }).ETag()
	if len(tag) < 3 {
		t.Fatalf("%s has the ETag %s", info.Name(), tag)
	}
	return tag
}

// letters returns a text of the given size, in which parts of 100 bytes are unique.
func letters(size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, "%d,", i)
	}
	return b.String()[:size]
}

// storeRules are the rules that every store keeps.
var storeRules = map[string]func(*testing.T, *Bucket){
	"a file system":                  testFileSystem,
	"one content has one tag":        testTags,
	"missing files":                  testMissingFiles,
	"one of many creates":            testCreate,
	"a write that fails":             testBrokenContent,
	"copy and remove":                testCopy,
	"reading anywhere":               testReading,
	"a replaced object is not mixed": testReplaced,
}

func TestLocalStores(t *testing.T) {
	for name, test := range storeRules {
		t.Run(name, func(t *testing.T) { localBuckets(t, test) })
	}
}

func testFileSystem(t *testing.T, b *Bucket) {
	names := []string{"a-b", "dir/a", "dir/sub/b.txt", "dir-x/c", "empty", "a b+c/ü.txt"}
	for _, name := range names {
		put(t, b, name, strings.TrimPrefix(name, "empty"))
	}
	put(t, b, "large", letters(3*headSize+1))
	if err := fstest.TestFS(b, append(names, "large")...); err != nil {
		t.Error(err)
	}
}

func testTags(t *testing.T, b *Bucket) {
	written := put(t, b, "dir/a", "first")
	infos := map[string]fs.FileInfo{}
	infos["stat"], _ = b.Stat("dir/a")
	f, err := b.Open("dir/a")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	infos["open"], _ = f.Stat()
	entries, err := b.ReadDir("dir")
	if err != nil {
		t.Fatal(err)
	}
	infos["readdir"], _ = entries[0].Info()
	b.Files(t.Context(), ".", func(name string, info fs.FileInfo) error {
		infos["files"] = info
		return nil
	})
	for from, info := range infos {
		if etag(t, info) != etag(t, written) || !info.ModTime().Equal(written.ModTime()) || info.Size() != 5 || info.Mode() != 0o644 || info.Name() != "a" {
			t.Errorf("%s: %v with %s, it was written as %v with %s", from, info, etag(t, info), written, etag(t, written))
		}
	}
	if replaced := put(t, b, "dir/a", "second"); etag(t, replaced) == etag(t, written) {
		t.Error("another content has the same ETag")
	}
}

// Objects that a store sends with an encoding, which clients undo, are told from others.
func TestStatTellsTheEncoding(t *testing.T) {
	t.Run("mem", func(t *testing.T) { testEncodings(t, openBucket(t, options{url: "mem://"})) }) // folders keep no encodings
	t.Run("S3", func(t *testing.T) { testEncodings(t, openBucket(t, options{url: newStore(t).url})) })
}

func testEncodings(t *testing.T, b *Bucket) {
	content := "\x1f\x8bis not decoded"
	if err := b.store.WriteAll(t.Context(), "encoded", []byte(content), &gocloud.WriterOptions{ContentEncoding: "gzip"}); err != nil {
		t.Fatal(err)
	}
	put(t, b, "plain", content)
	if err := b.Copy(t.Context(), "encoded", "copy"); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"encoded": "gzip", "copy": "gzip", "plain": ""} {
		info, err := b.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := encoding(info); got != want {
			t.Errorf("the encoding of %s is %q", name, got)
		}
		if got, err := fs.ReadFile(b, name); err != nil || string(got) != content {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
}

func encoding(info fs.FileInfo) string {
	return info.(interface{ ContentEncoding() string }).ContentEncoding()
}

func TestFilesAreListedFlat(t *testing.T) {
	b := openBucket(t, options{url: "mem://", prefix: "/team/x/"})
	for _, name := range []string{"dir/b", "dir/a/1", "dir-z", "z"} {
		put(t, b, name, name)
	}
	if err := b.store.WriteAll(t.Context(), "team/xy", []byte("beside"), nil); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"team/x/", "team/x/dir/", "team/x/console/", "team/x/odd//name"} {
		if err := b.store.WriteAll(t.Context(), folder, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct{ dir, want string }{
		{".", "dir-z dir/a/1 dir/b z"},
		{"dir", "dir/a/1 dir/b"},
		{"dir/a", "dir/a/1"},
		{"nothing", ""},
	} {
		var got []string
		err := b.Files(t.Context(), test.dir, func(name string, info fs.FileInfo) error {
			got = append(got, name)
			return nil
		})
		if err != nil || strings.Join(got, " ") != test.want {
			t.Errorf("%s: %q, %v", test.dir, got, err)
		}
	}
	stop := errors.New("enough")
	if err := b.Files(t.Context(), ".", func(string, fs.FileInfo) error { return stop }); err != stop {
		t.Errorf("the error of visit: %v", err)
	}
}

func TestAnObjectHidesTheDirectoryOfItsName(t *testing.T) {
	b := openBucket(t, options{url: "mem://"})
	put(t, b, "a", "file")
	put(t, b, "a/b", "below")
	put(t, b, "a-b", "between")
	entries, err := b.ReadDir(".")
	if err != nil || len(entries) != 2 || entries[0].Name() != "a" || entries[0].IsDir() {
		t.Errorf("%v, %v", entries, err)
	}
}

func testMissingFiles(t *testing.T, b *Bucket) {
	put(t, b, "dir/a", "a")
	_, stat := b.Stat("dir/b")
	_, prefix := b.Stat("di")
	_, open := b.Open("dir/b")
	_, readdir := b.ReadDir("dir/b")
	copied := b.Copy(t.Context(), "dir/b", "dir/c")
	for op, err := range map[string]error{"stat": stat, "stat of a prefix": prefix, "open": open, "readdir": readdir, "copy": copied} {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", op, err)
		}
	}
	if err := b.Remove(t.Context(), "dir/b"); err != nil {
		t.Errorf("removing what is not there: %v", err)
	}
	for _, name := range []string{"", "/a", "../a", "a/", "a//b", "./a"} {
		_, open := b.Open(name)
		_, create := b.Create(t.Context(), name, strings.NewReader(""))
		if !errors.Is(open, fs.ErrInvalid) || !errors.Is(create, fs.ErrInvalid) {
			t.Errorf("%q: %v, %v", name, open, create)
		}
	}
}

func testCreate(t *testing.T, b *Bucket) {
	var created atomic.Int32
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			info, err := b.Create(t.Context(), "dir/claim", strings.NewReader(fmt.Sprint("writer ", i)))
			switch {
			case err == nil && info.Size() == 8:
				created.Add(1)
			case !errors.Is(err, fs.ErrExist):
				t.Errorf("%v, %v", info, err)
			}
		})
	}
	wait.Wait()
	if n := created.Load(); n != 1 {
		t.Errorf("%d have created the file", n)
	}
	info := put(t, b, "dir/claim", "replaced")
	if content, err := fs.ReadFile(b, "dir/claim"); err != nil || string(content) != "replaced" || info.Size() != 8 {
		t.Errorf("%q, %v", content, err)
	}
}

func testBrokenContent(t *testing.T, b *Bucket) {
	broken := errors.New("the client went away")
	for _, size := range []int{0, 10, 2 << 20} {
		content := io.MultiReader(strings.NewReader(letters(size)), iotest.ErrReader(broken))
		if _, err := b.Create(t.Context(), "a", content); !errors.Is(err, broken) {
			t.Errorf("%d bytes: %v", size, err)
		}
		if _, err := b.Stat("a"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Create(ctx, "a", strings.NewReader("a")); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := b.Stat("a"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("cancelled: %v", err)
	}
}

func testCopy(t *testing.T, b *Bucket) {
	put(t, b, "a b+c/ü.txt", "content")
	if err := b.Copy(t.Context(), "a b+c/ü.txt", "copy"); err != nil {
		t.Fatal(err)
	}
	if err := b.Remove(t.Context(), "a b+c/ü.txt"); err != nil {
		t.Fatal(err)
	}
	var names []string
	b.Files(t.Context(), ".", func(name string, _ fs.FileInfo) error {
		names = append(names, name)
		return nil
	})
	if content, err := fs.ReadFile(b, "copy"); string(content) != "content" || !slices.Equal(names, []string{"copy"}) {
		t.Errorf("%q, %v, %q", content, err, names)
	}
}

func testReading(t *testing.T, b *Bucket) {
	want := letters(2*mostAhead + 12345)
	put(t, b, "large", want)
	f, err := b.Open("large")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := f.(interface {
		io.ReadSeeker
		io.ReaderAt
	})
	// In turns, since the files share the bytes that were read ahead.
	for _, offset := range []int64{0, 1, headSize - 1, headSize, leastAhead, int64(len(want)) - 1, int64(len(want)) - 70_000, 5, mostAhead, 2 * mostAhead} {
		for _, length := range []int{1, 4096, leastAhead + 1, len(want)} {
			expected := want[offset:min(int(offset)+length, len(want))]
			p := make([]byte, length)
			n, err := r.ReadAt(p, offset)
			if string(p[:n]) != expected || (err == io.EOF) != (n < length) {
				t.Fatalf("%d bytes at %d: %d, %v", length, offset, n, err)
			}
			if _, err := r.Seek(offset, io.SeekStart); err != nil {
				t.Fatal(err)
			}
			n, err = io.ReadFull(r, p)
			if string(p[:n]) != expected || (err != nil) != (n < length) {
				t.Fatalf("reading %d bytes from %d: %d, %v", length, offset, n, err)
			}
		}
	}
	if end, err := r.Seek(0, io.SeekEnd); err != nil || end != int64(len(want)) {
		t.Errorf("the end is %d, %v", end, err)
	}
	if _, err := r.Seek(-1, io.SeekStart); err == nil {
		t.Error("there is something before the start")
	}
	if n, err := r.ReadAt(make([]byte, 1), int64(len(want))); n != 0 || err != io.EOF {
		t.Errorf("after the end: %d, %v", n, err)
	}
}

func testReplaced(t *testing.T, b *Bucket) {
	before, after := letters(3*headSize), strings.Repeat("x", 3*headSize+1)
	for _, test := range []struct {
		name   string
		change func()
	}{
		{"replaced", func() { put(t, b, "a", after) }},
		{"removed", func() { b.Remove(t.Context(), "a") }},
	} {
		put(t, b, "a", before)
		opened, err := b.Open("a")
		if err != nil {
			t.Fatal(err)
		}
		test.change()
		content, err := io.ReadAll(opened)
		if !errors.Is(err, ErrChanged) || errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(before, string(content)) {
			t.Errorf("%s: %d bytes, %v", test.name, len(content), err)
		}
		p := make([]byte, 10)
		if n, err := opened.(io.ReaderAt).ReadAt(p, 2*headSize); n != 0 || !errors.Is(err, ErrChanged) {
			t.Errorf("%s: %q, %v", test.name, p[:n], err)
		}
		opened.Close()
	}
}

func TestClosedFilesAreNotRead(t *testing.T) {
	b := openBucket(t, options{url: "mem://"})
	put(t, b, "a", "a")
	f, err := b.Open("a")
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	_, read := f.Read(make([]byte, 1))
	_, readAt := f.(io.ReaderAt).ReadAt(make([]byte, 1), 0)
	if !errors.Is(read, fs.ErrClosed) || !errors.Is(readAt, fs.ErrClosed) || !errors.Is(f.Close(), fs.ErrClosed) {
		t.Errorf("%v, %v", read, readAt)
	}
}

func TestLinksNeedAStoreThatSigns(t *testing.T) {
	localBuckets(t, func(t *testing.T, b *Bucket) {
		if u, err := b.SignedURL(t.Context(), "a", time.Hour); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s, %v", u, err)
		}
	})
}

// A reload with other options closes the bucket, while downloads of the previous
// configuration continue.
func TestOpenFilesOutliveTheirConfiguration(t *testing.T) {
	localBuckets(t, func(t *testing.T, b *Bucket) {
		want := letters(3 * headSize)
		put(t, b, "a", want)
		f, err := b.Open("a")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		b.Destruct()
		if content, err := io.ReadAll(f); err != nil || string(content) != want {
			t.Errorf("%d bytes, %v", len(content), err)
		}
		if _, err := b.Stat("a"); err != nil {
			t.Error(err)
		}
	})
}

func TestOptionsThatNameNoBucket(t *testing.T) {
	for _, test := range []struct {
		name string
		options
		want string
	}{
		{"no store", options{url: "ftp://files"}, "no store is known by"},
		{"no URL", options{url: "s3://%zz?secret"}, "the URL cannot be read"},
		{"an unknown parameter", options{url: "s3://releases?region=x&secret=hunter2"}, "unknown"},
		{"a prefix above the bucket", options{url: "mem://", prefix: "../a"}, "prefix"},
		{"a prefix of dots", options{url: "mem://", prefix: "./"}, "prefix"},
		{"a prefix with an empty element", options{url: "mem://", prefix: "a//b"}, "prefix"},
	} {
		b, err := open(test.options, zap.NewNop)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, %v", test.name, b, err)
		}
	}
}

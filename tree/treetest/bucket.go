// Package treetest provides the storages that tests of trees need: a bucket in memory, and
// file systems whose operations fail when a test says so. Conform has the rules that every
// storage keeps.
package treetest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/tree/bucket"
)

// A Bucket is an object store in memory, which counts its requests and can be made to fail.
// It stands for `caddy.fs.blob` in tests of packages that must not know an object store;
// that module is tested against real stores.
type Bucket struct {
	// Fail is called before each operation with its name (list, head, get, put, copy,
	// delete, sign) and the name of the file or directory. The operation fails with the
	// error that Fail returns.
	Fail func(operation, name string) error

	// Lose is called after each operation that has changed something, with the same
	// arguments as Fail. An error stands for an answer that got lost.
	Lose func(operation, name string) error

	// Encodings has the Content-Encoding with which files were uploaded, by their names.
	Encodings map[string]string

	// Page is how many files one listing returns. Zero means 1,000.
	Page int

	// Now is the clock for the times of files. Nil means time.Now.
	Now func() time.Time

	mutex   sync.Mutex
	objects map[string]object
	counts  map[string]int
}

type object struct {
	content []byte
	time    time.Time
}

// Requests returns how often the store was asked, by operation, and resets the counts.
func (b *Bucket) Requests() map[string]int {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	counts := b.counts
	b.counts = nil
	return counts
}

// Put writes a file at a time, without counting.
func (b *Bucket) Put(name, content string, at time.Time) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.put(name, []byte(content), at)
}

// Names returns the files, sorted.
func (b *Bucket) Names() []string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return slices.Sorted(maps.Keys(b.objects))
}

// Contents returns the contents of all files at one moment, by their names.
func (b *Bucket) Contents() map[string]string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	contents := make(map[string]string, len(b.objects))
	for name, o := range b.objects {
		contents[name] = string(o.content)
	}
	return contents
}

func (b *Bucket) put(name string, content []byte, at time.Time) {
	if b.objects == nil {
		b.objects = make(map[string]object)
	}
	b.objects[name] = object{content, at}
}

// ask counts an operation, and returns the error of Fail.
func (b *Bucket) ask(operation, name string) error {
	b.mutex.Lock()
	if b.counts == nil {
		b.counts = make(map[string]int)
	}
	b.counts[operation]++
	fail := b.Fail
	b.mutex.Unlock()
	if fail == nil {
		return nil
	}
	if err := fail(operation, name); err != nil {
		return &fs.PathError{Op: operation, Path: name, Err: err}
	}
	return nil
}

// lose returns the error of Lose for an operation.
func (b *Bucket) lose(operation, name string) error {
	if b.Lose == nil {
		return nil
	}
	if err := b.Lose(operation, name); err != nil {
		return &fs.PathError{Op: operation, Path: name, Err: err}
	}
	return nil
}

func (b *Bucket) get(name string) (object, bool) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	o, ok := b.objects[name]
	return o, ok
}

// below returns the files below a directory, sorted.
func (b *Bucket) below(dir string) (names []string) {
	for _, name := range b.Names() {
		if dir == "." || strings.HasPrefix(name, dir+"/") {
			names = append(names, name)
		}
	}
	return names
}

// Open implements fs.FS.
func (b *Bucket) Open(name string) (fs.File, error) {
	if name == "." {
		return &bucketDir{bucket: b, name: name}, nil
	}
	if err := b.ask("get", name); err != nil {
		return nil, err
	}
	if o, ok := b.get(name); ok {
		return &bucketFile{Reader: bytes.NewReader(o.content), info: o.info(name)}, nil
	}
	if len(b.below(name)) > 0 {
		return &bucketDir{bucket: b, name: name}, nil
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// Stat implements fs.StatFS.
func (b *Bucket) Stat(name string) (fs.FileInfo, error) {
	if name == "." {
		return bucketInfo{name: name, dir: true}, nil
	}
	if err := b.ask("head", name); err != nil {
		return nil, err
	}
	if o, ok := b.get(name); ok {
		i := o.info(name)
		i.encoding = b.Encodings[name]
		return i, nil
	}
	if len(b.below(name)) > 0 {
		return bucketInfo{name: path.Base(name), dir: true}, nil
	}
	return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
}

// ReadDir implements fs.ReadDirFS.
func (b *Bucket) ReadDir(dir string) ([]fs.DirEntry, error) {
	if err := b.ask("list", dir); err != nil {
		return nil, err
	}
	var entries []fs.DirEntry
	for _, name := range b.below(dir) {
		rest := strings.TrimPrefix(name, dir+"/")
		first, _, deeper := strings.Cut(rest, "/")
		if n := len(entries); n > 0 && entries[n-1].Name() == first {
			continue
		}
		info := fs.FileInfo(bucketInfo{name: first, dir: true})
		if !deeper {
			o, _ := b.get(name)
			info = o.info(name)
		}
		entries = append(entries, fs.FileInfoToDirEntry(info))
	}
	if len(entries) == 0 && dir != "." {
		return nil, &fs.PathError{Op: "readdir", Path: dir, Err: fs.ErrNotExist}
	}
	return entries, nil
}

// Files implements bucket.Bucket.
func (b *Bucket) Files(ctx context.Context, dir string, visit func(name string, info fs.FileInfo) error) error {
	page := cmp.Or(b.Page, 1000)
	names := b.below(dir)
	for i := 0; i == 0 || i < len(names); i += page {
		if err := errors.Join(ctx.Err(), b.ask("list", dir)); err != nil {
			return err
		}
		for _, name := range names[i:min(i+page, len(names))] {
			if o, ok := b.get(name); ok {
				if err := visit(name, o.info(name)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// Create implements bucket.Bucket.
func (b *Bucket) Create(ctx context.Context, name string, content io.Reader) (fs.FileInfo, error) {
	return b.write(ctx, name, content, false)
}

// Replace implements bucket.Bucket.
func (b *Bucket) Replace(ctx context.Context, name string, content io.Reader) (fs.FileInfo, error) {
	return b.write(ctx, name, content, true)
}

func (b *Bucket) write(ctx context.Context, name string, content io.Reader, replace bool) (fs.FileInfo, error) {
	written, err := io.ReadAll(content)
	if err := errors.Join(err, ctx.Err(), b.ask("put", name)); err != nil {
		return nil, err
	}
	b.mutex.Lock()
	if _, ok := b.objects[name]; ok && !replace {
		b.mutex.Unlock()
		return nil, &fs.PathError{Op: "create", Path: name, Err: fs.ErrExist}
	}
	b.put(name, written, b.now())
	o := b.objects[name]
	b.mutex.Unlock()
	return o.info(name), b.lose("put", name)
}

// Copy implements bucket.Bucket.
func (b *Bucket) Copy(ctx context.Context, from, to string) error {
	if err := errors.Join(ctx.Err(), b.ask("copy", to)); err != nil {
		return err
	}
	o, ok := b.get(from)
	if !ok {
		return &fs.PathError{Op: "copy", Path: from, Err: fs.ErrNotExist}
	}
	b.mutex.Lock()
	b.put(to, o.content, b.now())
	b.mutex.Unlock()
	return b.lose("copy", to)
}

// Remove implements bucket.Bucket.
func (b *Bucket) Remove(ctx context.Context, name string) error {
	if err := errors.Join(ctx.Err(), b.ask("delete", name)); err != nil {
		return err
	}
	b.mutex.Lock()
	delete(b.objects, name)
	b.mutex.Unlock()
	return b.lose("delete", name)
}

// SignedURL implements bucket.Bucket.
func (b *Bucket) SignedURL(ctx context.Context, name string, life time.Duration) (string, error) {
	if err := errors.Join(ctx.Err(), b.ask("sign", name)); err != nil {
		return "", err
	}
	return fmt.Sprintf("https://store.example/%s?expires=%s", name, life), nil
}

func (b *Bucket) now() time.Time {
	if b.Now != nil {
		return b.Now()
	}
	return time.Now()
}

func (o object) info(name string) bucketInfo {
	sum := md5.Sum(o.content)
	return bucketInfo{name: path.Base(name), size: int64(len(o.content)), time: o.time, etag: `"` + hex.EncodeToString(sum[:]) + `"`}
}

type bucketInfo struct {
	name string
	size int64
	time time.Time
	etag string
	dir  bool

	encoding string // only Stat knows it
}

func (i bucketInfo) ContentEncoding() string { return i.encoding }

func (i bucketInfo) Name() string       { return i.name }
func (i bucketInfo) Size() int64        { return i.size }
func (i bucketInfo) ModTime() time.Time { return i.time }
func (i bucketInfo) ETag() string       { return i.etag }
func (i bucketInfo) IsDir() bool        { return i.dir }
func (i bucketInfo) Sys() any           { return nil }

func (i bucketInfo) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | 0o755
	}
	return 0o644
}

type bucketFile struct {
	*bytes.Reader
	info fs.FileInfo
}

func (f *bucketFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *bucketFile) Close() error               { return nil }

type bucketDir struct {
	bucket *Bucket
	name   string
	rest   []fs.DirEntry
	read   bool
}

// FileSystem lets bucket.From find the Bucket behind a wrapper.
func (d *bucketDir) FileSystem() fs.FS { return d.bucket }

func (d *bucketDir) Stat() (fs.FileInfo, error) {
	return bucketInfo{name: path.Base(d.name), dir: true}, nil
}
func (d *bucketDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.name, Err: errors.New("is a directory")}
}
func (d *bucketDir) Close() error { return nil }

// ReadDir implements fs.ReadDirFile.
func (d *bucketDir) ReadDir(n int) ([]fs.DirEntry, error) {
	if !d.read {
		entries, err := d.bucket.ReadDir(d.name)
		if err != nil {
			return nil, err
		}
		d.rest, d.read = entries, true
	}
	if n <= 0 {
		n = len(d.rest)
	} else if len(d.rest) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(d.rest))
	entries := d.rest[:n]
	d.rest = d.rest[n:]
	return entries, nil
}

// Interface guards
var _ bucket.Bucket = (*Bucket)(nil)

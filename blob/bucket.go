package blob

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	gocloud "gocloud.dev/blob"
)

// pageSize is the number of objects in a page of a listing, the most that S3 allows.
const pageSize = 1000

// A Bucket has the files below one prefix of an object store. It is an fs.FS, and the
// index.Bucket of the registry. A directory exists if there is an object below it.
//
// Its errors are *fs.PathError. They wrap fs.ErrNotExist or fs.ErrExist only if the
// store said so, fs.ErrPermission if it has archived the object, and
// context.DeadlineExceeded if it did not answer in time.
type Bucket struct {
	store       *gocloud.Bucket
	dialect     dialect
	prefix      string // empty, or ends with a slash
	patience    patience
	largestCopy int64       // in bytes
	cache       *cache      // may be nil
	creating    *sync.Mutex // for a store that cannot refuse to replace an object; else nil
}

// options determine a Bucket: buckets with the same options are the same.
type options struct {
	url, prefix    string
	cacheSize      int64 // in bytes; zero: no cache
	cacheDirectory string
}

// open returns the bucket with these options. It sends no request. log returns the
// current logger each time it is called.
func open(o options, log func() *zap.Logger) (*Bucket, error) {
	u, err := url.Parse(o.url)
	if err != nil {
		return nil, errors.New("the URL cannot be read")
	}
	d, err := dialectOf(u)
	if err != nil {
		return nil, err
	}
	prefix := strings.Trim(o.prefix, "/")
	if prefix == "." || prefix != "" && !fs.ValidPath(prefix) {
		return nil, errors.New("the prefix has empty, . or .. elements")
	}
	if prefix != "" {
		prefix += "/"
	}
	b := &Bucket{dialect: d, prefix: prefix, patience: patient, largestCopy: largestCopy}
	if u.Scheme == "file" {
		b.creating = new(sync.Mutex)
	}
	if o.cacheSize > 0 {
		if b.cache, err = openCache(o.cacheDirectory, o.cacheSize, o.url, log); err != nil {
			return nil, err
		}
	}
	if b.store, err = d.open(context.Background(), u); err != nil {
		return nil, errors.New(printable(err))
	}
	return b, nil
}

// Destruct is called when no configuration uses the bucket any more. Requests of the
// last configuration may still be reading from it, so it stays open. Its connections
// are closed when they are idle.
func (b *Bucket) Destruct() error {
	if b.cache != nil {
		b.cache.finishWriting()
	}
	return nil
}

// key returns the key of a file.
func (b *Bucket) key(op, name string) (string, error) {
	if !fs.ValidPath(name) || name == "." {
		return "", &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	return b.prefix + name, nil
}

// below returns the prefix of the keys below a directory.
func (b *Bucket) below(op, dir string) (string, error) {
	if dir == "." {
		return b.prefix, nil
	}
	key, err := b.key(op, dir)
	return key + "/", err
}

// Stat implements fs.StatFS. It requests the object and, if there is none, looks for
// objects below that name.
func (b *Bucket) Stat(name string) (fs.FileInfo, error) {
	if name == "." {
		return directoryInfo(name), nil
	}
	ctx, w := b.patience.wait(context.Background(), b.patience.answer)
	defer w.stop()
	i, err := b.head(ctx, "stat", name)
	if errors.Is(err, fs.ErrNotExist) {
		return b.statDirectory("stat", name)
	}
	if err != nil {
		return nil, err
	}
	return i, nil
}

// head returns the attributes of the object with a name.
func (b *Bucket) head(ctx context.Context, op, name string) (*info, error) {
	key, err := b.key(op, name)
	if err != nil {
		return nil, err
	}
	a, err := b.attributes(ctx, key)
	if err != nil {
		return nil, b.pathError(ctx, op, name, err)
	}
	i, err := fileInfo(op, name, a.Size, a.ModTime, b.dialect.attributesTag(a))
	if err == nil {
		i.encoding = a.ContentEncoding
	}
	return i, err
}

// statDirectory returns a directory if there is an object below it.
func (b *Bucket) statDirectory(op, name string) (fs.FileInfo, error) {
	prefix, err := b.below(op, name)
	if err != nil {
		return nil, err
	}
	ctx, w := b.patience.wait(context.Background(), b.patience.answer)
	defer w.stop()
	objects, _, err := b.askPage(ctx, gocloud.FirstPageToken, 1, &gocloud.ListOptions{Prefix: prefix})
	if err != nil {
		return nil, b.listingError(ctx, op, name, err)
	}
	if len(objects) == 0 {
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	}
	return directoryInfo(name), nil
}

// listingError returns the error of a listing. It never wraps fs.ErrNotExist, which
// would mean that the bucket does not exist.
func (b *Bucket) listingError(ctx context.Context, op, dir string, err error) error {
	err = b.pathError(ctx, op, dir, err)
	if errors.Is(err, fs.ErrNotExist) {
		return &fs.PathError{Op: op, Path: dir, Err: &failure{text: "the store has no such bucket"}}
	}
	return err
}

// list calls visit for the objects and prefixes below a directory, page by page.
func (b *Bucket) list(ctx context.Context, op, dir, delimiter string, visit func(rest string, o *gocloud.ListObject) error) error {
	prefix, err := b.below(op, dir)
	if err != nil {
		return err
	}
	for token := gocloud.FirstPageToken; len(token) > 0; {
		page, next, err := b.listPage(ctx, op, dir, token, &gocloud.ListOptions{Prefix: prefix, Delimiter: delimiter})
		if err != nil {
			return err
		}
		if bytes.Equal(next, token) {
			return &fs.PathError{Op: op, Path: dir, Err: errSamePage}
		}
		token = next
		for _, o := range page {
			rest := strings.TrimPrefix(o.Key, prefix)
			if o.IsDir {
				rest = strings.TrimSuffix(rest, "/")
			}
			// Consoles create objects whose keys end in a slash, for empty folders.
			// Keys that are not valid paths of fs.FS could not be opened either.
			if !fs.ValidPath(rest) || rest == "." {
				continue
			}
			if err := visit(rest, o); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *Bucket) listPage(ctx context.Context, op, dir string, token []byte, o *gocloud.ListOptions) ([]*gocloud.ListObject, []byte, error) {
	ctx, w := b.patience.wait(ctx, b.patience.answer)
	defer w.stop()
	page, next, err := b.askPage(ctx, token, pageSize, o)
	if err != nil {
		return nil, nil, b.listingError(ctx, op, dir, err)
	}
	return page, next, nil
}

func (b *Bucket) askPage(ctx context.Context, token []byte, size int, o *gocloud.ListOptions) (page []*gocloud.ListObject, next []byte, err error) {
	defer refuseIncomplete(&err)
	return b.store.ListPage(ctx, token, size, o)
}

func (b *Bucket) attributes(ctx context.Context, key string) (a *gocloud.Attributes, err error) {
	defer refuseIncomplete(&err)
	return b.store.Attributes(ctx, key)
}

func (b *Bucket) listed(op, name string, o *gocloud.ListObject) (*info, error) {
	return fileInfo(op, name, o.Size, o.ModTime, b.dialect.listedTag(o))
}

// ReadDir implements fs.ReadDirFS.
func (b *Bucket) ReadDir(dir string) ([]fs.DirEntry, error) {
	var entries []fs.DirEntry
	err := b.list(context.Background(), "readdir", dir, "/", func(rest string, o *gocloud.ListObject) error {
		i := directoryInfo(rest)
		if !o.IsDir {
			var err error
			if i, err = b.listed("readdir", path.Join(dir, rest), o); err != nil {
				return err
			}
		}
		entries = append(entries, fs.FileInfoToDirEntry(i))
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(entries) == 0 && dir != "." {
		return nil, &fs.PathError{Op: "readdir", Path: dir, Err: fs.ErrNotExist}
	}
	// The store sorts by key, "a-b" before "a/c", which is not the order of names. If an
	// object and a directory have the same name, Open finds the object.
	slices.SortStableFunc(entries, func(a, b fs.DirEntry) int {
		if c := strings.Compare(a.Name(), b.Name()); c != 0 || a.IsDir() == b.IsDir() {
			return c
		}
		if b.IsDir() {
			return -1
		}
		return 1
	})
	return slices.CompactFunc(entries, func(a, b fs.DirEntry) bool { return a.Name() == b.Name() }), nil
}

// Files calls visit for every file below a directory, in the order of their names, and
// stops at its first error. It takes one request per thousand files, whatever the
// number of directories. A directory without files is not an error.
func (b *Bucket) Files(ctx context.Context, dir string, visit func(name string, info fs.FileInfo) error) error {
	return b.list(ctx, "list", dir, "", func(rest string, o *gocloud.ListObject) error {
		name := path.Join(dir, rest)
		i, err := b.listed("list", name, o)
		if err != nil {
			return err
		}
		return visit(name, i)
	})
}

// info describes a file or a directory.
type info struct {
	name string
	size int64
	time time.Time
	tag  string // empty: a directory

	encoding string
}

// fileInfo describes an object. Times are truncated to seconds, as in headers, since
// listings of some stores have fractions and both must agree. The error is errNoETag if
// the tag is empty.
func fileInfo(op, name string, size int64, at time.Time, tag string) (*info, error) {
	if tag == "" {
		return nil, &fs.PathError{Op: op, Path: name, Err: errNoETag}
	}
	return &info{name: path.Base(name), size: size, time: at.Truncate(time.Second), tag: tag}, nil
}

func directoryInfo(name string) *info { return &info{name: path.Base(name)} }

func (i *info) Name() string       { return i.name }
func (i *info) Size() int64        { return i.size }
func (i *info) ModTime() time.Time { return i.time }
func (i *info) IsDir() bool        { return i.tag == "" }
func (i *info) Sys() any           { return nil }

// Mode returns the mode of a regular file or a directory. No file is executable.
func (i *info) Mode() fs.FileMode {
	if i.IsDir() {
		return fs.ModeDir | 0o755
	}
	return 0o644
}

// ETag identifies the content of a file, as in the HTTP header ETag. file_server uses
// it, too. It is empty for a directory.
func (i *info) ETag() string { return i.tag }

// ContentEncoding is the encoding with which the object was uploaded, which the store sends
// in the HTTP header of that name. Open files have the bytes as they are stored. Only Stat
// tells the encoding; it is empty otherwise.
func (i *info) ContentEncoding() string { return i.encoding }

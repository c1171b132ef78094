package bucket

import (
	"bytes"
	"context"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/afero"
	"golang.org/x/sync/errgroup"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// A Folder is a part in a Bucket, which has no folders, no rename, and no half-written files.
// New content is spooled to the local disk first, so that it can be checked, and then put
// under its name as a whole.
type Folder struct {
	bucket Bucket
	dir    string
}

var (
	_ tree.Storage = Folder{}
	_ tree.Signer  = Folder{}
)

// NewFolder returns the root of a Bucket.
func NewFolder(b Bucket) Folder { return Folder{b, "."} }

// path returns a path in the part as a name in the Bucket.
func (d Folder) path(name string) string { return path.Join(d.dir, name) }

// Sub implements tree.Storage.
func (d Folder) Sub(dir string) tree.Storage {
	d.dir = d.path(dir)
	return d
}

// Path implements tree.Storage.
func (d Folder) Path() string { return d.dir }

// Stat implements tree.Storage with a single request.
func (d Folder) Stat(name string) (fs.FileInfo, error) {
	info, err := d.bucket.Stat(d.path(name))
	return info, storeError(err)
}

// StatNow implements tree.Signer.
func (d Folder) StatNow(name string) (fs.FileInfo, error) { return d.Stat(name) }

// SignedURL implements tree.Signer.
func (d Folder) SignedURL(ctx context.Context, name string, life time.Duration) (string, error) {
	url, err := d.bucket.SignedURL(ctx, d.path(name), life)
	return url, storeError(err)
}

// Open implements tree.Storage.
func (d Folder) Open(name string) (afero.File, fs.FileInfo, error) {
	f, err := afero.FromIOFS{FS: d.bucket}.Open(d.path(name))
	if err != nil {
		return nil, nil, storeError(err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = tree.ErrNotRegular
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return &object{File: f, rest: info.Size()}, info, nil
}

// List implements tree.Storage. One request lists a thousand names.
func (d Folder) List(dir string) ([]fs.FileInfo, error) { return d.ReadDir(dir) }

// ReadDir implements tree.Storage.
func (d Folder) ReadDir(dir string) ([]fs.FileInfo, error) {
	entries, err := d.bucket.ReadDir(d.path(dir))
	if err != nil {
		return nil, storeError(err)
	}
	infos := make([]fs.FileInfo, len(entries))
	for i, e := range entries {
		if infos[i], err = e.Info(); err != nil {
			return nil, storeError(err)
		}
	}
	return infos, nil
}

// ReadNames implements tree.Storage.
func (d Folder) ReadNames(dir string) (names []string, err error) {
	infos, err := d.ReadDir(dir)
	for _, info := range infos {
		names = append(names, info.Name())
	}
	return names, err
}

// Walk implements tree.Storage.
func (d Folder) Walk(ctx context.Context, dir string, visit func(name string, info fs.FileInfo)) error {
	root := d.path(dir)
	return storeError(d.bucket.Files(ctx, root, func(name string, info fs.FileInfo) error {
		if root != "." {
			name = strings.TrimPrefix(name, root+"/")
		}
		visit(path.Join(dir, name), info)
		return nil
	}))
}

// Write implements tree.Storage.
func (d Folder) Write(name string, content []byte) error {
	_, err := d.bucket.Replace(context.Background(), d.path(name), bytes.NewReader(content))
	return storeError(err)
}

// Move implements tree.Storage. It gives a file both names for a moment.
func (d Folder) Move(from, to string) error {
	err := d.bucket.Copy(context.Background(), d.path(from), d.path(to))
	if err == nil {
		err = d.bucket.Remove(context.Background(), d.path(from))
	}
	return storeError(err)
}

// Remove implements tree.Storage.
func (d Folder) Remove(name string) error {
	return storeError(d.bucket.Remove(context.Background(), d.path(name)))
}

// RemoveAll implements tree.Storage.
func (d Folder) RemoveAll(name string) error {
	files, err := d.below(context.Background(), name)
	if err != nil {
		return err
	}
	return d.removeFiles(context.Background(), name, append(files, ".")) // and the file of that name
}

// RemoveTemporaries implements tree.Storage.
func (Folder) RemoveTemporaries(context.Context, string, int) int { return 0 } // there are none

// below returns the files below a folder, by their paths in it.
func (d Folder) below(ctx context.Context, dir string) (names []string, err error) {
	dir = d.path(dir)
	err = d.bucket.Files(ctx, dir, func(name string, _ fs.FileInfo) error {
		names = append(names, name[len(dir)+1:])
		return nil
	})
	return names, storeError(err)
}

// removeFiles removes files by their paths in a folder.
func (d Folder) removeFiles(ctx context.Context, dir string, names []string) error {
	return inBucket(ctx, names, func(ctx context.Context, name string) error {
		return d.bucket.Remove(ctx, path.Join(d.path(dir), name))
	})
}

// bucketWorkers is how many files of a directory are copied, written or removed at once.
// Each of them waits for the store.
const bucketWorkers = 16

// inBucket calls do for each of the names, several at once.
func inBucket(ctx context.Context, names []string, do func(ctx context.Context, name string) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(bucketWorkers)
	for _, name := range names {
		g.Go(func() error { return do(ctx, name) })
	}
	return storeError(g.Wait())
}

// Install implements tree.Storage. It copies the files of a folder. An interrupted upload of a
// release that is no longer staged makes room.
func (d Folder) Install(ctx context.Context, from, to, last string) (copied map[string]fs.FileInfo, err error) {
	content, err := tree.Part{Storage: d}.ReadFile(path.Join(from, last), tree.MaxDocument)
	if err == nil && content == nil {
		err = tree.StorageError(fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	files, err := d.below(ctx, from)
	if err != nil {
		return nil, tree.StorageError(err)
	}
	u := newFolderUpload(last, content, files, func(ctx context.Context, name string) error {
		return d.bucket.Copy(ctx, path.Join(d.path(from), name), path.Join(d.path(to), name))
	})
	if err := d.upload(ctx, to, u, func() error { return d.RemoveUnfinished(ctx, to, last, content) }); err != nil {
		return nil, err
	}
	infos, err := d.ReadDir(to)
	copied = make(map[string]fs.FileInfo, len(infos))
	for _, info := range infos {
		copied[info.Name()] = info
	}
	return copied, tree.StorageError(err)
}

// InstallDocuments implements tree.Storage.
func (d Folder) InstallDocuments(ctx context.Context, documents map[string][]byte, to, last string) error {
	u := newFolderUpload(last, documents[last], slices.Sorted(maps.Keys(documents)), func(_ context.Context, name string) error {
		return d.Write(path.Join(to, name), documents[name])
	})
	return d.upload(ctx, to, u, func() error { return d.removeResting(ctx, to, last, 0) })
}

// ReplaceFolder implements tree.Storage. It writes the new files over the old ones, and removes
// the files that only the old content has last.
func (d Folder) ReplaceFolder(ctx context.Context, documents tree.Documents, dir, _ string) error {
	written := make(map[string]bool)
	noted := tree.Documents(func(visit func(string, []byte) error) error {
		return documents(func(name string, content []byte) error {
			written[name] = true
			return visit(name, content)
		})
	})
	err := noted.InParallel(ctx, func(name string, content []byte) error { return d.Write(path.Join(dir, name), content) })
	if err != nil {
		return err
	}
	files, err := d.below(ctx, dir)
	if err != nil {
		return err
	}
	gone := slices.DeleteFunc(files, func(name string) bool { return written[name] })
	return d.removeFiles(ctx, dir, gone)
}

// RemoveFolder implements tree.Storage.
func (d Folder) RemoveFolder(ctx context.Context, dir, first string) error {
	files, err := d.below(ctx, dir)
	if err != nil || len(files) == 0 {
		return err
	}
	if !slices.Contains(files, tree.UploadName) {
		if err := d.Write(path.Join(dir, tree.UploadName), encodeUpload(nil)); err != nil {
			return err
		}
	}
	files = slices.DeleteFunc(files, func(name string) bool { return name == first || name == tree.UploadName })
	for _, names := range [][]string{{first}, files, {tree.UploadName}} {
		if err := d.removeFiles(ctx, dir, names); err != nil {
			return err
		}
	}
	return nil
}

// RemoveUnfinished implements tree.Storage.
func (d Folder) RemoveUnfinished(ctx context.Context, dir, last string, content []byte) error {
	claim, err := tree.Part{Storage: d}.ReadFile(path.Join(dir, tree.UploadName), tree.MaxDocument)
	if err != nil {
		return err
	}
	rest := tree.ReservedFor
	if content != nil && bytes.Equal(claim, encodeUpload(content)) {
		rest = 0
	}
	return d.removeResting(ctx, dir, last, rest)
}

// removeResting removes an unfinished upload to which nothing was added for some time.
func (d Folder) removeResting(ctx context.Context, dir, last string, rest time.Duration) error {
	var names []string
	var newest time.Time
	err := d.Walk(ctx, dir, func(name string, info fs.FileInfo) {
		names = append(names, name[len(dir)+1:])
		if info.ModTime().After(newest) {
			newest = info.ModTime()
		}
	})
	switch {
	case err != nil:
		return tree.StorageError(err)
	case len(names) == 0:
		return nil
	case !tree.IncompleteUpload(last, names):
		return tree.ErrInTheWay
	case rest > 0 && time.Since(newest) < rest:
		return tree.ErrReserved
	}
	return tree.StorageError(d.RemoveFolder(ctx, dir, last))
}

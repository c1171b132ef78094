package tree

import (
	"bytes"
	"context"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// objects are a part in a Bucket, which has no folders, no rename, and no half-written files.
// New content is spooled to the local disk first, so that it can be checked, and then put
// under its name as a whole.
type objects struct {
	Part
	bucket Bucket
}

// path returns a path in the part as a name in the Bucket.
func (o objects) path(name string) string { return path.Join(o.Dir, name) }

func (o objects) readDirectory(dir string) ([]fs.FileInfo, error) {
	return newBucketFs(o.bucket).readDirectory(o.path(dir))
}

func (o objects) readNames(dir string) (names []string, err error) {
	infos, err := o.readDirectory(dir)
	for _, info := range infos {
		names = append(names, info.Name())
	}
	return names, err
}

func (o objects) walk(ctx context.Context, dir string, visit func(name string, info fs.FileInfo)) error {
	root := o.path(dir)
	return StoreError(o.bucket.Files(ctx, root, func(name string, info fs.FileInfo) error {
		if root != "." {
			name = strings.TrimPrefix(name, root+"/")
		}
		visit(path.Join(dir, name), info)
		return nil
	}))
}

func (o objects) write(name string, content []byte) error {
	_, err := o.bucket.Replace(context.Background(), o.path(name), bytes.NewReader(content))
	return StoreError(err)
}

// move gives a file both names for a moment.
func (o objects) move(from, to string) error {
	err := o.bucket.Copy(context.Background(), o.path(from), o.path(to))
	if err == nil {
		err = o.bucket.Remove(context.Background(), o.path(from))
	}
	return StoreError(err)
}

func (o objects) remove(name string) error {
	return StoreError(o.bucket.Remove(context.Background(), o.path(name)))
}

func (o objects) removeAll(name string) error {
	files, err := o.below(context.Background(), o.path(name))
	if err != nil {
		return err
	}
	for i := range files {
		files[i] = path.Join(o.path(name), files[i])
	}
	return o.removeFiles(context.Background(), append(files, o.path(name)))
}

func (objects) removeIfEmpty(string) bool { return false } // a folder without files does not exist

func (objects) removeTemporaries(context.Context, string, int) int { return 0 } // there are none

// below returns the files below a directory of the Bucket, by their paths in it.
func (o objects) below(ctx context.Context, dir string) (names []string, err error) {
	err = o.bucket.Files(ctx, dir, func(name string, _ fs.FileInfo) error {
		names = append(names, name[len(dir)+1:])
		return nil
	})
	return names, StoreError(err)
}

func (o objects) removeFiles(ctx context.Context, names []string) error {
	return inBucket(ctx, names, o.bucket.Remove)
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
	return StoreError(g.Wait())
}

// install copies the files of a folder. An interrupted upload of a release that is no longer
// staged makes room.
func (o objects) install(ctx context.Context, from, to, last string) (copied map[string]fs.FileInfo, err error) {
	content, err := o.ReadFile(path.Join(from, last), MaxDocument)
	if err == nil && content == nil {
		err = StorageError(fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	files, err := o.below(ctx, o.path(from))
	if err != nil {
		return nil, StorageError(err)
	}
	u := newFolderUpload(last, content, files, func(ctx context.Context, name string) error {
		return o.bucket.Copy(ctx, path.Join(o.path(from), name), path.Join(o.path(to), name))
	})
	if err := o.upload(ctx, to, u, func() error { return o.removeUnfinished(ctx, to, last, content) }); err != nil {
		return nil, err
	}
	infos, err := o.readDirectory(to)
	copied = make(map[string]fs.FileInfo, len(infos))
	for _, info := range infos {
		copied[info.Name()] = info
	}
	return copied, StorageError(err)
}

func (o objects) installDocuments(ctx context.Context, documents map[string][]byte, to, last string) error {
	u := newFolderUpload(last, documents[last], slices.Sorted(maps.Keys(documents)), func(_ context.Context, name string) error {
		return o.write(path.Join(to, name), documents[name])
	})
	return o.upload(ctx, to, u, func() error { return o.removeResting(ctx, to, last, 0) })
}

// replaceFolder writes the new files over the old ones, and removes the files that only the
// old content has last.
func (o objects) replaceFolder(ctx context.Context, documents map[string][]byte, dir, _ string) error {
	err := inBucket(ctx, slices.Sorted(maps.Keys(documents)), func(_ context.Context, name string) error {
		return o.write(path.Join(dir, name), documents[name])
	})
	if err != nil {
		return err
	}
	files, err := o.below(ctx, o.path(dir))
	if err != nil {
		return err
	}
	var gone []string
	for _, name := range files {
		if _, written := documents[name]; !written {
			gone = append(gone, path.Join(o.path(dir), name))
		}
	}
	return o.removeFiles(ctx, gone)
}

func (o objects) removeFolder(ctx context.Context, dir, first string) error {
	folder := o.path(dir)
	files, err := o.below(ctx, folder)
	if err != nil || len(files) == 0 {
		return err
	}
	if !slices.Contains(files, UploadName) {
		if err := o.write(path.Join(dir, UploadName), encodeUpload(nil)); err != nil {
			return err
		}
	}
	for i := range files {
		files[i] = path.Join(folder, files[i])
	}
	begin, end := path.Join(folder, first), path.Join(folder, UploadName)
	files = slices.DeleteFunc(files, func(name string) bool { return name == begin || name == end })
	for _, names := range [][]string{{begin}, files, {end}} {
		if err := o.removeFiles(ctx, names); err != nil {
			return err
		}
	}
	return nil
}

func (o objects) removeUnfinished(ctx context.Context, dir, last string, content []byte) error {
	claim, err := o.ReadFile(path.Join(dir, UploadName), MaxDocument)
	if err != nil {
		return err
	}
	rest := reservedFor
	if content != nil && bytes.Equal(claim, encodeUpload(content)) {
		rest = 0
	}
	return o.removeResting(ctx, dir, last, rest)
}

// removeResting removes an unfinished upload to which nothing was added for some time.
func (o objects) removeResting(ctx context.Context, dir, last string, rest time.Duration) error {
	var names []string
	var newest time.Time
	err := o.walk(ctx, dir, func(name string, info fs.FileInfo) {
		names = append(names, name[len(dir)+1:])
		if info.ModTime().After(newest) {
			newest = info.ModTime()
		}
	})
	switch {
	case err != nil:
		return StorageError(err)
	case len(names) == 0:
		return nil
	case !incompleteUpload(last, names):
		return ErrInTheWay
	case rest > 0 && time.Since(newest) < rest:
		return ErrReserved
	}
	return StorageError(o.removeFolder(ctx, dir, last))
}

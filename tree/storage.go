package tree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
)

// A storage is where a part lies. It has what a disk (disk.go) and a Bucket
// (bucketstorage.go) do in different ways. Names are paths in the part. Errors are errors of
// the file system or the store, unless a method of Part that calls it says otherwise.
type storage interface {
	readDirectory(dir string) ([]fs.FileInfo, error) // in any order; symlinks are not followed
	readNames(dir string) ([]string, error)
	walk(ctx context.Context, dir string, visit func(name string, info fs.FileInfo)) error
	write(name string, content []byte) error
	temporary(ctx context.Context, name string) (TemporaryFile, error)
	move(from, to string) error
	remove(name string) error
	removeAll(name string) error
	removeIfEmpty(dir string) (removed bool)
	install(ctx context.Context, from, to, last string) (copied map[string]fs.FileInfo, err error)
	installDocuments(ctx context.Context, documents map[string][]byte, to, last string) error
	replaceFolder(ctx context.Context, documents map[string][]byte, dir, aside string) error
	removeFolder(ctx context.Context, dir, first string) error
	removeUnfinished(ctx context.Context, dir, last string, content []byte) error
	removeTemporaries(ctx context.Context, dir string, depth int) (removed int)
}

// storage returns where the part lies.
func (p Part) storage() storage {
	if b := p.Bucket(); b != nil {
		p.Fs = newBucketFs(b) // its directories may have changed since they were listed
		return objects{p, b}
	}
	return disk{p}
}

// The methods below are for code that writes into a tree. They read the tree as it is now,
// which the snapshot or the listing of a scan may not have yet.

// Sub returns a folder of the part as a part of its own.
func (p Part) Sub(dir string) Part {
	p.Dir = path.Join(p.Dir, dir)
	return p
}

// Entries returns the entries of a folder in the order of their names. A folder that does
// not exist has none. Symlinks are followed as List does; Entry.Err is why the target of one
// is not known. The error is a StorageError.
func (p Part) Entries(dir string) ([]Entry, error) {
	infos, err := p.storage().readDirectory(dir)
	if err = p.absence(dir, err); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(p.follow(dir, infos), func(e Entry) bool {
		return e.Gone && p.leadsNowhere(e.Path()) == nil // it has been removed meanwhile
	}), nil
}

// names is Entries for names only.
func (p Part) names(dir string) ([]string, error) {
	names, err := p.storage().readNames(dir)
	slices.Sort(names)
	if err = p.absence(dir, err); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return names, err
}

// Walk calls visit for every file below a folder, with its path in the part. It does not
// follow the symlinks in the folder, but visits them as such; dir itself may be a symlink. It
// skips files and folders that cannot be read, and returns the error at the end, as a
// StorageError.
func (p Part) Walk(ctx context.Context, dir string, visit func(name string, info fs.FileInfo)) error {
	return StorageError(p.storage().walk(ctx, dir, visit))
}

// WalkNames calls visit for every file below a folder, under each name that it has there,
// following symlinks through folders down to depth. It skips names without a file
// (HasNoFile), such as a symlink to nothing, and folders that no scan enters and that may not
// be read, such as lost+found. Any other failure is an error, which names the file.
func (p Part) WalkNames(dir string, depth int, visit func(name string, info fs.FileInfo)) error {
	skips := func(name string, err error) bool {
		return HasNoFile(err) || errors.Is(err, fs.ErrPermission) && isOfNoAddress(path.Base(name))
	}
	entries, err := p.List(dir)
	if err != nil && !skips(dir, err) {
		return fmt.Errorf("%s: %w", dir, AsFinding(err))
	}
	for _, e := range entries {
		name := e.Path()
		info, err := p.Lookup(name) // os.SameFile cannot compare the info of a listing
		switch {
		case err != nil && !skips(name, err):
			return fmt.Errorf("%s: %w", name, AsFinding(err))
		case err != nil:
		case !info.IsDir():
			visit(name, info)
		case depth > 0:
			if err := p.WalkNames(name, depth-1, visit); err != nil {
				return err
			}
		}
	}
	return nil
}

// WriteFile creates or replaces a small file, as a whole or not at all. A replacement keeps
// the mode of the file. The error is a StorageError.
func (p Part) WriteFile(name string, content []byte) error {
	return StorageError(p.storage().write(name, content))
}

// CreateFile writes a small file that does not exist. If it exists meanwhile, it stays, and
// the error is as of TemporaryFile.Create.
func (p Part) CreateFile(ctx context.Context, name string, content []byte) error {
	t, err := p.NewTemporary(ctx, name)
	if err != nil {
		return err
	}
	defer t.Discard()
	if _, err := t.Write(content); err != nil {
		return err
	}
	_, err = t.Create(ctx, name)
	return err
}

// NewTemporary begins a file that will have the given name, a path in the part, and makes
// the folders that are missing. On the local disk a lock tells other instances that the file
// is no leftover, however slowly it arrives. The error is ErrReplaced, a StorageError, or
// the error of ctx.
func (p Part) NewTemporary(ctx context.Context, name string) (TemporaryFile, error) {
	return p.storage().temporary(ctx, name)
}

// Move gives a file another name, and makes the folder of that name. It replaces a file of
// that name. The error is a StorageError.
func (p Part) Move(from, to string) error { return StorageError(p.storage().move(from, to)) }

// Remove removes a file, or a symlink itself. A file that does not exist is no error. The
// error has no path, and StorageError says what to do about it.
func (p Part) Remove(name string) error {
	if err := p.storage().remove(name); !errors.Is(err, fs.ErrNotExist) {
		return WithoutPath(err)
	}
	return nil
}

// RemoveAll removes a file or a folder that no scan reads, with all files below it. The error
// is a StorageError.
func (p Part) RemoveAll(name string) error { return StorageError(p.storage().removeAll(name)) }

// RemoveIfEmpty removes a folder if it is empty, and reports whether it did.
func (p Part) RemoveIfEmpty(dir string) (removed bool) { return p.storage().removeIfEmpty(dir) }

// InstallFolder moves a complete folder to the folder of a version, both paths in the part,
// so that readers of the tree see all of it or nothing. from has the whole release, with a
// SHA256SUMS of the name last, and to must not exist. Where files cannot be moved, from is
// still there afterwards, and copied has the files in to, by name. If that is interrupted, the
// folder is an incomplete upload (IsIncompleteUpload), which the same call completes. The error is ErrInTheWay, or a
// StorageError, such as ErrReserved for a folder that another process may be about to fill.
func (p Part) InstallFolder(ctx context.Context, from, to, last string) (copied map[string]fs.FileInfo, err error) {
	return p.storage().install(ctx, from, to, last)
}

// InstallDocuments is InstallFolder for small documents by name, the last one among them.
// Only registries write such a folder, so an incomplete upload of others is replaced.
func (p Part) InstallDocuments(ctx context.Context, documents map[string][]byte, to, last string) error {
	return p.storage().installDocuments(ctx, documents, to, last)
}

// ReplaceFolder makes small documents, by their paths in a folder, the content of the folder.
// On a disk readers see either content whole, and for a moment between two renames no folder.
// aside is a path in the part for files on their way: removing what begins with it cleans up
// after a crash. In a Bucket readers may see files of both contents for a moment, and always
// see files that both have. If it is interrupted, the same call completes it. The error is a
// StorageError.
func (p Part) ReplaceFolder(ctx context.Context, documents map[string][]byte, dir, aside string) error {
	return StorageError(p.storage().replaceFolder(ctx, documents, dir, aside))
}

// RemoveFolder removes a version's folder, at once for all readers of the tree. first is the
// name of its SHA256SUMS. Neither need exist. The error is a StorageError.
func (p Part) RemoveFolder(ctx context.Context, dir, first string) error {
	return StorageError(p.storage().removeFolder(ctx, dir, first))
}

// RemoveUnfinished removes the files that an interrupted InstallFolder has left. If they are
// of the release with this SHA256SUMS, it removes them immediately. It removes the files of
// another release only if no file has been added to the folder for as long as an upload
// takes between two files. Until then the error is ErrReserved, since an operator may be
// copying the folder of another Bucket. If the release is whole, the error is ErrInTheWay.
// last is the name of its SHA256SUMS, and content is nil if it is not known.
func (p Part) RemoveUnfinished(ctx context.Context, dir, last string, content []byte) error {
	return p.storage().removeUnfinished(ctx, dir, last, content)
}

// RemoveTemporaries removes the temporary files that killed instances have left in a folder
// and in its subfolders down to depth, and returns their number. It keeps files that are
// locked or were written to recently.
func (p Part) RemoveTemporaries(ctx context.Context, dir string, depth int) (removed int) {
	return p.storage().removeTemporaries(ctx, dir, depth)
}

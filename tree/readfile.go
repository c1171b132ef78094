package tree

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// These functions read outside of scans, for code that writes into a tree: the snapshot may
// be older than the files on the disk.

// MaxDocument bounds the small documents of a tree, in bytes: SHA256SUMS, signatures,
// manifests, keys.
const MaxDocument = 1 << 20

// ErrDocumentTooLarge means that a document exceeds the limit for reading.
var ErrDocumentTooLarge = fmt.Errorf("%w: a document in it is too large", ErrNotWritable)

// ReadFile returns the content of a small file, or nil if it does not exist. A symlink is
// followed. Anything but a regular file is refused without opening it, since opening a named
// pipe would wait for its writer. The error is ErrDocumentTooLarge for more than limit
// bytes, and otherwise a StorageError.
func (p Part) ReadFile(name string, limit int64) ([]byte, error) {
	f, _, err := p.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, limit+1))
	switch {
	case err != nil:
		return nil, StorageError(err)
	case int64(len(content)) > limit:
		return nil, ErrDocumentTooLarge
	}
	return content, nil
}

// Open opens a regular file, and returns its information. The error wraps fs.ErrNotExist if
// the file does not exist, and otherwise is a StorageError. A symlink is followed. A
// dangling symlink does not count as absent, since its target may be back a moment later.
func (p Part) Open(name string) (afero.File, fs.FileInfo, error) {
	f, info, err := p.OpenRegular(name)
	return f, info, p.absence(name, err)
}

// Stat returns the information about a name, symlinks followed. Its errors are like those
// Open returns.
func (p Part) Stat(name string) (fs.FileInfo, error) {
	info, err := p.Lookup(name)
	return info, p.absence(name, err)
}

// absence returns an error about a name as a StorageError, unless the name does not exist.
func (p Part) absence(name string, err error) error {
	switch {
	case err == nil, errors.Is(err, fs.ErrNotExist) && !p.leadsNowhere(name):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return errLeadsNowhere
	}
	return StorageError(err)
}

var errLeadsNowhere = fmt.Errorf("%w: a symlink in it leads to nothing, mend or remove it", ErrNotWritable)

// leadsNowhere reports whether a name that does not exist is a dangling symlink, or has one
// on its way below the root.
func (p Part) leadsNowhere(name string) bool {
	if p.Disk == "" {
		return false
	}
	for name = path.Join(p.Dir, name); name != "."; name = path.Dir(name) {
		if info, err := os.Lstat(filepath.Join(p.Disk, filepath.FromSlash(name))); err == nil {
			_, err = p.Fs.Stat(name)
			return info.Mode()&fs.ModeSymlink != 0 && errors.Is(err, fs.ErrNotExist)
		}
	}
	return false
}

// Exists reports whether there is a file or folder of that name. The error is a
// StorageError.
func (p Part) Exists(name string) (bool, error) {
	_, err := p.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// ReadDir returns the entries of a folder in the order of their names, without following
// symlinks. A folder that does not exist has none. The error is a StorageError.
func (p Part) ReadDir(dir string) ([]fs.FileInfo, error) {
	infos, err := p.readDir(dir)
	if err = p.absence(dir, err); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return infos, err
}

func (p Part) readDir(dir string) ([]fs.FileInfo, error) {
	if b := p.Bucket(); b != nil {
		return newBucketFs(b).readDirectory(path.Join(p.Dir, dir))
	}
	f, err := p.openFolder(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	infos, err := f.Readdir(-1)
	slices.SortFunc(infos, func(a, b fs.FileInfo) int { return strings.Compare(a.Name(), b.Name()) })
	return infos, err
}

// readNames is ReadDir for names only.
func (p Part) readNames(dir string) (names []string, err error) {
	if p.Bucket() != nil {
		infos, err := p.ReadDir(dir)
		for _, info := range infos {
			names = append(names, info.Name())
		}
		return names, err
	}
	f, err := p.openFolder(dir)
	if err == nil {
		defer f.Close()
		names, err = f.Readdirnames(-1)
	}
	slices.Sort(names)
	if err = p.absence(dir, err); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return names, err
}

// errNoFolder means that a file lies where a folder should be.
var errNoFolder = fmt.Errorf("%w: a file in it lies where a folder should be", ErrNotWritable)

// openFolder opens a folder. It refuses anything else without opening it, as Open does.
func (p Part) openFolder(dir string) (afero.File, error) {
	info, err := p.Lookup(dir)
	switch {
	case errors.Is(err, syscall.ENOTDIR), err == nil && !info.IsDir():
		return nil, errNoFolder
	case err != nil:
		return nil, err
	}
	return p.Fs.Open(path.Join(p.Dir, dir))
}

// WalkFiles calls visit for every file below a folder, with its path in the part, without
// following symlinks. It skips files and folders that cannot be read, and returns the error
// at the end, as a StorageError.
func (p Part) WalkFiles(ctx context.Context, dir string, visit func(name string, info fs.FileInfo)) error {
	root := path.Join(p.Dir, dir)
	inPart := func(name string) string {
		if root != "." {
			name = strings.TrimPrefix(name, root+"/")
		}
		return path.Join(dir, name)
	}
	if b := p.Bucket(); b != nil {
		return StorageError(StoreError(b.Files(ctx, root, func(name string, info fs.FileInfo) error {
			visit(inPart(name), info)
			return nil
		})))
	}
	var failed error
	err := afero.Walk(p.Fs, root, func(name string, info fs.FileInfo, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			if failed == nil && !errors.Is(err, fs.ErrNotExist) {
				failed = err
			}
		case !info.IsDir():
			visit(inPart(filepath.ToSlash(name)), info)
		}
		return nil
	})
	return cmp.Or(StorageError(err), StorageError(failed))
}

// RemoveIfEmpty removes a folder if it is empty. A Bucket has no folders.
func (p Part) RemoveIfEmpty(dir string) {
	if p.Bucket() != nil {
		return
	}
	if entries, err := p.ReadDir(dir); err == nil && len(entries) == 0 {
		p.Fs.Remove(path.Join(p.Dir, dir))
	}
}

// Digest reads a file to its end. The error is a StorageError.
func (p Part) Digest(name string) (sum wire.SHA256, err error) {
	f, _, err := p.Open(name)
	if err != nil {
		return sum, StorageError(err)
	}
	defer f.Close()
	sum, err = DigestFile(context.Background(), f)
	return sum, StorageError(err)
}

// DigestFile reads f from its current offset to its end.
func DigestFile(ctx context.Context, f io.Reader) (sum wire.SHA256, err error) {
	h := sha256.New()
	if _, err := io.Copy(h, contextReader{ctx, f}); err != nil {
		return sum, err
	}
	return wire.SHA256(h.Sum(nil)), nil
}

// WithContext returns a reader that fails once ctx has ended, so that a long read ends with
// the request or scan that started it.
func WithContext(ctx context.Context, r io.Reader) io.Reader { return contextReader{ctx, r} }

type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, fmt.Errorf("reading ended: %w", err)
	}
	return c.r.Read(p)
}

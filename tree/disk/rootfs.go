package disk

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// rootFs is an afero.Fs of the local disk below one directory. os.Root follows symlinks
// inside that directory and refuses symlinks that leave it, even if they are exchanged
// between a check and an open. It also refuses all absolute symlinks: resolve follows the
// absolute symlinks that stay inside.
type rootFs struct {
	root *os.Root
	dir  *os.File // the same directory; nil: files in it are opened by root
}

func newRootFs(root *os.Root) rootFs {
	dir, _ := root.Open(".") // without dir, opening only takes longer
	return rootFs{root: root, dir: dir}
}

func (r rootFs) Name() string { return "root" }

func (r rootFs) Create(name string) (afero.File, error) {
	return file(inside(r, name, r.root.Create))
}

func (r rootFs) Open(name string) (afero.File, error) {
	if f := openBeneath(r.dir, name); f != nil {
		return f, nil
	}
	return file(inside(r, name, r.root.Open))
}

func (r rootFs) OpenFile(name string, flag int, perm os.FileMode) (afero.File, error) {
	return file(inside(r, name, func(name string) (*os.File, error) { return r.root.OpenFile(name, flag, perm) }))
}

func (r rootFs) Stat(name string) (os.FileInfo, error) { return inside(r, name, r.root.Stat) }

func (r rootFs) Mkdir(name string, perm os.FileMode) error {
	return r.do(name, func(name string) error { return r.root.Mkdir(name, perm) })
}

func (r rootFs) MkdirAll(name string, perm os.FileMode) error {
	return r.do(name, func(name string) error { return r.root.MkdirAll(name, perm) })
}

func (r rootFs) Chmod(name string, mode os.FileMode) error {
	return r.do(name, func(name string) error { return r.root.Chmod(name, mode) })
}

func (r rootFs) Chown(name string, uid, gid int) error {
	return r.do(name, func(name string) error { return r.root.Chown(name, uid, gid) })
}

func (r rootFs) Chtimes(name string, atime, mtime time.Time) error {
	return r.do(name, func(name string) error { return r.root.Chtimes(name, atime, mtime) })
}

// These operations act on the name itself: a symlink at its end is not followed.

func (r rootFs) Remove(name string) error {
	return r.doInParent(name, r.root.Remove)
}

func (r rootFs) RemoveAll(name string) error {
	return r.doInParent(name, r.root.RemoveAll)
}

func (r rootFs) Rename(from, to string) error {
	return r.doInParent(from, func(from string) error {
		return r.doInParent(to, func(to string) error { return r.root.Rename(from, to) })
	})
}

// Link implements linker.
func (r rootFs) Link(from, to string) error {
	return r.doInParent(from, func(from string) error {
		return r.doInParent(to, func(to string) error { return r.root.Link(from, to) })
	})
}

// RenameExclusive implements exclusiveRenamer. Both folders are opened by the rules of
// os.Root, and the names in them have no slash.
func (r rootFs) RenameExclusive(from, to string) error {
	fromDir, err := r.Open(path.Dir(from))
	if err != nil {
		return err
	}
	defer fromDir.Close()
	toDir, err := r.Open(path.Dir(to))
	if err != nil {
		return err
	}
	defer toDir.Close()
	a, ok := fromDir.(*os.File)
	b, same := toDir.(*os.File)
	if !ok || !same {
		return errors.ErrUnsupported
	}
	if err := renameExclusive(a, path.Base(from), b, path.Base(to)); err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}

// file keeps a nil *os.File from becoming a non-nil afero.File.
func file(f *os.File, err error) (afero.File, error) {
	if err != nil {
		return nil, err
	}
	return f, nil
}

var (
	_ afero.Fs         = rootFs{}
	_ linker           = rootFs{}
	_ exclusiveRenamer = rootFs{}
)

// MaxLinks is how many symlinks a path may have, as on Linux.
const MaxLinks = 40

// inside calls op with name. If os.Root refused an absolute symlink, it calls op again with
// the resolved name. Both names go through os.Root, so that a symlink that is exchanged
// meanwhile cannot lead outside.
func inside[T any](r rootFs, name string, op func(name string) (T, error)) (T, error) {
	result, err := op(name)
	if !tree.LeavesRoot(err) {
		return result, err
	}
	resolved, ok, resolving := r.resolve(name)
	switch {
	case resolving != nil:
		return result, resolving
	case !ok:
		return result, err
	}
	return op(resolved)
}

func (r rootFs) do(name string, op func(name string) error) error {
	_, err := inside(r, name, func(name string) (struct{}, error) { return struct{}{}, op(name) })
	return err
}

// doInParent is like do but does not follow a symlink at the end of name.
func (r rootFs) doInParent(name string, op func(name string) error) error {
	err := op(name)
	if !tree.LeavesRoot(err) {
		return err
	}
	dir, base := path.Split(path.Clean(filepath.ToSlash(name)))
	resolved, ok, resolving := r.resolve(dir)
	switch {
	case resolving != nil:
		return resolving
	case !ok:
		return err
	}
	return op(path.Join(resolved, base))
}

// resolve follows the symlinks of name and returns a name in the root without symlinks. The
// end of name need not exist. ok is false if a symlink leaves the root.
func (r rootFs) resolve(name string) (resolved string, ok bool, err error) {
	resolved, links := ".", 0
	rest := tree.SplitPath(name)
	for len(rest) > 0 {
		next := rest[0]
		rest = rest[1:]
		if next == ".." {
			if resolved == "." {
				return "", false, nil
			}
			resolved = path.Dir(resolved) // this name is not a symlink
			continue
		}
		here := path.Join(resolved, next)
		info, err := r.root.Lstat(here)
		if os.IsNotExist(err) {
			return path.Join(append([]string{here}, rest...)...), true, nil
		}
		if err != nil {
			return "", false, err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			resolved = here
			continue
		}
		if links++; links > MaxLinks {
			return "", false, &fs.PathError{Op: "open", Path: name, Err: syscall.ELOOP}
		}
		target, err := r.root.Readlink(here)
		if err != nil {
			return "", false, err
		}
		if filepath.IsAbs(target) {
			if target, ok = r.below(target); !ok {
				return "", false, nil
			}
			resolved = "."
		}
		rest = append(tree.SplitPath(target), rest...)
	}
	return resolved, true, nil
}

// below returns an absolute path relative to the root, if it is below the root.
// The path of the root may have symlinks in it; a link may use that path or the real
// one.
func (r rootFs) below(target string) (string, bool) {
	root, err := filepath.Abs(r.root.Name())
	if err != nil {
		return "", false
	}
	roots := []string{root}
	if root, err = filepath.EvalSymlinks(root); err == nil {
		roots = append(roots, root)
	}
	target = filepath.ToSlash(target) + "/"
	for _, root := range roots {
		if rest, ok := strings.CutPrefix(target, strings.TrimSuffix(filepath.ToSlash(root), "/")+"/"); ok {
			return rest, true
		}
	}
	return "", false
}

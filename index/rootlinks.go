package index

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
)

// maxLinks is how many symlinks one path may lead over, as on Linux.
const maxLinks = 40

// escapes reports whether os.Root refused to leave its directory, for which it
// has no error value.
func escapes(err error) bool {
	return err != nil && strings.Contains(err.Error(), "escapes")
}

// inside calls op with name, and again with the name that absolute symlinks
// lead to if os.Root refused one. What op is called with always goes through
// os.Root: whatever is exchanged meanwhile, nothing outside is reached.
func inside[T any](r rootFs, name string, op func(name string) (T, error)) (T, error) {
	result, err := op(name)
	if !escapes(err) {
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

// doInParent does not follow the last symlink of name.
func (r rootFs) doInParent(name string, op func(name string) error) error {
	err := op(name)
	if !escapes(err) {
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

// resolve follows the symlinks on name and returns a name in the root that has
// none. What is missing at its end stays as it is. It is not ok if a symlink
// leaves the root.
func (r rootFs) resolve(name string) (resolved string, ok bool, err error) {
	resolved, links := ".", 0
	rest := split(name)
	for len(rest) > 0 {
		next := rest[0]
		rest = rest[1:]
		if next == ".." {
			if resolved == "." {
				return "", false, nil
			}
			resolved = path.Dir(resolved) // which is no symlink
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
		if links++; links > maxLinks {
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
		rest = append(split(target), rest...)
	}
	return resolved, true, nil
}

// below returns an absolute path relative to the root, if it is below it. The
// root may itself be named by a path with symlinks in it; a link can be written
// with that path or with the real one.
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

// split returns the names on a path, without those that lead nowhere.
func split(name string) []string {
	names := strings.Split(filepath.ToSlash(name), "/")
	kept := names[:0]
	for _, n := range names {
		if n != "" && n != "." {
			kept = append(kept, n)
		}
	}
	return kept
}

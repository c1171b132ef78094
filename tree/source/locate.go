package source

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/tree/bucket"
)

// Locate cleans the directories, makes the root absolute and checks that all
// configured ones exist, so that a misspelled name is an error now and not an
// empty registry later. Directories that are not configured get their default
// names and may be missing. A nil file system is the local disk. Errors begin with
// the name of the option: root, providers, modules or keys.
func (d Directories) Locate(fsys fs.FS) (Directories, error) {
	if d.Root == "" {
		return d, errors.New("root: it is required: name the folder to serve")
	}
	var paths directoryPaths = diskPaths{}
	if fsys != nil {
		paths = fileSystemPaths{fsys}
	}
	var err error
	if d.Root, err = paths.root(d.Root); err != nil {
		return d, fmt.Errorf("root: %w", err)
	}
	if err := mustBeDirectory(paths, d.Root); err != nil {
		return d, fmt.Errorf("root: %w", err)
	}
	for _, option := range []struct {
		name string
		dir  *string
	}{
		{"providers", &d.Providers},
		{"modules", &d.Modules},
		{"keys", &d.Keys},
	} {
		configured := *option.dir != ""
		if *option.dir, err = paths.clean(cmp.Or(*option.dir, option.name)); err != nil {
			return d, fmt.Errorf("%s: %w", option.name, err)
		}
		if !configured {
			continue
		}
		if err := mustBeDirectory(paths, paths.join(d.Root, *option.dir)); err != nil {
			return d, fmt.Errorf("%s: %w", option.name, err)
		}
	}
	return d, nil
}

func mustBeDirectory(paths directoryPaths, dir string) error {
	isDirectory, err := paths.isDirectory(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no folder %s: make it, or name another", dir)
	}
	if err != nil {
		return err
	}
	if !isDirectory {
		return fmt.Errorf("%s is not a folder", dir)
	}
	return nil
}

// directoryPaths has the rules for paths on the local disk, or in an fs.FS.
type directoryPaths interface {
	root(dir string) (string, error)  // cleaned, absolute on the local disk
	clean(dir string) (string, error) // of a directory that may lie under the root
	join(root, dir string) string     // of a clean directory
	isDirectory(dir string) (bool, error)
}

type diskPaths struct{}

func (diskPaths) root(dir string) (string, error) { return filepath.Abs(dir) }

func (diskPaths) isDirectory(dir string) (bool, error) {
	info, err := os.Stat(dir)
	return err == nil && info.IsDir(), err
}

// clean refuses relative paths that leave the root: directories under the root
// share its boundary.
func (diskPaths) clean(dir string) (string, error) {
	if filepath.IsAbs(dir) || filepath.IsLocal(dir) {
		return filepath.Clean(dir), nil
	}
	return "", fmt.Errorf("%s leads out of the root: give an absolute path", dir)
}

func (diskPaths) join(root, dir string) string {
	if filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join(root, dir)
}

// fileSystemPaths have slashes, and are never absolute for the file system. A
// leading slash is accepted, and means the root of the file system.
type fileSystemPaths struct{ fs.FS }

func (fileSystemPaths) root(dir string) (string, error) {
	name := nameIn(dir)
	if !fs.ValidPath(name) {
		return "", fmt.Errorf("%s leads out of the file system", name)
	}
	return name, nil
}

func (fileSystemPaths) clean(dir string) (string, error) {
	clean := path.Clean(filepath.ToSlash(dir))
	if !fs.ValidPath(strings.TrimPrefix(clean, "/")) && clean != "/" {
		return "", fmt.Errorf("%s leads out of the root: give a path that begins with a slash", dir)
	}
	return clean, nil
}

func (fileSystemPaths) join(root, dir string) string {
	if strings.HasPrefix(dir, "/") {
		return nameIn(dir)
	}
	return path.Join(root, dir)
}

// isDirectory does not ask a Bucket, which may be down when the server starts. A directory
// exists there as soon as there is a file in it, so all of them may be named.
func (p fileSystemPaths) isDirectory(dir string) (bool, error) {
	if _, ok := p.FS.(bucket.Bucket); ok {
		return true, nil
	}
	info, err := fs.Stat(p.FS, dir)
	return err == nil && info.IsDir(), err
}

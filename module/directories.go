package module

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

// Locate makes directories absolute and checks that those which are named exist, so
// that a misspelled one is an error now and not an empty registry later. Default
// directories may be missing. A nil file system is the local disk. Errors begin with
// the name of the option.
func Locate(fsys fs.FS, d index.Directories) (index.Directories, error) {
	if d.Root == "" {
		return d, errors.New("root: it is required: name the folder to serve")
	}
	disk := directoryTree(localDisk{})
	if fsys != nil {
		disk = namedFileSystem{fsys}
	}
	var err error
	if d.Root, err = disk.absolute(d.Root); err != nil {
		return d, fmt.Errorf("root: %w", err)
	}
	if err := isDirectory(disk, d.Root); err != nil {
		return d, fmt.Errorf("root: %w", err)
	}
	parts := []struct {
		name string
		dir  *string
	}{
		{"providers", &d.Providers},
		{"modules", &d.Modules},
		{"keys", &d.Keys},
	}
	for _, p := range parts {
		named := *p.dir != ""
		if *p.dir, err = disk.part(cmp.Or(*p.dir, p.name)); err != nil {
			return d, fmt.Errorf("%s: %w", p.name, err)
		}
		if !named {
			continue
		}
		if err := isDirectory(disk, disk.under(d.Root, *p.dir)); err != nil {
			return d, fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return d, nil
}

func isDirectory(t directoryTree, dir string) error {
	info, err := t.stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no folder %s: make it, or name another", dir)
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder", dir)
	}
	return nil
}

// directoryTree is what the local disk and Caddy's named file systems do
// differently about paths.
type directoryTree interface {
	absolute(root string) (string, error)
	part(dir string) (string, error)
	under(root, part string) string
	stat(dir string) (fs.FileInfo, error)
}

type localDisk struct{}

func (localDisk) absolute(root string) (string, error) { return filepath.Abs(root) }
func (localDisk) stat(dir string) (fs.FileInfo, error) { return os.Stat(dir) }

// part cleans one of the folders of a tree. Those under the root share its
// boundary, so a relative path may not lead out.
func (localDisk) part(dir string) (string, error) {
	if filepath.IsAbs(dir) || filepath.IsLocal(dir) {
		return filepath.Clean(dir), nil
	}
	return "", fmt.Errorf("%s leads out of the root: give an absolute path", dir)
}

func (localDisk) under(root, part string) string {
	if filepath.IsAbs(part) {
		return part
	}
	return filepath.Join(root, part)
}

// namedFileSystem is one of Caddy's. Its paths have slashes and no beginning;
// a leading slash is accepted as the root of the file system.
type namedFileSystem struct{ fs.FS }

func (namedFileSystem) absolute(root string) (string, error) {
	root = path.Clean(strings.TrimLeft(filepath.ToSlash(root), "/"))
	if !fs.ValidPath(root) {
		return "", fmt.Errorf("%s leads out of the file system", root)
	}
	return root, nil
}

func (namedFileSystem) part(dir string) (string, error) {
	clean := path.Clean(filepath.ToSlash(dir))
	if !fs.ValidPath(strings.TrimPrefix(clean, "/")) && clean != "/" {
		return "", fmt.Errorf("%s leads out of the root: give a path that begins with a slash", dir)
	}
	return clean, nil
}

func (namedFileSystem) under(root, part string) string {
	if strings.HasPrefix(part, "/") {
		return cmp.Or(strings.TrimPrefix(part, "/"), ".")
	}
	return path.Join(root, part)
}

func (n namedFileSystem) stat(dir string) (fs.FileInfo, error) { return fs.Stat(n.FS, dir) }

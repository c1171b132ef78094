package e2e_test

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Tree builds a registry's folder: each call adds what a user would copy in.
type Tree struct {
	Dir string

	t *testing.T
}

func newTree(t *testing.T) *Tree {
	t.Helper()
	return &Tree{Dir: t.TempDir(), t: t}
}

// OnlyThisPlatform removes the packages of a release for other platforms. A SHA256SUMS of its
// publisher still lists them.
func (files *Tree) OnlyThisPlatform(address, version string) *Tree {
	files.t.Helper()
	for _, platform := range threePlatforms()[1:] {
		name := "providers/" + address + "/terraform-provider-" + path.Base(address) + "_" + version + "_" + platform + ".zip"
		if err := os.Remove(files.Path(name)); err != nil {
			files.t.Fatal(err)
		}
	}
	return files
}

// Keys adds public keys of publishers to a namespace.
func (files *Tree) Keys(namespace string, publishers ...*Publisher) *Tree {
	files.t.Helper()
	for _, p := range publishers {
		files.append("keys/"+namespace+".asc", p.PublicKey(files.t))
	}
	return files
}

// Provider adds a release of a provider: NAMESPACE/TYPE, prefixed with HOSTNAME
// if it is mirrored. newRelease has the defaults.
func (files *Tree) Provider(address, version string, as ...func(*Release)) *Tree {
	files.t.Helper()
	newRelease(address, version, as...).publish(files.t, files.Dir)
	return files
}

// Module adds a version of a module: NAMESPACE/NAME/SYSTEM. It contains one
// submodule, and its outputs name the module and version.
func (files *Tree) Module(address, version string, stored Packaging) *Tree {
	files.t.Helper()
	stored(files.t, filepath.Join(files.Dir, "modules", filepath.FromSlash(address), version), moduleFiles(address, version))
	return files
}

// Path returns a file's path on disk, given its path in the tree.
func (files *Tree) Path(name string) string {
	return filepath.Join(files.Dir, filepath.FromSlash(name))
}

// anHourPasses dates back the incoming files that a killed server has left. For an hour
// they may belong to another instance.
func (files *Tree) anHourPasses() {
	files.t.Helper()
	before := time.Now().Add(-2 * time.Hour)
	err := filepath.WalkDir(files.Dir, func(name string, _ fs.DirEntry, err error) error {
		base := filepath.Base(name)
		if err != nil || !strings.HasPrefix(base, ".") || !strings.HasSuffix(base, ".part") && !strings.HasSuffix(base, ".tmp") {
			return err
		}
		return os.Chtimes(name, before, before)
	})
	if err != nil {
		files.t.Fatal(err)
	}
}

// Read returns the content of a file of the tree.
func (files *Tree) Read(name string) string {
	files.t.Helper()
	content, err := os.ReadFile(files.Path(name))
	if err != nil {
		files.t.Fatal(err)
	}
	return string(content)
}

func (files *Tree) append(name, text string) {
	files.t.Helper()
	path := files.Path(name)
	before, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		files.t.Fatal(err)
	}
	writeFile(files.t, path, string(before)+text)
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// lastElement returns the TYPE of NAMESPACE/TYPE.
func lastElement(address string) string { return address[strings.LastIndex(address, "/")+1:] }

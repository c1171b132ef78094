package disk_test

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
)

// The local disk and a file system in memory keep the rules of every storage.
func TestConformance(t *testing.T) {
	for name, open := range map[string]func(*testing.T) treetest.Storage{"the local disk": diskStorage, "memory": memoryStorage} {
		t.Run(name, func(t *testing.T) { treetest.Conform(t, open) })
	}
}

var diskFaults = []error{syscall.EIO, syscall.ESTALE, syscall.EMFILE, syscall.EACCES}

// onFs returns a storage on an afero.Fs, in which path is the path of a name.
func onFs(t *testing.T, fsys afero.Fs, at func(name string) string, open func() (tree.Tree, error)) treetest.Storage {
	t.Helper()
	faults := new(treetest.Faults)
	files, err := faults.Open(open)()
	if err != nil {
		t.Fatal(err)
	}
	return treetest.Storage{
		Tree: files,
		Put: func(name, content string, age time.Duration) {
			t.Helper()
			then := time.Now().Add(-age)
			err := errors.Join(fsys.MkdirAll(at(path.Dir(name)), 0o755), afero.WriteFile(fsys, at(name), []byte(content), 0o644), fsys.Chtimes(at(name), then, then))
			if err != nil {
				t.Fatal(err)
			}
		},
		Contents: func() map[string]string {
			all := make(map[string]string)
			afero.Walk(fsys, at("."), func(name string, info fs.FileInfo, err error) error {
				if err == nil && info.Mode().IsRegular() {
					content, _ := afero.ReadFile(fsys, name)
					relative, _ := filepath.Rel(at("."), name)
					all[filepath.ToSlash(relative)] = string(content)
				}
				return nil
			})
			return all
		},
		Fail: func(fails func(n int) error) {
			if fails == nil {
				faults.End()
				return
			}
			var mutex sync.Mutex // several files are written at once
			faults.When(func(n int, _ treetest.Operation) error {
				mutex.Lock()
				defer mutex.Unlock()
				return fails(n)
			})
		},
		Faults: diskFaults,
	}
}

func diskStorage(t *testing.T) treetest.Storage {
	root := filepath.Join(t.TempDir(), "root")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	pathTo := func(name string) string { return filepath.Join(root, filepath.FromSlash(name)) }
	s := onFs(t, afero.NewOsFs(), pathTo, source.Directories{Root: root}.Open)
	if runtime.GOOS == "windows" {
		return s
	}
	s.Link = func(target, name string) {
		if err := errors.Join(os.MkdirAll(filepath.Dir(pathTo(name)), 0o755), os.Symlink(target, pathTo(name))); err != nil {
			t.Fatal(err)
		}
	}
	s.Pipe = func(name string) {
		if err := errors.Join(os.MkdirAll(filepath.Dir(pathTo(name)), 0o755), makePipe(pathTo(name))); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func memoryStorage(t *testing.T) treetest.Storage {
	memory := afero.NewMemMapFs()
	part := func(name string) tree.Part { return treetest.On(memory, name) }
	s := onFs(t, memory, path.Clean, func() (tree.Tree, error) {
		return tree.Tree{Providers: part("providers"), Modules: part("modules"), Keys: part("keys")}, nil
	})
	s.Unshared = true
	return s
}

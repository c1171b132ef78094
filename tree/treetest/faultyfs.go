package treetest

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path"
	"sync"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// Faults are the errors that operations of file systems fail with. They count the operations
// of all file systems that they wrap:
//
//	var faults treetest.Faults
//	open := faults.Open(directories.Open)
//	faults.Once(7, syscall.ESTALE)
//	…
//	asked, failed := faults.End()
//
// Until Once, From or When is called, nothing fails. Faults are safe for concurrent use.
type Faults struct {
	mutex  sync.Mutex
	fails  func(n int, o Operation) error
	asked  int
	failed []Operation
}

// Stride is the distance of operations for tests that have one operation after the other fail. In a
// short run it is more than one: that looks for data races, and the same goroutines work, whichever
// operation fails.
func Stride() int {
	if testing.Short() {
		return 10
	}
	return 1
}

// An Operation is a call of a file system, or of a file that it has opened.
type Operation struct {
	// Name is one of open, openfile, create, stat, rename, renameexclusive, link, remove,
	// removeall, mkdir, mkdirall, read, readdir, write and sync.
	Name string

	// Path is the name in the file system; the new one for a rename or a link.
	Path string
}

func (o Operation) String() string { return o.Name + " " + o.Path }

// Once makes the operation of number n fail. Numbers begin with 1, at this call.
func (f *Faults) Once(n int, err error) { f.Between(n, n, err) }

// From makes all operations fail from number n on.
func (f *Faults) From(n int, err error) { f.Between(n, math.MaxInt, err) }

// Between makes the operations from number first to number last fail.
func (f *Faults) Between(first, last int, err error) {
	f.When(func(n int, _ Operation) error {
		if n < first || n > last {
			return nil
		}
		return err
	})
}

// When makes the operations fail for which fails returns an error. fails is called before
// each operation, by several goroutines at once, and may change the files that the operation
// acts on.
func (f *Faults) When(fails func(n int, o Operation) error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.fails, f.asked, f.failed = fails, 0, nil
}

// End stops all failures, and returns the number of operations since When, and the
// operations that failed.
func (f *Faults) End() (asked int, failed []Operation) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.fails = nil
	return f.asked, f.failed
}

func (f *Faults) ask(name, path string) error {
	o := Operation{name, path}
	f.mutex.Lock()
	fails := f.fails
	f.asked++
	n := f.asked
	f.mutex.Unlock()
	if fails == nil {
		return nil
	}
	err := fails(n, o)
	if err == nil {
		return nil
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.failed = append(f.failed, o)
	return &fs.PathError{Op: name, Path: path, Err: err}
}

// Open wraps the parts of the tree that open opens.
func (f *Faults) Open(open func() (tree.Tree, error)) func() (tree.Tree, error) {
	return func() (tree.Tree, error) {
		files, err := open()
		if err != nil {
			return files, err
		}
		for _, part := range []*tree.Part{&files.Providers, &files.Modules, &files.Keys} {
			Wrap(part, func(fsys afero.Fs) afero.Fs { return FaultyFs{fsys, f} })
		}
		return files, nil
	}
}

// A FaultyFs is a file system whose operations fail by Faults.
type FaultyFs struct {
	afero.Fs
	Faults *Faults
}

// Open implements afero.Fs.
func (f FaultyFs) Open(name string) (afero.File, error) {
	return f.file("open", name, func() (afero.File, error) { return f.Fs.Open(name) })
}

// OpenFile implements afero.Fs.
func (f FaultyFs) OpenFile(name string, flag int, mode os.FileMode) (afero.File, error) {
	return f.file("openfile", name, func() (afero.File, error) { return f.Fs.OpenFile(name, flag, mode) })
}

// Create implements afero.Fs.
func (f FaultyFs) Create(name string) (afero.File, error) {
	return f.file("create", name, func() (afero.File, error) { return f.Fs.Create(name) })
}

func (f FaultyFs) file(operation, name string, open func() (afero.File, error)) (afero.File, error) {
	if err := f.Faults.ask(operation, name); err != nil {
		return nil, err
	}
	file, err := open()
	if err != nil {
		return nil, err
	}
	return &faultyFile{file, f.Faults, name}, nil
}

// Stat implements afero.Fs.
func (f FaultyFs) Stat(name string) (os.FileInfo, error) {
	if err := f.Faults.ask("stat", name); err != nil {
		return nil, err
	}
	return f.Fs.Stat(name)
}

// Rename implements afero.Fs.
func (f FaultyFs) Rename(from, to string) error {
	return f.do("rename", to, func() error { return f.Fs.Rename(from, to) })
}

// RenameExclusive renames like a tree on the disk; elsewhere it returns
// errors.ErrUnsupported.
func (f FaultyFs) RenameExclusive(from, to string) error {
	return f.do("renameexclusive", to, func() error {
		if fsys, ok := f.Fs.(interface{ RenameExclusive(from, to string) error }); ok {
			return fsys.RenameExclusive(from, to)
		}
		return errors.ErrUnsupported
	})
}

// Link links like a tree on the disk; elsewhere it returns errors.ErrUnsupported.
func (f FaultyFs) Link(from, to string) error {
	return f.do("link", to, func() error {
		if fsys, ok := f.Fs.(interface{ Link(from, to string) error }); ok {
			return fsys.Link(from, to)
		}
		return errors.ErrUnsupported
	})
}

// Remove implements afero.Fs.
func (f FaultyFs) Remove(name string) error {
	return f.do("remove", name, func() error { return f.Fs.Remove(name) })
}

// RemoveAll implements afero.Fs.
func (f FaultyFs) RemoveAll(name string) error {
	return f.do("removeall", name, func() error { return f.Fs.RemoveAll(name) })
}

// Mkdir implements afero.Fs.
func (f FaultyFs) Mkdir(name string, mode os.FileMode) error {
	return f.do("mkdir", name, func() error { return f.Fs.Mkdir(name, mode) })
}

// MkdirAll implements afero.Fs.
func (f FaultyFs) MkdirAll(name string, mode os.FileMode) error {
	return f.do("mkdirall", name, func() error { return f.Fs.MkdirAll(name, mode) })
}

func (f FaultyFs) do(operation, name string, do func() error) error {
	if err := f.Faults.ask(operation, name); err != nil {
		return err
	}
	return do()
}

// A faultyFile is an open file of a FaultyFs.
type faultyFile struct {
	afero.File
	faults *Faults
	path   string
}

func (f *faultyFile) Read(p []byte) (int, error) {
	if err := f.faults.ask("read", f.path); err != nil {
		return 0, err
	}
	return f.File.Read(p)
}

func (f *faultyFile) ReadAt(p []byte, offset int64) (int, error) {
	if err := f.faults.ask("read", f.path); err != nil {
		return 0, err
	}
	return f.File.ReadAt(p, offset)
}

func (f *faultyFile) Readdir(count int) ([]os.FileInfo, error) {
	if err := f.faults.ask("readdir", f.path); err != nil {
		return nil, err
	}
	return f.File.Readdir(count)
}

func (f *faultyFile) Readdirnames(n int) ([]string, error) {
	if err := f.faults.ask("readdir", f.path); err != nil {
		return nil, err
	}
	return f.File.Readdirnames(n)
}

func (f *faultyFile) Write(p []byte) (int, error) {
	if err := f.faults.ask("write", f.path); err != nil {
		return 0, err
	}
	return f.File.Write(p)
}

// Sync only fails. The files of a test need not survive a crash, and a test of a thousand
// faults would wait for the disk most of the time.
func (f *faultyFile) Sync() error { return f.faults.ask("sync", f.path) }

var _ afero.Fs = FaultyFs{}

// SyncedAhead makes each first read of a temporary file wait until the file is being synced. It
// returns a function that reports whether all were synced in time: a writer that has written
// all of a file has it synced while it checks the file.
func (f *Faults) SyncedAhead() (ahead func() bool) {
	var mutex sync.Mutex
	began := make(map[string]chan struct{})
	late := false
	sync := func(path string) chan struct{} {
		mutex.Lock()
		defer mutex.Unlock()
		if began[path] == nil {
			began[path] = make(chan struct{})
		}
		return began[path]
	}
	f.When(func(_ int, o Operation) error {
		if !tree.IsTemporary(path.Base(o.Path)) {
			return nil
		}
		switch began := sync(o.Path); o.Name {
		case "sync":
			select {
			case <-began:
			default:
				close(began)
			}
		case "read":
			select {
			case <-began:
			case <-time.After(10 * time.Second):
				mutex.Lock()
				defer mutex.Unlock()
				late = true
			}
		}
		return nil
	})
	return func() bool {
		mutex.Lock()
		defer mutex.Unlock()
		return !late && len(began) > 0
	}
}

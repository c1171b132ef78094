package iofs_test

import (
	"errors"
	"io/fs"
	"slices"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/iofs"
)

// The tree on a file system of Caddy's is read like any other, and never written to.
func TestAFileSystemIsOnlyRead(t *testing.T) {
	files := fstest.MapFS{"tree/providers/acme/demo/1.0.0/a": {Data: []byte("x")}, "tree/providers/acme/b": {Data: []byte("y")}}
	p := tree.Part{Storage: iofs.NewFolder(files)}.Sub("tree/providers")
	if content, err := p.ReadFile("acme/b", 10); err != nil || string(content) != "y" {
		t.Errorf("a file has %q, %v", content, err)
	}
	if _, _, err := p.Open("acme/demo"); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder is opened as a file: %v", err)
	}
	if entries, err := p.Entries("acme"); err != nil || len(entries) != 2 || !entries[0].IsFile() || !entries[1].IsDir() {
		t.Errorf("a folder has %v, %v", entries, err)
	}
	if entries, err := p.Entries("none"); err != nil || entries != nil {
		t.Errorf("a folder that does not exist has %v, %v", entries, err)
	}
	if _, err := p.Entries("acme/b"); !errors.Is(err, tree.ErrNoFolder) {
		t.Errorf("a file is read as a folder: %v", err)
	}
	var names []string
	if err := p.Walk(t.Context(), "acme", func(name string, _ fs.FileInfo) { names = append(names, name) }); err != nil || !slices.Equal(names, []string{"acme/b", "acme/demo/1.0.0/a"}) {
		t.Errorf("a walk visits %q, %v", names, err)
	}
	_, temporary := p.NewTemporary(t.Context(), "acme/c")
	for does, err := range map[string]error{
		"write": p.WriteFile("acme/b", nil), "create": temporary, "move": p.Move("acme/b", "acme/c"), "remove": tree.StorageError(p.Remove("acme/b")),
	} {
		if !errors.Is(err, tree.ErrNotWritable) {
			t.Errorf("%s: %v", does, err)
		}
	}
	if p.RemoveIfEmpty("acme") {
		t.Error("a folder with files is removed")
	}
}

// failing is a file system on which files can be listed and not opened.
type failing struct{ fs.FS }

func (f failing) Open(name string) (fs.File, error) {
	if name == "." {
		return f.FS.Open(name)
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.EIO}
}

// An observer learns of a failure that a scan may take for a property of the file.
func TestFailuresOfAFileSystemAreObserved(t *testing.T) {
	noted := make(map[string]error)
	p := tree.Part{Storage: iofs.NewFolder(failing{fstest.MapFS{"a": {Data: []byte("x")}}})}.Observed(func(name string, err error) { noted[name] = err })
	if _, err := p.ReadDocument("a"); err == nil || !errors.Is(noted["a"], syscall.EIO) || len(noted) != 1 {
		t.Errorf("the error is %v, and noted is %v", err, noted)
	}
}

// passing is a file system in which looking at a listed file fails.
type passing struct {
	fs.FS
	name string
	err  error
}

func (p passing) Open(name string) (fs.File, error) {
	f, err := p.FS.Open(name)
	if d, ok := f.(fs.ReadDirFile); ok {
		return passingFolder{d, p}, err
	}
	return f, err
}

type passingFolder struct {
	fs.ReadDirFile
	passing
}

func (d passingFolder) ReadDir(n int) ([]fs.DirEntry, error) {
	entries, err := d.ReadDirFile.ReadDir(n)
	for i, e := range entries {
		if e.Name() == d.name {
			entries[i] = passingEntry{e, d.err}
		}
	}
	return entries, err
}

type passingEntry struct {
	fs.DirEntry
	err error
}

func (e passingEntry) Info() (fs.FileInfo, error) { return nil, e.err }

func TestAFileFailsWhileItsFolderIsListed(t *testing.T) {
	files := fstest.MapFS{"demo/a.zip": {Data: []byte("x")}, "demo/b.zip.tmp": {Data: []byte("y")}}
	for _, test := range []struct {
		rule  string
		err   error
		names []string
		fails bool
	}{
		{"a file that has been renamed leaves the others", fs.ErrNotExist, []string{"a.zip"}, false},
		{"any other error is an error of the folder", syscall.ESTALE, nil, true},
	} {
		t.Run(test.rule, func(t *testing.T) {
			p := tree.Part{Storage: iofs.NewFolder(passing{files, "b.zip.tmp", &fs.PathError{Op: "stat", Path: "b.zip.tmp", Err: test.err}})}
			entries, err := p.List("demo")
			var names []string
			for _, e := range entries {
				names = append(names, e.Name)
			}
			if !slices.Equal(names, test.names) || (err != nil) != test.fails {
				t.Errorf("the folder has %q, %v", names, err)
			}
		})
	}
}

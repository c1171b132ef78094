package index

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// long is a time that no file system considers recent.
var long = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// A range opens only the files it reads, whether the folder has been read by this
// scan, by an earlier one, or before a restart.
func TestARangeOpensOnlyTheFilesItReads(t *testing.T) {
	files := map[string]string{"run": "#!/bin/sh\n"}
	for i := range 300 {
		files[fmt.Sprintf("%03d.tf", i)] = strings.Repeat("# x\n", 250+i)
	}
	const firstContent = 10 + 5 + 512 // behind the headers of gzip, of its first block, and of the file
	opened := 0
	fsys := countingFs{afero.NewMemMapFs(), &opened}
	for name, content := range files {
		name = "module/modules/acme/vpc/aws/1.0.0/" + name
		if err := afero.WriteFile(fsys, name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		fsys.Chtimes(name, long, long)
	}
	o := Options{Open: func() (tree.Tree, error) {
		empty := treetest.On(afero.NewMemMapFs(), ".")
		return tree.Tree{Providers: empty, Keys: empty, Modules: treetest.On(fsys, "module/modules")}, nil
	}}
	address := address.Address{Namespace: "acme", Name: "vpc", System: "aws"}
	first, again := New(o), New(o)
	defer first.Close()
	defer again.Close()
	var want []byte
	for _, test := range []struct {
		rule     string
		index    *Index
		recalled int
	}{{"read", first, 0}, {"known", first, 1}, {"known from before a restart", again, 1}} {
		if test.index == again {
			if err := again.scanner.memo.Decode(first.scanner.memo.Encode("a tree"), "a tree"); err != nil {
				t.Fatal(err)
			}
		}
		s, err := test.index.Rescan(t.Context())
		if err != nil || s.Recalled != test.recalled || s.Module(PlaceOf(address)) == nil {
			t.Fatalf("%s: %v, %+v", test.rule, err, s)
		}
		f := s.Module(PlaceOf(address)).Versions[0].Archive
		whole, err := s.Open(f)
		if err != nil {
			t.Fatal(err)
		}
		all, err := io.ReadAll(whole)
		whole.Close()
		if err != nil || wire.SHA256Of(all) != f.SHA256 || want != nil && !bytes.Equal(all, want) {
			t.Fatalf("%s: the bytes differ, %v", test.rule, err)
		}
		if want = all; modeIn(t, all, "run") != 0o755 {
			t.Errorf("%s: the script is not executable", test.rule)
		}

		opened = 0
		r, err := s.OpenRange(f)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Seek(0, io.SeekEnd); err != nil || opened != 0 {
			t.Errorf("%s: to open it and ask for its size opened %d files, %v", test.rule, opened, err)
		}
		p := make([]byte, 1)
		if _, err := r.ReadSeekCloser.(io.ReaderAt).ReadAt(p, f.Size/2); err != nil || p[0] != all[f.Size/2] || opened > 1 {
			t.Errorf("%s: to read a byte opened %d files, %v", test.rule, opened, err)
		}
		r.Close()
	}
	t.Run("a file in the range has changed", func(t *testing.T) {
		s, err := first.Rescan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		f := s.Module(PlaceOf(address)).Versions[0].Archive
		name := "module/modules/acme/vpc/aws/1.0.0/000.tf"
		fsys.Chtimes(name, long.Add(time.Second), long.Add(time.Second))
		r, err := s.OpenRange(f)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		at := r.ReadSeekCloser.(io.ReaderAt)
		if _, err := at.ReadAt(make([]byte, 1), firstContent); err != tree.ErrChanged {
			t.Errorf("in it the error is %v", err)
		}
		if _, err := at.ReadAt(make([]byte, 1), f.Size/2); err != nil {
			t.Errorf("in another the error is %v", err)
		}
		if _, err := s.Open(f); err != tree.ErrChanged {
			t.Errorf("all of it is %v", err)
		}
	})
}

// countingFs counts the opened files.
type countingFs struct {
	afero.Fs
	opened *int
}

func (c countingFs) Open(name string) (afero.File, error) {
	*c.opened++
	return c.Fs.Open(name)
}

// modeIn returns the mode of a file in a package.
func modeIn(t *testing.T, content []byte, name string) int64 {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		header, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if header.Name == name {
			return header.Mode
		}
	}
}

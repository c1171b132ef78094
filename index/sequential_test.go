package index_test

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// packed is a tree as a file system that lies in a zip. Its files cannot seek.
func packed(t *testing.T, tree *indextest.Tree) fs.FS {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	err := afero.Walk(tree.Fs, ".", func(name string, info fs.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: info.ModTime()})
		if err != nil {
			return err
		}
		_, err = io.WriteString(w, tree.Read(name))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// counting counts what is opened, which on some file systems is a request each.
type counting struct {
	fs.FS
	mutex  sync.Mutex
	opened map[string]int
}

func (c *counting) Open(name string) (fs.File, error) {
	c.mutex.Lock()
	if c.opened == nil {
		c.opened = make(map[string]int)
	}
	c.opened[name]++
	c.mutex.Unlock()
	return c.FS.Open(name)
}

// since forgets what was opened, and returns it.
func (c *counting) since() map[string]int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	opened := c.opened
	c.opened = nil
	return opened
}

func variedTree(t *testing.T) *indextest.Tree {
	tree := indextest.New(t)
	publisher := indextest.NewPublisher(t)
	tree.Keys("acme", publisher)
	tree.Provider("acme/demo", "1.0.0", "linux_amd64", "linux_arm64").Manifest("5.0").Signed(publisher)
	tree.Write("modules/acme/vpc/aws/1.0.0/main.tf", "# a module\n")
	tree.Write("modules/acme/vpc/aws/1.0.0/modules/subnet/main.tf", "# a module in it\n")
	tree.Write("modules/acme/vpc/aws/1.1.0.tar.gz", indextest.TarGz("main.tf", "# a module\n"))
	tree.Write("modules/acme/vpc/aws/1.2.0.zip", indextest.Zip("main.tf", "# a module\n"))
	return tree
}

// Files that can only be read from start to end are verified and served like
// others, whole and in parts, and their temporary copies are removed.
func TestFilesThatCannotSeek(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	tree := variedTree(t)
	c := &counting{FS: packed(t, tree)}
	o := options(t, func() (index.Tree, error) { return index.Directories{Root: "."}.OpenIn(c) })
	s := scanWith(t, o)
	if len(s.Report.Offered) != 4 || len(s.Report.Withheld) > 0 {
		t.Fatalf("offered %+v, withheld %+v", s.Report.Offered, s.Report.Withheld)
	}
	plain := scanWith(t, options(t, tree.Open))
	demo := address.Address{Namespace: "acme", Name: "demo"}
	files := func(s *index.Snapshot) (files []*index.File) {
		for _, p := range s.Provider(demo).Releases[0].Packages {
			files = append(files, p.File)
		}
		for _, v := range s.Module(address.Address{Namespace: "acme", Name: "vpc", System: "aws"}).Versions {
			files = append(files, v.Archive)
		}
		return files
	}
	same := files(plain)
	for i, f := range files(s) {
		if f.SHA256 != same[i].SHA256 || f.Size != same[i].Size {
			t.Errorf("%s has another digest than the same file on the disk", f.Name)
		}
		c.since()
		content, err := s.Open(f)
		if err != nil {
			t.Fatal(err)
		}
		body := serve(content, "")
		if sha256.Sum256(body.Body.Bytes()) != f.SHA256 {
			t.Errorf("%s is served wrong", f.Name)
		}
		content.Close()
		if opened := c.since(); f.ContentType == "application/zip" && len(opened) != 1 {
			t.Errorf("to serve %s, these are opened: %v", f.Name, opened)
		}
		whole := body.Body.String()

		content, err = s.Open(f)
		if err != nil {
			t.Fatal(err)
		}
		part := serve(content, "bytes=20-29,5-9")
		if part.Code != http.StatusPartialContent || !bytes.Contains(part.Body.Bytes(), []byte(whole[20:30])) || !bytes.Contains(part.Body.Bytes(), []byte(whole[5:10])) {
			t.Errorf("parts of %s are served wrong: %d", f.Name, part.Code)
		}
		content.Close()
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

func serve(content io.ReadSeeker, ranges string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	if ranges != "" {
		r.Header.Set("Range", ranges)
	}
	w.Header().Set("Content-Type", "application/zip")
	http.ServeContent(w, r, "", time.Time{}, content)
	return w
}

// What only seeks, or only reads anywhere, is taken for what can do neither.
type half struct{ fs.FS }

func (h half) Open(name string) (fs.File, error) {
	f, err := h.FS.Open(name)
	if seeker, ok := f.(io.ReadSeeker); err == nil && ok {
		return struct {
			fs.File
			io.Seeker
		}{f, seeker}, nil
	}
	return f, err
}

func mapFS(t *testing.T, tree *indextest.Tree) fstest.MapFS {
	t.Helper()
	files := make(fstest.MapFS)
	if err := afero.Walk(tree.Fs, ".", func(name string, info fs.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			files[name] = &fstest.MapFile{Data: []byte(tree.Read(name)), Mode: 0o644, ModTime: info.ModTime()}
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return files
}

func TestFilesThatOnlySeek(t *testing.T) {
	o := options(t, func() (index.Tree, error) {
		return index.Directories{Root: "."}.OpenIn(half{mapFS(t, variedTree(t))})
	})
	if s := scanWith(t, o); len(s.Report.Offered) != 4 || len(s.Report.Withheld) > 0 {
		t.Errorf("offered %+v, withheld %+v", s.Report.Offered, s.Report.Withheld)
	}
}

// A scan of a tree that is known opens its folders, and nothing else.
func TestOpensOfAScan(t *testing.T) {
	c := &counting{FS: mapFS(t, variedTree(t))}
	o := options(t, func() (index.Tree, error) { return index.Directories{Root: "."}.OpenIn(c) })
	x := index.New(o)
	defer x.Close()
	for range 2 {
		if _, err := x.Rescan(context.Background()); err != nil {
			t.Fatal(err)
		}
		t.Logf("a scan opens %v", c.since())
	}
	if _, err := x.Rescan(context.Background()); err != nil {
		t.Fatal(err)
	}
	for name, times := range c.since() {
		info, err := fs.Stat(c.FS, name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		if times > 1 {
			t.Errorf("%s is opened %d times", name, times)
		}
		if err == nil && !info.IsDir() {
			t.Errorf("%s is opened, which is no folder", name)
		}
	}
}

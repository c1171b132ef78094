package index_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
)

// counting counts the opened files. On some file systems each of them is a request.
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

// since returns the files opened since the last call.
func (c *counting) since() map[string]int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	opened := c.opened
	c.opened = nil
	return opened
}

func variedTree(t *testing.T) *indextest.Tree {
	files := indextest.New(t)
	publisher := indextest.NewPublisher(t)
	files.Keys("acme", publisher)
	files.Provider("acme/demo", "1.0.0", "linux_amd64", "linux_arm64").Manifest("5.0").Signed(publisher)
	files.Write("modules/acme/vpc/aws/1.0.0/main.tf", "# a module\n")
	files.Write("modules/acme/vpc/aws/1.0.0/modules/subnet/main.tf", "# a module in it\n")
	files.Write("modules/acme/vpc/aws/1.1.0.tar.gz", indextest.TarGz("main.tf", "# a module\n"))
	files.Write("modules/acme/vpc/aws/1.2.0.zip", indextest.Zip("main.tf", "# a module\n"))
	files.Write("modules/acme/vpc/aws/registry.hcl", "git {\n  url = \"https://github.com/acme/vpc\"\n}\n")
	files.SourceOfTag("modules/acme/vpc/aws", "1.1.0", aCommit)
	return files
}

// streaming has files that can only be read from their beginning; seeking has files that can
// also seek.
type (
	streaming struct{ fs.FS }
	seeking   struct{ fs.FS }

	stream struct{ fs.File }
)

func (s stream) ReadDir(n int) ([]fs.DirEntry, error) { return s.File.(fs.ReadDirFile).ReadDir(n) }

func (s streaming) Open(name string) (fs.File, error) {
	f, err := s.FS.Open(name)
	return stream{f}, err
}

func (s seeking) Open(name string) (fs.File, error) {
	f, err := s.FS.Open(name)
	if seeker, ok := f.(io.ReadSeeker); err == nil && ok {
		return struct {
			stream
			io.Seeker
		}{stream{f}, seeker}, nil
	}
	return f, err
}

// Clients resume downloads, and a zip is read from its end: a scan of files that
// cannot seek fails as a whole, and says what to do.
func TestAFileSystemWhoseFilesCannotSeek(t *testing.T) {
	files := mapFS(t, variedTree(t))
	folder := fstest.MapFS{"modules/acme/vpc/aws/1.0.0/main.tf": {Data: []byte("# a module\n")}}
	for rule, fsys := range map[string]fs.FS{
		"they only stream":                     streaming{files},
		"there is nothing but a module folder": streaming{folder},
	} {
		t.Run(rule, func(t *testing.T) {
			o := options(t, func() (tree.Tree, error) { return source.Directories{Root: "."}.OpenIn(fsys) })
			s, err := index.Scan(t.Context(), o)
			if err == nil || !strings.Contains(err.Error(), "cannot seek") || !strings.Contains(err.Error(), "copy the tree to the local disk") {
				t.Errorf("%v, %+v", err, s)
			}
		})
	}
}

// Files of object stores seek, but have no ReadAt. They are verified and served like
// others, whole and in parts.
func TestFilesThatSeekWithoutReadAt(t *testing.T) {
	folders := variedTree(t)
	o := options(t, func() (tree.Tree, error) {
		return source.Directories{Root: "."}.OpenIn(seeking{mapFS(t, folders)})
	})
	s := scanWith(t, o)
	if len(s.Report().Offered) != 4 || len(s.Report().Withheld) > 0 {
		t.Fatalf("offered %+v, withheld %+v", s.Report().Offered, s.Report().Withheld)
	}
	files := func(s *index.Snapshot) (files []*index.File) {
		for _, p := range s.Provider(index.PlaceOf(ownDemo)).Releases[0].Packages {
			files = append(files, p.File)
		}
		for _, v := range s.Module(index.PlaceOf(ownVPC)).Versions {
			files = append(files, v.Archive)
		}
		return files
	}
	onDisk := files(scanWith(t, options(t, folders.Open)))
	for i, f := range files(s) {
		if f.SHA256 != onDisk[i].SHA256 || f.Size != onDisk[i].Size {
			t.Errorf("%s has another digest than the same file on the disk", f.Name)
		}
		content, err := s.Open(f)
		if err != nil {
			t.Fatal(err)
		}
		defer content.Close()
		whole := serve(content, "").Body.Bytes()
		if sha256.Sum256(whole) != f.SHA256 {
			t.Errorf("%s is served with other bytes", f.Name)
		}
		parts := serve(content, "bytes=20-29,5-9,-3").Body.Bytes()
		for _, part := range [][]byte{whole[20:30], whole[5:10], whole[len(whole)-3:]} {
			if !bytes.Contains(parts, part) {
				t.Errorf("parts of %s are served with other bytes", f.Name)
			}
		}
	}
}

func serve(content io.ReadSeeker, ranges string) *httptest.ResponseRecorder {
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)
	if ranges != "" {
		r.Header.Set("Range", ranges)
	}
	w.Header().Set("Content-Type", "application/zip")
	http.ServeContent(w, r, "", time.Time{}, content)
	return w
}

func mapFS(t *testing.T, folders *indextest.Tree) fstest.MapFS {
	t.Helper()
	files := make(fstest.MapFS)
	if err := afero.Walk(folders.Fs, ".", func(name string, info fs.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			files[name] = &fstest.MapFile{Data: []byte(folders.Read(name)), Mode: 0o644, ModTime: info.ModTime()}
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return files
}

// A scan of a known tree opens its folders, and nothing else.
func TestOpensOfAScan(t *testing.T) {
	c := &counting{FS: mapFS(t, variedTree(t))}
	o := options(t, func() (tree.Tree, error) { return source.Directories{Root: "."}.OpenIn(c) })
	x := newIndex(t, o)
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
			t.Errorf("%s is opened, which is not a folder", name)
		}
	}
}

package module

import (
	"encoding/json"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// inMemory is a tree as a file system other than the local disk.
func inMemory(t *testing.T, tree *indextest.Tree) fs.FS {
	t.Helper()
	files := make(fstest.MapFS)
	err := afero.Walk(tree.Fs, ".", func(name string, info fs.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			files[name] = &fstest.MapFile{Data: []byte(tree.Read(name)), Mode: 0o644, ModTime: info.ModTime()}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// opens counts what is opened: on a file system that is an object store, to
// look at a file is a request as well.
type opens struct {
	fs.FS
	mutex sync.Mutex
	names []string
}

func (o *opens) Open(name string) (fs.File, error) {
	o.mutex.Lock()
	o.names = append(o.names, name)
	o.mutex.Unlock()
	return o.FS.Open(name)
}

func (o *opens) take() []string {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	names := o.names
	o.names = nil
	return names
}

// onFileSystem is a configuration in which a file system is called archive.
func onFileSystem(t *testing.T, fsys fs.FS) *configuration {
	t.Helper()
	testFileSystems.Store(t.Name(), fsys)
	raw, err := json.Marshal(map[string]any{
		"filesystems": []any{map[string]any{
			"name": "archive", "file_system": map[string]any{"backend": "test", "name": t.Name()},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return newConfiguration(t, "caddy.filesystems", string(raw))
}

// A tree on a named file system is served like one on the disk, resumed downloads
// included.
func TestATreeOnANamedFileSystem(t *testing.T) {
	tree := indextest.New(t)
	writeSample(tree)
	tree.Write("modules/acme/vpc/aws/1.1.0.tar.gz", indextest.TarGz("main.tf", "# a module\n"))
	counted := &opens{FS: inMemory(t, tree)}
	c := onFileSystem(t, counted)
	h := c.mustHandle(Handler{FileSystem: "archive", Root: "/", Rescan: -1})
	c.mustStart()
	s := snapshot(t, h)
	if len(s.Report.Offered) != 3 || len(s.Report.Withheld) > 0 {
		t.Fatalf("offered %+v, withheld %+v", s.Report.Offered, s.Report.Withheld)
	}

	for path, file := range map[string]string{
		"/v1/mirror/registry.example.com/acme/demo/terraform-provider-demo_1.2.0_linux_amd64.zip": "providers/acme/demo/terraform-provider-demo_1.2.0_linux_amd64.zip",
		"/v1/modules/acme/vpc/aws/1.1.0/archive.tar.gz":                                           "modules/acme/vpc/aws/1.1.0.tar.gz",
	} {
		want := tree.Read(file)
		counted.take()
		if w := get(t, h, "https://registry.example.com"+path); w.Code != http.StatusOK || w.Body.String() != want {
			t.Errorf("%s: %d, %d bytes of %d", path, w.Code, w.Body.Len(), len(want))
		}
		if names := counted.take(); len(names) != 1 {
			t.Errorf("%s: these are opened: %v", path, names)
		}
		if w := getRange(t, h, "https://registry.example.com"+path, "bytes=30-"); w.Code != http.StatusPartialContent || w.Body.String() != want[30:] {
			t.Errorf("%s from its 30th byte: %d, %d bytes of %d", path, w.Code, w.Body.Len(), len(want)-30)
		}
	}
	folder := get(t, h, "https://registry.example.com/v1/modules/acme/vpc/aws/1.0.0/archive.tar.gz")
	if folder.Code != http.StatusOK || !strings.Contains(folder.Body.String(), tree.Read("modules/acme/vpc/aws/1.0.0/main.tf")) {
		t.Errorf("the module that is a folder: %d", folder.Code)
	}

	t.Run("a scan opens no file again", func(t *testing.T) {
		rescan(t, h)
		counted.take()
		rescan(t, h)
		for _, name := range counted.take() {
			if strings.Contains(name, ".") && name != "." && !strings.HasSuffix(name, "1.0.0") {
				t.Errorf("%s is opened", name)
			}
		}
	})
}

func getRange(t *testing.T, h *Handler, target, ranges string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, target, nil)
	r.Header.Set("Range", ranges)
	r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, &caddyhttp.Server{})
	if err := h.ServeHTTP(w, r, nil); err != nil {
		t.Fatal(err)
	}
	return w
}

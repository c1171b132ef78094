package module

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
)

func TestSitesOfOneTreeShareAnIndex(t *testing.T) {
	root := sampleTree(t)
	c := newConfiguration(t)
	one := c.mustHandle(Handler{Root: root})
	two := c.mustHandle(Handler{Root: root + "/.", Hostnames: []string{"registry.example.com"}, Prefix: "/other"})
	c.mustStart()
	if one.source.index.Load() != two.source.index.Load() {
		t.Error("the sites have different indexes")
	}
	wantPooled(t, root, 1, 1)
	c.cancel()
	wantPooled(t, root, 0, 0)
}

func TestOptionsOfScansPreventSharing(t *testing.T) {
	root := sampleTree(t)
	c := newConfiguration(t)
	c.mustHandle(Handler{Root: root})
	c.mustHandle(Handler{Root: root, Signatures: RequireSignatures})
	c.mustHandle(Handler{Root: root, SigningKey: &SigningKey{Off: true}})
	c.mustHandle(Handler{Root: root, Rescan: -1})
	c.mustHandle(Handler{Root: root, Providers: "modules"})
	c.mustHandle(Handler{Root: root, Providers: "providers"}) // the default
	c.mustStart()
	wantPooled(t, root, 5, 5)
}

func TestReloadKeepsTheIndex(t *testing.T) {
	root := sampleTree(t)
	before := newConfiguration(t)
	old := before.mustHandle(Handler{Root: root})
	before.mustStart()
	if first := snapshot(t, old); len(first.Report().Offered) != 2 {
		t.Fatalf("%d are offered, want 2", len(first.Report().Offered))
	}

	// Caddy starts the new configuration before it cleans up the old one.
	after := newConfigurationIn(t, before.storage)
	kept := after.mustHandle(Handler{Root: root})
	after.mustStart()
	wantPooled(t, root, 1, 2)
	before.cancel()
	wantPooled(t, root, 1, 1)

	if kept.source.index.Load() != old.source.index.Load() {
		t.Error("the reload created another index")
	}
	if s := kept.source.snapshot(); s == nil || len(s.Report().Offered) != 2 {
		t.Error("the snapshot is incomplete after the reload")
	}
	after.cancel()
	wantPooled(t, root, 0, 0)
	if old.source.snapshot() == nil {
		t.Error("requests of the old configuration have no snapshot any more")
	}
}

func TestReloadWithAnotherKeyMakesAnotherIndex(t *testing.T) {
	root := sampleTree(t)
	before := newConfiguration(t)
	old := before.mustHandle(Handler{Root: root})
	before.mustStart()
	after := newConfiguration(t) // another storage
	kept := after.mustHandle(Handler{Root: root})
	after.mustStart()
	if old.source.index.Load() == kept.source.index.Load() {
		t.Error("the index signs with the key of another storage")
	}
}

func TestConfigurationThatFailsToStart(t *testing.T) {
	root := sampleTree(t)
	live := newConfiguration(t)
	h := live.mustHandle(Handler{Root: root, SigningKey: &SigningKey{Off: true}})
	logged := live.listen()
	live.mustStart()
	snapshot(t, h)

	failing := newConfiguration(t)
	failing.generate = func() (*signing.Key, error) { return nil, errors.New("no entropy") }
	failing.mustHandle(Handler{Root: root, SigningKey: &SigningKey{Off: true}})
	last := failing.mustHandle(Handler{Root: root})
	err := failing.start()
	if err == nil || !strings.Contains(err.Error(), "no entropy") {
		t.Fatalf("got error %v", err)
	}
	if last.source.snapshot() != nil { // without waiting
		t.Error("a handler without an index has a snapshot")
	}
	failing.cancel()

	wantPooled(t, root, 1, 1)
	awaitChange(t, h, logged, 2) // fails if the index was closed
}

func TestConfigurationThatFailsToProvision(t *testing.T) {
	root := sampleTree(t)
	live := newConfiguration(t)
	live.mustHandle(Handler{Root: root})
	live.mustStart()

	failing := newConfiguration(t)
	failing.mustHandle(Handler{Root: root})
	if _, err := failing.handle(Handler{Root: root + "/missing"}); err == nil {
		t.Fatal("a missing root was accepted")
	}
	failing.cancel()
	wantPooled(t, root, 1, 1)
}

func TestProvisionStartsNothing(t *testing.T) {
	root := sampleTree(t)
	c := newConfiguration(t)
	c.mustHandle(Handler{Root: root})
	wantPooled(t, root, 0, 0)
	if c.ctx.Storage().Exists(c.ctx, signingKeyName) {
		t.Error("a signing key was generated")
	}
	c.cancel()
	wantPooled(t, root, 0, 0)
}

// lines counts the lines written to it.
type lines struct{ atomic.Int64 }

func (l *lines) Write(line []byte) (int, error) {
	l.Add(1)
	return len(line), nil
}

// An index logs to the newest configuration that uses it.
func TestIndexLogsToTheNewestConfiguration(t *testing.T) {
	root := sampleTree(t)
	shared := Handler{Root: root, SigningKey: &SigningKey{Off: true}}
	begin := func() (*configuration, *Handler, *lines) {
		c := newConfiguration(t)
		h := c.mustHandle(shared)
		logged := new(lines)
		c.app().logger = slog.New(slog.NewTextHandler(logged, nil))
		c.mustStart()
		snapshot(t, h)
		return c, h, logged
	}
	speak := func(h *Handler, logs ...*lines) (spoke []bool) {
		t.Helper()
		scan := func() {
			// A closed index does not scan any more.
			if _, err := h.source.index.Load().Rescan(t.Context()); err != nil && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
		}
		scan() // scans run one at a time: after this one, no earlier one is running
		for _, l := range logs {
			l.Store(0)
		}
		scan()
		for _, l := range logs {
			spoke = append(spoke, l.Load() > 0)
		}
		return spoke
	}

	first, h, firstLog := begin()
	second, _, secondLog := begin()
	if got := speak(h, firstLog, secondLog); got[0] || !got[1] {
		t.Errorf("after a reload, it logs to old and new: %v", got)
	}
	second.cancel()
	if got := speak(h, firstLog, secondLog); !got[0] || got[1] {
		t.Errorf("after a failed reload, it logs to old and new: %v", got)
	}
	third, _, thirdLog := begin()
	first.cancel()
	if got := speak(h, firstLog, thirdLog); got[0] || !got[1] {
		t.Errorf("after another reload, it logs to old and new: %v", got)
	}
	third.cancel()
	if got := speak(h, firstLog, secondLog, thirdLog); got[0] || got[1] || got[2] {
		t.Errorf("without a configuration, it logs to those that are gone: %v", got)
	}
}

func TestNamedFileSystem(t *testing.T) {
	sample := indextest.New(t)
	writeSample(sample)
	files := make(fstest.MapFS)
	for _, name := range []string{
		"providers/acme/demo/terraform-provider-demo_1.2.0_linux_amd64.zip",
		"modules/acme/vpc/aws/1.0.0.tar.gz",
	} {
		files["archive/"+name] = &fstest.MapFile{Data: []byte(sample.Read(name)), Mode: 0o644}
	}
	for _, root := range []string{"archive", "/archive", "/archive/"} {
		c := onFileSystem(t, files)
		h := c.mustHandle(Handler{FileSystem: "archive", Root: root})
		other := c.mustHandle(Handler{FileSystem: "archive", Root: "/", Providers: "archive/providers", Modules: "/archive/modules"})
		c.mustStart()
		if got := len(snapshot(t, h).Report().Offered); got != 2 {
			t.Errorf("root %s: %d are offered, want 2", root, got)
		}
		if got := len(snapshot(t, other).Report().Offered); got != 2 {
			t.Errorf("at the root of the file system: %d are offered, want 2", got)
		}
		c.cancel()
	}

	c := onFileSystem(t, files)
	if _, err := c.handle(Handler{FileSystem: "archives", Root: "archive"}); err == nil ||
		!strings.Contains(err.Error(), `no file system named "archives"`) {
		t.Errorf("an unknown file system: got error %v", err)
	}
	if _, err := c.handle(Handler{FileSystem: "archive", Root: "missing"}); err == nil || !strings.Contains(err.Error(), "root: ") {
		t.Errorf("a missing root: got error %v", err)
	}
	local := sampleTree(t)
	named, unnamed := c.mustHandle(Handler{FileSystem: "default", Root: local}).source.tree, c.mustHandle(Handler{Root: local}).source.tree
	if named.source != unnamed.source || named.identity() != unnamed.identity() {
		t.Errorf("on the local disk, one tree is %s and %s", named.identity(), unnamed.identity())
	}
}

// inMemory returns a tree as a file system other than the local disk.
func inMemory(t *testing.T, folders *indextest.Tree) fs.FS {
	t.Helper()
	files := make(fstest.MapFS)
	err := afero.Walk(folders.Fs, ".", func(name string, info fs.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			files[name] = &fstest.MapFile{Data: []byte(folders.Read(name)), Mode: 0o644, ModTime: info.ModTime()}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// opens records the names of opened files: on an object store, each is a request.
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

// onFileSystem returns a configuration with a file system named archive.
func onFileSystem(t *testing.T, fsys fs.FS) *configuration {
	t.Helper()
	return onFileSystemIn(t, t.TempDir(), fsys)
}

// onFileSystemIn is onFileSystem with the given storage.
func onFileSystemIn(t *testing.T, storage string, fsys fs.FS) *configuration {
	t.Helper()
	raw, err := json.Marshal(fileSystems(t, fsys))
	if err != nil {
		t.Fatal(err)
	}
	return newConfigurationIn(t, storage, "caddy.filesystems", string(raw))
}

// fileSystems returns the app with a file system named archive.
func fileSystems(t *testing.T, fsys fs.FS) map[string]any {
	testFileSystems.Store(t.Name(), fsys)
	return map[string]any{"filesystems": []any{map[string]any{
		"name": "archive", "file_system": map[string]any{"backend": "test", "name": t.Name()},
	}}}
}

// slowFolder is a file system in which a folder cannot be listed before opened is closed.
type slowFolder struct {
	fs.FS
	name   string
	opened chan struct{}
}

func (f slowFolder) Open(name string) (fs.File, error) {
	if name == f.name {
		<-f.opened
	}
	return f.FS.Open(name)
}

// After a restart, what one init asks for is answered before the rest of the tree has been listed. The
// instance is not ready before that.
func TestARestartWithALargeTree(t *testing.T) {
	files, storage := indextest.New(t), t.TempDir()
	writeSample(files)
	files.Write("modules/slow/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", "# a module\n"))
	tree := inMemory(t, files)
	c := onFileSystemIn(t, storage, tree)
	h := c.mustHandle(Handler{FileSystem: "archive", Root: "/"})
	c.mustStart()
	snapshot(t, h)
	c.cancel()

	slow := slowFolder{tree, "modules/slow/vpc/aws", make(chan struct{})}
	release := sync.OnceFunc(func() { close(slow.opened) })
	c = onFileSystemIn(t, storage, slow)
	t.Cleanup(release) // before the index is closed
	h = c.mustHandle(Handler{FileSystem: "archive", Root: "/"})
	c.mustStart()
	for _, path := range []string{
		"/v1/providers/acme/demo/versions",
		"/v1/providers/acme/demo/1.2.0/download/linux/amd64",
		"/v1/mirror/-/acme/demo/terraform-provider-demo_1.2.0_linux_amd64.zip",
		"/v1/modules/acme/vpc/aws/1.0.0/archive.tar.gz",
	} {
		if w := get(t, h, "https://registry.example.com"+path); w.Code != http.StatusOK {
			t.Errorf("%s: got %d: %s", path, w.Code, w.Body)
		}
	}
	ready := func() int { return get(t, h, "https://registry.example.com/v1/ready").Code }
	if status := ready(); status != http.StatusServiceUnavailable {
		t.Errorf("/v1/ready: got %d", status)
	}
	release()
	snapshot(t, h)
	if status := ready(); status != http.StatusOK {
		t.Errorf("/v1/ready, later: got %d", status)
	}
}

// A tree on a named file system is served like one on the disk, including ranges.
func TestTreeOnANamedFileSystem(t *testing.T) {
	files := indextest.New(t)
	writeSample(files)
	files.Write("modules/acme/vpc/aws/1.1.0/main.tf", "# a module\n")
	counted := &opens{FS: inMemory(t, files)}
	c := onFileSystem(t, counted)
	h := c.mustHandle(Handler{FileSystem: "archive", Root: "/", Rescan: -1})
	c.mustStart()
	s := snapshot(t, h)
	if len(s.Report().Offered) != 3 || len(s.Report().Withheld) > 0 {
		t.Fatalf("offered %+v, withheld %+v", s.Report().Offered, s.Report().Withheld)
	}

	for path, file := range map[string]string{
		"/v1/mirror/registry.example.com/acme/demo/terraform-provider-demo_1.2.0_linux_amd64.zip": "providers/acme/demo/terraform-provider-demo_1.2.0_linux_amd64.zip",
		"/v1/modules/acme/vpc/aws/1.0.0/archive.tar.gz":                                           "modules/acme/vpc/aws/1.0.0.tar.gz",
	} {
		want := files.Read(file)
		counted.take()
		if w := get(t, h, "https://registry.example.com"+path); w.Code != http.StatusOK || w.Body.String() != want {
			t.Errorf("%s: %d, %d bytes of %d", path, w.Code, w.Body.Len(), len(want))
		}
		if names := counted.take(); len(names) != 1 {
			t.Errorf("%s: %v are opened, want one file", path, names)
		}
		if w := getRange(t, h, "https://registry.example.com"+path, "bytes=30-"); w.Code != http.StatusPartialContent || w.Body.String() != want[30:] {
			t.Errorf("%s from its 30th byte: %d, %d bytes of %d", path, w.Code, w.Body.Len(), len(want)-30)
		}
	}
	folder := get(t, h, "https://registry.example.com/v1/modules/acme/vpc/aws/1.1.0/archive.tar.gz")
	if folder.Code != http.StatusOK || !strings.Contains(folder.Body.String(), files.Read("modules/acme/vpc/aws/1.1.0/main.tf")) {
		t.Errorf("the module folder: %d", folder.Code)
	}

	t.Run("a scan opens no file again", func(t *testing.T) {
		rescan(t, h)
		counted.take()
		rescan(t, h)
		for _, name := range counted.take() {
			if strings.Contains(name, ".") && name != "." && !strings.HasSuffix(name, "1.1.0") {
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

package module

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	_ "github.com/caddyserver/caddy/v2/modules/caddyfs"
	_ "github.com/caddyserver/caddy/v2/modules/filestorage"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
)

// TestMain keeps Caddy out of the developer's directories. Caddy has already read the
// environment for some of them, so its variables are set, too.
func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "module")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		os.Setenv("XDG_DATA_HOME", dir)
		caddy.DefaultStorage.Path = dir
		caddy.ConfigAutosavePath = filepath.Join(dir, "autosave.json")
		return m.Run()
	}())
}

// sampleTree writes a small tree and returns its root.
func sampleTree(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	writeSample(indextest.OnDisk(t, root))
	return root
}

// writeSample has no module in a folder, for which a registry on a disk waits a second.
func writeSample(files *indextest.Tree) {
	files.Provider("acme/demo", "1.2.0", "linux_amd64", "darwin_arm64")
	files.Write("modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", `output "a" { value = 1 }`))
}

// A configuration is a Caddy configuration with handlers, provisioned and perhaps
// started.
type configuration struct {
	t        *testing.T
	ctx      caddy.Context
	handlers []*Handler
	generate func() (*signing.Key, error) // nil: shortKey
	storage  string
	cancel   func()
}

// newConfiguration returns a configuration with a new storage.
func newConfiguration(t *testing.T, apps ...string) *configuration {
	return newConfigurationIn(t, t.TempDir(), apps...)
}

// newConfigurationIn returns a configuration with the given storage. Apps are names and
// JSON in turn.
func newConfigurationIn(t *testing.T, storage string, apps ...string) *configuration {
	t.Helper()
	c := newConfigurationWith(t, map[string]any{"module": "file_system", "root": storage}, apps...)
	c.storage = storage
	return c
}

// newConfigurationWith is newConfigurationIn with a storage of any kind.
func newConfigurationWith(t *testing.T, storage map[string]any, apps ...string) *configuration {
	t.Helper()
	raw, err := json.Marshal(storage)
	if err != nil {
		t.Fatal(err)
	}
	config := &caddy.Config{StorageRaw: raw, AppsRaw: make(caddy.ModuleMap)}
	for i := 0; i < len(apps); i += 2 {
		config.AppsRaw[apps[i]] = json.RawMessage(apps[i+1])
	}
	base, err := caddy.ProvisionContext(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := caddy.NewContext(base)
	c := &configuration{t: t, ctx: ctx, cancel: sync.OnceFunc(cancel)}
	t.Cleanup(c.cancel)
	return c
}

// handle provisions and validates a handler.
func (c *configuration) handle(h Handler) (*Handler, error) {
	c.t.Helper()
	raw, err := json.Marshal(h)
	if err != nil {
		c.t.Fatal(err)
	}
	loaded, err := c.ctx.LoadModuleByID("http.handlers.terraform_registry", raw)
	if err != nil {
		return nil, err
	}
	c.handlers = append(c.handlers, loaded.(*Handler))
	return loaded.(*Handler), nil
}

// mustHandle is like handle, for a valid handler.
func (c *configuration) mustHandle(h Handler) *Handler {
	c.t.Helper()
	loaded, err := c.handle(h)
	if err != nil {
		c.t.Fatal(err)
	}
	return loaded
}

func (c *configuration) app() *App {
	c.t.Helper()
	app, err := c.ctx.App("terraform_registry")
	if err != nil {
		c.t.Fatal(err)
	}
	return app.(*App)
}

// start starts the app, with a key that is fast to generate.
func (c *configuration) start() error {
	c.t.Helper()
	app := c.app()
	app.generate = c.generate
	if app.generate == nil {
		app.generate = func() (*signing.Key, error) { return shortKey(c.t), nil }
	}
	if err := app.Start(); err != nil {
		return err
	}
	app.events.begin()
	return nil
}

func (c *configuration) mustStart() *configuration {
	c.t.Helper()
	if err := c.start(); err != nil {
		c.t.Fatal(err)
	}
	return c
}

// snapshot waits for the first complete snapshot of a handler.
func snapshot(t *testing.T, h *Handler) *index.Snapshot {
	t.Helper()
	x := h.source.index.Load()
	if x == nil {
		t.Fatal("the handler has no index")
	}
	return complete(t, x)
}

// complete waits for a snapshot for which everything has been read.
func complete(t *testing.T, x *index.Index) *index.Snapshot {
	t.Helper()
	<-x.Ready()
	if s := x.Snapshot(); s.Report().Pending == 0 {
		return s
	}
	s, err := x.Rescan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for s != nil && s.Report().Pending > 0 {
		s = x.Next(t.Context(), s)
	}
	return s
}

// awaitLive waits until the trees of the live configuration have been read.
func awaitLive(t *testing.T) {
	t.Helper()
	app, err := ConfiguredApp(caddy.ActiveContext())
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range app.ByRoot() {
		complete(t, x)
	}
}

// listen signals every log line of the app's indexes.
func (c *configuration) listen() <-chan struct{} {
	logged := make(logSignal, 1)
	c.app().logger = slog.New(logged)
	return logged
}

// awaitChange tells the index of a change and waits until a scan ends with that many
// offers. A scan that began earlier may end before.
func awaitChange(t *testing.T, h *Handler, logged <-chan struct{}, offers int) {
	t.Helper()
	before := h.source.snapshot()
	h.source.changed()
	for now := before; now == before || len(now.Report().Offered) != offers || now.Report().Pending > 0; now = h.source.snapshot() {
		select {
		case <-logged:
		case <-time.After(time.Minute):
			t.Fatal("the tree was not scanned again")
		}
	}
}

// A logSignal is a log handler that only signals that something was logged.
type logSignal chan struct{}

func (s logSignal) Enabled(context.Context, slog.Level) bool { return true }
func (s logSignal) WithAttrs([]slog.Attr) slog.Handler       { return s }
func (s logSignal) WithGroup(string) slog.Handler            { return s }

func (s logSignal) Handle(context.Context, slog.Record) error {
	select {
	case s <- struct{}{}:
	default: // signaled already
	}
	return nil
}

// shortKey returns a key that is fast to generate.
func shortKey(t *testing.T) *signing.Key {
	t.Helper()
	key, err := signing.ReadKey([]byte(indextest.NewPublisher(t).PrivateKey()), "")
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// pooled returns the number of indexes of a root in the pool, and of references to them.
func pooled(root string) (count, references int) {
	var keys []any
	indexPool.uses.Range(func(key, _ any) bool {
		if key.(indexKey).source.Directories.Root == root {
			keys = append(keys, key)
		}
		return true
	})
	for _, key := range keys {
		n, _ := indexPool.uses.References(key)
		references += n
	}
	return len(keys), references
}

func wantPooled(t *testing.T, root string, count, references int) {
	t.Helper()
	if c, r := pooled(root); c != count || r != references {
		t.Errorf("the pool has %d indexes with %d references, want %d with %d", c, r, count, references)
	}
}

// testFS is a file system module for tests. It has the file system of testFileSystems
// with the same name.
type testFS struct {
	Name string `json:"name"`
	fs.FS
}

var testFileSystems sync.Map

func init() { caddy.RegisterModule(new(testFS)) }

func (*testFS) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "caddy.fs.test", New: func() caddy.Module { return new(testFS) }}
}

func (f *testFS) Provision(caddy.Context) error {
	value, ok := testFileSystems.Load(f.Name)
	if !ok {
		return fmt.Errorf("no file system %s", f.Name)
	}
	f.FS = value.(fs.FS)
	return nil
}

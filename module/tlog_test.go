package module

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"golang.org/x/mod/sumdb/note"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/module/storage"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog/record"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog/vault"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

const testOrigin = "registry.example.com/v1/tlog"

// askLog asks a handler, and returns the status and the body.
func askLog(t *testing.T, h *Handler, path string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "https://registry.example.com"+path, nil)
	next := caddyhttp.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) error {
		w.WriteHeader(http.StatusTeapot)
		return nil
	})
	if err := h.ServeHTTP(w, r, next); err != nil {
		t.Fatal(err)
	}
	return w.Code, w.Body.String()
}

// eventually waits until something is the case.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 30s: %s", what)
		}
	}
}

func awaitEntry(t *testing.T, h *Handler, path string) string {
	t.Helper()
	var body string
	eventually(t, "an entry of "+path, func() bool {
		var status int
		status, body = askLog(t, h, "/v1/tlog/lookup/"+path)
		return status == http.StatusOK
	})
	return body
}

// logFolder returns a folder for a log. A log that has been closed may still end what it
// writes, so that the folder cannot be removed at once.
func logFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "log")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		eventually(t, "the removal of a log", func() bool { return os.RemoveAll(folder) == nil })
	})
	return folder
}

// treeToLog has what is entered at once: folders have to rest.
func treeToLog(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	files := indextest.OnDisk(t, root).Write("modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", "# vpc"))
	files.Provider("acme/demo", "1.2.0", "linux_amd64", "darwin_arm64")
	return root
}

func entriesOf(t *testing.T, app *App) *tlog.Health {
	t.Helper()
	all := app.Tlogs()
	if len(all) != 1 {
		t.Fatalf("there are %d logs", len(all))
	}
	o, err := all[0].Options(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h, err := tlog.Fsck(t.Context(), o)
	if err != nil || len(h.Faults) > 0 {
		t.Fatalf("the log has the faults %v, %v", h, err)
	}
	return h
}

func TestALogOutlivesItsConfiguration(t *testing.T) {
	root, folder := treeToLog(t), logFolder(t)
	h := Handler{Root: root, Hostnames: []string{"registry.example.com"}, Tlog: &Tlog{Folder: folder}}
	before := newConfiguration(t)
	old := before.mustHandle(h)
	before.mustStart()
	found := awaitEntry(t, old, "modules/acme/vpc/aws/1.0.0")
	if !strings.HasPrefix(found, "found ") || !strings.Contains(found, "\n"+testOrigin+"\n") {
		t.Errorf("it is %s", found)
	}
	log := old.registry.Log()
	after := newConfigurationIn(t, before.storage)
	kept := after.mustHandle(h)
	after.mustStart()
	before.cancel()
	if kept.registry.Log() != log || kept.registry.Log() == nil {
		t.Error("the reload has opened the log again")
	}
	indextest.OnDisk(t, root).Write("modules/acme/vpc/aws/1.1.0.tar.gz", indextest.TarGz("main.tf", "# new"))
	rescan(t, kept)
	if body := awaitEntry(t, kept, "modules/acme/vpc/aws/1.1.0"); !strings.HasPrefix(body, "offered ") {
		t.Errorf("it is %s", body)
	}
	if health := entriesOf(t, after.app()); health.Entries != 4 {
		t.Errorf("it has %d entries", health.Entries)
	}
	after.cancel()
	eventually(t, "the log is closed", func() bool {
		return log.Append(t.Context(), tlog.Leaf{}) != nil
	})

	// A later process, with a log that has everything.
	later := newConfigurationIn(t, before.storage)
	again := later.mustHandle(h)
	later.mustStart()
	if body := awaitEntry(t, again, "modules/acme/vpc/aws/1.1.0"); !strings.HasPrefix(body, "offered ") {
		t.Errorf("it is %s", body)
	}
	if health := entriesOf(t, later.app()); health.Entries != 4 {
		t.Errorf("after a restart it has %d entries", health.Entries)
	}
}

// With a minimum release age, pull-through knows when a version was published at its origin. That
// is on record, and is when the version was published here.
func TestAVersionHasTheDateOfItsOrigin(t *testing.T) {
	root := treeToLog(t)
	const folder = "modules/registry.terraform.io/acme/vpc/aws/"
	indextest.OnDisk(t, root).Write(folder+"1.0.0.tar.gz", indextest.TarGz("main.tf", "# mirrored")).Write(folder+tree.VersionsName,
		`{"format":1,"fetched":"2026-01-02T00:00:00Z","versions":[{"version":"1.0.0","published":"2025-10-01T08:30:00Z","seen":"2026-01-02T00:00:00Z","asked":true}]}`)
	c := newConfiguration(t)
	h := c.mustHandle(Handler{Root: root, Hostnames: []string{"registry.example.com"}, Tlog: &Tlog{Folder: logFolder(t)}})
	c.mustStart()
	if body := awaitEntry(t, h, "modules/registry.terraform.io/acme/vpc/aws/1.0.0"); !strings.Contains(body, " origin:2025-10-01T08:30:00Z ") {
		t.Errorf("the entry is %s", body)
	}
	if body := awaitEntry(t, h, "modules/acme/vpc/aws/1.0.0"); strings.Contains(body, " origin:") {
		t.Errorf("the entry of a hosted version is %s", body)
	}
	eventually(t, "the API says when it was published", func() bool {
		_, body := askLog(t, h, "/v1/registries/registry.terraform.io/modules/acme/vpc/aws/1.0.0")
		return strings.Contains(body, `"published_at":"2025-10-01T08:30:00Z"`)
	})
}

// A restart does not read again what it knows of the log.
func TestWhatIsKnownOfALogOutlivesTheProcess(t *testing.T) {
	for _, test := range []struct {
		rule  string
		keeps bool
	}{{"in a data directory that can be written", true}, {"in one that cannot", false}} {
		t.Run(test.rule, func(t *testing.T) {
			data := t.TempDir()
			t.Setenv("XDG_DATA_HOME", data)
			if !test.keeps {
				if err := os.MkdirAll(filepath.Join(caddy.AppDataDir(), "terraform_registry"), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(caddy.AppDataDir(), "terraform_registry", "memo"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			c := newConfiguration(t)
			h := c.mustHandle(Handler{Root: treeToLog(t), Hostnames: []string{"registry.example.com"}, Tlog: &Tlog{Folder: logFolder(t)}})
			said := new(lockedBuffer)
			c.app().logger = slog.New(slog.NewTextHandler(said, nil))
			c.mustStart()
			awaitEntry(t, h, "providers/acme/demo/1.2.0")
			memo := storage.MemoOf("log " + testOrigin + " " + c.app().Tlogs()[0].Folder)
			if test.keeps {
				eventually(t, "it is kept", func() bool { _, err := memo.Load(); return err == nil })
			} else {
				eventually(t, "it says why it is not", func() bool {
					return strings.Contains(said.String(), "what is known of the transparency log cannot be kept")
				})
			}
		})
	}
}

func TestALogWithoutAFolder(t *testing.T) {
	c := newConfiguration(t)
	h := c.mustHandle(Handler{Root: treeToLog(t), PublicURL: "https://registry.example.com", Tlog: new(Tlog)})
	if _, err := c.app().Tlogs()[0].Options(t.Context()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("before the start it says %v", err)
	}
	c.mustStart()
	awaitEntry(t, h, "providers/acme/demo/1.2.0")
	awaitEntry(t, h, "modules/acme/vpc/aws/1.0.0")
	if folder := c.app().Tlogs()[0].Folder; !strings.HasPrefix(folder, caddy.AppDataDir()) {
		t.Errorf("it lies in %s", folder)
	}
	if health := entriesOf(t, c.app()); health.Entries != 3 {
		t.Errorf("it has %d entries", health.Entries)
	}
}

// The folders of logs are looked at once each, whether they are named or not.
func TestLocalLogs(t *testing.T) {
	c := newConfiguration(t)
	root, folder := treeToLog(t), logFolder(t)
	c.mustHandle(Handler{Root: root, PublicURL: "https://registry.example.com", Tlog: new(Tlog)})
	c.mustHandle(Handler{Root: root, PublicURL: "https://www.example.com", Tlog: new(Tlog)})
	c.mustHandle(Handler{Root: treeToLog(t), PublicURL: "https://other.example.com", Tlog: &Tlog{Folder: folder}})
	if folders := c.app().localLogs(); len(folders) != 2 || !strings.HasPrefix(folders[0], caddy.AppDataDir()) || folders[1] != folder {
		t.Errorf("the logs are in %v", folders)
	}
}

// Sites of one tree have one log, under the name of the first one.
func TestSitesOfOneTreeShareALog(t *testing.T) {
	root, folder := treeToLog(t), logFolder(t)
	c := newConfiguration(t)
	one := c.mustHandle(Handler{Root: root, PublicURL: "https://registry.example.com", Tlog: &Tlog{Folder: folder}})
	two := c.mustHandle(Handler{Root: root, PublicURL: "https://other.example.com", Tlog: &Tlog{Folder: folder}})
	readers := &Access{Rules: []AccessRule{{Effect: "allow", Who: "authenticated", Right: "read", Addresses: []string{"*"}}}}
	three := c.mustHandle(Handler{Root: root, PublicURL: "https://private.example.com", Access: readers, Tlog: &Tlog{Folder: folder}})
	c.mustStart()
	awaitEntry(t, one, "providers/acme/demo/1.2.0")
	if !strings.Contains(awaitEntry(t, two, "providers/acme/demo/1.2.0"), "\n"+testOrigin+"\n") {
		t.Error("the log has another name")
	}
	if one.registry.Log() != two.registry.Log() || one.registry.Log() != three.registry.Log() || len(c.app().Tlogs()) != 1 {
		t.Error("the sites have different logs")
	}
}

func TestTlogMistakes(t *testing.T) {
	root, keys := treeToLog(t), logFolder(t)
	private, err := tlog.GenerateKey(testOrigin)
	if err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(keys, "key")
	if err := os.WriteFile(key, []byte(private), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(keys, "file")
	if err := os.WriteFile(file, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		rule string
		log  Tlog
		says string // empty: it is right
	}{
		{"a folder that is missing", Tlog{Folder: filepath.Join(keys, "none"), Origin: "a"}, "make it, or name another"},
		{"a file", Tlog{Folder: file, Origin: "a"}, "is not a folder"},
		{"a folder in the tree", Tlog{Folder: filepath.Join(root, "modules"), Origin: "a"}, "lies in the served folder"},
		{"no name", Tlog{Folder: keys}, "the log needs a name"},
		{"a bad name", Tlog{Folder: keys, Origin: "https://a"}, "has a scheme"},
		{"a key that is missing", Tlog{Folder: keys, Key: filepath.Join(keys, "none")}, "no such file"},
		{"a key that is none", Tlog{Folder: keys, Key: file}, "it is no key of a log"},
		{"a key of another log", Tlog{Folder: keys, Key: key, Origin: "a"}, "they must be the same"},
		{"the key has the name", Tlog{Folder: keys, Key: key}, ""},
		{"an unknown placeholder", Tlog{Folder: "{nothing.here}"}, "tlog: "},
	} {
		_, err := newConfiguration(t).handle(Handler{Root: root, Tlog: &test.log})
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", test.rule, err)
		}
		if err != nil && strings.Contains(err.Error(), private[len(private)-20:]) {
			t.Errorf("%s: it tells the key", test.rule)
		}
	}
	c := newConfiguration(t)
	c.mustHandle(Handler{Root: root, Tlog: &Tlog{Folder: keys, Origin: "a"}})
	if _, err := c.handle(Handler{Root: treeToLog(t), Tlog: &Tlog{Folder: keys, Origin: "b"}}); err == nil || !strings.Contains(err.Error(), "two registries use the folder") {
		t.Errorf("two trees with one folder: %v", err)
	}
	if _, err := c.handle(Handler{Root: root, Tlog: &Tlog{Folder: logFolder(t), Origin: "b"}}); err == nil || !strings.Contains(err.Error(), "a tree has one") {
		t.Errorf("one tree with two logs: %v", err)
	}
	for _, second := range []Tlog{{Folder: logFolder(t), Origin: "a"}, {Origin: "a"}} {
		if _, err := c.handle(Handler{Root: treeToLog(t), Tlog: &second}); err == nil || !strings.Contains(err.Error(), "two logs are called a") {
			t.Errorf("two folders with logs of one name: %v", err)
		}
	}
}

// A log that has lost files is never begun again: nothing is added, and the server's log says
// so.
func TestALogThatHasLostSomething(t *testing.T) {
	for _, test := range []struct {
		rule    string
		lose    func(t *testing.T, storage, folder string)
		trouble record.Trouble
	}{
		{"all files", func(t *testing.T, _, folder string) { remove(t, folder+"/*") }, record.Behind},
		// A network disk might show them in a minute; then it is behind.
		{"all entries", func(t *testing.T, _, folder string) { remove(t, folder+"/batch", folder+"/checkpoint") }, record.Failed},
		{"the public key", func(t *testing.T, _, folder string) { remove(t, folder+"/key") }, record.Behind},
		{"the private key", func(t *testing.T, storage, _ string) { remove(t, storage+"/terraform_registry/tlog/*/key-*") }, record.Failed},
		{"the checkpoint in Caddy's storage", func(t *testing.T, storage, _ string) { remove(t, storage+"/terraform_registry/tlog/*/checkpoint") }, record.None},
		{"the folder", func(t *testing.T, _, folder string) { remove(t, folder) }, record.Failed},
	} {
		t.Run(test.rule, func(t *testing.T) {
			root, folder := treeToLog(t), filepath.Join(logFolder(t), "log")
			if err := os.Mkdir(folder, 0o755); err != nil {
				t.Fatal(err)
			}
			o := Handler{Root: root, Hostnames: []string{"registry.example.com"}, Tlog: &Tlog{Folder: folder}}
			before := newConfiguration(t)
			h := before.mustHandle(o)
			before.mustStart()
			awaitEntry(t, h, "modules/acme/vpc/aws/1.0.0")
			eventually(t, "all is entered", func() bool { return h.registry.Log().Head().Size == 3 })
			before.cancel()

			after := newConfigurationIn(t, before.storage)
			h = after.mustHandle(o)
			test.lose(t, before.storage, folder)
			indextest.OnDisk(t, root).Write("modules/acme/vpc/aws/1.1.0.tar.gz", indextest.TarGz("main.tf", "# new"))
			after.mustStart()
			if test.trouble == record.None {
				awaitEntry(t, h, "modules/acme/vpc/aws/1.1.0")
				return
			}
			var p *pooledTlog
			eventually(t, "it is in trouble", func() bool {
				p = after.app().logged[0].log.Load()
				return p.State().Trouble == test.trouble
			})
			if status, _ := askLog(t, h, "/v1/modules/acme/vpc/aws/1.1.0/download"); status != http.StatusNoContent {
				t.Errorf("the module is answered with %d", status)
			}
			if names, _ := filepath.Glob(folder + "/batch/*"); strings.HasPrefix(test.rule, "all ") && len(names) > 0 {
				t.Errorf("it has written %v", names)
			}
			if status, _ := askLog(t, h, "/v1/tlog/lookup/modules/acme/vpc/aws/1.1.0"); status < 400 {
				t.Errorf("the new version is on record, %v", p.State())
			}
		})
	}
}

func remove(t *testing.T, patterns ...string) {
	t.Helper()
	for _, pattern := range patterns {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("there is no %s, %v", pattern, err)
		}
		for _, name := range names { // a log that has been closed may still end a write
			eventually(t, name+" is removed", func() bool { return os.RemoveAll(name) == nil })
		}
	}
}

// A site that offers more of the same tree does not put it on record, and two sites with one
// log offer the same.
func TestALogHasWhatItsSiteOffers(t *testing.T) {
	root, folder := treeToLog(t), logFolder(t)
	c := newConfiguration(t)
	one := c.mustHandle(Handler{Root: root, Hostnames: []string{"registry.example.com"}, Tlog: &Tlog{Folder: folder}, Signatures: RequireSignatures})
	if _, err := c.handle(Handler{Root: root, Hostnames: []string{"registry.example.com"}, Tlog: &Tlog{Folder: folder}}); err == nil {
		t.Error("a site that requires no signatures has the same log")
	}
	c.mustHandle(Handler{Root: root, Hostnames: []string{"registry.example.com"}})
	c.mustStart()
	awaitEntry(t, one, "modules/acme/vpc/aws/1.0.0")
	eventually(t, "all is entered", func() bool { return c.app().logged[0].log.Load().State() == record.State{} })
	if status, _ := askLog(t, one, "/v1/tlog/lookup/providers/acme/demo/1.2.0"); status != http.StatusNotFound {
		t.Errorf("the release without a signature is answered with %d", status)
	}
}

// A version that is offered and not entered yet is answered with 503, not as absent.
func TestAVersionThatCannotBeEntered(t *testing.T) {
	root, folder := treeToLog(t), logFolder(t)
	c := newConfiguration(t)
	h := c.mustHandle(Handler{Root: root, Hostnames: []string{"registry.example.com"}, Tlog: &Tlog{Folder: folder}, Rescan: -1})
	c.mustStart()
	awaitEntry(t, h, "modules/acme/vpc/aws/1.0.0")
	eventually(t, "all is entered", func() bool { return h.registry.Log().Head().Size == 3 })
	remove(t, folder+"/batch")
	if err := os.WriteFile(folder+"/batch", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	indextest.OnDisk(t, root).Write("modules/acme/vpc/aws/1.1.0.tar.gz", indextest.TarGz("main.tf", "# new"))
	rescan(t, h)
	if status, _ := askLog(t, h, "/v1/modules/acme/vpc/aws/1.1.0/download"); status != http.StatusNoContent {
		t.Errorf("it is offered with %d", status)
	}
	if status, body := askLog(t, h, "/v1/tlog/lookup/modules/acme/vpc/aws/1.1.0"); status != http.StatusServiceUnavailable {
		t.Errorf("the log answers %d %s", status, body)
	}
	if status, body := askLog(t, h, "/v1/tlog/lookup/modules/acme/vpc/aws/1.2.0"); status != http.StatusNotFound {
		t.Errorf("of a version that is not offered, the log answers %d %s", status, body)
	}
}

// A version whose bytes are replaced is offered no longer, until the first ones are back.
func TestWhatIsReplacedIsWithheld(t *testing.T) {
	root, folder := treeToLog(t), logFolder(t)
	files := indextest.OnDisk(t, root)
	file := "modules/acme/dns/aws/1.0.0.tar.gz"
	first, other := indextest.TarGz("main.tf", "# first"), indextest.TarGz("main.tf", "# other")
	files.Write(file, first)
	o := Handler{Root: root, Hostnames: []string{"registry.example.com"}, Tlog: &Tlog{Folder: folder}, Rescan: -1}
	begin := func(storage string) (*configuration, *Handler) {
		t.Helper()
		c := newConfigurationIn(t, storage)
		h := c.mustHandle(o)
		c.mustStart()
		return c, h
	}
	mustAnswer := func(when string, h *Handler, want int) {
		t.Helper()
		eventually(t, fmt.Sprint(when, ": it is answered with ", want), func() bool {
			status, _ := askLog(t, h, "/v1/modules/acme/dns/aws/1.0.0/download")
			return status == want
		})
		if n := snapshot(t, h).Totals.Withheld[tree.Replaced]; (n == 1) != (want == http.StatusNotFound) {
			t.Errorf("%s: withheld are %d", when, n)
		}
	}
	c, h := begin(t.TempDir())
	mustAnswer("at first", h, http.StatusNoContent)
	awaitEntry(t, h, "modules/acme/dns/aws/1.0.0")
	files.Write(file, other)
	rescan(t, h)
	mustAnswer("with other bytes", h, http.StatusNotFound)
	files.Write(file, first)
	rescan(t, h)
	mustAnswer("with the first bytes", h, http.StatusNoContent)
	c.cancel()

	files.Write(file, other)
	_, h = begin(c.storage)
	mustAnswer("replaced while nothing ran", h, http.StatusNotFound)
	// Its entry is told all the same.
	if body := awaitEntry(t, h, "modules/acme/dns/aws/1.0.0"); strings.Count(body, " h1:") != 1 {
		t.Errorf("the version has the entries %s", body)
	}
	files.Write("modules/acme/dns/aws/registry.hcl", `withdrawn "1.0.0" { reason = "somebody has changed it" }`)
	rescan(t, h)
	if n := snapshot(t, h).Totals.Withheld[tree.Replaced]; n != 0 {
		t.Errorf("it is withdrawn, and %d are replaced", n)
	}
}

// A version is not replaced by one that lies under the name of the registry, nor the other way round. No
// option has the name.
func TestNothingIsReplacedUnderTheNameOfTheRegistry(t *testing.T) {
	const hosted, named = "modules/acme/dns/aws/1.0.0.tar.gz", "modules/registry.example.com/acme/dns/aws/1.0.0.tar.gz"
	for _, test := range []struct{ rule, first, other string }{
		{"the first one lies under no name", hosted, named},
		{"the first one lies under the name", named, hosted},
	} {
		t.Run(test.rule, func(t *testing.T) {
			root := treeToLog(t)
			files := indextest.OnDisk(t, root)
			first, other := indextest.TarGz("main.tf", "# first"), indextest.TarGz("main.tf", "# other")
			files.Write(test.first, first)
			c := newConfiguration(t)
			h := c.mustHandle(Handler{Root: root, PublicURL: "https://registry.example.com", Tlog: &Tlog{Folder: logFolder(t)}, Rescan: -1})
			c.mustStart()
			awaitEntry(t, h, "modules/acme/dns/aws/1.0.0")
			files.Write(test.other, other)
			rescan(t, h)
			if status, list := askLog(t, h, "/v1/modules/acme/dns/aws/versions"); status != http.StatusOK || !strings.Contains(list, wire.SHA256Of([]byte(first)).ZH()) {
				t.Errorf("with both, it is answered with %d %s", status, list)
			}
			files.Remove(test.first)
			rescan(t, h)
			if status, list := askLog(t, h, "/v1/modules/acme/dns/aws/versions"); status != http.StatusNotFound {
				t.Errorf("without the first one, it is answered with %d %s", status, list)
			}
			if n := snapshot(t, h).Totals.Withheld[tree.Replaced]; n != 1 {
				t.Errorf("%d are withheld", n)
			}
		})
	}
}

// A configuration that fails to start does not have versions offered that the one withholds that
// goes on. If another app of it fails later, they are withheld again.
func TestAReloadThatFailsWithholdsStill(t *testing.T) {
	for _, test := range []struct {
		rule   string
		origin string // of the log of the configuration that fails; empty: it has none
		later  bool   // another app fails, after the registry has started
	}{
		{rule: "without a log"},
		{rule: "with another log", origin: "other.example.com/log"},
		{rule: "without a log, later", later: true},
		{rule: "with another log, later", origin: "other.example.com/log", later: true},
	} {
		t.Run(test.rule, func(t *testing.T) {
			root, off := treeToLog(t), &SigningKey{Off: true}
			files := indextest.OnDisk(t, root).Write("modules/acme/dns/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", "# first"))
			live := newConfiguration(t)
			h := live.mustHandle(Handler{Root: root, Hostnames: []string{"registry.example.com"}, SigningKey: off, Tlog: &Tlog{Folder: logFolder(t)}, Rescan: -1})
			live.mustStart()
			awaitEntry(t, h, "modules/acme/dns/aws/1.0.0")
			files.Write("modules/acme/dns/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", "# other"))
			rescan(t, h)
			withheld := func() bool { return snapshot(t, h).Totals.Withheld[tree.Replaced] == 1 }
			eventually(t, "it is withheld", withheld)

			failing := newConfigurationIn(t, live.storage)
			o := Handler{Root: root, Hostnames: []string{"registry.example.com"}, SigningKey: off, Rescan: -1}
			if test.origin != "" {
				o.Tlog = &Tlog{Folder: logFolder(t), Origin: test.origin}
			}
			failing.mustHandle(o)
			if !test.later {
				failing.generate = func() (*signing.Key, error) { return nil, errors.New("no entropy") }
				failing.mustHandle(Handler{Root: treeToLog(t), Hostnames: []string{"registry.example.com"}})
			}
			switch err := failing.start(); {
			case test.later && err != nil:
				t.Fatal(err)
			case test.later:
				eventually(t, "the log of the new configuration counts", func() bool { return !withheld() })
			case err == nil:
				t.Fatal("it starts")
			case len(failing.app().indexes) > 0:
				t.Error("it has an index, whose versions it compares with its own log")
			}
			failing.cancel()
			eventually(t, "it is withheld again", withheld)
			if status, _ := askLog(t, h, "/v1/modules/acme/dns/aws/1.0.0/download"); status != http.StatusNotFound {
				t.Errorf("it is answered with %d", status)
			}
		})
	}
}

// A configuration that fails later may have the index for a while, and no log or another one. New
// versions of that time are entered in the log of the configuration that goes on. The files lie in a
// bucket: on a disk, an index looks at new ones again, and would tell the log of them.
func TestAReloadThatFailsLosesNoEntry(t *testing.T) {
	for _, test := range []struct {
		rule string
		log  *Tlog // of the configuration that fails
	}{
		{"without a log", nil},
		{"with another log", &Tlog{Folder: "other", Origin: "other.example.com/log"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			b, _ := bucketWithVPC()
			o := Handler{FileSystem: "archive", Root: "/", Hostnames: []string{"registry.example.com"}, SigningKey: &SigningKey{Off: true}, Tlog: new(Tlog), Rescan: -1}
			live := onFileSystem(t, b)
			h := live.mustHandle(o)
			live.mustStart()
			awaitEntry(t, h, "modules/acme/vpc/aws/1.1.0")
			failing := onFileSystemIn(t, live.storage, b)
			o.Tlog = test.log
			failing.mustHandle(o)
			failing.mustStart()
			b.Put("modules/acme/vpc/aws/1.2.0.tar.gz", indextest.TarGz("main.tf", "# new"), time.Now().Add(-time.Hour))
			rescan(t, h)
			failing.cancel()
			awaitEntry(t, h, "modules/acme/vpc/aws/1.2.0")
		})
	}
}

// Without the option, the log is no reason to withhold anything.
func TestALogThatIsTurnedOff(t *testing.T) {
	root, folder := treeToLog(t), logFolder(t)
	files := indextest.OnDisk(t, root).Write("modules/acme/dns/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", "# first"))
	before := newConfiguration(t)
	h := before.mustHandle(Handler{Root: root, PublicURL: "https://registry.example.com", Tlog: &Tlog{Folder: folder}, Rescan: -1})
	before.mustStart()
	awaitEntry(t, h, "modules/acme/dns/aws/1.0.0")
	files.Write("modules/acme/dns/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", "# other"))
	rescan(t, h)
	eventually(t, "it is withheld", func() bool { return snapshot(t, h).Totals.Withheld[tree.Replaced] == 1 })
	after := newConfigurationIn(t, before.storage)
	h = after.mustHandle(Handler{Root: root, PublicURL: "https://registry.example.com", Rescan: -1})
	after.mustStart()
	before.cancel()
	eventually(t, "it is offered", func() bool { return snapshot(t, h).Totals.Withheld[tree.Replaced] == 0 })
}

// The log of a tree counts for every site that publishes in it, not only for the one that has the option.
func TestWhatIsPublishedAtAnotherSiteIsOnRecord(t *testing.T) {
	other, token := publishingHandler(t)
	logged := other
	logged.Tlog, logged.PublicURL = &Tlog{Folder: logFolder(t)}, "https://registry.example.com"
	c := newConfiguration(t)
	h, site := c.mustHandle(logged), c.mustHandle(other)
	c.mustStart()
	snapshot(t, h)
	eventually(t, "the log is open", func() bool { return h.logged.Log() != nil })
	publish := func(path, body string, status int) {
		t.Helper()
		if w, _ := put(t, site, path, token, body); w.Code != status {
			t.Errorf("%s: got %d %s, want %d", path, w.Code, w.Body, status)
		}
	}
	const vpc = "/v1/modules/acme/vpc/aws/1.0.0.tar.gz"
	first, second := indextest.TarGz("main.tf", "# one\n"), indextest.TarGz("main.tf", "# two\n")
	publish(vpc, first, http.StatusCreated)
	if !h.logged.Log().Has(address.Address{Namespace: "acme", Name: "vpc", System: "aws"}, "1.0.0", address.Platform{}) {
		t.Error("it is not on record when the request is answered")
	}
	remove(t, other.Root+"/modules/acme/vpc/aws/1.0.0.tar.gz")
	rescan(t, h)
	publish(vpc, second, http.StatusConflict)
	publish(vpc, first, http.StatusCreated)
}

// What a site with other signatures publishes does not wait for a log that may never have it.
func TestALogOfOtherSignaturesIsNotWaitedFor(t *testing.T) {
	logged, _ := publishingHandler(t)
	logged.Signatures, logged.Tlog, logged.PublicURL = RequireSignatures, &Tlog{Folder: logFolder(t)}, "https://registry.example.com"
	c := newConfiguration(t)
	h := c.mustHandle(logged)
	c.mustStart()
	ended, end := context.WithCancel(t.Context())
	end()
	for _, require := range []bool{true, false} {
		r := treeRecord{c.app(), h.source.tree}
		r.tree.require = require
		if waits := !r.Await(ended, address.Address{Namespace: "acme", Name: "vpc", System: "aws"}, "1.0.0", address.Platform{}); waits != require {
			t.Errorf("with required signatures: %t, it waits: %t", require, waits)
		}
	}
}

// A published version is on record when the request is answered.
func TestWhatIsPublishedIsOnRecord(t *testing.T) {
	o, token := publishingHandler(t)
	folder := logFolder(t)
	o.Tlog, o.PublicURL = &Tlog{Folder: folder}, "https://registry.example.com"
	c := newConfiguration(t)
	h := c.mustHandle(o)
	c.mustStart()
	snapshot(t, h)
	eventually(t, "the log is open", func() bool { return h.logged.Log() != nil })
	release := publishedRelease(t, "1.2.0")
	publish := func(path, body string, status int) string {
		t.Helper()
		w, _ := put(t, h, path, token, body)
		if w.Code != status {
			t.Errorf("%s: got %d %s, want %d", path, w.Code, w.Body, status)
		}
		return w.Body.String()
	}
	onRecord := func(version string, a address.Address, on address.Platform) {
		t.Helper()
		if !h.logged.Log().Has(a, version, on) {
			t.Errorf("%s %s is not on record", a, version)
		}
	}
	demo, vpc := address.Address{Namespace: "acme", Name: "demo"}, address.Address{Namespace: "acme", Name: "vpc", System: "aws"}
	for _, name := range slices.Sorted(maps.Keys(release)) { // SHA256SUMS is the first one
		w, _ := put(t, h, "/v1/providers/acme/demo/1.2.0/"+name, token, release[name])
		if w.Code >= 300 {
			t.Fatalf("%s: got %d %s", name, w.Code, w.Body)
		}
	}
	onRecord("1.2.0", demo, address.Platform{OS: "linux", Arch: "amd64"})
	onRecord("1.2.0", demo, address.Platform{OS: "darwin", Arch: "arm64"})
	first, other := indextest.TarGz("main.tf", "# one\n"), indextest.TarGz("main.tf", "# two\n")
	publish("/v1/modules/acme/vpc/aws/1.0.0.tar.gz", first, http.StatusCreated)
	onRecord("1.0.0", vpc, address.Platform{})

	// A removed file can be published again with the same bytes only.
	remove(t, o.Root+"/modules/acme/vpc/aws/1.0.0.tar.gz", o.Root+"/providers/acme/demo/*1.2.0*")
	rescan(t, h)
	if says := publish("/v1/modules/acme/vpc/aws/1.0.0.tar.gz", other, http.StatusConflict); !strings.Contains(says, "is on record with another 1.0.0.tar.gz since ") {
		t.Errorf("it says %s", says)
	}
	publish("/v1/modules/acme/vpc/aws/1.0.0.tar.gz", first, http.StatusCreated)
	zip := "terraform-provider-demo_1.2.0_linux_amd64.zip"
	publish("/v1/providers/acme/demo/1.2.0/"+zip, indextest.Zip("terraform-provider-demo_v1.2.0", "another"), http.StatusConflict)
	publish("/v1/providers/acme/demo/1.2.0/"+zip, release[zip], http.StatusAccepted)

	// A log that fails takes nothing back.
	remove(t, folder+"/batch")
	if err := os.WriteFile(folder+"/batch", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if says := publish("/v1/modules/acme/vpc/aws/1.1.0.tar.gz", other, http.StatusCreated); !strings.Contains(says, "not in the transparency log yet") {
		t.Errorf("it says %s", says)
	}
}

// Several instances begin one log at the same time: one key counts.
func TestInstancesBeginOneLog(t *testing.T) {
	root, folder, storage := treeToLog(t), logFolder(t), t.TempDir()
	var all []vault.Log
	for range 4 {
		c := newConfigurationIn(t, storage)
		h := c.mustHandle(Handler{Root: root, Tlog: &Tlog{Folder: folder, Origin: testOrigin}})
		key, err := h.provisionTlog(caddy.NewReplacer(), h.source.tree, nil, false)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, logOf(key, c.app().storage))
	}
	opened := make(chan error)
	for _, f := range all {
		go func() {
			o, err := f.Open(t.Context())
			if err == nil {
				var l *tlog.Log
				if l, err = new(tlog.Opening).Open(t.Context(), o); err == nil {
					defer l.Close()
					err = l.Append(t.Context(), moduleLeaf(t))
				}
			}
			opened <- err
		}()
	}
	for range all {
		if err := <-opened; err != nil {
			t.Error(err)
		}
	}
	if names, _ := filepath.Glob(storage + "/terraform_registry/tlog/*/key-*"); len(names) != 1 {
		t.Errorf("there are the keys %v", names)
	}
}

func moduleLeaf(t *testing.T) tlog.Leaf {
	t.Helper()
	l, err := tlog.ParseLeaf(fmt.Sprintf("offered 2026-01-01T00:00:00Z module acme/vpc/aws 1.0.0 h1:%s= zh:%064x %032x", strings.Repeat("A", 43), 1, 1))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestAKeyFromAFile(t *testing.T) {
	private, err := tlog.GenerateKey(testOrigin)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(private+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	folder := logFolder(t)
	c := newConfiguration(t)
	h := c.mustHandle(Handler{Root: treeToLog(t), Tlog: &Tlog{Folder: folder, Key: file}})
	c.mustStart()
	awaitEntry(t, h, "providers/acme/demo/1.2.0")
	_, public := askLog(t, h, "/v1/tlog/key")
	v, err := note.NewVerifier(strings.TrimSpace(public))
	if err != nil {
		t.Fatal(err)
	}
	_, checkpoint := askLog(t, h, "/v1/tlog/checkpoint")
	if _, err := note.Open([]byte(checkpoint), note.VerifierList(v)); err != nil {
		t.Error(err)
	}
	if names, _ := filepath.Glob(c.storage + "/terraform_registry/tlog/*/key-*"); len(names) != 0 {
		t.Errorf("Caddy's storage has the keys %v", names)
	}
}

// A log in a bucket lies beside the providers.
func TestALogInABucket(t *testing.T) {
	b, _ := bucketWithVPC()
	c := onFileSystem(t, b)
	h := c.mustHandle(Handler{FileSystem: "archive", Root: "/", PublicURL: "https://registry.example.com", Tlog: new(Tlog)})
	c.mustStart()
	awaitEntry(t, h, "modules/acme/vpc/aws/1.1.0")
	if _, ok := b.Contents()["tlog/batch/0"]; !ok {
		t.Errorf("the bucket has %v", b.Names())
	}
	if s := snapshot(t, h); len(s.Report().Ignored) > 0 || s.Hint != "" {
		t.Errorf("the report has %+v", s.Report())
	}
}

// With require, a version is offered when it is on record, and what cannot be entered is not.
// Nothing is offered while the log cannot be read.
func TestOnlyWhatIsOnRecordIsOffered(t *testing.T) {
	o, token := publishingHandler(t)
	folder := logFolder(t)
	o.Tlog, o.PublicURL = &Tlog{Folder: folder, Require: true}, "https://registry.example.com"
	indextest.OnDisk(t, o.Root).Write("modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", "# one"))
	c := newConfiguration(t)
	h := c.mustHandle(o)
	c.mustStart()
	get := func(h *Handler, path string) int {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "https://registry.example.com/v1/"+path, nil)
		r.Header.Set("Authorization", "Bearer "+token)
		if err := h.ServeHTTP(w, caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, new(caddyhttp.Server)), nil); err != nil {
			t.Fatal(err)
		}
		return w.Code
	}
	ask := func(h *Handler, version string) int { return get(h, "modules/acme/vpc/aws/"+version+"/download") }
	if status := ask(h, "1.0.0"); status != http.StatusNoContent { // it waits
		t.Errorf("what is found is answered with %d", status)
	}
	if w, _ := put(t, h, "/v1/modules/acme/vpc/aws/1.1.0.tar.gz", token, indextest.TarGz("main.tf", "# two")); w.Code != http.StatusCreated {
		t.Errorf("publishing is answered with %d %s", w.Code, w.Body)
	}
	if status := ask(h, "1.1.0"); status != http.StatusNoContent {
		t.Errorf("what was published is answered with %d", status)
	}

	// It can be read, and nothing can be entered.
	batches := folder + "/batch"
	if err := os.Rename(batches, folder+"/kept"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(batches, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w, _ := put(t, h, "/v1/modules/acme/vpc/aws/1.2.0.tar.gz", token, indextest.TarGz("main.tf", "# three"))
	if w.Code != http.StatusAccepted || !strings.Contains(w.Body.String(), "will be offered when it is in the transparency log, which this registry requires") {
		t.Errorf("publishing is answered with %d %s", w.Code, w.Body)
	}
	for version, want := range map[string]bool{"1.1.0": true, "1.2.0": false} { // as what is fetched asks
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		app := c.app()
		if got := app.awaitRecord(ctx, app.logged[0].key.source, address.Address{Namespace: "acme", Name: "vpc", System: "aws"}, version, address.Platform{}); got != want {
			t.Errorf("%s may be handed out: %t", version, got)
		}
		cancel()
	}
	s := snapshot(t, h)
	if m := s.Module(index.PlaceOf(address.Address{Namespace: "acme", Name: "vpc", System: "aws"})); len(m.VersionList()) != 2 || s.Totals.Withheld[tree.NotOnRecord] != 1 {
		t.Errorf("offered are %v", m.VersionList())
	}

	// A new process cannot read it.
	c.cancel()
	later := newConfigurationIn(t, c.storage)
	h = later.mustHandle(o)
	later.mustStart()
	s = snapshot(t, h)
	if n := s.Totals.Withheld[tree.NotOnRecord]; n != 3 || s.Totals.Versions() != 0 {
		t.Errorf("without a log, %d versions are offered and %d withheld", s.Totals.Versions(), n)
	}
	if !s.ListPending(index.PlaceOf(address.Address{Namespace: "acme", Name: "vpc", System: "aws"})) {
		t.Error("clients are told that there are no versions")
	}
	if status := get(h, "ready"); status != http.StatusServiceUnavailable {
		t.Errorf("a probe is answered with %d", status)
	}
	remove(t, batches)
	if err := os.Rename(folder+"/kept", batches); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all is offered", func() bool { return snapshot(t, h).Totals.Versions() == 3 })
	if status := get(h, "ready"); status != http.StatusOK {
		t.Errorf("then a probe is answered with %d", status)
	}
}

// Without require, a package that was fetched waits for its entry, and is handed out without one if
// nothing can be entered.
func TestWhatIsFetchedWaitsForItsEntry(t *testing.T) {
	o, _ := publishingHandler(t)
	folder := logFolder(t)
	o.Tlog, o.PublicURL = &Tlog{Folder: folder}, "https://registry.example.com"
	tree := indextest.OnDisk(t, o.Root)
	tree.Write("modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", "# one"))
	c := newConfiguration(t)
	c.mustHandle(o)
	c.mustStart()
	app, a := c.app(), address.Address{Namespace: "acme", Name: "vpc", System: "aws"}
	log := app.logged[0].log.Load()
	eventually(t, "the log has begun", func() bool { return log.Log() != nil && log.Log().Has(a, "1.0.0", address.Platform{}) })
	await := func(version string, timeout time.Duration) bool {
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		defer cancel()
		return app.awaitRecord(ctx, app.logged[0].key.source, a, version, address.Platform{})
	}
	tree.Write("modules/acme/vpc/aws/1.1.0.tar.gz", indextest.TarGz("main.tf", "# two"))
	if !await("1.1.0", time.Minute) || !log.Log().Has(a, "1.1.0", address.Platform{}) {
		t.Error("it is not on record when it is handed out")
	}
	if !await("1.2.0", 50*time.Millisecond) {
		t.Error("what does not come is not handed out")
	}

	if err := os.RemoveAll(folder + "/batch"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(folder+"/batch", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the log fails", func() bool { return log.State().Trouble != record.None })
	if !await("1.3.0", time.Hour) {
		t.Error("while the log fails, nothing is handed out")
	}
}

package module

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
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
	"github.com/caddyserver/certmagic"

	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/publish"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// publishedRelease returns the files of a release of acme/demo, by name.
func publishedRelease(t *testing.T, version string) map[string]string {
	t.Helper()
	folders := indextest.New(t)
	release := folders.Provider("acme/demo", version, "linux_amd64", "darwin_arm64").Checksums()
	files := make(map[string]string)
	for _, name := range []string{
		release.ChecksumsName(),
		"providers/acme/demo/terraform-provider-demo_" + version + "_linux_amd64.zip",
		"providers/acme/demo/terraform-provider-demo_" + version + "_darwin_arm64.zip",
	} {
		files[filepath.Base(name)] = folders.Read(name)
	}
	return files
}

// publishingHandler returns a handler of an empty tree in which ci may manage acme, and
// the token of ci.
func publishingHandler(t *testing.T) (h Handler, token string) {
	t.Helper()
	auth, tokens := tokensProvider(t, "ci")
	root := t.TempDir()
	indextest.OnDisk(t, root).Write("providers/.keep", "").Write("modules/.keep", "")
	return Handler{
		Root: root, Rescan: -1, Publish: new(Publish), SigningKey: &SigningKey{Off: true},
		AuthRaw: []json.RawMessage{auth},
		Access: &Access{Rules: []AccessRule{
			{Effect: "allow", Who: "ci", Right: "manage", Addresses: []string{"acme"}},
			{Effect: "allow", Who: "ci", Right: "read", Addresses: []string{"acme"}},
		}},
	}, tokens["ci"]
}

// put sends a file to a handler, and returns the placeholders of the request.
func put(t *testing.T, h *Handler, path, token, body string) (*httptest.ResponseRecorder, *caddy.Replacer) {
	t.Helper()
	w, repl := httptest.NewRecorder(), caddy.NewReplacer()
	r := httptest.NewRequest(http.MethodPut, "https://registry.example.com"+path, strings.NewReader(body))
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	r = caddyhttp.PrepareRequest(r, repl, w, new(caddyhttp.Server))
	if err := h.ServeHTTP(w, r, nil); err != nil {
		t.Fatal(err)
	}
	return w, repl
}

// A published release is offered, and reported to metrics, events and placeholders.
func TestPublish(t *testing.T) {
	options, token := publishingHandler(t)
	c := newConfiguration(t)
	published := c.hear(eventPublished)
	h := c.mustHandle(options)
	c.mustStart()
	snapshot(t, h)

	release := publishedRelease(t, "1.2.0")
	const zip, sums = "terraform-provider-demo_1.2.0_linux_amd64.zip", "terraform-provider-demo_1.2.0_SHA256SUMS"
	const other = "terraform-provider-demo_1.2.0_darwin_arm64.zip"
	const folder = "/v1/providers/acme/demo/1.2.0/"
	for _, step := range []struct {
		path, token, body string
		status            int
		outcome, kind     string
		version, platform string
		files             []string // of the event; nil: there is none
	}{
		{folder + zip, "", release[zip], 401, "denied", "package", "1.2.0", "linux_amd64", nil},
		{"/v1/modules/other/vpc/aws/1.0.0.tar.gz", token, "", 403, "denied", "module", "1.0.0", "", nil},
		{folder + zip, token, "not a zip", 422, "refused", "package", "1.2.0", "linux_amd64", nil},
		{folder + zip, token, release[zip], 202, "staged", "package", "1.2.0", "linux_amd64", nil},
		{folder + sums, token, release[sums], 202, "staged", "checksums", "1.2.0", "", nil},
		{folder + other, token, release[other], 201, "published", "package", "1.2.0", "darwin_arm64", []string{sums, other, zip}},
		{folder + other, token, release[other], 200, "unchanged", "package", "1.2.0", "darwin_arm64", nil},
		{folder + sums, token, publishedRelease(t, "1.3.0")["terraform-provider-demo_1.3.0_SHA256SUMS"], 409, "conflict", "checksums", "1.2.0", "", nil},
		{"/v1/modules/acme/vpc/aws/v1.0.0.tar.gz", token, indextest.TarGz("main.tf", "# one\n"), 201, "published", "module", "1.0.0", "", []string{"1.0.0.tar.gz"}},
		{"/v1/modules/acme/vpc/aws/1.0.0.tar.gz", token, indextest.TarGz("main.tf", "# two\n"), 409, "conflict", "module", "1.0.0", "", nil},
		{"/v1/modules/acme/vpc/aws/registry.hcl", token, `owner = "ci"`, 201, "published", "metadata", "", "", []string{"registry.hcl"}},
		{"/v1/modules/acme/vpc/aws/registry.hcl", token, `owner = "somebody else"`, 428, "refused", "metadata", "", "", nil},
	} {
		before, ofStatus := h.traffic.uploaded(step.kind, step.outcome), counted(h, step.status)
		w, repl := put(t, h, step.path, step.token, step.body)
		if w.Code != step.status {
			t.Fatalf("%s: got %d %s, want %d", step.path, w.Code, w.Body, step.status)
		}
		address, _ := repl.GetString("http.terraform_registry.address")
		for name, want := range map[string]string{"kind": "publish", "version": step.version, "platform": step.platform, "outcome": step.outcome} {
			if got, _ := repl.GetString("http.terraform_registry." + name); got != want {
				t.Errorf("%s: %s is %q, want %q", step.path, name, got, want)
			}
		}
		if !strings.HasPrefix(step.path[len("/v1/"):], "modules/"+address) && !strings.HasPrefix(step.path[len("/v1/"):], "providers/"+address) {
			t.Errorf("%s: the address is %q", step.path, address)
		}
		if got := h.traffic.uploaded(step.kind, step.outcome); got != before+1 {
			t.Errorf("%s: counted %v times as %s %s", step.path, got-before, step.kind, step.outcome)
		}
		if counted(h, step.status) != ofStatus+1 {
			t.Errorf("%s: %d is not counted", step.path, step.status)
		}
		events := published.take()
		if len(events) != min(len(step.files), 1) {
			t.Fatalf("%s: got events %v", step.path, events)
		}
		for _, e := range events {
			if e.Data["root"] != options.Root || e.Data["address"] != address || e.Data["version"] != step.version || e.Data["kind"] != step.kind || e.Data["subject"] != "ci" ||
				!slices.Equal(e.Data["files"].([]string), step.files) {
				t.Errorf("%s: its data are %v", step.path, e.Data)
			}
		}
	}
	if got := c.gathered()["publish_total kind=package outcome=published"]; got != 1 {
		t.Errorf("the metric is %v", got)
	}
	if offered := len(h.source.snapshot().Report().Offered); offered != 2 {
		t.Errorf("%d are offered, want 2", offered)
	}
}

// An upload ends after a reload that has closed the storage of its configuration: it is published, with
// the storage of the next one, whose handlers of events are told.
func TestUploadAcrossAReload(t *testing.T) {
	const folder = "/v1/providers/acme/demo/1.2.0/"
	const zip, sums = "terraform-provider-demo_1.2.0_linux_amd64.zip", "terraform-provider-demo_1.2.0_SHA256SUMS"
	const last = "terraform-provider-demo_1.2.0_darwin_arm64.zip"
	release := publishedRelease(t, "1.2.0")
	for _, test := range []struct {
		rule, path, body string
		before           []string // files of the release
	}{
		{"a module", "/v1/modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", "# a module\n"), nil},
		{"the last package of a provider", folder + last, release[last], []string{zip, sums}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			options, token := publishingHandler(t)
			storage := closingIn(t.TempDir())
			apps := map[string]any{"events": map[string]any{"subscriptions": []any{
				map[string]any{"events": []string{eventPublished}, "handlers": []any{map[string]any{"handler": "terraform_registry_test"}}},
			}}}
			h := liveWith(t, storage, apps, options)[0]
			awaitLive(t)
			for _, name := range test.before {
				if w, _ := put(t, h, folder+name, token, release[name]); w.Code != http.StatusAccepted {
					t.Fatalf("%s: got %d %s", name, w.Code, w.Body)
				}
			}
			body, sent := io.Pipe()
			w, answered := httptest.NewRecorder(), make(chan error, 1)
			r := httptest.NewRequest(http.MethodPut, "https://registry.example.com"+test.path, body)
			r.Header.Set("Authorization", "Bearer "+token)
			r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, new(caddyhttp.Server))
			go func() {
				defer body.Close()
				answered <- h.ServeHTTP(w, r, nil)
			}()
			io.WriteString(sent, test.body[:10]) // until it has been read
			liveWith(t, storage, apps, options)
			awaitLive(t)
			io.WriteString(sent, test.body[10:])
			sent.Close()
			if err := <-answered; err != nil || w.Code != http.StatusCreated {
				t.Errorf("got %d %s, error %v", w.Code, w.Body, err)
			}
			select {
			case e := <-configuredEvents:
				if e.Name() != eventPublished {
					t.Errorf("the event is %s", e.Name())
				}
			default:
				t.Error("no event tells of it")
			}
		})
	}
}

// A reload closes the storage while a request waits for a lock in it. The request goes on waiting in the
// storage of the next configuration, and gives the lock back there after another reload.
func TestLockAcrossReloads(t *testing.T) {
	options, _ := publishingHandler(t)
	dir := t.TempDir()
	reload := func() *App {
		liveWith(t, closingIn(dir), nil, options)
		return liveApp()
	}
	first := reload()
	other := &certmagic.FileStorage{Path: dir} // of another instance
	if err := other.Lock(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	locking := make(chan struct{}, 1)
	before(first, func(method, key string) error {
		if method == "Lock" && key == "a" {
			locking <- struct{}{}
		}
		return nil
	})
	var unlock func()
	taken := make(chan error, 1)
	go func() {
		var err error
		unlock, err = first.lock(t.Context(), "a")
		taken <- err
	}()
	<-locking
	reload()
	if err := other.Unlock(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if err := <-taken; err != nil {
		t.Fatal(err)
	}
	last := reload()
	unlock()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // only a failing test takes as long
	defer cancel()
	unlock, err := last.lock(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}

// uploaded returns a counter by its labels.
func (t *traffic) uploaded(kind, outcome string) uint64 {
	for k := range publish.Kinds {
		for o := range handlers.UploadOutcomes {
			if k.String() == kind && o.String() == outcome {
				return t.uploads[k][o].Load()
			}
		}
	}
	return 0
}

// Limits of the configuration reach the publisher.
func TestPublishLimits(t *testing.T) {
	options, token := publishingHandler(t)
	options.Publish = &Publish{MaxSize: 100, Staging: caddy.Duration(time.Hour)}
	c := newConfiguration(t)
	h := c.mustHandle(options)
	c.mustStart()
	snapshot(t, h)
	release := publishedRelease(t, "1.2.0")
	if w, _ := put(t, h, "/v1/providers/acme/demo/1.2.0/terraform-provider-demo_1.2.0_linux_amd64.zip", token, release["terraform-provider-demo_1.2.0_linux_amd64.zip"]); w.Code != http.StatusRequestEntityTooLarge || counted(h, w.Code) != 1 {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	const manifest = "/v1/providers/acme/demo/1.2.0/terraform-provider-demo_1.2.0_manifest.json"
	w, _ := put(t, h, manifest, token, `{"version":1,"metadata":{"protocol_versions":["6.0"]}}`)
	var p wire.Publication
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != http.StatusAccepted || p.Expires == nil {
		t.Fatalf("got %d %s", w.Code, w.Body)
	}
	if left := time.Until(*p.Expires); left > time.Hour || left < 50*time.Minute {
		t.Errorf("it expires in %s", left)
	}
}

// The files of a killed process are tidied up when the app starts.
func TestPublishTidiesUp(t *testing.T) {
	options, _ := publishingHandler(t)
	left := filepath.Join(options.Root, "providers", ".staging")
	if err := os.Mkdir(left, 0o755); err != nil {
		t.Fatal(err)
	}
	c := newConfiguration(t)
	c.mustHandle(options)
	if _, err := os.Stat(left); err != nil {
		t.Fatalf("a configuration that is not started changes the tree: %v", err)
	}
	c.mustStart()
	deadline := time.After(time.Minute) // only a failing test takes as long
	for again := time.Tick(time.Millisecond); ; {
		if _, err := os.Stat(left); os.IsNotExist(err) {
			return
		}
		select {
		case <-again:
		case <-deadline:
			t.Fatal("it is still there")
		}
	}
}

// All sites of a tree keep and publish staged files by the same rules.
func TestPublishersOfOneTree(t *testing.T) {
	for _, test := range []struct {
		rule    string
		change  func(*Handler)
		refused bool
	}{
		{"the same options", func(*Handler) {}, false},
		{"a default in words", func(h *Handler) { h.Publish.Staging = caddy.Duration(24 * time.Hour) }, false},
		{"the same hostnames in another order", func(h *Handler) { slices.Reverse(h.Hostnames) }, false},
		{"other paths, limits and rules", func(h *Handler) { h.Prefix, h.Publish.MaxSize, h.Access, h.AuthRaw = "/v2", 1, nil, nil }, false},
		{"another tree", func(h *Handler) { h.Root, h.Signatures = sampleTree(t), RequireSignatures }, false},
		{"a site that does not publish", func(h *Handler) { h.Publish, h.Signatures, h.Hostnames = nil, RequireSignatures, nil }, false},
		{"staging for another time", func(h *Handler) { h.Publish.Staging = caddy.Duration(time.Minute) }, true},
		{"signatures that are required at one site", func(h *Handler) { h.Signatures = RequireSignatures }, true},
		{"keys of another hostname", func(h *Handler) { h.Hostnames = h.Hostnames[:1] }, true},
	} {
		t.Run(test.rule, func(t *testing.T) {
			one, _ := publishingHandler(t)
			one.Hostnames = []string{"a.example.com", "b.example.com"}
			other := one
			other.Publish, other.Hostnames = new(Publish), slices.Clone(one.Hostnames)
			test.change(&other)
			c := newConfiguration(t)
			c.mustHandle(one)
			_, err := c.handle(other)
			switch {
			case !test.refused && err != nil:
				t.Error(err)
			case test.refused && (err == nil || !strings.Contains(err.Error(), "publish: two registries with the root "+one.Root+" publish with different options: use the same staging, signatures and hostname")):
				t.Errorf("got error %v", err)
			}
		})
	}
}

func TestProvisionPublish(t *testing.T) {
	valid, _ := publishingHandler(t)
	readers := &Access{Rules: []AccessRule{{Effect: "allow", Who: "ci", Right: "read", Addresses: []string{"*"}}}}
	publishers := &Access{Rules: []AccessRule{{Effect: "allow", Who: "ci", Right: "publish", Addresses: []string{"*"}}}}
	const nobody = "nobody may publish"
	for _, test := range []struct {
		rule   string
		change func(*Handler)
		err    string // empty: it is valid
		warns  bool
	}{
		{"its defaults", func(*Handler) {}, "", false},
		{"the longest staging", func(h *Handler) { h.Publish.Staging = caddy.Duration(720 * time.Hour) }, "", false},
		{"a negative size", func(h *Handler) { h.Publish.MaxSize = -1 }, "publish: max_size: ", false},
		{"staging that is too short", func(h *Handler) { h.Publish.Staging = caddy.Duration(time.Second) }, "publish: staging: 1s is not between", false},
		{"staging that is too long", func(h *Handler) { h.Publish.Staging = caddy.Duration(721 * time.Hour) }, "publish: staging: ", false},
		{"a file system that is only read", func(h *Handler) { h.FileSystem, h.Root = "archive", "/" }, "publish: the file system of fs cannot be written to", false},
		{"the local disk under its name", func(h *Handler) { h.FileSystem = "default" }, "", false},
		{"rules without the right to publish", func(h *Handler) { h.Access = readers }, "", true},
		{"the right to publish alone", func(h *Handler) { h.Access = publishers }, "", false},
		{"no rules", func(h *Handler) { h.Access = nil }, "", true},
		{"no rules and no users", func(h *Handler) { h.Access, h.AuthRaw = nil, nil }, "", true},
	} {
		t.Run(test.rule, func(t *testing.T) {
			h := valid
			h.Publish = new(Publish)
			test.change(&h)
			files := indextest.New(t)
			writeSample(files)
			c := onFileSystem(t, inMemory(t, files))
			loaded, err := c.handle(h)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Fatalf("got error %v, want one with %q", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			loaded.logger = slog.New(slog.NewTextHandler(&log, nil))
			loaded.warnOfPublishing()
			if warned := strings.Contains(log.String(), nobody); warned != test.warns {
				t.Errorf("it warns: %v, want %v", warned, test.warns)
			}
		})
	}
}

// Publishing works through Caddy's server, which asks for a body only after the rules.
// The access log has the result.
func TestPublishThroughCaddy(t *testing.T) {
	options, token := publishingHandler(t)
	handler, err := json.Marshal(options)
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "log")
	config := fmt.Sprintf(`{
		"admin":{"disabled":true,"config":{"persist":false}},
		"storage":{"module":"file_system","root":%q},
		"logging":{"logs":{"all":{"writer":{"output":"file","filename":%q},"encoder":{"format":"json"},"include":["http.log.access"]}}},
		"apps":{"http":{"servers":{"registry":{"listen":["127.0.0.1:0"],"automatic_https":{"disable":true},"logs":{},"routes":[
			{"handle":[{"handler":"terraform_registry",%s]}]}}}}}`, t.TempDir(), log, strings.TrimPrefix(string(handler), "{"))
	if err := caddy.Load([]byte(config), true); err != nil {
		t.Fatal(err)
	}
	stopped := false
	stop := func() {
		if !stopped {
			stopped = true
			caddy.Stop()
		}
	}
	t.Cleanup(stop)
	awaitLive(t)
	app, err := caddy.ActiveContext().AppIfConfigured("http")
	if err != nil {
		t.Fatal(err)
	}
	addr := app.(*caddyhttp.App).Servers["registry"].Listeners()[0].Addr().String()

	body := indextest.TarGz("main.tf", "# a module\n")
	for _, test := range []struct {
		rule, path, token string
		first, last       int
	}{
		{"without credentials it is not asked for", "/v1/modules/acme/vpc/aws/1.0.0.tar.gz", "", 401, 0},
		{"without the right it is not asked for", "/v1/modules/other/vpc/aws/1.0.0.tar.gz", token, 403, 0},
		{"it is asked for", "/v1/modules/acme/vpc/aws/1.0.0.tar.gz", token, 100, 201},
	} {
		t.Run(test.rule, func(t *testing.T) {
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(time.Minute)) // only a failing test takes as long
			fmt.Fprintf(conn, "PUT %s HTTP/1.1\r\nHost: registry.example.com\r\nExpect: 100-continue\r\nContent-Length: %d\r\nAuthorization: Bearer %s\r\n\r\n", test.path, len(body), test.token)
			received := bufio.NewReader(conn)
			a, err := http.ReadResponse(received, nil)
			if err != nil || a.StatusCode != test.first {
				t.Fatalf("got %v and error %v, want %d", a, err, test.first)
			}
			if test.last != 0 {
				io.WriteString(conn, body)
				a, err = http.ReadResponse(received, nil)
				if err != nil || a.StatusCode != test.last || a.Close {
					t.Fatalf("got %v and error %v, want %d", a, err, test.last)
				}
				io.Copy(io.Discard, a.Body)
				io.WriteString(conn, "GET /nothing HTTP/1.1\r\nHost: registry.example.com\r\nConnection: close\r\n\r\n")
			}
			io.Copy(io.Discard, received) // the server closes the connection when it has logged the request
		})
	}
	stop()
	entries := (&loggedSite{t: t, dir: filepath.Dir(log), stop: func() {}})
	_, logged := entries.entries("log")
	if len(logged) != 4 {
		t.Fatalf("there are %d entries", len(logged))
	}
	last := logged[2]
	if got, want := fmt.Sprint(last["terraform_registry"]), "map[address:acme/vpc/aws kind:publish outcome:published version:1.0.0]"; got != want || last["user_id"] != "ci" || last["bytes_read"] != float64(len(body)) {
		t.Errorf("the entry is %v", last)
	}
	if got := fmt.Sprint(logged[1]["terraform_registry"]); !strings.Contains(got, "outcome:denied") {
		t.Errorf("the entry of the refused request is %s", got)
	}
}

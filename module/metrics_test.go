package module

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	_ "github.com/caddyserver/caddy/v2/modules/metrics"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/caddy-terraform/caddy-terraform-registry/access/tokenfile"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// gathered returns the values of the registry's metrics by name and sorted labels, as if the configuration were live.
func (c *configuration) gathered() map[string]float64 {
	c.t.Helper()
	registry := prometheus.NewPedanticRegistry() // which complains of doubles and of disorder
	registry.MustRegister(collector{c.app})
	families, err := registry.Gather()
	if err != nil {
		c.t.Fatal(err)
	}
	values := make(map[string]float64)
	for _, family := range families {
		name, ours := strings.CutPrefix(family.GetName(), "caddy_terraform_registry_")
		if !ours {
			continue
		}
		if family.GetHelp() == "" {
			c.t.Errorf("%s has no help", name)
		}
		for _, m := range family.GetMetric() {
			series := name
			for _, label := range m.GetLabel() {
				series += " " + label.GetName() + "=" + label.GetValue()
			}
			switch {
			case m.GetGauge() != nil:
				values[series] = m.GetGauge().GetValue()
			case m.GetCounter() != nil:
				values[series] = m.GetCounter().GetValue()
			}
		}
	}
	return values
}

func TestMetrics(t *testing.T) {
	root := archivesTree(t)
	files := indextest.OnDisk(t, root)
	life := 365 * 24 * time.Hour
	expiring := indextest.NewExpiringPublisher(t, time.Minute, time.Hour)
	before := expiring.PublicKey() // of several copies of a key, the copy that expires last counts
	expiring.Extend(t, life)
	files.Write("keys/acme.asc", before+expiring.PublicKey()+indextest.NewPublisher(t).PublicKey())
	files.Provider("acme/signed", "1.0.0", "linux_amd64").Signed(expiring)
	files.Write("providers/acme/demo/terraform-provider-demo_1.3.0_linux_amd64.zip", "not a zip")
	c := newConfiguration(t)
	h := c.mustHandle(Handler{Root: root, Rescan: -1})
	c.mustHandle(Handler{Root: root, Rescan: -1}) // a second one on the same tree counts nothing twice
	c.mustStart()
	snapshot(t, h)
	rescan(t, h)

	values := c.gathered()
	for series, want := range map[string]float64{
		"offered kind=provider root=" + root:       2,
		"offered kind=module root=" + root:         1,
		"withheld reason=bad_archive root=" + root: 1,
		"pending root=" + root:                     0,
		"scans_total result=failure root=" + root:  0,
	} {
		if got, there := values[series]; !there || got != want {
			t.Errorf("%s is %v, want %v", series, got, want)
		}
	}
	for series, atLeast := range map[string]float64{
		"scans_total result=success root=" + root:      2,
		"archives_total root=" + root + " source=read": 5,
		"index_age_seconds root=" + root:               0,
		"scan_duration_seconds root=" + root:           0,
	} {
		if got, there := values[series]; !there || got < atLeast {
			t.Errorf("%s is %v, want %v or more", series, got, atLeast)
		}
	}
	want := time.Until(indextest.Born.Add(life)).Hours() / 24
	if got := values["key_expiry_days root="+root]; got < want-1 || got > want+1 {
		t.Errorf("the first key expires in %v days, want %v", got, want)
	}

	t.Run("counters continue after a reload", func(t *testing.T) {
		next := newConfigurationIn(t, c.storage)
		next.mustHandle(Handler{Root: root, Rescan: -1})
		next.mustStart()
		c.cancel()
		series := "archives_total root=" + root + " source=read"
		if got := next.gathered()[series]; got < values[series] {
			t.Errorf("%s is %v, was %v", series, got, values[series])
		}
	})
}

func TestMetricsOfTokens(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	const day = 24 * time.Hour
	for name, life := range map[string]time.Duration{"soon": 10 * day, "gone": -10 * day, "later": 100 * day, "before": -100 * day, "never": 0} {
		entry := tokenfile.Entry{Name: name}
		if life != 0 {
			entry.Expires = time.Now().Add(life)
		}
		if err := tokenfile.Add(file, entry, name); err != nil {
			t.Fatal(err)
		}
	}
	c, root := newConfiguration(t), archivesTree(t)
	auth := json.RawMessage(fmt.Sprintf(`{"provider":"terraform_tokens","file":%q}`, file))
	c.mustHandle(Handler{Root: root, AuthRaw: []json.RawMessage{auth}})
	c.mustHandle(Handler{Root: root, AuthRaw: []json.RawMessage{auth}}) // a second one with the same file has no other series

	found := make(map[string]float64)
	for series, days := range c.gathered() {
		if labels, ours := strings.CutPrefix(series, "token_expiry_days "); ours {
			found[labels] = math.Round(days)
		}
	}
	want := map[string]float64{"file=" + file + " name=soon": 10, "file=" + file + " name=gone": -10}
	if !maps.Equal(found, want) {
		t.Errorf("got %v, want %v", found, want)
	}
}

// Indexes of one root with different options have different labels.
func TestMetricsOfTwoIndexesOfARoot(t *testing.T) {
	root := archivesTree(t)
	c := newConfiguration(t)
	c.mustHandle(Handler{Root: root})
	strict := c.mustHandle(Handler{Root: root, Signatures: RequireSignatures})
	c.mustStart()
	snapshot(t, strict)
	var roots []string
	for series := range c.gathered() {
		if name, labels, _ := strings.Cut(series, " "); name == "scan_duration_seconds" {
			roots = append(roots, labels)
		}
	}
	if len(roots) != 2 {
		t.Errorf("the roots are %v", roots)
	}
}

// A scrape does not read what is still being provisioned: Caddy starts the endpoint of the admin API before.
func TestMetricsBeforeAConfigurationIsLive(t *testing.T) {
	c := newConfiguration(t)
	c.mustHandle(Handler{Root: archivesTree(t)})
	families, err := c.ctx.GetMetricsRegistry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if strings.HasPrefix(family.GetName(), "caddy_terraform_registry_") {
			t.Errorf("there is %s", family.GetName())
		}
	}
}

// The endpoint of the admin API has the metrics of the registry that serves, also after a reload that fails: Caddy has
// replaced the endpoint by then.
func TestMetricsAfterAReloadThatFails(t *testing.T) {
	root, socket := archivesTree(t), filepath.Join(t.TempDir(), "admin")
	live(t, Handler{Root: root, Rescan: -1, SigningKey: &SigningKey{Off: true}})
	awaitLive(t)
	load := func(admin map[string]any, root string) error {
		config, err := json.Marshal(map[string]any{
			"admin": admin,
			"apps": map[string]any{"http": map[string]any{"servers": map[string]any{"registry": map[string]any{
				"routes": []any{map[string]any{"handle": []any{map[string]any{"handler": "terraform_registry", "root": root, "signing_key": map[string]any{"off": true}}}}},
			}}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return caddy.Load(config, true)
	}
	notSaved := map[string]any{"persist": false}
	t.Cleanup(func() { // ends the endpoint
		if err := load(map[string]any{"disabled": true, "config": notSaved}, root); err != nil {
			t.Error(err)
		}
	})
	if err := load(map[string]any{"listen": "unix/" + socket, "config": notSaved}, filepath.Join(root, "missing")); err == nil {
		t.Fatal("a folder that is missing is served")
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	answer, err := client.Get("http://localhost/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	metrics, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"build_info", "offered", "scans_total"} {
		if !strings.Contains(string(metrics), "\ncaddy_terraform_registry_"+want+"{") {
			t.Errorf("there is no %s", want)
		}
	}
}

func TestMetricsAreDescribed(t *testing.T) {
	described := make(chan *prometheus.Desc, 100)
	collector{}.Describe(described)
	close(described)
	seen := make(map[string]bool)
	for d := range described {
		if seen[d.String()] {
			t.Errorf("%s is described twice", d)
		}
		seen[d.String()] = true
	}
	if len(seen) < 8 {
		t.Errorf("only %d metrics are described", len(seen))
	}
}

// Metrics and placeholders describe requests.
func TestAnsweredRequests(t *testing.T) {
	c := newConfiguration(t)
	h := c.mustHandle(Handler{Root: sampleTree(t), UI: new(UI)})
	c.mustStart()
	snapshot(t, h)

	for _, test := range []struct {
		path                             string
		status                           int
		kind, address, version, platform string
	}{
		{"/.well-known/terraform.json", 200, "discovery", "", "", ""},
		{"/v1/providers/acme/demo/versions", 200, "provider_versions", "acme/demo", "", ""},
		{"/v1/providers/acme/demo/1.2.0/download/linux/amd64", 200, "provider_download", "acme/demo", "1.2.0", "linux_amd64"},
		{"/v1/mirror/registry.example.com/acme/demo/index.json", 200, "mirror_index", "acme/demo", "", ""},
		{"/v1/mirror/registry.example.com/acme/demo/1.2.0.json", 200, "mirror_archives", "acme/demo", "1.2.0", ""},
		{"/v1/mirror/registry.example.com/acme/demo/terraform-provider-demo_1.2.0_linux_amd64.zip", 200, "provider_file", "acme/demo", "1.2.0", "linux_amd64"},
		{"/v1/mirror/registry.example.com/acme/demo/terraform-provider-demo_1.2.0_SHA256SUMS", 200, "provider_file", "acme/demo", "1.2.0", ""},
		{"/v1/modules/acme/vpc/aws/versions", 200, "module_versions", "acme/vpc/aws", "", ""},
		{"/v1/modules/acme/vpc/aws/1.0.0/download", 204, "module_download", "acme/vpc/aws", "1.0.0", ""},
		{"/v1/modules/acme/vpc/aws/1.0.0/archive.tar.gz", 200, "module_archive", "acme/vpc/aws", "1.0.0", ""},
		{"/v1/providers/acme/nothing/versions", 404, "provider_versions", "", "", ""},
		{"/v1/mirror/nothing", 404, "other", "", "", ""},
		{"/v1/modules", 200, "module_list", "", "", ""},
		{"/", 200, "page", "", "", ""},
		{"/modules/acme/vpc/aws", 200, "page", "acme/vpc/aws", "1.0.0", ""},
		{"/providers/acme/nothing", 404, "page", "", "", ""},
	} {
		t.Run(test.path, func(t *testing.T) {
			w := httptest.NewRecorder()
			r := httptest.NewRequest(http.MethodGet, "https://registry.example.com"+test.path, nil)
			repl := caddy.NewReplacer()
			r = caddyhttp.PrepareRequest(r, repl, w, new(caddyhttp.Server))
			before := countedBytes(h)
			if err := h.ServeHTTP(w, r, caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error {
				t.Error("the request is passed on")
				return nil
			})); err != nil {
				t.Fatal(err)
			}
			if w.Code != test.status {
				t.Errorf("status %d", w.Code)
			}
			for name, want := range map[string]string{
				"kind": test.kind, "address": test.address, "version": test.version, "platform": test.platform,
			} {
				if got, _ := repl.GetString("http.terraform_registry." + name); got != want {
					t.Errorf("%s is %q, want %q", name, got, want)
				}
			}
			if counted := countedBytes(h) - before; counted != uint64(w.Body.Len()) {
				t.Errorf("%d bytes are counted, want %d", counted, w.Body.Len())
			}
		})
	}
}

func countedBytes(h *Handler) (n uint64) {
	for i := range h.traffic.bytes {
		n += h.traffic.bytes[i].Load()
	}
	return n
}

// Every status of the registry's answers is counted.
func TestTrafficCountsEveryStatus(t *testing.T) {
	c := newConfiguration(t)
	root := sampleTree(t)
	indextest.OnDisk(t, root).Write("modules/acme/vpc/aws/registry.hcl", `withdrawn "0.9.0" {}`)
	h := c.mustHandle(Handler{Root: root, UI: new(UI)})
	c.mustStart()
	snapshot(t, h)
	const file = "/v1/mirror/registry.example.com/acme/demo/terraform-provider-demo_1.2.0_linux_amd64.zip"
	for _, test := range []struct {
		status              int
		method, path        string
		header, headerValue string
	}{
		{200, http.MethodGet, file, "", ""},
		{204, http.MethodGet, "/v1/modules/acme/vpc/aws/1.0.0/download", "", ""},
		{206, http.MethodGet, file, "Range", "bytes=0-1"},
		{302, http.MethodGet, "/v1/modules/acme/vpc/aws/download", "", ""},
		{304, http.MethodGet, file, "If-None-Match", "*"},
		{308, http.MethodGet, "/modules/ACME/vpc/aws", "", ""},
		{400, http.MethodGet, "/v1/providers/acme/de%2Fmo/versions", "", ""},
		{404, http.MethodGet, "/v1/providers/acme/nothing/versions", "", ""},
		{405, http.MethodPost, file, "", ""},
		{410, http.MethodGet, "/v1/modules/acme/vpc/aws/0.9.0/download", "", ""},
		{412, http.MethodGet, file, "If-Match", `"another"`},
		{416, http.MethodGet, file, "Range", "bytes=1000000-"},
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(test.method, "https://registry.example.com"+test.path, nil)
		if test.header != "" {
			r.Header.Set(test.header, test.headerValue)
		}
		before := counted(h, test.status)
		if err := h.ServeHTTP(w, r, nil); err != nil || w.Code != test.status {
			t.Fatalf("status %d, want %d: %v", w.Code, test.status, err)
		}
		if counted(h, test.status) != before+1 {
			t.Errorf("%d is not counted", test.status)
		}
	}
}

// A download that the store of a bucket serves is counted with the status of the redirect.
func TestTrafficCountsRedirectedDownloads(t *testing.T) {
	b, _ := bucketWithVPC()
	c := onFileSystem(t, b)
	h := c.mustHandle(Handler{FileSystem: "archive", Root: "/", Rescan: -1, SigningKey: &SigningKey{Off: true}, Redirect: caddy.Duration(time.Minute)})
	c.mustStart()
	snapshot(t, h)
	if w := get(t, h, vpcArchive); w.Code != http.StatusTemporaryRedirect {
		t.Fatalf("got %d %s", w.Code, w.Body)
	}
	if n := c.gathered()["requests_total code=307 kind=module_archive"]; n != 1 {
		t.Errorf("%v are counted: %v", n, c.gathered())
	}
}

func counted(h *Handler, status int) (n uint64) {
	for kind := range h.traffic.requests {
		n += h.traffic.requests[kind][status].Load()
	}
	return n
}

package module

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// What a request was about is known to metrics and placeholders.
func TestTraffic(t *testing.T) {
	c := newConfiguration(t)
	h := c.mustHandle(Handler{Root: sampleTree(t)})
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
		{"/v1/providers/nothing", 404, "other", "", "", ""},
	} {
		t.Run(test.path, func(t *testing.T) {
			w := httptest.NewRecorder()
			r := httptest.NewRequest(http.MethodGet, "https://registry.example.com"+test.path, nil)
			repl := caddy.NewReplacer()
			r = caddyhttp.PrepareRequest(r, repl, w, new(caddyhttp.Server))
			before := countedBytes(h)
			if err := h.ServeHTTP(w, r, caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error {
				t.Error("it is passed on")
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
					t.Errorf("%s is %q, not %q", name, got, want)
				}
			}
			if counted := countedBytes(h) - before; counted != uint64(w.Body.Len()) {
				t.Errorf("%d bytes are counted of %d", counted, w.Body.Len())
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

// Every status the registry answers with is counted.
func TestTrafficCountsEveryStatus(t *testing.T) {
	c := newConfiguration(t)
	h := c.mustHandle(Handler{Root: sampleTree(t)})
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
		{304, http.MethodGet, file, "If-None-Match", "*"},
		{400, http.MethodGet, "/v1/providers/acme/de%2Fmo/versions", "", ""},
		{404, http.MethodGet, "/v1/providers/acme/nothing/versions", "", ""},
		{405, http.MethodPost, file, "", ""},
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
			t.Fatalf("status %d, not %d: %v", w.Code, test.status, err)
		}
		if counted(h, test.status) != before+1 {
			t.Errorf("%d is not counted", test.status)
		}
	}
}

func counted(h *Handler, status int) (n uint64) {
	for i, s := range statuses {
		for kind := range h.traffic.requests {
			if s == status {
				n += h.traffic.requests[kind][i].Load()
			}
		}
	}
	return n
}

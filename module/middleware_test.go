package module

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/encode"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/encode/gzip"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/headers"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/requestbody"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// mustLoad returns another handler of Caddy.
func (c *configuration) mustLoad(name string, options any) caddyhttp.MiddlewareHandler {
	c.t.Helper()
	raw, err := json.Marshal(options)
	if err != nil {
		c.t.Fatal(err)
	}
	loaded, err := c.ctx.LoadModuleByID("http.handlers."+name, raw)
	if err != nil {
		c.t.Fatal(err)
	}
	return loaded.(caddyhttp.MiddlewareHandler)
}

// behind sends a request to another handler of Caddy, which passes it on to h. A nil outer stands for no handler.
func behind(t *testing.T, outer caddyhttp.MiddlewareHandler, h *Handler, r *http.Request) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, new(caddyhttp.Server))
	var handler caddyhttp.Handler = caddyhttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		return h.ServeHTTP(w, r, nil)
	})
	if inner := handler; outer != nil {
		handler = caddyhttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
			return outer.ServeHTTP(w, r, inner)
		})
	}
	if err := handler.ServeHTTP(w, r); err != nil {
		t.Fatal(err)
	}
	return w
}

// Requests are counted with the status that the client gets, and downloads as downloads,
// whatever other handlers make of the header when it is sent.
func TestCountsBesideHandlersThatChangeTheHeader(t *testing.T) {
	const (
		sums     = "/v1/mirror/registry.example.com/acme/demo/terraform-provider-demo_1.2.0_SHA256SUMS"
		archive  = "/v1/modules/acme/vpc/aws/1.0.0/archive.tar.gz"
		metadata = "/v1/modules/acme/vpc/aws/registry.hcl"
	)
	encode := map[string]any{"encodings": map[string]any{"gzip": struct{}{}}, "minimum_length": 1}
	deleting := func(field string) any {
		return map[string]any{"response": map[string]any{"deferred": true, "delete": []string{field}}}
	}
	for _, test := range []struct {
		rule, handler string
		options       any
		path          string
		header        map[string]string
		status        int
		downloads     uint64
	}{
		{"encode compresses a file", "encode", encode, sums, map[string]string{"Accept-Encoding": "gzip"}, 200, 0},
		{"encode compresses a registry.hcl", "encode", encode, metadata, map[string]string{"Accept-Encoding": "gzip"}, 200, 0},
		{"header removes the ETag of a package", "headers", deleting("Etag"), archive, nil, 200, 1},
		{"header removes the ETag of the end of a package", "headers", deleting("Etag"), archive, map[string]string{"Range": "bytes=1-"}, 206, 1},
		{"header removes the range of the beginning of a package", "headers", deleting("Content-Range"), archive, map[string]string{"Range": "bytes=0-1"}, 206, 0},
		{"header removes the type of a package", "headers", deleting("Content-Type"), archive, nil, 200, 1},
		{"header removes the ETag of a registry.hcl", "headers", deleting("Etag"), metadata, nil, 200, 0},
		{"header removes everything", "headers", deleting("*"), archive, nil, 200, 1},
	} {
		t.Run(test.rule, func(t *testing.T) {
			files, token := publishingHandler(t)
			writeSample(indextest.OnDisk(t, files.Root).Write("modules/acme/vpc/aws/registry.hcl", `description = "A network"`))
			files.Usage = new(Usage)
			c := newConfiguration(t)
			h, outer := c.mustHandle(files), c.mustLoad(test.handler, test.options)
			c.mustStart()
			snapshot(t, h)
			r := httptest.NewRequest(http.MethodGet, "https://registry.example.com"+test.path, nil)
			r.Header.Set("Authorization", "Bearer "+token)
			for name, value := range test.header {
				r.Header.Set(name, value)
			}
			plain := behind(t, nil, h, r.Clone(t.Context()))
			if plain.Code != test.status {
				t.Fatalf("without it: %d %s", plain.Code, plain.Body)
			}
			before, bytes, downloads := counted(h, test.status), countedBytes(h), downloadsOfModule(t, h)
			w := behind(t, outer, h, r)
			if w.Code != test.status || maps.EqualFunc(w.Header(), plain.Header(), func(a, b []string) bool { return len(a) == len(b) }) {
				t.Fatalf("got %d %v", w.Code, w.Header())
			}
			if n := counted(h, test.status) - before; n != 1 {
				t.Errorf("%d is counted %d times", test.status, n)
			}
			if n := countedBytes(h) - bytes; n != uint64(plain.Body.Len()) {
				t.Errorf("%d bytes are counted, want %d", n, plain.Body.Len())
			}
			if n := downloadsOfModule(t, h) - downloads; n != test.downloads {
				t.Errorf("%d downloads are counted, want %d", n, test.downloads)
			}
		})
	}
}

// A file that is larger than request_body lets it be is too large. If it were interrupted, its
// client would send it again. Caddy itself refuses a file whose size is announced.
func TestUploadsThatAreTooLargeForCaddy(t *testing.T) {
	options, token := publishingHandler(t)
	c := newConfiguration(t)
	h, outer := c.mustHandle(options), c.mustLoad("request_body", map[string]any{"max_size": 10})
	c.mustStart()
	snapshot(t, h)
	for _, test := range []struct{ kind, path string }{
		{"package", "/v1/providers/acme/demo/1.2.0/terraform-provider-demo_1.2.0_linux_amd64.zip"},
		{"checksums", "/v1/providers/acme/demo/1.2.0/terraform-provider-demo_1.2.0_SHA256SUMS"},
		{"module", "/v1/modules/acme/vpc/aws/1.0.0.tar.gz"},
		{"metadata", "/v1/modules/acme/vpc/aws/registry.hcl"},
	} {
		t.Run(test.kind, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPut, "https://registry.example.com"+test.path, strings.NewReader("more than ten bytes"))
			r.ContentLength = -1
			r.Header.Set("Authorization", "Bearer "+token)
			w := behind(t, outer, h, r)
			if w.Code != http.StatusRequestEntityTooLarge || !strings.Contains(w.Body.String(), "larger than 10 bytes") {
				t.Errorf("got %d %s", w.Code, w.Body)
			}
			if n := h.traffic.uploaded(test.kind, "too_large"); n != 1 {
				t.Errorf("it is counted %d times", n)
			}
		})
	}
}

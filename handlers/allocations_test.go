package handlers_test

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// Most of a document's cost beyond its lookup is garbage. An answer leaves no more than
// its header fields and its Exchange.
func TestDocumentsLeaveLittleGarbage(t *testing.T) {
	const most = 300 // bytes
	files := indextest.New(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64", "darwin_arm64")
	files.Write("modules/acme/vpc/aws/1.0.0/main.tf", `output "a" { value = 1 }`)
	g := registry(scan(t, files))
	var told *handlers.Exchange
	g.Answered = func(_ *http.Request, e *handlers.Exchange) { told = e }
	for _, path := range []string{
		wellKnown,
		"/v1/providers/acme/demo/versions",
		"/v1/providers/acme/demo/1.0.0/download/linux/amd64",
		"/v1/mirror/" + ownHost + "/acme/demo/index.json",
		"/v1/mirror/" + ownHost + "/acme/demo/1.0.0.json",
		"/v1/modules/acme/vpc/aws/versions",
	} {
		r := httptest.NewRequest(http.MethodGet, home+path, nil)
		w := &sink{header: make(http.Header)}
		fewest := uint64(most + 1)
		for range 100 { // pools may be empty now and then
			clear(w.header)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			answered := g.ServeHTTP(w, r)
			runtime.ReadMemStats(&after)
			if !answered || told.Status != http.StatusOK {
				t.Fatalf("GET %s: status %d", path, told.Status)
			}
			fewest = min(fewest, after.TotalAlloc-before.TotalAlloc)
		}
		if fewest > most {
			t.Errorf("GET %s: more than %d bytes are allocated", path, most)
		}
	}
}

// An Exchange that is kept describes its request, also after the next.
func TestExchangesCanBeKept(t *testing.T) {
	files := indextest.New(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64")
	files.Write("modules/acme/vpc/aws/1.0.0/main.tf", `output "a" { value = 1 }`)
	g := registry(scan(t, files))
	var told []*handlers.Exchange
	g.Answered = func(_ *http.Request, e *handlers.Exchange) { told = append(told, e) }
	for _, path := range []string{
		"/v1/providers/acme/demo/1.0.0/download/linux/amd64",
		"/v1/modules/acme/vpc/aws/1.0.0/download",
		wellKnown,
		"/v1/providers/acme/none/versions",
	} {
		g.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, home+path, nil))
	}
	for i, want := range []struct {
		kind                       handlers.Kind
		status                     int
		address, version, platform string
	}{
		{handlers.KindProviderDownload, http.StatusOK, "acme/demo", "1.0.0", "linux_amd64"},
		{handlers.KindModuleDownload, http.StatusNoContent, "acme/vpc/aws", "1.0.0", ""},
		{handlers.KindDiscovery, http.StatusOK, "", "", ""},
		{handlers.KindProviderVersions, http.StatusNotFound, "", "", ""},
	} {
		e := told[i]
		if e.Kind != want.kind || e.Status != want.status || e.Address() != want.address || e.Version != want.version || e.Platform != want.platform {
			t.Errorf("request %d: %+v, want %+v", i, *e, want)
		}
	}
}

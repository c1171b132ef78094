package handlers_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
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

// Lists are kept by their queries, which anyone can make long although nothing is found.
func TestKeptListsDoNotKeepQueries(t *testing.T) {
	const requests = 1000
	g := registry(scan(t, indextest.New(t).Write("modules/acme/vpc/aws/1.0.0/main.tf", "# a module")))
	query := "/v1/modules/search?q=%d" + strings.Repeat("%%01", 240) + "&provider=" + strings.Repeat("%%01", 250) + "&namespace=" + strings.Repeat("%%01", 250)
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for i := range requests {
		w := httptest.NewRecorder()
		if g.ServeHTTP(w, httptest.NewRequest(http.MethodGet, home+fmt.Sprintf(query, i), nil)); w.Code != http.StatusOK {
			t.Fatalf("status %d", w.Code)
		}
	}
	if grown := int64(heap() - before); grown > requests*1500 {
		t.Errorf("%d lists without an entry take %d bytes", requests, grown)
	}
	runtime.KeepAlive(g)
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

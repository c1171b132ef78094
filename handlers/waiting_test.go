package handlers_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

// On a cold start, the requested packages are read first, and the request waits for
// them. Clients would choose an older version from an incomplete list, and OpenTofu
// asks a mirror only once (checklist 72).
func TestRequestsWaitForWhatIsNotReadYet(t *testing.T) {
	files := indextest.New(t)
	files.Provider("acme/large", "1.0.0", "linux_amd64")
	files.Provider("acme/demo", "1.0.0", "linux_amd64")
	files.Provider("acme/demo", "1.1.0", "linux_amd64")
	files.Write("modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", "x"))
	files.Write("modules/acme/vpc/aws/1.1.0.tar.gz", indextest.TarGz("main.tf", "x"))
	for _, test := range []struct {
		path   string
		status int
		has    []string
	}{
		{"/v1/providers/acme/demo/versions", http.StatusOK, []string{`"1.0.0"`, `"1.1.0"`}},
		{"/v1/providers/acme/demo/1.0.0/download/linux/amd64", http.StatusOK, []string{"demo_1.0.0"}},
		{"/v1/mirror/" + ownHost + "/acme/demo/index.json", http.StatusOK, []string{`"1.0.0"`, `"1.1.0"`}},
		{"/v1/mirror/" + ownHost + "/acme/demo/1.1.0.json", http.StatusOK, []string{"demo_1.1.0"}},
		{"/v1/mirror/" + ownHost + "/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip", http.StatusOK, nil},
		{"/v1/modules/acme/vpc/aws/versions", http.StatusOK, []string{`"1.0.0"`, `"1.1.0"`}},
		{"/v1/modules/acme/vpc/aws/1.0.0/download", http.StatusNoContent, nil},
		{"/v1/modules/acme/vpc/aws/1.1.0/archive.tar.gz", http.StatusOK, nil},
		{"/v1/modules/acme/vpc/aws", http.StatusOK, []string{`"1.0.0"`, `"1.1.0"`}},
		{"/v1/modules/acme/vpc/aws/1.0.0", http.StatusOK, []string{`"1.0.0"`, `"1.1.0"`}},
		{"/v1/providers/acme/demo", http.StatusOK, []string{`"1.0.0"`, `"1.1.0"`}},
		{"/v1/providers/acme/demo/1.0.0", http.StatusOK, []string{`"1.0.0"`, `"1.1.0"`}},
		{"/v1/modules", http.StatusOK, nil}, // lists have the packages read so far
		{"/v1/providers/search?q=demo", http.StatusOK, nil},
		{"/v1/providers/acme/none", http.StatusNotFound, nil},
		{"/v1/modules/acme/vpc/aws/9.9.9", http.StatusNotFound, nil},
		{"/v1/providers/acme/none/versions", http.StatusNotFound, nil},
		{"/v1/modules/acme/vpc/aws/9.9.9/download", http.StatusNotFound, nil},
		{"/v1/providers/acme/large/9.9.9/download/linux/amd64", http.StatusNotFound, nil},
		{"/v1/mirror/" + ownHost + "/acme/large/9.9.9.json", http.StatusOK, []string{`{"archives":{}}`}},
		{"/v1/mirror/" + ownHost + "/acme/large/terraform-provider-large_9.9.9_linux_amd64.zip", http.StatusNotFound, nil},
		{"/v1/mirror/-/acme/large/README.md", http.StatusNotFound, nil},
	} {
		t.Run(test.path, func(t *testing.T) {
			o := options(t, files)
			o.Workers = 1
			x, _ := startReading(t, o, files, "large")
			s := serve(t, &handlers.Registry{Snapshot: x.Snapshot, Next: x.Next})
			a := s.get(test.path)
			if a.StatusCode != test.status {
				t.Errorf("got %d %s", a.StatusCode, a.body)
			}
			for _, has := range test.has {
				if !strings.Contains(a.body, has) {
					t.Errorf("got %s, without %s", a.body, has)
				}
			}
		})
	}
}

// A request that waits too long is answered with 503 rather than incompletely.
func TestRequestsDoNotWaitForever(t *testing.T) {
	files := indextest.New(t)
	files.Provider("acme/large", "1.0.0", "linux_amd64")
	x, _ := startReading(t, options(t, files), files, "large")
	var waited []index.Selection
	s := serve(t, &handlers.Registry{Snapshot: x.Snapshot, Next: func(ctx context.Context, after *index.Snapshot, wanted ...index.Selection) *index.Snapshot {
		if _, limited := ctx.Deadline(); !limited {
			t.Error("it would wait forever")
		}
		waited = append(waited, wanted...)
		return nil // as after the deadline
	}})
	for _, path := range []string{"/v1/providers/acme/large/versions", "/v1/mirror/" + ownHost + "/acme/large/1.0.0.json"} {
		waited = nil
		a := s.get(path)
		mustRefuse(t, a, http.StatusServiceUnavailable)
		if !slices.ContainsFunc(waited, func(w index.Selection) bool { return w.Address == address.Address{Namespace: "acme", Name: "large"} }) {
			t.Errorf("%s waits for %+v", path, waited)
		}
	}
}

// A request for a file that was replaced waits until the new one is verified.
func TestARequestWaitsForAFileThatIsReplaced(t *testing.T) {
	files := indextest.New(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64")
	x := index.New(options(t, files))
	x.Start()
	t.Cleanup(func() { x.Close() })
	<-x.Ready()
	s := serve(t, &handlers.Registry{Snapshot: x.Snapshot, Next: x.Next, Changed: x.Refresh})
	path := "/v1/mirror/" + ownHost + "/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip"
	s.get(path)
	other := indextest.Zip("terraform-provider-demo_v1.0.0", "another build, of another size")
	files.Write("providers/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip", other)
	if a := s.get(path); a.StatusCode != http.StatusOK || a.body != other {
		t.Errorf("got %d and %d bytes of %d", a.StatusCode, len(a.body), len(other))
	}
}

// Requests also wait for unread packages in a mirror's tree, even if its origin cannot
// be reached.
func TestRequestsWaitForTheTreeOfAMirror(t *testing.T) {
	files := indextest.New(t)
	files.Provider("acme/large", "1.0.0", "linux_amd64")
	files.Provider(originHost+"/acme/demo", "1.0.0", "linux_amd64")
	o := options(t, files)
	o.Workers = 1
	for _, path := range []string{"demo/index.json", "demo/1.0.0.json", "demo/terraform-provider-demo_1.0.0_linux_amd64.zip"} {
		for rule, fail := range map[string]func(context.Context) error{"fails": failWith(upstream.ErrTimeout), "hangs": hang} {
			if rule == "hangs" && strings.HasSuffix(path, ".zip") {
				continue // fetching a package may take long
			}
			synctest.Test(t, func(t *testing.T) {
				x, _ := startReading(t, o, files, "large")
				began := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // as long as clients wait
				defer cancel()
				r := httptest.NewRequestWithContext(ctx, http.MethodGet, originPath+path, nil)
				w := serveRecorded(&handlers.Registry{Snapshot: x.Snapshot, Next: x.Next, Upstream: failing{fail: fail}}, r)
				if w.Code != http.StatusOK || time.Since(began) > handlers.Patience {
					t.Errorf("%s, with an origin that %s: got %d after %s: %s", path, rule, w.Code, time.Since(began), w.Body)
				}
			})
		}
	}
}

// The right to read hosted addresses does not reveal that mirrored ones are being read,
// under any name of the registry in the request.
func TestPendingIsPrivate(t *testing.T) {
	files := indextest.New(t)
	files.Write("modules/registry.terraform.io/acme/vpc/aws/1.0.0.zip", indextest.Zip("main.tf", "x"))
	files.Provider("registry.terraform.io/acme/demo", "1.0.0", "linux_amd64")
	x, _ := startReading(t, options(t, files), files, "1.0.0")
	g := privately(t, &handlers.Registry{Snapshot: x.Snapshot}, "allow reader read acme")
	for _, path := range []string{
		"/v1/modules/acme/vpc/aws/versions",
		"/v1/modules/acme/vpc/aws/download",
		"/v1/modules/acme/vpc/aws/1.0.0/download",
		"/v1/modules/acme/vpc/aws/1.0.0/archive.zip",
		"/v1/providers/acme/demo/versions",
		"/v1/providers/acme/demo/1.0.0/download/linux/amd64",
		"/v1/mirror/registry.terraform.io/acme/demo/index.json",
		"/v1/mirror/registry.terraform.io/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip",
		"/v1/mirror/-/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip",
	} {
		if w := askAs(g, reader, "registry.terraform.io", path); w.Code != http.StatusNotFound {
			t.Errorf("%s: got %d %s", path, w.Code, w.Body)
		}
	}
}

// A request that has waited for an origin waits less for the tree, since clients give
// up after ten seconds in all.
func TestRequestsWaitOnce(t *testing.T) {
	files := indextest.New(t)
	files.Provider(originHost+"/acme/demo", "1.0.0", "linux_amd64")
	o := options(t, files)
	synctest.Test(t, func(t *testing.T) {
		x, _ := startReading(t, o, files, "")
		began := time.Now()
		g := &handlers.Registry{Snapshot: x.Snapshot, Next: x.Next, Upstream: failing{fail: hang}}
		w := serveRecorded(g, httptest.NewRequest(http.MethodGet, originPath+"demo/1.0.0.json", nil))
		if w.Code != http.StatusServiceUnavailable || time.Since(began) != handlers.Patience {
			t.Errorf("got %d after %s: %s", w.Code, time.Since(began), w.Body)
		}
	})
}

// A request also waits less for the tree if an issuer of tokens or a storage took long
// to check its credentials or its link.
func TestRequestsWaitOnceForChecksToo(t *testing.T) {
	const check = 3 * time.Second
	files := indextest.New(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64")
	o := options(t, files)
	for _, path := range []string{
		"/v1/providers/acme/demo/versions",
		"/v1/mirror/-/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip?exp=4102444800&sig=" + strings.Repeat("A", 48),
	} {
		synctest.Test(t, func(t *testing.T) {
			x, _ := startReading(t, o, files, "")
			g := privately(t, &handlers.Registry{Snapshot: x.Snapshot, Next: x.Next}, "allow reader read acme")
			g.Links.Reload = func() bool { time.Sleep(check); return true }
			authenticate := g.Authenticate
			g.Authenticate = func(r *http.Request) (access.Subject, error) {
				time.Sleep(check)
				return authenticate(r)
			}
			began := time.Now()
			w := askAs(g, reader, ownHost, path)
			if w.Code != http.StatusServiceUnavailable || time.Since(began) != handlers.Patience {
				t.Errorf("%s: got %d after %s: %s", path, w.Code, time.Since(began), w.Body)
			}
		})
	}
}

// The rules are asked once a request, however long it waits.
func TestRulesAreAskedOnce(t *testing.T) {
	files := indextest.New(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64")
	x, open := startReading(t, options(t, files), files, "")
	asked, waited := 0, 0
	g := privately(t, &handlers.Registry{Snapshot: x.Snapshot}, "allow reader read acme")
	g.Next = func(ctx context.Context, after *index.Snapshot, wanted ...index.Selection) *index.Snapshot {
		waited++
		open()
		return x.Next(ctx, after, wanted...)
	}
	authenticate := g.Authenticate
	g.Authenticate = func(r *http.Request) (access.Subject, error) {
		asked++
		return authenticate(r)
	}
	w := askAs(g, reader, ownHost, "/v1/providers/acme/demo/versions")
	if w.Code != http.StatusOK || asked != 1 || waited == 0 {
		t.Errorf("got %d %s; it was authenticated %d times and waited %d times", w.Code, w.Body, asked, waited)
	}
}

// A version under no hostname is pending although other versions of the module lie
// under the registry's name.
func TestModuleVersionUnderNoHostnameIsPending(t *testing.T) {
	files := indextest.New(t)
	files.Write("modules/acme/vpc/aws/1.0.0.zip", indextest.Zip("main.tf", "x"))
	files.Write("modules/"+ownHost+"/acme/vpc/aws/2.0.0.zip", indextest.Zip("main.tf", "x"))
	x, _ := startReading(t, options(t, files), files, "modules/acme/")
	const module = "/v1/modules/acme/vpc/aws/"
	waiting := &handlers.Registry{Snapshot: x.Snapshot, Next: x.Next}
	if w := ask(waiting, ownHost, module+"2.0.0/archive.zip"); w.Code != http.StatusOK {
		t.Fatalf("under the registry's name: got %d %s", w.Code, w.Body)
	}
	for path, want := range map[string]int{"1.0.0/archive.zip": http.StatusServiceUnavailable, "1.0.0/download": http.StatusServiceUnavailable, "9.9.9/archive.zip": http.StatusNotFound} {
		if w := ask(&handlers.Registry{Snapshot: x.Snapshot}, ownHost, module+path); w.Code != want {
			t.Errorf("%s: got %d %s, want %d", path, w.Code, w.Body, want)
		}
	}
}

// Files whose times or modes have changed, as after a restore, are read again,
// requested files first.
func TestRequestedFilesAreReadAgainFirst(t *testing.T) {
	files := indextest.New(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64")
	files.Provider("acme/large", "1.0.0", "linux_amd64")
	files.Write("modules/acme/vpc/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", "x"))
	blocked := indextest.Gate{Fs: files.Fs, Path: "large", Opened: make(chan struct{}, 100)}
	for range cap(blocked.Opened) {
		blocked.Opened <- struct{}{} // the first scan is not blocked
	}
	o := options(t, files)
	o.Open, o.Workers = indextest.On(t, blocked).Open, 1
	x := index.New(o)
	t.Cleanup(func() { x.Close() })
	if _, err := x.Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
	for len(blocked.Opened) > 0 {
		<-blocked.Opened
	}
	restored := time.Date(2026, 3, 3, 3, 3, 3, 0, time.UTC)
	for _, name := range []string{"providers/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip", "providers/acme/large/terraform-provider-large_1.0.0_linux_amd64.zip", "modules/acme/vpc/aws/1.0.0.tar.gz"} {
		if err := files.Fs.Chtimes(name, restored, restored); err != nil {
			t.Fatal(err)
		}
	}
	x.Start() // it starts a scan
	defer close(blocked.Opened)
	s := serve(t, &handlers.Registry{Snapshot: x.Snapshot, Next: x.Next, Changed: x.Refresh})
	for _, path := range []string{"/v1/mirror/-/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip", "/v1/modules/acme/vpc/aws/1.0.0/archive.tar.gz"} {
		if a := s.get(path); a.StatusCode != http.StatusOK {
			t.Errorf("%s: got %d %s", path, a.StatusCode, a.body)
		}
	}
}

// A request is answered from one snapshot even if the snapshot is replaced meanwhile.
// This test is most useful with the race detector.
func TestSnapshotsAreSwappedWhileServing(t *testing.T) {
	key, publisher := newKey(t), indextest.NewPublisher(t)
	trees := []*indextest.Tree{indextest.New(t), indextest.New(t)}
	trees[0].Provider("acme/demo", "1.0.0", "linux_amd64", "darwin_arm64")
	trees[0].Write("modules/acme/vpc/aws/1.0.0/main.tf", "# one")
	trees[1].Keys("acme", publisher)
	trees[1].Provider("acme/demo", "2.0.0", "linux_amd64").Signed(publisher)
	trees[1].Write("modules/acme/vpc/aws/2.0.0/main.tf", "# two")

	var snapshots []*index.Snapshot
	for _, files := range trees {
		snapshots = append(snapshots, scanWith(t, optionsWith(t, files, key)))
	}
	paths := []string{wellKnown, "/v1/providers/acme/demo/versions", "/v1/mirror/" + ownHost + "/acme/demo/index.json", "/v1/modules/acme/vpc/aws/versions"}
	for _, v := range []string{"1.0.0", "2.0.0"} {
		paths = append(paths,
			"/v1/providers/acme/demo/"+v+"/download/linux/amd64",
			"/v1/mirror/"+ownHost+"/acme/demo/"+v+".json",
			"/v1/mirror/"+ownHost+"/acme/demo/terraform-provider-demo_"+v+"_linux_amd64.zip",
			"/v1/mirror/"+ownHost+"/acme/demo/terraform-provider-demo_"+v+"_SHA256SUMS.sig",
			"/v1/modules/acme/vpc/aws/"+v+"/archive.tar.gz")
	}
	get := func(g *handlers.Registry, path string) string {
		w := serveRecorded(g, httptest.NewRequest(http.MethodGet, home+path, nil))
		return w.Result().Status + w.Header().Get("Etag") + w.Body.String()
	}
	allowed := make(map[string][]string)
	for _, path := range paths {
		for _, s := range snapshots {
			allowed[path] = append(allowed[path], get(registry(s), path))
		}
	}

	for _, public := range []string{"", home} { // the second writes through the pool of buffers
		var now atomic.Pointer[index.Snapshot]
		now.Store(snapshots[0])
		g := &handlers.Registry{Snapshot: now.Load, PublicURL: public}
		var swapping, clients sync.WaitGroup
		stop := make(chan struct{})
		swapping.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
					now.Store(snapshots[i%2])
				}
			}
		})
		for range 4 {
			clients.Go(func() {
				for range 50 {
					for _, path := range paths {
						got := get(g, path)
						if public == "" && !slices.Contains(allowed[path], got) {
							t.Errorf("%s: got %q, which no snapshot answers", path, got)
						}
					}
				}
			})
		}
		clients.Wait()
		close(stop)
		swapping.Wait()
	}
}

// A package in the tree that has not been read yet is a 503.
func TestPendingIsUnavailable(t *testing.T) {
	files := indextest.New(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64")
	files.Write("modules/acme/vpc/aws/1.0.0.zip", indextest.Zip("main.tf", "# one"))
	x, _ := startReading(t, options(t, files), files, "")
	s := serve(t, registry(x.Snapshot()))

	for _, path := range []string{
		"/v1/providers/acme/demo/versions",
		"/v1/providers/acme/demo/1.0.0/download/linux/amd64",
		"/v1/mirror/" + ownHost + "/acme/demo/index.json",
		"/v1/mirror/" + ownHost + "/acme/demo/1.0.0.json",
		"/v1/mirror/" + ownHost + "/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip",
		"/v1/modules/acme/vpc/aws/versions",
		"/v1/modules/acme/vpc/aws/1.0.0/download",
		"/v1/modules/acme/vpc/aws/1.0.0/archive.zip",
	} {
		s.rule("it is 503 for a moment: "+path, func(t *testing.T, s *site) {
			a := s.get(path)
			mustRefuse(t, a, http.StatusServiceUnavailable)
			if got := a.Header.Get("Retry-After"); got != "1" {
				t.Errorf("Retry-After is %q", got)
			}
		})
	}
	for path, want := range map[string]int{
		wellKnown:                                            http.StatusOK,
		"/v1/providers/acme/other/versions":                  http.StatusNotFound,
		"/v1/modules/acme/vpc/gcp/versions":                  http.StatusNotFound,
		"/v1/mirror/elsewhere.example/acme/other/index.json": http.StatusNotFound,
		"/v1/mirror/elsewhere.example/acme/other/1.0.0.json": http.StatusOK,
	} {
		s.rule("answers for the rest do not change: "+path, func(t *testing.T, s *site) {
			if a := s.get(path); a.StatusCode != want {
				t.Errorf("got %d %s", a.StatusCode, a.body)
			}
		})
	}
}

// If only unsigned releases of a provider have been read, the provider is not missing:
// a signed one may follow.
func TestPendingReleaseMayBeSigned(t *testing.T) {
	publisher := indextest.NewPublisher(t)
	files := indextest.New(t)
	files.Keys("acme", publisher)
	files.Provider("acme/demo", "1.0.0", "linux_amd64")
	o := options(t, files)
	o.Signer, o.Store = nil, new(indextest.Memo)
	before := index.New(o)
	scanned := make(chan struct{}, 1)
	before.Observe(&index.Observer{Scanned: func(_, _ *index.Snapshot, _ time.Duration) { scanned <- struct{}{} }})
	before.Start()
	<-scanned
	before.Close()

	files.Provider("acme/demo", "2.0.0", "linux_amd64").Signed(publisher)
	x, _ := startReading(t, o, files, "")
	s := serve(t, registry(x.Snapshot()))

	// Clients would choose the older version from a list without the new one.
	mustRefuse(t, s.get("/v1/mirror/"+ownHost+"/acme/demo/index.json"), http.StatusServiceUnavailable)
	if a := s.get("/v1/mirror/" + ownHost + "/acme/demo/1.0.0.json"); a.StatusCode != http.StatusOK {
		t.Errorf("what has been read is answered with %d", a.StatusCode)
	}
	mustRefuse(t, s.get("/v1/providers/acme/demo/versions"), http.StatusServiceUnavailable)
	mustRefuse(t, s.get("/v1/providers/acme/demo/2.0.0/download/linux/amd64"), http.StatusServiceUnavailable)
	mustRefuse(t, s.get("/v1/providers/acme/demo/1.0.0/download/linux/amd64"), http.StatusNotFound)
}

package handlers_test

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	svchost "github.com/hashicorp/terraform-svchost"
	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/upstreamtest"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

const (
	originHost = "origin.example.com"
	originPath = "/v1/mirror/" + originHost + "/acme/"
)

// A pulling is a mirror that is filled from an origin, which is also a Registry.
type pulling struct {
	*site
	registry *handlers.Registry
	tree     *indextest.Tree // filled from the origin
	faults   treetest.Faults // in the tree, when it is filled and read
	down     atomic.Bool     // whether the origin fails
	mutex    sync.Mutex
	asked    []string // requests to the origin
}

// pullThrough starts a mirror of the origin's tree. prepare writes the files that it has
// before.
func pullThrough(t *testing.T, origin *indextest.Tree, policy pull.Policy, prepare func(*indextest.Tree)) *pulling {
	t.Helper()
	p := new(pulling)
	behind := handler{&handlers.Registry{Snapshot: registry(scan(t, origin)).Snapshot, Hostnames: hostnames(t, originHost)}}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mutex.Lock()
		p.asked = append(p.asked, r.URL.Path)
		p.mutex.Unlock()
		if p.down.Load() {
			w.WriteHeader(http.StatusNotImplemented) // which clients do not retry
			return
		}
		behind.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	client, err := upstream.NewClient(upstream.Origin{Hostname: originHost, URL: server.URL}, upstream.Network{Roots: roots})
	if err != nil {
		t.Fatal(err)
	}

	root := t.TempDir()
	p.tree = indextest.OnDisk(t, root)
	if prepare != nil {
		prepare(p.tree)
	}
	filler, err := pull.New(pull.Options{
		Sources: map[svchost.Hostname]pull.Source{originHost: {Client: client, Policy: policy}},
		Open:    p.faults.Open(source.Directories{Root: root}.Open),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(filler.Close)
	var now atomic.Pointer[index.Snapshot]
	o := optionsWith(t, p.tree, newKey(t))
	rescan := func() { now.Store(scanWith(t, o)) }
	rescan()
	p.registry = &handlers.Registry{Snapshot: now.Load, Upstream: filler, Changed: func(...string) { rescan() }}
	p.site = serve(t, p.registry)
	return p
}

// askedFor counts requests to the origin.
func (p *pulling) askedFor(name string) int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return len(slices.DeleteFunc(slices.Clone(p.asked), func(path string) bool { return !strings.HasSuffix(path, name) }))
}

// hashes returns the hashes in VERSION.json, by platform.
func (s *site) hashes(url string) map[string][]string {
	s.t.Helper()
	var l struct {
		Archives map[string]struct{ Hashes []string }
	}
	s.json(url, &l)
	hashes := make(map[string][]string)
	for platform, a := range l.Archives {
		hashes[platform] = a.Hashes
	}
	return hashes
}

func signedTree(t *testing.T) (*indextest.Tree, *indextest.Publisher) {
	t.Helper()
	publisher := indextest.NewPublisher(t)
	files := indextest.New(t).Keys("acme", publisher)
	files.Provider("acme/demo", "1.0.0", "darwin_arm64", "linux_amd64").Signed(publisher)
	files.Provider("acme/demo", "1.1.0", "darwin_arm64", "linux_amd64").Signed(publisher)
	files.Provider("acme/denied", "1.0.0", "linux_amd64").Signed(publisher)
	return files, publisher
}

// A client does not see which packages the mirror has and which it can fetch.
func TestPullThrough(t *testing.T) {
	origin, _ := signedTree(t)
	denied, err := pull.ParsePattern("acme/denied")
	if err != nil {
		t.Fatal(err)
	}
	p := pullThrough(t, origin, pull.Policy{Deny: []address.Pattern{denied}}, nil)
	const zip = "terraform-provider-demo_1.0.0_linux_amd64.zip"

	p.rule("versions are the origin's", func(t *testing.T, s *site) {
		if got := s.get(originPath + "demo/index.json").body; got != `{"versions":{"1.1.0":{},"1.0.0":{}}}` {
			t.Errorf("got %s", got)
		}
	})
	p.rule("a version that was not fetched has zh: hashes", func(t *testing.T, s *site) {
		got := s.hashes(originPath + "demo/1.0.0.json")
		for _, platform := range []string{"darwin_arm64", "linux_amd64"} {
			if len(got[platform]) != 1 || !strings.HasPrefix(got[platform][0], "zh:") {
				t.Errorf("%s: got %v", platform, got[platform])
			}
		}
		if p.askedFor(".zip") != 0 {
			t.Error("a package was fetched before it was requested")
		}
	})
	p.rule("a package is the publisher's", func(t *testing.T, s *site) {
		a := s.get(originPath + "demo/" + zip)
		if a.StatusCode != http.StatusOK || a.body != origin.Read("providers/acme/demo/"+zip) {
			t.Fatalf("got %d %.100s", a.StatusCode, a.body)
		}
		if got := a.Header.Get("Content-Type"); got != "application/zip" {
			t.Errorf("Content-Type is %s", got)
		}
		if !strings.HasSuffix(a.Header.Get("Cache-Control"), "immutable") || a.Header.Get("Etag") == "" {
			t.Errorf("header is %v", a.Header)
		}
	})
	p.rule("from then on it is in the tree", func(t *testing.T, s *site) {
		fetched := p.askedFor(".zip")
		if a := s.get(originPath+"demo/"+zip, "Range: bytes=0-3"); a.StatusCode != http.StatusPartialContent || a.body != "PK\x03\x04" {
			t.Errorf("a range: got %d %q", a.StatusCode, a.body)
		}
		if got := p.askedFor(".zip"); got != fetched || got != 1 {
			t.Errorf("the origin was asked %d times for packages", got)
		}
		got := s.hashes(originPath + "demo/1.0.0.json")
		if len(got["linux_amd64"]) != 2 || len(got["darwin_arm64"]) != 1 {
			t.Errorf("got %v, want h1: and zh: of the package in the tree, zh: of the other", got)
		}
	})
	p.rule("SHA256SUMS and its signature are there too", func(t *testing.T, s *site) {
		for _, name := range []string{"terraform-provider-demo_1.0.0_SHA256SUMS", "terraform-provider-demo_1.0.0_SHA256SUMS.sig"} {
			if a := s.get(originPath + "demo/" + name); a.body != origin.Read("providers/acme/demo/"+name) {
				t.Errorf("%s: got %d %q", name, a.StatusCode, a.body)
			}
		}
	})
	p.rule("missing from both", func(t *testing.T, s *site) {
		mustRefuse(t, s.get(originPath+"nothing/index.json"), http.StatusNotFound)
		mustRefuse(t, s.get(originPath+"demo/terraform-provider-demo_9.0.0_linux_amd64.zip"), http.StatusNotFound)
		mustRefuse(t, s.get(originPath+"demo/terraform-provider-demo_1.0.0_plan9_386.zip"), http.StatusNotFound)
		mustRefuse(t, s.get(originPath+"demo/README.md"), http.StatusNotFound)
		if got := s.get(originPath + "demo/9.0.0.json"); got.StatusCode != http.StatusOK || got.body != `{"archives":{}}` {
			t.Errorf("a version: got %d %s (checklist 66)", got.StatusCode, got.body)
		}
	})
	p.rule("what is denied, or of another hostname, is not requested from the origin", func(t *testing.T, s *site) {
		mustRefuse(t, s.get(originPath+"denied/index.json"), http.StatusNotFound)
		mustRefuse(t, s.get("/v1/mirror/elsewhere.example.com/acme/demo/index.json"), http.StatusNotFound)
		mustRefuse(t, s.get("/v1/providers/acme/demo/versions"), http.StatusNotFound)
		if p.askedFor("denied/versions") != 0 {
			t.Error("the origin was asked")
		}
	})
	p.rule("a Host header does not make a mirrored provider hosted", func(t *testing.T, _ *site) {
		before := len(p.asked)
		if w := ask(p.registry, originHost, originPath+"demo/1.1.0.json"); w.Body.String() != `{"archives":{}}` {
			t.Errorf("got %s", w.Body)
		}
		if len(p.asked) != before {
			t.Error("the origin was asked for a hosted provider")
		}
	})
}

// Terraform 0.13 knows only h1:. It refuses a list of hashes without one, but accepts a
// package without a list (checklist 68). Other clients get the hashes.
func TestPullThroughForTerraform013(t *testing.T) {
	origin, _ := signedTree(t)
	p := pullThrough(t, origin, pull.Policy{}, nil)
	const old, new = "User-Agent: Terraform/0.13.7", "User-Agent: Terraform/1.16.0"
	document := func(client string) (string, string) {
		a := p.get(originPath+"demo/1.0.0.json", client)
		return a.body, a.Header.Get("Etag")
	}
	plain, etag := document(new)
	for range 2 { // the second time from the cache
		got, other := document(old)
		if strings.Contains(got, "hashes") || strings.Count(got, `{"url":"terraform-provider-demo_1.0.0_`) != 2 {
			t.Errorf("before the package is fetched: got %s", got)
		}
		if other == etag {
			t.Error("both have one ETag")
		}
		if again, same := document(new); again != plain || same != etag || strings.Count(again, `"zh:`) != 2 {
			t.Errorf("other clients get %s", again)
		}
	}
	if a := p.get(originPath+"demo/terraform-provider-demo_1.0.0_linux_amd64.zip", old); a.StatusCode != http.StatusOK {
		t.Fatalf("got %d", a.StatusCode)
	}
	got, _ := document(old)
	if strings.Count(got, `"hashes"`) != 1 || !strings.Contains(got, `"linux_amd64":{"hashes":["h1:`) || !strings.Contains(got, `"darwin_arm64":{"url":`) {
		t.Errorf("once it is fetched: got %s", got)
	}
	if got := p.hashes(originPath + "demo/1.0.0.json"); len(got["linux_amd64"]) != 2 || len(got["darwin_arm64"]) != 1 {
		t.Errorf("other clients get %v", got)
	}
}

// A SHA256SUMS that the registry made lists only the packages in the tree. Packages
// that only the origin has are offered as well.
func TestPullThroughOfPackagesAlone(t *testing.T) {
	origin, _ := signedTree(t)
	p := pullThrough(t, origin, pull.Policy{}, func(files *indextest.Tree) {
		files.Provider(originHost+"/acme/demo", "1.0.0", "linux_amd64") // as `terraform providers mirror` writes it
	})
	got := p.hashes(originPath + "demo/1.0.0.json")
	if len(got["linux_amd64"]) != 2 || len(got["darwin_arm64"]) != 1 {
		t.Errorf("got %v, want the packages of the tree and of the origin", got)
	}
}

// A request for SHA256SUMS or its signature writes nothing, so it triggers no scan.
func TestPullThroughOfDocumentsScansNothing(t *testing.T) {
	origin, _ := signedTree(t)
	p := pullThrough(t, origin, pull.Policy{}, nil)
	scans := 0
	s := serve(t, &handlers.Registry{Snapshot: p.registry.Snapshot, Upstream: p.registry.Upstream, Changed: func(...string) { scans++ }})
	for range 3 {
		if a := s.get(originPath + "demo/terraform-provider-demo_1.0.0_SHA256SUMS"); a.StatusCode != http.StatusOK {
			t.Fatalf("got %d %s", a.StatusCode, a.body)
		}
	}
	if scans != 0 {
		t.Errorf("the tree was scanned %d times", scans)
	}
	if a := s.get(originPath + "demo/terraform-provider-demo_1.0.0_linux_amd64.zip"); a.StatusCode != http.StatusOK || scans != 1 {
		t.Errorf("a package: got %d, and %d scans", a.StatusCode, scans)
	}
}

// An origin that hangs does not keep clients from packages in the tree. Clients give up
// after ten seconds.
func TestPullThroughFromAnOriginThatHangs(t *testing.T) {
	files := indextest.New(t)
	files.Provider(originHost+"/acme/demo", "1.0.0", "linux_amd64")
	snapshot := scan(t, files)
	synctest.Test(t, func(t *testing.T) {
		g := &handlers.Registry{Snapshot: func() *index.Snapshot { return snapshot }, Upstream: failing{fail: hang}}
		for _, path := range []string{"demo/index.json", "demo/1.0.0.json"} {
			began := time.Now()
			w := ask(g, ownHost, originPath+path)
			if w.Code != http.StatusOK || time.Since(began) > 5*time.Second {
				t.Errorf("%s: got %d after %s", path, w.Code, time.Since(began))
			}
		}
	})
}

// failing is an upstream whose origin gives nothing.
type failing struct {
	pull.Upstream
	fail func(context.Context) error // is not nil
}

// hang is the failure of an origin that never answers. A real one would need real seconds.
func hang(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// failWith is the failure of an origin that answers at once.
func failWith(err error) func(context.Context) error {
	return func(context.Context) error { return err }
}

func (failing) Mirrors(address.Address) bool { return true }

func (failing) Misled(wire.SHA256) bool { return false }

func (failing) MayHaveMore(address.Address, *index.Release) bool { return false }

func (u failing) Versions(ctx context.Context, _ address.Address) (pull.Offering, error) {
	return pull.Offering{}, u.fail(ctx)
}

func (u failing) Available(ctx context.Context, _ address.Address, _ string, _ *index.Release) ([]wire.Archive, bool, error) {
	return nil, false, u.fail(ctx)
}

func (u failing) Fill(ctx context.Context, _ address.Address, _ string, _ *index.Provider, _ pull.FillOptions) (*pull.Filled, error) {
	return nil, u.fail(ctx)
}

// If the origin fails, packages in the tree are still offered, and the answers for all
// others say why they are not.
func TestPullThroughWithoutOrigin(t *testing.T) {
	origin, publisher := signedTree(t)
	p := pullThrough(t, origin, pull.Policy{}, func(files *indextest.Tree) {
		files.Keys(originHost+"/acme", publisher)
		files.Provider(originHost+"/acme/demo", "1.0.0", "linux_amd64").Signed(publisher)
	})
	p.down.Store(true)
	if got := p.get(originPath + "demo/index.json").body; got != `{"versions":{"1.0.0":{}}}` {
		t.Errorf("versions: got %s", got)
	}
	if got := p.hashes(originPath + "demo/1.0.0.json"); len(got["linux_amd64"]) != 2 {
		t.Errorf("archives: got %v", got)
	}
	if got := p.get(originPath + "demo/terraform-provider-demo_1.0.0_linux_amd64.zip").StatusCode; got != http.StatusOK {
		t.Errorf("a package: got %d", got)
	}
	for _, path := range []string{"demo/1.1.0.json", "demo/terraform-provider-demo_1.1.0_linux_amd64.zip", "other/index.json"} {
		a := p.get(originPath + path)
		mustRefuse(t, a, http.StatusBadGateway)
		var body struct{ Errors []string }
		if err := json.Unmarshal([]byte(a.body), &body); err != nil || !strings.Contains(body.Errors[0], "127.0.0.1") || !strings.Contains(body.Errors[0], "501") {
			t.Errorf("%s: got %s, want the host and its status", path, a.body)
		}
	}
}

// The origin is not asked on behalf of requests that the rules refuse.
func TestPullThroughAsksRulesFirst(t *testing.T) {
	origin, _ := signedTree(t)
	p := pullThrough(t, origin, pull.Policy{}, nil)
	g := privately(t, &handlers.Registry{Snapshot: p.registry.Snapshot, Upstream: p.registry.Upstream, Changed: p.registry.Changed},
		"allow reader read "+originHost+"/acme")
	s := serve(t, g)
	const zip = "demo/terraform-provider-demo_1.0.0_linux_amd64.zip"
	for _, path := range []string{"demo/index.json", "demo/1.0.0.json", zip} {
		mustRefuse(t, s.get(originPath+path), http.StatusUnauthorized)
	}
	mustRefuse(t, s.get(originPath+"demo/index.json", stranger), http.StatusNotFound)
	mustRefuse(t, s.get(originPath+zip, stranger), http.StatusNotFound)
	if got := s.get(originPath+"demo/1.0.0.json", stranger).body; got != `{"archives":{}}` {
		t.Errorf("got %s", got)
	}
	if len(p.asked) != 0 {
		t.Errorf("the origin was asked for %v", p.asked)
	}

	var l archives
	a := s.json(originPath+"demo/1.0.0.json", &l, reader)
	link := resolve(t, a, l.Archives["linux_amd64"].URL)
	if got := s.get(link.String()); got.StatusCode != http.StatusOK || got.body != origin.Read("providers/acme/"+zip) {
		t.Errorf("by a link: got %d %.100s", got.StatusCode, got.body)
	}
	if got := s.get(link.String()).Header.Get("Cache-Control"); !strings.HasPrefix(got, "private") {
		t.Errorf("Cache-Control is %s", got)
	}
}

// An upstream is told which client asks, and ErrBusy is a 503 with Retry-After.
func TestPullThroughKnowsItsClients(t *testing.T) {
	snapshot, client := scan(t, indextest.New(t)), ""
	crowded := failing{fail: func(ctx context.Context) error {
		client = upstream.ClientOf(ctx)
		return &upstream.Failure{Host: originHost, Kind: upstream.ErrBusy}
	}}
	for _, test := range []struct {
		rule string
		tell func(*http.Request) string
		want string
	}{
		{"the address of the connection", nil, "192.0.2.1"},
		{"the address that a proxy tells", func(r *http.Request) string { return r.Header.Get("X-Client") }, "198.51.100.7"},
		{"a proxy that tells nothing", func(*http.Request) string { return "" }, "192.0.2.1"},
	} {
		g := &handlers.Registry{Snapshot: func() *index.Snapshot { return snapshot }, Upstream: crowded, ClientAddress: test.tell}
		for _, file := range []string{"index.json", "1.0.0.json", "terraform-provider-demo_1.0.0_linux_amd64.zip"} {
			r := httptest.NewRequest(http.MethodGet, "https://registry.example.com"+originPath+"demo/"+file, nil)
			r.RemoteAddr = "192.0.2.1:1234"
			r.Header.Set("X-Client", "198.51.100.7")
			w := httptest.NewRecorder()
			client = ""
			g.ServeHTTP(w, r)
			if client != test.want {
				t.Errorf("%s, %s: the client is %q", test.rule, file, client)
			}
			if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != "1" {
				t.Errorf("%s: got %d %v", file, w.Code, w.Header())
			}
		}
	}
}

// A release that is complete by its SHA256SUMS is offered with the platforms that the
// origin has added since. The origin is asked only if it may have any.
func TestPullThroughOfPlatformsThatAreAdded(t *testing.T) {
	publisher := indextest.NewPublisher(t)
	files := indextest.New(t).Keys(originHost+"/acme", publisher)
	files.Provider(originHost+"/acme/demo", "1.0.0", "linux_amd64").Signed(publisher)
	snapshot := scan(t, files)
	for _, release := range []*upstream.Release{new(upstream.Release), unsignedRelease(t, indextest.New(t))} {
		more := len(release.Packages) > 1
		s := serve(t, &handlers.Registry{Snapshot: func() *index.Snapshot { return snapshot }, Upstream: releasing{release: release}})
		got := s.hashes(originPath + "demo/1.0.0.json")
		if len(got["linux_amd64"]) != 2 || (len(got["darwin_arm64"]) == 1) != more {
			t.Errorf("more: %v, got %v", more, got)
		}
	}
}

// A file is served as soon as it is in the tree, even if the root of the snapshot has
// been replaced by a rename since.
func TestPullThroughIntoARootThatWasReplaced(t *testing.T) {
	origin, _ := signedTree(t)
	p := pullThrough(t, origin, pull.Policy{}, nil)
	root, err := p.tree.Fs.(*afero.BasePathFs).RealPath(".")
	if err != nil {
		t.Fatal(err)
	}
	before, err := index.Scan(context.Background(), index.Options{Open: source.Directories{Root: root}.Open})
	if err != nil {
		t.Fatal(err)
	}
	p.registry.Snapshot, p.registry.Changed = func() *index.Snapshot { return before }, nil
	if err := os.Rename(root, root+".old"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	zip := "terraform-provider-demo_1.0.0_linux_amd64.zip"
	for range 2 {
		if got := p.get(originPath + "demo/" + zip); got.StatusCode != http.StatusOK {
			t.Errorf("got %d: %s", got.StatusCode, got.body)
		}
	}
}

// Whoever finds no version is told whether the origin lists none, or none may be fetched.
func TestProvidersWithoutAVersion(t *testing.T) {
	for _, test := range []struct {
		rule, list string
		minAge     time.Duration
		says       string
	}{
		{"the origin lists none", `{"versions":[]}`, 0, "and its origin lists none that clients accept"},
		{"the origin lists none that clients accept", `{"versions":[{"version":"v1.0.0"}]}`, 0, "and its origin lists none that clients accept"},
		{"all are too young", `{"versions":[{"version":"1.0.0"}]}`, time.Hour, "and those that its origin lists are withdrawn here or too young"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			s := upstreamtest.NewAcme(t)
			s.Fault(upstreamtest.VersionsPath, upstreamtest.Body(test.list))
			s.Fault("/v1/providers/acme/demo/1.0.0", upstreamtest.Status(http.StatusNotFound)) // it does not say when it was published
			files := indextest.New(t)
			filler, err := pull.New(pull.Options{
				Sources: map[svchost.Hostname]pull.Source{upstreamtest.Host: {Client: s.Client(t, upstream.Origin{}), Policy: pull.Policy{MinAge: test.minAge}}},
				Open:    files.Open,
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(filler.Close)
			snapshot := scan(t, files)
			g := &handlers.Registry{Snapshot: func() *index.Snapshot { return snapshot }, Upstream: filler}
			w := ask(g, "mirror.example.com", "/v1/registries/"+upstreamtest.Host+"/providers/acme/demo/versions")
			if w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "this registry has no version of "+upstreamtest.Host+"/acme/demo, "+test.says) {
				t.Errorf("got %d %s", w.Code, w.Body)
			}
			if w := ask(g, "mirror.example.com", "/v1/mirror/"+upstreamtest.Host+"/acme/demo/index.json"); w.Code != http.StatusOK || w.Body.String() != `{"versions":{}}` {
				t.Errorf("the mirror: got %d %s", w.Code, w.Body)
			}
		})
	}
}

package handlers_test

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// A request is answered from one snapshot, whatever takes its place meanwhile.
// The race detector makes the most of this test.
func TestSnapshotsAreSwappedWhileServing(t *testing.T) {
	key, publisher := newKey(t), indextest.NewPublisher(t)
	trees := []*indextest.Tree{indextest.New(t), indextest.New(t)}
	trees[0].Provider("acme/demo", "1.0.0", "linux_amd64", "darwin_arm64")
	trees[0].Write("modules/acme/vpc/aws/1.0.0/main.tf", "# one")
	trees[1].Keys("acme", publisher)
	trees[1].Provider("acme/demo", "2.0.0", "linux_amd64").Signed(publisher)
	trees[1].Write("modules/acme/vpc/aws/2.0.0/main.tf", "# two")

	var snapshots []*index.Snapshot
	for _, tree := range trees {
		snapshots = append(snapshots, scanWith(t, optionsWith(t, tree, key)))
	}
	paths := []string{wellKnown, "/v1/providers/acme/demo/versions", "/v1/mirror/" + own + "/acme/demo/index.json", "/v1/modules/acme/vpc/aws/versions"}
	for _, v := range []string{"1.0.0", "2.0.0"} {
		paths = append(paths,
			"/v1/providers/acme/demo/"+v+"/download/linux/amd64",
			"/v1/mirror/"+own+"/acme/demo/"+v+".json",
			"/v1/mirror/"+own+"/acme/demo/terraform-provider-demo_"+v+"_linux_amd64.zip",
			"/v1/mirror/"+own+"/acme/demo/terraform-provider-demo_"+v+"_SHA256SUMS.sig",
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

// slowFs holds back the reading of archives until it is let go.
type slowFs struct {
	afero.Fs
	archives chan struct{}
}

func (s slowFs) Open(name string) (afero.File, error) {
	if strings.HasSuffix(name, ".zip") {
		<-s.archives
	}
	return s.Fs.Open(name)
}

// What lies in the tree and has not been read yet is neither there nor missing.
func TestWhatIsStillRead(t *testing.T) {
	tree := indextest.New(t)
	tree.Provider("acme/demo", "1.0.0", "linux_amd64")
	tree.Write("modules/acme/vpc/aws/1.0.0.zip", indextest.Zip("main.tf", "# one"))
	slow := slowFs{tree.Fs, make(chan struct{})}
	defer close(slow.archives) // before the index is closed
	x := index.New(options(t, indextest.On(t, slow)))
	x.Start()
	t.Cleanup(func() { x.Close() })
	<-x.Ready()
	s := serve(t, registry(x.Snapshot()))

	for _, path := range []string{
		"/v1/providers/acme/demo/versions",
		"/v1/providers/acme/demo/1.0.0/download/linux/amd64",
		"/v1/mirror/" + own + "/acme/demo/index.json",
		"/v1/mirror/" + own + "/acme/demo/1.0.0.json",
		"/v1/mirror/" + own + "/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip",
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
		s.rule("what is not in the tree is answered as ever: "+path, func(t *testing.T, s *site) {
			if a := s.get(path); a.StatusCode != want {
				t.Errorf("got %d %s", a.StatusCode, a.body)
			}
		})
	}
}

// A store keeps in memory what would outlive a restart.
type store struct{ memo []byte }

func (s *store) Load() ([]byte, error) {
	if s.memo == nil {
		return nil, fs.ErrNotExist
	}
	return s.memo, nil
}

func (s *store) Save(memo []byte) error {
	s.memo = memo
	return nil
}

// A provider of which only unsigned releases have been read may have a signed
// one still: it is not missing either.
func TestASignedReleaseIsStillRead(t *testing.T) {
	publisher := indextest.NewPublisher(t)
	tree := indextest.New(t)
	tree.Keys("acme", publisher)
	tree.Provider("acme/demo", "1.0.0", "linux_amd64")
	o := options(t, tree)
	o.Signer, o.Store = nil, new(store)
	before := index.New(o)
	scanned := make(chan struct{}, 1)
	before.Observe(&index.Observer{Scanned: func(_, _ *index.Snapshot, _ time.Duration) { scanned <- struct{}{} }})
	before.Start()
	<-scanned
	before.Close()

	tree.Provider("acme/demo", "2.0.0", "linux_amd64").Signed(publisher)
	slow := slowFs{tree.Fs, make(chan struct{})}
	defer close(slow.archives) // before the index is closed
	o.Open = indextest.On(t, slow).Open
	x := index.New(o)
	x.Start()
	t.Cleanup(func() { x.Close() })
	<-x.Ready()
	s := serve(t, registry(x.Snapshot()))

	// A list without it would have clients choose the older one.
	mustRefuse(t, s.get("/v1/mirror/"+own+"/acme/demo/index.json"), http.StatusServiceUnavailable)
	if a := s.get("/v1/mirror/" + own + "/acme/demo/1.0.0.json"); a.StatusCode != http.StatusOK {
		t.Errorf("what has been read is answered with %d", a.StatusCode)
	}
	mustRefuse(t, s.get("/v1/providers/acme/demo/versions"), http.StatusServiceUnavailable)
	mustRefuse(t, s.get("/v1/providers/acme/demo/2.0.0/download/linux/amd64"), http.StatusServiceUnavailable)
	mustRefuse(t, s.get("/v1/providers/acme/demo/1.0.0/download/linux/amd64"), http.StatusNotFound)
}

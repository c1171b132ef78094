package upstream_test

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// The origin of the tests, a name that the certificate of httptest is for.
const host = "registry.example.com"

var (
	demo  = address.Address{Hostname: host, Namespace: "acme", Name: "demo"}
	linux = address.Platform{OS: "linux", Arch: "amd64"}
	v1    = wire.ProviderVersion{Version: "1.0.0"}
)

const (
	discovery  = "/.well-known/terraform.json"
	versions   = "/v1/providers/acme/demo/versions"
	metadata   = "/v1/providers/acme/demo/1.0.0/download/linux/amd64"
	files      = "/v1/mirror/" + host + "/acme/demo/"
	zipFile    = files + "terraform-provider-demo_1.0.0_linux_amd64.zip"
	sumsFile   = files + "terraform-provider-demo_1.0.0_SHA256SUMS"
	sigFile    = sumsFile + ".sig"
	mirrorBase = "https://" + host + "/v1/mirror/"
)

// A site is a real registry, whose answers can be replaced path by path.
type site struct {
	http.Handler
	mutex  sync.Mutex
	faults map[string]http.HandlerFunc
	asked  []*http.Request
}

// newSite serves a tree as the origin would.
func newSite(t testing.TB, tree *indextest.Tree) *site {
	t.Helper()
	key, err := signing.ReadKey([]byte(indextest.NewPublisher(t).PrivateKey()), "")
	if err != nil {
		t.Fatal(err)
	}
	snapshot, err := index.Scan(context.Background(), index.Options{
		Open:   tree.Open,
		Signer: key,
	})
	if err != nil {
		t.Fatal(err)
	}
	g := &handlers.Registry{Snapshot: func() *index.Snapshot { return snapshot }, Hostnames: []svchost.Hostname{host}}
	return &site{faults: make(map[string]http.HandlerFunc), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !g.ServeHTTP(w, r) {
			http.NotFound(w, r)
		}
	})}
}

// acme is a tree with one release, signed by its publisher.
func acme(t testing.TB) (*indextest.Tree, *indextest.Publisher) {
	t.Helper()
	publisher := indextest.NewPublisher(t)
	tree := indextest.New(t)
	tree.Provider("acme/demo", "1.0.0", "linux_amd64", "darwin_arm64").Signed(publisher)
	tree.Keys("acme", publisher)
	return tree, publisher
}

func newAcme(t testing.TB) *site {
	t.Helper()
	tree, _ := acme(t)
	return newSite(t, tree)
}

// underName is the path of a hosted file under the name of the site, as the mirror
// has it: there it is the same.
func underName(path string) string {
	return strings.Replace(path, "/mirror/-/", "/mirror/"+host+"/", 1)
}

// fault replaces the answer to a path; nil restores it.
func (s *site) fault(path string, f http.HandlerFunc) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.faults[path] = f
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mutex.Lock()
	s.asked = append(s.asked, r)
	f := s.faults[underName(r.URL.Path)]
	s.mutex.Unlock()
	if f == nil {
		f = s.Handler.ServeHTTP
	}
	f(w, r)
}

// count is how often a path was asked for.
func (s *site) count(path string) (n int) { return len(s.requests(path)) }

func (s *site) requests(path string) (list []*http.Request) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, r := range s.asked {
		if underName(r.URL.Path) == path {
			list = append(list, r)
		}
	}
	return list
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func body(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(text)) }
}

func redirect(to string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusFound) }
}

// edited is the real answer with one text for another.
func (s *site) edited(old, new string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		recorder := httptest.NewRecorder()
		s.Handler.ServeHTTP(recorder, r)
		w.Write([]byte(strings.ReplaceAll(recorder.Body.String(), old, new)))
	}
}

// serve starts the site on a real socket, over TLS and HTTP/2.
func (s *site) serve(t testing.TB) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(s)
	server.EnableHTTP2 = true
	server.Config.ErrorLog = quiet
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

func roots(server *httptest.Server) *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	return pool
}

// resolving is a network in which all names are those of one server, asked by
// the dialer the client chose: where it refuses the address, it is refused.
func resolving(server *httptest.Server) upstream.Option {
	return upstream.Through(func(ctx context.Context, d *net.Dialer, network, _ string) (net.Conn, error) {
		return d.DialContext(ctx, network, server.Listener.Addr().String())
	})
}

// client is one of the site under its own name.
func (s *site) client(t testing.TB, o upstream.Origin) *upstream.Client {
	t.Helper()
	server := s.serve(t)
	o.Hostname = host
	return newClient(t, o, upstream.Trust(roots(server)), resolving(server))
}

func newClient(t testing.TB, o upstream.Origin, options ...upstream.Option) *upstream.Client {
	t.Helper()
	c, err := upstream.NewClient(o, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// mustFail checks a failure: its kind, what it says, and that it keeps URLs,
// tokens and addresses to itself.
func mustFail(t testing.TB, err, kind error, says string) {
	t.Helper()
	var f *upstream.Failure
	if !errors.As(err, &f) || !errors.Is(err, kind) {
		t.Fatalf("got %v, want a failure: %v", err, kind)
	}
	if !strings.Contains(err.Error(), says) {
		t.Errorf("it says %q, not %q", err, says)
	}
	for _, secret := range []string{"://", "?", "/v1", "secret", "127.0.0.1", "::1"} {
		if strings.Contains(strings.TrimPrefix(err.Error(), f.Host), secret) {
			t.Errorf("it says %q", err)
		}
	}
}

func background() context.Context { return context.Background() }

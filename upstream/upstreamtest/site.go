// Package upstreamtest has an origin for tests: a real registry over TLS, whose
// answers can be replaced path by path.
package upstreamtest

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
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
const Host = "registry.example.com"

var (
	Demo  = address.Address{Hostname: Host, Namespace: "acme", Name: "demo"}
	Linux = address.Platform{OS: "linux", Arch: "amd64"}
	V1    = wire.ProviderVersion{Version: "1.0.0"}
)

const (
	DiscoveryPath = "/.well-known/terraform.json"
	VersionsPath  = "/v1/providers/acme/demo/versions"
	DownloadPath  = "/v1/providers/acme/demo/1.0.0/download/linux/amd64"
	FilesPath     = "/v1/mirror/" + Host + "/acme/demo/"
	ZipPath       = FilesPath + "terraform-provider-demo_1.0.0_linux_amd64.zip"
	ChecksumsPath = FilesPath + "terraform-provider-demo_1.0.0_SHA256SUMS"
	SignaturePath = ChecksumsPath + ".sig"
	MirrorURL     = "https://" + Host + "/v1/mirror/"
)

// A Site is a real registry, whose answers can be replaced path by path.
type Site struct {
	http.Handler
	mutex  sync.Mutex
	faults map[string]http.HandlerFunc
	asked  []*http.Request
}

// NewSite serves a tree as the origin would.
func NewSite(t testing.TB, tree *indextest.Tree) *Site {
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
	g := &handlers.Registry{Snapshot: func() *index.Snapshot { return snapshot }, Hostnames: []svchost.Hostname{Host}}
	return &Site{faults: make(map[string]http.HandlerFunc), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !g.ServeHTTP(w, r) {
			http.NotFound(w, r)
		}
	})}
}

// AcmeTree is a tree with one release, signed by its publisher.
func AcmeTree(t testing.TB) (*indextest.Tree, *indextest.Publisher) {
	t.Helper()
	publisher := indextest.NewPublisher(t)
	tree := indextest.New(t)
	tree.Provider("acme/demo", "1.0.0", "linux_amd64", "darwin_arm64").Signed(publisher)
	tree.Keys("acme", publisher)
	return tree, publisher
}

func NewAcme(t testing.TB) *Site {
	t.Helper()
	tree, _ := AcmeTree(t)
	return NewSite(t, tree)
}

// underName is the path of a hosted file under the name of the site, as the mirror
// has it: there it is the same.
func underName(path string) string {
	return strings.Replace(path, "/mirror/-/", "/mirror/"+Host+"/", 1)
}

// Fault replaces the answer to a path; nil restores it. It returns what was the
// answer before.
func (s *Site) Fault(path string, f http.HandlerFunc) (before http.HandlerFunc) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	before, s.faults[path] = s.faults[path], f
	return before
}

// Become has the site answer as another one from now on.
func (s *Site) Become(other *Site) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.Handler = other.Handler
}

// Asked are all requests there were.
func (s *Site) Asked() []*http.Request {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.Clone(s.asked)
}

func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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
func (s *Site) Count(path string) (n int) { return len(s.Requests(path)) }

func (s *Site) Requests(path string) (list []*http.Request) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, r := range s.asked {
		if underName(r.URL.Path) == path {
			list = append(list, r)
		}
	}
	return list
}

func Status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func Body(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(text)) }
}

func Redirect(to string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusFound) }
}

// edited is the real answer with one text for another.
func (s *Site) Edited(old, new string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		recorder := httptest.NewRecorder()
		s.Handler.ServeHTTP(recorder, r)
		w.Write([]byte(strings.ReplaceAll(recorder.Body.String(), old, new)))
	}
}

// serve starts the site on a real socket, over TLS and HTTP/2.
func (s *Site) Serve(t testing.TB) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(s)
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

func Roots(server *httptest.Server) *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	return pool
}

// Resolving is a network in which all names are those of one server, asked by
// the dialer the client chose: where it refuses the address, it is refused.
func Resolving(server *httptest.Server) upstream.Option {
	return upstream.Connect(func(ctx context.Context, d *net.Dialer, network, _ string) (net.Conn, error) {
		return d.DialContext(ctx, network, server.Listener.Addr().String())
	})
}

// client is one of the site under its own name.
func (s *Site) Client(t testing.TB, o upstream.Origin) *upstream.Client {
	t.Helper()
	server := s.Serve(t)
	o.Hostname = Host
	return NewClient(t, o, upstream.Trust(Roots(server)), Resolving(server))
}

func NewClient(t testing.TB, o upstream.Origin, options ...upstream.Option) *upstream.Client {
	t.Helper()
	c, err := upstream.NewClient(o, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// MustFail checks a failure: its kind, what it says, and that it keeps URLs,
// tokens and addresses to itself.
func MustFail(t testing.TB, err, kind error, says string) {
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

// Sum is the sha256 of a file that the site serves, in hexadecimal.
func (s *Site) Sum(t testing.TB, name string) string {
	t.Helper()
	w := httptest.NewRecorder()
	s.Handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "https://"+Host+FilesPath+name, nil))
	return fmt.Sprintf("%x", sha256.Sum256(w.Body.Bytes()))
}

// Rewritten is the real answer with some texts replaced by others.
func (s *Site) Rewritten(oldAndNew ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		recorder := httptest.NewRecorder()
		s.Handler.ServeHTTP(recorder, r)
		w.Write([]byte(strings.NewReplacer(oldAndNew...).Replace(recorder.Body.String())))
	}
}

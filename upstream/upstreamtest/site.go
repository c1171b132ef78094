// Package upstreamtest implements an origin for tests: this project's own registry over
// TLS, with answers that tests can replace by path.
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

// Host is the origin's name.
const Host = "registry.example.com"

// The provider of AcmeTree.
var (
	Demo  = address.Address{Hostname: Host, Namespace: "acme", Name: "demo"}
	Linux = address.Platform{OS: "linux", Arch: "amd64"}
	V1    = wire.ProviderVersion{Version: "1.0.0"}
)

// The paths of AcmeTree, and the URL of its mirror.
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

// A Site is a registry with answers that can be replaced by path.
type Site struct {
	http.Handler
	mutex    sync.Mutex
	faults   map[string]http.HandlerFunc
	requests []*http.Request
}

// NewSite serves a tree as an origin.
func NewSite(t testing.TB, files *indextest.Tree) *Site {
	t.Helper()
	key, err := signing.ReadKey([]byte(indextest.NewPublisher(t).PrivateKey()), "")
	if err != nil {
		t.Fatal(err)
	}
	snapshot, err := index.Scan(context.Background(), index.Options{
		Open:   files.Open,
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
	files := indextest.New(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64", "darwin_arm64").Signed(publisher)
	files.Keys("acme", publisher)
	return files, publisher
}

// NewAcme serves AcmeTree.
func NewAcme(t testing.TB) *Site {
	t.Helper()
	files, _ := AcmeTree(t)
	return NewSite(t, files)
}

// mirrorPath returns the path of the mirror for a hosted file under the site's
// hostname.
func mirrorPath(path string) string {
	return strings.Replace(path, "/mirror/-/", "/mirror/"+Host+"/", 1)
}

// Fault replaces the answer for a path; nil restores it. It returns the previous
// replacement.
func (s *Site) Fault(path string, f http.HandlerFunc) (before http.HandlerFunc) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	before, s.faults[path] = s.faults[path], f
	return before
}

// Become makes the site answer like another site from now on.
func (s *Site) Become(other *Site) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.Handler = other.Handler
}

// Asked returns all requests.
func (s *Site) Asked() []*http.Request {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.Clone(s.requests)
}

func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mutex.Lock()
	s.requests = append(s.requests, r)
	f := s.faults[mirrorPath(r.URL.Path)]
	s.mutex.Unlock()
	if f == nil {
		f = s.Handler.ServeHTTP
	}
	f(w, r)
}

// Count returns the number of requests for a path.
func (s *Site) Count(path string) (n int) { return len(s.Requests(path)) }

// Requests returns the requests for a path.
func (s *Site) Requests(path string) (list []*http.Request) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, r := range s.requests {
		if mirrorPath(r.URL.Path) == path {
			list = append(list, r)
		}
	}
	return list
}

// Status answers with a status and no body.
func Status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// Body answers with a text.
func Body(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(text)) }
}

// Redirect answers with a redirect.
func Redirect(to string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusFound) }
}

// Edited returns the site's answer with some texts replaced by others.
func (s *Site) Edited(oldAndNew ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		recorder := httptest.NewRecorder()
		s.Handler.ServeHTTP(recorder, r)
		w.Write([]byte(strings.NewReplacer(oldAndNew...).Replace(recorder.Body.String())))
	}
}

// Serve starts the site on a socket, with TLS and HTTP/2.
func (s *Site) Serve(t testing.TB) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(s)
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	StartTLS(server)
	t.Cleanup(server.Close)
	return server
}

// Roots has the authority of a server's certificate.
func Roots(server *httptest.Server) *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	return pool
}

// Resolving returns a network in which all names resolve to one server. The dialer that
// the client chose dials, and may refuse the address.
func Resolving(server *httptest.Server) func(context.Context, *net.Dialer, string, string) (net.Conn, error) {
	return func(ctx context.Context, d *net.Dialer, network, _ string) (net.Conn, error) {
		return d.DialContext(ctx, network, server.Listener.Addr().String())
	}
}

// Client serves the site and returns the client of it under its own hostname.
func (s *Site) Client(t testing.TB, o upstream.Origin) *upstream.Client {
	t.Helper()
	server := s.Serve(t)
	o.Hostname = Host
	return NewClient(t, o, upstream.Network{Roots: Roots(server), Connect: Resolving(server)})
}

// NewClient returns the client of an origin.
func NewClient(t testing.TB, o upstream.Origin, n upstream.Network) *upstream.Client {
	t.Helper()
	c, err := upstream.NewClient(o, n)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// MustFail checks that err is a Failure of a kind, that its text has a part, and that
// it does not leak URLs, tokens or addresses.
func MustFail(t testing.TB, err, kind error, says string) {
	t.Helper()
	var f *upstream.Failure
	if !errors.As(err, &f) || !errors.Is(err, kind) {
		t.Fatalf("got %v, want a Failure: %v", err, kind)
	}
	if !strings.Contains(err.Error(), says) {
		t.Errorf("got %q, want a text with %q", err, says)
	}
	for _, secret := range []string{"://", "?", "/v1", "secret", "127.0.0.1", "::1"} {
		if strings.Contains(strings.TrimPrefix(err.Error(), f.Host), secret) {
			t.Errorf("%q leaks %q", err, secret)
		}
	}
}

// Sum returns the sha256 of a file that the site serves, in hexadecimal.
func (s *Site) Sum(t testing.TB, name string) string {
	t.Helper()
	w := httptest.NewRecorder()
	s.Handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "https://"+Host+FilesPath+name, nil))
	return fmt.Sprintf("%x", sha256.Sum256(w.Body.Bytes()))
}

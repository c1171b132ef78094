package handlers_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
)

// The registry of the tests, by its name in requests.
const (
	ownHost = "registry.example.com"
	home    = "https://" + ownHost
)

// fallenThrough is the status of a request that the registry left to the next handler.
const fallenThrough = http.StatusTeapot

// options returns the options of a registry that signs releases without a signature.
func options(t testing.TB, files *indextest.Tree) index.Options {
	t.Helper()
	return optionsWith(t, files, newKey(t))
}

func optionsWith(t testing.TB, files *indextest.Tree, key index.Signer) index.Options {
	t.Helper()
	return index.Options{
		Open:   files.Open,
		Signer: key,
	}
}

func newKey(t testing.TB) *signing.Key {
	t.Helper()
	key, err := signing.ReadKey([]byte(indextest.NewPublisher(t).PrivateKey()), "")
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// scan looks at a tree once.
func scan(t testing.TB, files *indextest.Tree) *index.Snapshot {
	t.Helper()
	return scanWith(t, options(t, files))
}

func scanWith(t testing.TB, o index.Options) *index.Snapshot {
	t.Helper()
	s, err := index.Scan(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// startReading starts an index of a tree, in which no zip with a text in its path can be read before
// open is called. The end of the test calls it, and closes the index.
func startReading(t testing.TB, o index.Options, files *indextest.Tree, path string) (x *index.Index, open func()) {
	t.Helper()
	gate := indextest.Gate{Fs: files.Fs, Path: path, Opened: make(chan struct{})}
	open = sync.OnceFunc(func() { close(gate.Opened) })
	o.Open = indextest.On(t, gate).Open
	x = index.New(o)
	x.Start()
	t.Cleanup(func() { x.Close() })
	t.Cleanup(open) // before the index is closed
	<-x.Ready()
	return x, open
}

// registry offers one snapshot.
func registry(s *index.Snapshot) *handlers.Registry {
	return &handlers.Registry{Snapshot: func() *index.Snapshot { return s }}
}

func hostnames(t testing.TB, names ...string) (list []svchost.Hostname) {
	t.Helper()
	for _, name := range names {
		h, err := address.ParseHostname(name)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, h)
	}
	return list
}

// A handler is a registry and a next handler, which shows which requests fell through.
type handler struct{ *handlers.Registry }

func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !h.Registry.ServeHTTP(w, r) {
		w.WriteHeader(fallenThrough)
	}
}

// A site is a registry on TLS that is reached under every hostname.
type site struct {
	t      testing.TB
	client *http.Client

	original string // the hostname of the registry that the site stands in for
}

// serve starts a site. Like real clients, its client offers HTTP/2 and asks for gzip.
// It follows no redirect, since the registry sends none.
func serve(t testing.TB, g *handlers.Registry) *site {
	t.Helper()
	return serveOver(t, g, true)
}

func serveOver(t testing.TB, g *handlers.Registry, http2 bool) *site {
	t.Helper()
	server := httptest.NewUnstartedServer(handler{g})
	server.EnableHTTP2 = http2
	server.StartTLS()
	t.Cleanup(server.Close)

	transport := server.Client().Transport.(*http.Transport).Clone()
	transport.TLSClientConfig.ServerName = "example.com" // the name in httptest's certificate
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, server.Listener.Addr().String())
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &site{t: t, client: &http.Client{
		Transport:     transport,
		Timeout:       10 * time.Second, // of real clients (checklist 25)
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// rule runs a subtest with a site that fails only this subtest.
func (s *site) rule(name string, f func(t *testing.T, s *site)) {
	s.t.(*testing.T).Run(name, func(t *testing.T) { f(t, &site{t, s.client, s.original}) })
}

// An answer is a response, read to its end.
type answer struct {
	*http.Response
	body string
}

// withHeaders adds headers to a request, which are given as "Name: value". A text without a value
// adds none.
func withHeaders(r *http.Request, headers ...string) *http.Request {
	for _, h := range headers {
		if name, value, ok := strings.Cut(h, ": "); ok {
			r.Header.Add(name, value)
		}
	}
	return r
}

// do sends a request with headers.
func (s *site) do(method, url string, headers ...string) answer {
	s.t.Helper()
	r, err := http.NewRequest(method, url, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.send(withHeaders(r, headers...))
}

func (s *site) send(r *http.Request) answer {
	s.t.Helper()
	response, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer{response, string(body)}
}

// get asks for a path of the site, or for a whole URL.
func (s *site) get(url string, headers ...string) answer {
	s.t.Helper()
	return s.do(http.MethodGet, absolute(url), headers...)
}

func absolute(url string) string {
	if strings.HasPrefix(url, "/") {
		return home + url
	}
	return url
}

// json reads the JSON of a 200.
func (s *site) json(url string, v any, headers ...string) answer {
	s.t.Helper()
	a := s.get(url, headers...)
	if a.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: got %d %s, want 200", url, a.StatusCode, a.body)
	}
	if err := json.Unmarshal([]byte(a.body), v); err != nil {
		s.t.Fatalf("%s: %v in %s", url, err, a.body)
	}
	return a
}

// mustRefuse checks the status of an error, and that its body is one line of JSON with
// one sentence.
func mustRefuse(t testing.TB, a answer, status int) {
	t.Helper()
	if a.StatusCode != status {
		t.Fatalf("got %d %q, want %d", a.StatusCode, a.body, status)
	}
	checkError(t, a.Header, a.body)
}

func checkError(t testing.TB, h http.Header, body string) {
	t.Helper()
	var document struct {
		Errors []string `json:"errors"`
	}
	if err := json.Unmarshal([]byte(body), &document); err != nil || len(document.Errors) != 1 || document.Errors[0] == "" {
		t.Errorf("body is %.500q (%v), want one error in JSON", body, err)
	}
	if strings.ContainsAny(strings.TrimSuffix(body, "\n"), "\r\n") || len(body) > 1000 {
		t.Errorf("body is %.500q, want one short line", body)
	}
	if got := h.Get("Content-Type"); got != "application/json" {
		t.Errorf("Content-Type is %q", got)
	}
}

// serveRecorded sends a request to a registry without a network.
func serveRecorded(g *handlers.Registry, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	handler{g}.ServeHTTP(w, r)
	return w
}

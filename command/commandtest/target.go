package commandtest

import (
	"context"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/publish"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
)

// A Target is a real registry that accepts publications. The server in front of it counts the
// bytes of requests, and can fail.
type Target struct {
	*httptest.Server
	t      *testing.T
	Tree   *indextest.Tree
	Root   string
	Handle *handlers.Registry

	mutex    sync.Mutex
	received map[string]int           // bytes of bodies, by method and name of the file
	fault    func(*http.Request) int  // the status of a failure; zero: none
	lost     func(*http.Request) bool // the answer
}

// GoodToken is the token of a user who may publish in acme, and read it.
const GoodToken = "tfr_good"

// PublishersToken is the token of a CI job that may publish in acme, and not read it.
const PublishersToken = "tfr_job"

// ManagersToken is the token of a user who may manage acme, here and at
// registry.terraform.io, and read it.
const ManagersToken = "tfr_ops"

// NewTarget starts a registry over an empty tree.
func NewTarget(t *testing.T) *Target {
	t.Helper()
	NoClientConfiguration(t)
	r := &Target{t: t, Root: t.TempDir(), received: make(map[string]int)}
	r.Tree = indextest.OnDisk(t, r.Root)
	open := source.Directories{Root: r.Root}.Open
	x := index.New(index.Options{Open: open, Watch: true, Signer: ShortKey(t)})
	x.Start()
	t.Cleanup(func() { x.Close() })
	var lock sync.Mutex // of all versions
	publisher, err := publish.New(publish.Options{
		Open:  open,
		Index: func() publish.Index { return x },
		Lock: func(context.Context, string) (func(), error) {
			lock.Lock()
			return lock.Unlock, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	r.Handle = &handlers.Registry{
		Snapshot: x.Snapshot, Next: x.Next, Publisher: publisher,
		Rules: access.NewRules(rule(t, "allow ci publish acme"), rule(t, "allow ci read acme"), rule(t, "allow job publish acme"),
			rule(t, "allow ops manage acme registry.terraform.io"), rule(t, "allow ops read acme")),
		Authenticate: func(q *http.Request) (access.Subject, error) {
			switch q.Header.Get("Authorization") {
			case "Bearer " + GoodToken:
				return access.Subject{ID: "ci"}, nil
			case "Bearer " + PublishersToken:
				return access.Subject{ID: "job"}, nil
			case "Bearer " + ManagersToken:
				return access.Subject{ID: "ops"}, nil
			case "Bearer tfr_other":
				return access.Subject{ID: "other"}, nil
			}
			return access.Subject{}, nil
		},
		Links: &access.Links{Life: time.Minute, Keys: func() *access.LinkKeys { return access.NewLinkKeys(time.Now()) }},
	}
	r.Server = httptest.NewTLSServer(r)
	t.Cleanup(r.Close)
	<-x.Ready()
	return r
}

func rule(t *testing.T, text string) access.Rule {
	t.Helper()
	parsed, err := access.ParseRule(strings.Fields(text)...)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func (r *Target) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	name := q.Method + " " + q.URL.Path[strings.LastIndexByte(q.URL.Path, '/')+1:]
	body := &countedBody{ReadCloser: q.Body}
	q.Body = body
	r.mutex.Lock()
	fault, lost := r.fault, r.lost
	r.mutex.Unlock()
	if lost != nil && lost(q) {
		r.Handle.ServeHTTP(httptest.NewRecorder(), q)
		panic(http.ErrAbortHandler)
	}
	status := 0
	if fault != nil {
		status = fault(q)
	}
	switch {
	case status != 0:
		w.Header().Set("Connection", "close") // the client may be waiting to be asked for the body
		w.WriteHeader(status)
	case !r.Handle.ServeHTTP(w, q):
		http.NotFound(w, q)
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.received[name] += body.n
}

// Fail has requests fail.
func (r *Target) Fail(fault func(*http.Request) int) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.fault = fault
}

// Lose has answers get lost.
func (r *Target) Lose(lost func(*http.Request) bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.lost = lost
}

// Sent returns how many bytes of files have been sent since its last call, by method and name
// of the file. Files that were not needed are in it with zero bytes.
func (r *Target) Sent() map[string]int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	sent := r.received
	r.received = make(map[string]int)
	return sent
}

// To is the argument of --to for an address.
func (r *Target) To(address string) string {
	return "--to=" + r.Listener.Addr().String() + "/" + address
}

// RunAs runs a command with a token.
func (r *Target) RunAs(token string, cmd *cobra.Command, args ...string) (out, errs string, err error) {
	r.t.Helper()
	file := Write(r.t, r.t.TempDir(), "token", token+"\n")
	return Run(r.t.Context(), cmd, append([]string{"--token-file", file}, args...)...)
}

// Roots has the certificate of a server.
func Roots(server *httptest.Server) *x509.CertPool {
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	return roots
}

type countedBody struct {
	io.ReadCloser
	n int
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.n += n
	return n, err
}

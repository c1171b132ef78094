package upstreamtest

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

// GitHost is the name of a CodeHost.
const GitHost = "git.example.com"

// A CodeHost serves repositories by path over TLS.
type CodeHost struct {
	http.ServeMux
	Server *httptest.Server

	mutex    sync.Mutex
	requests []*http.Request
	down     bool
}

// NewCodeHost starts a server without repositories.
func NewCodeHost(t testing.TB) *CodeHost {
	t.Helper()
	h := new(CodeHost)
	h.Server = httptest.NewUnstartedServer(h)
	h.Server.Config.ErrorLog = log.New(io.Discard, "", 0)
	StartTLS(h.Server)
	t.Cleanup(h.Server.Close)
	return h
}

// Serve serves a repository at a path, and returns its URL.
func (h *CodeHost) Serve(path string, r *Repository) (url string) {
	h.Handle(path+"/", r.Handler(path))
	return "https://" + GitHost + path
}

func (h *CodeHost) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mutex.Lock()
	h.requests = append(h.requests, r)
	down := h.down
	h.mutex.Unlock()
	if down {
		w.WriteHeader(http.StatusNotImplemented) // which is not retried
		return
	}
	h.ServeMux.ServeHTTP(w, r)
}

// Down has the server fail, or work again.
func (h *CodeHost) Down(down bool) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.down = down
}

// Requests returns the requests so far whose path has a part.
func (h *CodeHost) Requests(part string) (requests []*http.Request) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	for _, r := range h.requests {
		if strings.Contains(r.URL.Path, part) {
			requests = append(requests, r)
		}
	}
	return requests
}

// Asked returns how often git has begun to talk to the server.
func (h *CodeHost) Asked() int { return len(h.Requests("/info/refs")) }

// Client returns a client for which every host is this server, and GitHost may be on this machine.
func (h *CodeHost) Client(t testing.TB, hosts ...upstream.Host) *upstream.Client {
	t.Helper()
	c, err := upstream.NewCodeHosts(
		upstream.CodeHosts{Hosts: hosts, Private: []string{GitHost}, Timeout: time.Minute},
		upstream.Network{Roots: Roots(h.Server), Connect: Resolving(h.Server)},
	)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

package upstreamtest

import (
	"context"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

// InBubble runs a test against the site with the fake clock of synctest. Connections
// are pipes, since the clock does not advance while a goroutine reads a socket.
func (s *Site) InBubble(t *testing.T, o upstream.Origin, test func(t *testing.T, c *upstream.Client)) {
	t.Helper()
	s.InBubbleOf(t, func(t *testing.T, client func(upstream.Origin) *upstream.Client) {
		o.Hostname = Host
		test(t, client(o))
	})
}

// InBubbleOf is like InBubble, with several clients.
func (s *Site) InBubbleOf(t *testing.T, test func(t *testing.T, client func(upstream.Origin) *upstream.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(indextest.Born.AddDate(1, 0, 0))) // after the releases were signed
		p := &pipes{dialled: make(chan net.Conn), closed: make(chan struct{})}
		server := &httptest.Server{Listener: p, Config: &http.Server{Handler: s, ErrorLog: log.New(io.Discard, "", 0)}}
		StartTLS(server)
		defer server.Close()
		defer p.cut() // otherwise both ends would wait for the other to read the end of TLS
		pool := x509.NewCertPool()
		pool.AddCert(server.Certificate())
		test(t, func(o upstream.Origin) *upstream.Client {
			c, err := upstream.NewClient(o, upstream.Network{Roots: pool, Connect: p.dial})
			if err != nil {
				t.Fatal(err)
			}
			return c
		})
	})
}

// pipes is a listener in memory.
type pipes struct {
	dialled chan net.Conn
	closed  chan struct{}
	once    sync.Once

	mutex sync.Mutex
	open  []net.Conn
}

// cut ends all connections.
func (p *pipes) cut() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, c := range p.open {
		c.Close()
	}
}

func (p *pipes) dial(ctx context.Context, _ *net.Dialer, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	p.mutex.Lock()
	p.open = append(p.open, near, far)
	p.mutex.Unlock()
	select {
	case p.dialled <- far:
		return near, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.closed:
		return nil, io.EOF
	}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.dialled:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 443} }

// Silence sends no answer until the client closes the connection.
func Silence(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// Part serves the beginning of the package, and then calls another handler. It appends
// the requested ranges.
func (s *Site) Part(upTo int, ranges *[]string, then http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		*ranges = append(*ranges, r.Header.Get("Range"))
		recorder := httptest.NewRecorder()
		s.Handler.ServeHTTP(recorder, r)
		for name, values := range recorder.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(recorder.Code)
		w.Write(recorder.Body.Bytes()[:min(upTo, recorder.Body.Len())])
		w.(http.Flusher).Flush()
		then(w, r)
	}
}

// BreakOff ends the connection in the middle of an answer.
func BreakOff(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// A Gate delays requests until it is opened, and counts the waiting requests. Opened
// must be made in the bubble of the requests.
type Gate struct {
	http.Handler
	Holds  func(path string) bool
	Opened chan struct{} // closed when it is open
	Now    atomic.Int32  // number of waiting requests
}

func (g *Gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if g.Holds(r.URL.Path) {
		g.Now.Add(1)
		<-g.Opened
		g.Now.Add(-1)
	}
	g.Handler.ServeHTTP(w, r)
}

// Gated puts a Gate in front of the site, closed for some paths.
func (s *Site) Gated(holds func(path string) bool) *Gate {
	g := &Gate{Handler: s.Handler, Holds: holds}
	s.Handler = g
	return g
}

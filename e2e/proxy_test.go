package e2e_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"slices"
	"sync"
	"testing"
)

// Proxy is the network as the clients see it: an HTTP proxy that takes a host
// name and port to a Caddy of this test. So clients ask for
// registry.example.com on port 443, as in production, with no entry in
// /etc/hosts and no privileged port, and TLS stays end to end between client
// and Caddy. Hosts that no test put on the network are refused: a client that
// asks for one fails the test.
type Proxy struct {
	URL string

	mu      sync.Mutex
	routes  map[string]endpoint // by host:port
	asked   []string
	refused []string
}

// endpoint is where something really listens.
type endpoint struct{ network, address string }

func (e endpoint) dial(ctx context.Context) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, e.network, e.address)
}

func newProxy(t *testing.T) *Proxy {
	t.Helper()
	p := &Proxy{routes: map[string]endpoint{}}
	server := httptest.NewServer(p)
	p.URL = server.URL
	t.Cleanup(func() {
		server.Close()
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, host := range p.refused {
			t.Errorf("somebody asked for %s, which is not of this test", host)
		}
	})
	return p
}

// Route puts hostport on the network.
func (p *Proxy) Route(hostport string, to endpoint) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.routes[hostport] = to
}

// Asked lists each host:port that was connected to.
func (p *Proxy) Asked() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked)
}

func (p *Proxy) dial(ctx context.Context, hostport string) (net.Conn, error) {
	p.mu.Lock()
	to, ok := p.routes[hostport]
	if ok {
		p.asked = append(p.asked, hostport)
	} else {
		p.refused = append(p.refused, hostport)
	}
	p.mu.Unlock()
	if !ok {
		return nil, fmt.Errorf("there is no %s in this test", hostport)
	}
	return to.dial(ctx)
}

func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodConnect {
		p.tunnel(w, r)
		return
	}
	p.forward(w, r)
}

// tunnel answers CONNECT: what clients send for https.
func (p *Proxy) tunnel(w http.ResponseWriter, r *http.Request) {
	upstream, err := p.dial(r.Context(), r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer upstream.Close()
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer client.Close()
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	// Either side may be the first to hang up; the other is told, so that
	// neither copy waits for ever.
	var copies sync.WaitGroup
	copies.Go(func() { io.Copy(upstream, buffered); closeWrite(upstream) })
	copies.Go(func() { io.Copy(client, upstream); closeWrite(client) })
	copies.Wait()
}

func closeWrite(c net.Conn) {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		half.CloseWrite()
	}
}

// forward answers a request in absolute form: what a certificate authority
// sends to look at an http-01 challenge.
func (p *Proxy) forward(w http.ResponseWriter, r *http.Request) {
	hostport := r.Host
	if _, _, err := net.SplitHostPort(hostport); err != nil {
		hostport = net.JoinHostPort(hostport, "80")
	}
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return p.dial(ctx, hostport)
		},
	}
	(&httputil.ReverseProxy{
		Transport: transport,
		Rewrite:   func(*httputil.ProxyRequest) {},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusBadGateway)
		},
	}).ServeHTTP(w, r)
}

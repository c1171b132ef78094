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

// Proxy is the network of the clients: an HTTP proxy that maps host names and
// ports to the Caddys of this test. Therefore clients connect to
// registry.example.com on port 443, as in production, without an entry in
// /etc/hosts or a privileged port, and TLS stays end to end between client and
// Caddy. Other hosts are refused: a client that requests one fails the test.
type Proxy struct {
	URL string

	mu      sync.Mutex
	routes  map[string]endpoint // by host:port
	asked   []string
	refused []string
}

// endpoint is the real address of a listener.
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
			t.Errorf("a client requested %s, which is not part of this test", host)
		}
	})
	return p
}

// Route adds hostport to the network.
func (p *Proxy) Route(hostport string, to endpoint) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.routes[hostport] = to
}

// Asked lists each host:port to which clients have connected.
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

// tunnel answers CONNECT, which clients send for https.
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
	// Either side may close its connection first. Then the other is closed too, so that
	// neither copy waits forever.
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

// forward answers a request in absolute form, which a certificate authority
// sends for an http-01 challenge.
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

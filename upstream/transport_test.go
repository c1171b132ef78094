package upstream_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/upstreamtest"
)

// The token is sent only to the host and port for which it is configured, and to those
// of the services. No host receives the URL before a redirect.
func TestTokenIsForTheOriginOnly(t *testing.T) {
	const other = "/elsewhere"
	tests := []struct {
		rule   string
		origin upstream.Origin
		answer func(*site)
		path   string
		sent   bool
	}{
		{"discovery", upstream.Origin{}, nil, discovery, true},
		{"the registry", upstream.Origin{}, nil, versions, true},
		{"the registry on a host of its own", upstream.Origin{}, func(s *site) {
			s.Fault(discovery, body(`{"providers.v1":"https://api.example.com/v1/providers/"}`))
		}, versions, true},
		{"a mirror", upstream.Origin{Mirror: mirrorBase}, nil, files + "index.json", true},
		{"a redirect on the same host", upstream.Origin{}, func(s *site) { s.Fault(versions, redirect(other)) }, other, true},
		{"a redirect to another host", upstream.Origin{}, func(s *site) { s.Fault(versions, redirect("https://files.example.com"+other)) }, other, false},
		{"a redirect to a host below it", upstream.Origin{}, func(s *site) { s.Fault(versions, redirect("https://files."+host+other)) }, other, false},
		{"a redirect to another port", upstream.Origin{}, func(s *site) { s.Fault(versions, redirect("https://"+host+":8443"+other)) }, other, false},
		{"a redirect there and back", upstream.Origin{}, func(s *site) {
			s.Fault(versions, redirect("https://files.example.com/away"))
			s.Fault("/away", redirect("https://"+host+other))
		}, other, false},
		{"discovery that redirects", upstream.Origin{}, func(s *site) { s.Fault(discovery, redirect("https://files.example.com"+other)) }, other, false},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			s := newAcme(t)
			if test.answer != nil {
				test.answer(s)
			}
			s.Fault(other, body(`{"versions":[]}`))
			test.origin.Token, test.origin.Private = "secret", []string{"files.example.com", "files." + host, "api.example.com"}
			server := s.Serve(t)
			test.origin.Hostname = host
			c := newClient(t, test.origin, upstream.Network{Roots: roots(server), Connect: resolving(server)})
			c.Versions(background(), demo) // the answer does not matter
			requests := s.Requests(test.path)
			if test.rule == "a redirect to a host below it" {
				// The certificate of the tests is not valid for this host.
				if len(requests) != 0 {
					t.Error("a request reached a host with the certificate of another")
				}
				return
			}
			if len(requests) == 0 {
				t.Fatal("no request")
			}
			for _, r := range requests {
				if got := r.Header.Get("Authorization") == "Bearer secret"; got != test.sent {
					t.Errorf("Authorization is %q", r.Header.Get("Authorization"))
				}
				if r.Referer() != "" {
					t.Errorf("Referer is %q", r.Referer())
				}
			}
		})
	}
}

// Packages and documents on other hosts are fetched without the token.
func TestTokenIsNotSentToLinks(t *testing.T) {
	s := newAcme(t)
	s.Fault(metadata, s.Edited(`_url":"`, `_url":"https://files.example.com`))
	c := s.Client(t, upstream.Origin{Token: "secret", Private: []string{"files.example.com"}})
	r, err := c.Release(background(), demo, v1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Download(background(), r, linux, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{sumsFile, sigFile, zipFile} {
		requests := s.Requests(path)
		if len(requests) != 1 || requests[0].Host != "files.example.com" || requests[0].Header.Get("Authorization") != "" {
			t.Errorf("%s: %+v", path, requests)
		}
	}
}

func TestRedirectsAreLimited(t *testing.T) {
	s := newAcme(t)
	s.Fault(versions, redirect(versions))
	_, err := s.Client(t, upstream.Origin{}).Versions(background(), demo)
	mustFail(t, err, upstream.ErrMalformed, "redirects too often")
	if n := s.Count(versions); n != 11 {
		t.Errorf("got %d requests", n)
	}
}

// A certificate that does not verify is neither accepted nor retried.
func TestCertificatesAreVerified(t *testing.T) {
	s := newAcme(t)
	server := s.Serve(t)
	c := newClient(t, upstream.Origin{Hostname: host}, upstream.Network{Connect: resolving(server)})
	_, err := c.Versions(background(), demo)
	mustFail(t, err, upstream.ErrUnavailable, "TLS certificate does not verify")
	c = newClient(t, upstream.Origin{Hostname: "registry.example.net"}, upstream.Network{Roots: roots(server), Connect: resolving(server)})
	_, err = c.Versions(background(), address.Address{Namespace: "acme", Name: "demo"})
	mustFail(t, err, upstream.ErrUnavailable, "TLS certificate does not verify")
	if len(s.Asked()) != 0 {
		t.Errorf("%d requests were made", len(s.Asked()))
	}
}

// A proxy resolves and dials by itself. It may be in a private network.
func TestProxy(t *testing.T) {
	s := newAcme(t)
	server := s.Serve(t)
	var connected []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		connected = append(connected, r.Host)
		far, err := new(net.Dialer).DialContext(context.Background(), "tcp", server.Listener.Addr().String())
		if err != nil {
			t.Error(err)
			return
		}
		defer far.Close()
		w.WriteHeader(http.StatusOK)
		near, buffered, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer near.Close()
		go io.Copy(far, buffered)
		io.Copy(near, far)
	}))
	t.Cleanup(proxy.Close)
	t.Setenv("HTTPS_PROXY", proxy.URL)
	c := newClient(t, upstream.Origin{Hostname: host, Token: "secret"}, upstream.Network{Roots: roots(server)})
	if _, err := c.Versions(background(), demo); err != nil {
		t.Fatal(err)
	}
	if len(connected) != 1 || connected[0] != host+":443" {
		t.Errorf("the proxy got requests for %q", connected)
	}
	for _, to := range []string{"https://10.1.2.3", "https://[fd00::1]", "https://167772161", "https://0x0a.1", "https://10.0.0.１", "https://10。0。0。1"} {
		s.Fault(versions, redirect(to))
		_, err := c.Versions(background(), demo)
		mustFail(t, err, upstream.ErrUnsafe, "")
	}
	for _, name := range connected {
		if name != host+":443" {
			t.Errorf("the proxy got a request for %s", name)
		}
	}
}

// The number of attempts and the time for each failure.
func TestFailures(t *testing.T) {
	const timeout = 8 * time.Second
	after := func(code int, retryAfter string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", retryAfter)
			w.WriteHeader(code)
		}
	}
	for _, test := range []struct {
		rule   string
		answer http.HandlerFunc
		kind   error
		tries  int
		takes  time.Duration
	}{
		{"it does not exist", status(404), upstream.ErrNotFound, 1, 0},
		{"it is gone", status(410), upstream.ErrNotFound, 1, 0},
		{"a token is required", status(401), upstream.ErrRefused, 1, 0},
		{"the token has no access", status(403), upstream.ErrRefused, 1, 0},
		{"another client error", status(422), upstream.ErrMalformed, 1, 0},
		{"another success", status(204), upstream.ErrMalformed, 1, 0},
		{"a range that was not requested", status(206), upstream.ErrMalformed, 1, 0},
		{"a server error is retried", status(500), upstream.ErrUnavailable, 3, 750 * time.Millisecond},
		{"but not a permanent one", status(501), upstream.ErrUnavailable, 1, 0},
		{"too many requests", status(429), upstream.ErrUnavailable, 3, 750 * time.Millisecond},
		{"Retry-After is respected", after(429, "1"), upstream.ErrUnavailable, 3, 2 * time.Second},
		{"but not a long one", after(429, "86400"), upstream.ErrUnavailable, 1, 0},
		{"nor one with a date", after(503, "Fri, 31 Dec 2100 23:59:59 GMT"), upstream.ErrUnavailable, 1, 0},
		{"nor one that overflows", after(503, "9223372037"), upstream.ErrUnavailable, 1, 0},
		{"no answer", upstreamtest.Silence, upstream.ErrTimeout, 1, timeout},
		{"an answer that stops", func(w http.ResponseWriter, r *http.Request) {
			w.Write([]byte(`{"versions":`))
			w.(http.Flusher).Flush()
			upstreamtest.Silence(w, r)
		}, upstream.ErrTimeout, 1, timeout},
		{"an answer that is cut off", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			w.Write([]byte(`{"versions":[]}`))
		}, upstream.ErrUnavailable, 1, 0},
		// One more, since net/http itself retries on a reused connection.
		{"a connection that breaks", upstreamtest.BreakOff, upstream.ErrUnavailable, 4, 750 * time.Millisecond},
		{"a web page", body("<html>"), upstream.ErrMalformed, 1, 0},
		{"another document", body("[]"), upstream.ErrMalformed, 1, 0},
		{"nothing", body(""), upstream.ErrMalformed, 1, 0},
	} {
		t.Run(test.rule, func(t *testing.T) {
			s := newAcme(t)
			s.Fault(versions, test.answer)
			s.InBubble(t, upstream.Origin{Timeout: timeout, Token: "secret"}, func(t *testing.T, c *upstream.Client) {
				begin := time.Now()
				_, err := c.Versions(background(), demo)
				mustFail(t, err, test.kind, host)
				if tries, takes := s.Count(versions), time.Since(begin); tries != test.tries || takes != test.takes {
					t.Errorf("%d attempts in %v, want %d in %v", tries, takes, test.tries, test.takes)
				}
			})
		})
	}
	t.Run("a temporary error", func(t *testing.T) {
		s := newAcme(t)
		s.Fault(versions, func(w http.ResponseWriter, r *http.Request) {
			s.Fault(versions, nil)
			w.WriteHeader(503)
		})
		s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
			if list, err := c.Versions(background(), demo); err != nil || len(list) != 1 {
				t.Errorf("got %v, %v", list, err)
			}
		})
	})
}

func TestRefusedAccess(t *testing.T) {
	for _, test := range []struct {
		rule, token, says string
		code              int
	}{
		{"401 without a token", "", "registry.example.com answered 401: it refuses access: configure a token", http.StatusUnauthorized},
		{"403 with a token", "secret", "registry.example.com answered 403: it refuses access: configure another token", http.StatusForbidden},
	} {
		t.Run(test.rule, func(t *testing.T) {
			s := newAcme(t)
			s.Fault(versions, status(test.code))
			_, err := s.Client(t, upstream.Origin{Token: test.token}).Versions(background(), demo)
			mustFail(t, err, upstream.ErrRefused, test.says)
		})
	}
}

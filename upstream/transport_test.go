package upstream_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
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

func TestCheckIP(t *testing.T) {
	for _, test := range []struct {
		rule, private, public string
	}{
		{"loopback", "127.0.0.1 127.255.0.1 ::1", "126.255.255.255 128.0.0.1"},
		{"private", "10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1", "172.15.0.1 172.32.0.1 192.169.0.1"},
		{"unique local", "fc00::1 fd12::1", "2600::1"},
		{"link-local", "169.254.169.254 fe80::1 fe80::1%eth0", ""},
		{"shared by a carrier", "100.64.0.1 100.127.255.255", "100.63.255.255 100.128.0.1"},
		{"multicast", "224.0.0.1 239.255.255.255 ff02::1", ""},
		{"unspecified and broadcast", "0.0.0.0 0.1.2.3 :: 255.255.255.255 240.0.0.1", ""},
		{"IPv4 within IPv6", "::ffff:127.0.0.1 ::ffff:10.0.0.1 ::127.0.0.1", "::ffff:1.1.1.1"},
		{"NAT64", "64:ff9b::7f00:1 64:ff9b::a00:1 64:ff9b:1::1", "64:ff9b::101:101"},
		{"6to4 and Teredo", "2002:7f00:1::1 2002:a00:1::1 2001::1", "2002:101:101::1"},
		{"site-local", "fec0::1", "2a00:1450::1"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			for _, ip := range strings.Fields(test.private) {
				if upstream.CheckIP(netip.MustParseAddr(ip)) == nil {
					t.Errorf("%s counts as public", ip)
				}
			}
			for _, ip := range strings.Fields(test.public) {
				if err := upstream.CheckIP(netip.MustParseAddr(ip)); err != nil {
					t.Errorf("%s counts as private", ip)
				}
			}
		})
	}
}

// An origin's links and redirects cannot lead into the private network, neither by an
// address nor by a name that resolves to one.
func TestOriginDoesNotReachThePrivateNetwork(t *testing.T) {
	for _, test := range []struct {
		rule, to string
		allowed  []string
		kind     error // nil: allowed
	}{
		{rule: "a loopback address", to: "https://127.0.0.1", kind: upstream.ErrUnsafe},
		{rule: "a loopback address of IPv6", to: "https://[::1]", kind: upstream.ErrUnsafe},
		{rule: "the metadata service of a cloud", to: "https://169.254.169.254", kind: upstream.ErrUnsafe},
		{rule: "a short form of an address", to: "https://127.1", kind: upstream.ErrUnsafe},
		{rule: "an address as a number", to: "https://2130706433", kind: upstream.ErrUnsafe},
		{rule: "an address in full-width digits", to: "https://10.0.0.１", kind: upstream.ErrUnsafe},
		{rule: "an address with ideographic full stops", to: "https://169。254。169。254", kind: upstream.ErrUnsafe},
		{rule: "an address in escaped full-width digits", to: "https://10.0.0.%EF%BC%91", kind: upstream.ErrUnsafe},
		{rule: "localhost in letters that IDNA maps", to: "https://ⓛocalhost", kind: upstream.ErrUnsafe},
		{rule: "localhost", to: "https://localhost", kind: upstream.ErrUnsafe},
		{rule: "a name below localhost", to: "https://a.LocalHost.", kind: upstream.ErrUnsafe},
		{rule: "a name that resolves to a private address", to: "https://files.example.com", kind: upstream.ErrUnsafe},
		{rule: "without TLS", to: "http://files.example.com", kind: upstream.ErrUnsafe},
		{rule: "a host that is allowed by name", to: "https://files.example.com", allowed: []string{"Files.example.com"}},
		{rule: "an address that is allowed", to: "https://127.0.0.1", allowed: []string{"127.0.0.1"}},
		{rule: "the origin itself", to: "https://" + host},
		{rule: "the origin at another port", to: "https://" + host + ":8443"},
	} {
		for _, how := range []string{"by a redirect", "by a link", "by discovery"} {
			t.Run(test.rule+" "+how, func(t *testing.T) {
				s := newAcme(t)
				switch how {
				case "by a redirect":
					s.Fault(sumsFile, redirect(test.to+files+"elsewhere"))
				case "by a link":
					s.Fault(metadata, s.Edited(`"shasums_url":"`, `"shasums_url":"`+test.to+`/elsewhere/..`))
				case "by discovery":
					s.Fault(discovery, body(`{"providers.v1":"`+test.to+`/v1/providers/"}`))
				}
				s.Fault(files+"elsewhere", func(w http.ResponseWriter, r *http.Request) {
					r.URL.Path = sumsFile
					s.Handler.ServeHTTP(w, r)
				})
				_, err := s.Client(t, upstream.Origin{Private: test.allowed}).Release(background(), demo, v1, nil)
				if test.kind == nil {
					// Whether the request succeeds there does not matter.
					if isUnsafe(err) {
						t.Error(err)
					}
					return
				}
				mustFail(t, err, test.kind, "")
				if n := s.Count(files + "elsewhere"); n != 0 {
					t.Errorf("%d requests were sent", n)
				}
			})
		}
	}
}

func isUnsafe(err error) bool {
	return err != nil && strings.Contains(err.Error(), upstream.ErrUnsafe.Error())
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

// An origin that is down gets no requests until the pause is over, and then one.
func TestBreaker(t *testing.T) {
	s := newAcme(t)
	s.Fault(versions, status(501))
	s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
		fails := func(requested bool) {
			t.Helper()
			before := s.Count(versions)
			_, err := c.Versions(background(), demo)
			mustFail(t, err, upstream.ErrUnavailable, "")
			if (s.Count(versions) > before) != requested {
				t.Errorf("requested: %v", !requested)
			}
		}
		for range upstream.FailuresInARow {
			fails(true)
		}
		fails(false)
		time.Sleep(upstream.BreakerPause + time.Millisecond)
		fails(true)
		fails(false)
		s.Fault(versions, nil)
		fails(false)
		time.Sleep(upstream.BreakerPause + time.Millisecond)
		if _, err := c.Versions(background(), demo); err != nil {
			t.Error(err)
		}
	})
}

// A service on a host of its own that is down says nothing about the other hosts of the origin.
func TestEachHostHasABreaker(t *testing.T) {
	s := newAcme(t)
	s.ModuleService("/x.zip")
	s.Fault(moduleVersions, status(501))
	s.InBubble(t, upstream.Origin{ModulesURL: "https://modules.example.com/v1/modules"}, func(t *testing.T, c *upstream.Client) {
		for range upstream.FailuresInARow + 1 {
			_, err := c.Versions(background(), vpc)
			mustFail(t, err, upstream.ErrUnavailable, "")
		}
		if n := s.Count(moduleVersions); n != upstream.FailuresInARow {
			t.Errorf("the host that is down was asked %d times", n)
		}
		if _, err := c.Versions(background(), demo); err != nil {
			t.Errorf("the host of the providers: %v", err)
		}
	})
}

func TestFailuresThatDoNotOpenTheBreaker(t *testing.T) {
	for rule, answer := range map[string]http.HandlerFunc{
		"404": status(404), "401": status(401), "422": status(422), "garbage": body("?"),
	} {
		t.Run(rule, func(t *testing.T) {
			s := newAcme(t)
			s.Fault(versions, answer)
			s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
				for range 10 {
					c.Versions(background(), demo)
				}
				if n := s.Count(versions); n != 10 {
					t.Errorf("got %d requests", n)
				}
			})
		})
	}
	t.Run("callers who cancel", func(t *testing.T) {
		s := newAcme(t)
		s.Fault(versions, upstreamtest.Silence)
		s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
			for range 10 {
				ctx, cancel := context.WithTimeout(background(), time.Second)
				_, err := c.Versions(ctx, demo)
				mustFail(t, err, context.DeadlineExceeded, "")
				cancel()
			}
			if n := s.Count(versions); n != 10 {
				t.Errorf("got %d requests", n)
			}
		})
	})
}

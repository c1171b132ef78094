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

	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

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
		{"once site-local", "fec0::1", "2a00:1450::1"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			for _, ip := range strings.Fields(test.private) {
				if upstream.CheckIP(netip.MustParseAddr(ip)) == nil {
					t.Errorf("%s is taken for public", ip)
				}
			}
			for _, ip := range strings.Fields(test.public) {
				if err := upstream.CheckIP(netip.MustParseAddr(ip)); err != nil {
					t.Errorf("%s is taken for private", ip)
				}
			}
		})
	}
}

// An origin's links and redirects do not lead into the private network, be it
// by address or by a name that resolves to one.
func TestOriginDoesNotReachThePrivateNetwork(t *testing.T) {
	for _, test := range []struct {
		rule, to string
		allowed  []string
		kind     error // nil: it is gone to
	}{
		{rule: "a loopback address", to: "https://127.0.0.1", kind: upstream.ErrUnsafe},
		{rule: "of IPv6", to: "https://[::1]", kind: upstream.ErrUnsafe},
		{rule: "the metadata of a cloud", to: "https://169.254.169.254", kind: upstream.ErrUnsafe},
		{rule: "a short form that resolvers know", to: "https://127.1", kind: upstream.ErrUnsafe},
		{rule: "a number that resolvers know", to: "https://2130706433", kind: upstream.ErrUnsafe},
		{rule: "an address in full-width digits", to: "https://10.0.0.１", kind: upstream.ErrUnsafe},
		{rule: "with dots that are none", to: "https://169。254。169。254", kind: upstream.ErrUnsafe},
		{rule: "escaped", to: "https://10.0.0.%EF%BC%91", kind: upstream.ErrUnsafe},
		{rule: "the server itself, in letters that become its", to: "https://ⓛocalhost", kind: upstream.ErrUnsafe},
		{rule: "the server itself", to: "https://localhost", kind: upstream.ErrUnsafe},
		{rule: "and below it", to: "https://a.LocalHost.", kind: upstream.ErrUnsafe},
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
					// Whether it finds anything there is not the question here.
					if isUnsafe(err) {
						t.Error(err)
					}
					return
				}
				mustFail(t, err, test.kind, "")
				if n := s.Count(files + "elsewhere"); n != 0 {
					t.Errorf("%d requests arrived", n)
				}
			})
		}
	}
}

func isUnsafe(err error) bool {
	return err != nil && strings.Contains(err.Error(), upstream.ErrUnsafe.Error())
}

// Through a proxy it is the proxy that resolves and dials. It may be anywhere
// itself.
func TestProxy(t *testing.T) {
	s := newAcme(t)
	server := s.Serve(t)
	var asked []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Host)
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
	c := newClient(t, upstream.Origin{Hostname: host, Token: "secret"}, upstream.Trust(roots(server)))
	if _, err := c.Versions(background(), demo); err != nil {
		t.Fatal(err)
	}
	if len(asked) != 1 || asked[0] != host+":443" {
		t.Errorf("the proxy was asked for %q", asked)
	}
	for _, to := range []string{"https://10.1.2.3", "https://[fd00::1]", "https://167772161", "https://0x0a.1", "https://10.0.0.１", "https://10。0。0。1"} {
		s.Fault(versions, redirect(to))
		_, err := c.Versions(background(), demo)
		mustFail(t, err, upstream.ErrUnsafe, "")
	}
	for _, name := range asked {
		if name != host+":443" {
			t.Errorf("the proxy was asked for %s", name)
		}
	}
}

package upstream_test

import (
	"net/http"
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

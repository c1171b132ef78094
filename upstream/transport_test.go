package upstream_test

import (
	"net/http"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

// The token is for the host and port it was configured for, and for where
// that has its services; nobody else sees it, nor the URL it came from.
func TestTokenStaysAtHome(t *testing.T) {
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
			c := newClient(t, test.origin, upstream.Trust(roots(server)), resolving(server))
			c.Versions(background(), demo) // whatever comes of it
			requests := s.Requests(test.path)
			if test.rule == "a redirect to a host below it" {
				// The certificate of the tests is not for it.
				if len(requests) != 0 {
					t.Error("it went to a host whose certificate is for another")
				}
				return
			}
			if len(requests) == 0 {
				t.Fatal("it was not asked for")
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

// Packages and documents elsewhere are fetched without it.
func TestTokenIsNotForLinks(t *testing.T) {
	s := newAcme(t)
	s.Fault(metadata, s.Edited(`_url":"`, `_url":"https://files.example.com`))
	c := s.Client(t, upstream.Origin{Token: "secret", Private: []string{"files.example.com"}})
	r, err := c.Release(background(), demo, v1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Download(background(), r, linux, nowhere{}); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{sumsFile, sigFile, zipFile} {
		requests := s.Requests(path)
		if len(requests) != 1 || requests[0].Host != "files.example.com" || requests[0].Header.Get("Authorization") != "" {
			t.Errorf("%s: %+v", path, requests)
		}
	}
}

type nowhere struct{}

func (nowhere) Write(p []byte) (int, error) { return len(p), nil }

func TestRedirectsEnd(t *testing.T) {
	s := newAcme(t)
	s.Fault(versions, redirect(versions))
	_, err := s.Client(t, upstream.Origin{}).Versions(background(), demo)
	mustFail(t, err, upstream.ErrMalformed, "redirects too often")
	if n := s.Count(versions); n != 11 {
		t.Errorf("it was asked %d times", n)
	}
}

// A certificate that does not verify is not a reason to try again, and never
// one to go on.
func TestCertificatesAreVerified(t *testing.T) {
	s := newAcme(t)
	server := s.Serve(t)
	c := newClient(t, upstream.Origin{Hostname: host}, resolving(server))
	_, err := c.Versions(background(), demo)
	mustFail(t, err, upstream.ErrUnavailable, "TLS certificate does not verify")
	c = newClient(t, upstream.Origin{Hostname: "registry.example.net"}, upstream.Trust(roots(server)), resolving(server))
	_, err = c.Versions(background(), demo2)
	mustFail(t, err, upstream.ErrUnavailable, "TLS certificate does not verify")
	if len(s.Asked()) != 0 {
		t.Errorf("%d requests were made", len(s.Asked()))
	}
}

func TestRefusals(t *testing.T) {
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

package upstream_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

func TestOrigin(t *testing.T) {
	for _, test := range []struct {
		rule   string
		origin upstream.Origin
		says   string // empty: no error
	}{
		{"a hostname is enough", upstream.Origin{Hostname: host}, ""},
		{"a hostname with a port", upstream.Origin{Hostname: host + ":8443"}, ""},
		{"at another URL", upstream.Origin{Hostname: host, URL: "https://10.0.0.1:8443"}, ""},
		{"through a mirror", upstream.Origin{Hostname: host, Mirror: "https://mirror.example.com/a/b"}, ""},
		{"with private hosts", upstream.Origin{Hostname: host, Private: []string{"files.internal", "10.0.0.1", "fd00::1"}}, ""},
		{"with hosts of modules", upstream.Origin{Hostname: host, Hosts: []upstream.Host{{Name: "git.example.com:8443", User: "me", Token: "secret"}, {Name: "fd00::1"}, {Name: "git.example.com"}}}, ""},
		{"with a module service beside a mirror", upstream.Origin{Hostname: host, Mirror: "https://b.example.com", ModulesURL: "https://c.example.com/v1/modules"}, ""},
		{"a module service without TLS", upstream.Origin{Hostname: host, ModulesURL: "http://c.example.com/v1/modules"}, "the module service's URL of an origin must begin with https://"},
		{"a host of modules with a scheme", upstream.Origin{Hostname: host, Hosts: []upstream.Host{{Name: "https://git.example.com"}}}, "is not a host"},
		{"a host of modules with a port that is none", upstream.Origin{Hostname: host, Hosts: []upstream.Host{{Name: "git.example.com:0"}}}, "not a number"},
		{"a host of modules twice", upstream.Origin{Hostname: host, Hosts: []upstream.Host{{Name: "git.example.com"}, {Name: "Git.example.com:443"}}}, "configured twice"},
		{"a token of a host with its line break", upstream.Origin{Hostname: host, Hosts: []upstream.Host{{Name: "git.example.com", Token: "secret\n"}}}, "copy it again"},
		{"a user with a colon", upstream.Origin{Hostname: host, Hosts: []upstream.Host{{Name: "git.example.com", User: "a:secret", Token: "b"}}}, "must not have a colon"},
		{"a user without a token", upstream.Origin{Hostname: host, Hosts: []upstream.Host{{Name: "git.example.com", User: "a"}}}, "add the token"},
		{"no hostname", upstream.Origin{}, "needs the hostname"},
		{"a URL and a mirror", upstream.Origin{Hostname: host, URL: "https://a.example.com", Mirror: "https://b.example.com"}, "leave out one"},
		{"without TLS", upstream.Origin{Hostname: host, URL: "http://a.example.com"}, "must begin with https://"},
		{"a mirror without a scheme", upstream.Origin{Hostname: host, Mirror: "mirror.example.com"}, "not a URL"},
		{"a password", upstream.Origin{Hostname: host, URL: "https://me:secret@a.example.com"}, "use a token"},
		{"a query", upstream.Origin{Hostname: host, URL: "https://a.example.com/?a=secret"}, "end with its path"},
		{"a private host with a port", upstream.Origin{Hostname: host, Private: []string{"files.internal:8443"}}, "without scheme and port"},
		{"a private host with a scheme", upstream.Origin{Hostname: host, Private: []string{"https://files.internal"}}, "without scheme and port"},
		{"a token with its line break", upstream.Origin{Hostname: host, Token: "secret\n"}, "copy it again"},
		{"a negative time", upstream.Origin{Hostname: host, Timeout: -1}, "negative"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			_, err := upstream.NewClient(test.origin, upstream.Network{})
			if test.says == "" && err != nil {
				t.Error(err)
			}
			if test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "secret")) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestOriginDoesNotPrintItsToken(t *testing.T) {
	o := upstream.Origin{Hostname: host, Token: "secret"}
	o.Hosts = []upstream.Host{{Name: "git.example.com", Token: "secret"}}
	for _, text := range []string{fmt.Sprint(o.Hosts), fmt.Sprintf("%#v", o.Hosts), fmt.Sprint(o), fmt.Sprintf("%+v", o), fmt.Sprintf("%#v", o)} {
		if strings.Contains(text, "secret") {
			t.Errorf("%s has the token in it", text)
		}
	}
}

// A URL with a path is the provider service. Without a path, the service is discovered.
func TestOriginAtAnotherURL(t *testing.T) {
	for _, test := range []struct {
		url       string
		discovers int
	}{
		{"https://other.example.com", 1},
		{"https://other.example.com/", 1},
		{"https://other.example.com/v1/providers", 0},
		{"https://other.example.com/v1/providers/", 0},
	} {
		t.Run(test.url, func(t *testing.T) {
			s := newAcme(t)
			list, err := s.Client(t, upstream.Origin{URL: test.url}).Versions(background(), demo)
			if err != nil || len(list) != 1 || s.Count(discovery) != test.discovers {
				t.Errorf("got %v, %v, %d discoveries", list, err, s.Count(discovery))
			}
		})
	}
}

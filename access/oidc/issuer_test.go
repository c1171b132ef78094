package oidc

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestIssuerURL(t *testing.T) {
	tests := []struct {
		rule, url string
		want      string // in the error, empty without
	}{
		{"https", "https://issuer.example.com", ""},
		{"with a path", "https://issuer.example.com/realms/acme", ""},
		{"with a slash at its end", "https://acme.eu.auth0.example/", ""},
		{"with a port", "https://issuer.example.com:8443", ""},
		{"http on localhost", "http://localhost:8080/realms/acme", ""},
		{"http on 127.0.0.1", "http://127.0.0.1:8080", ""},
		{"http on ::1", "http://[::1]:8080", ""},
		{"http elsewhere", "http://issuer.example.com", "must begin with https://"},
		{"http on a host that begins with localhost", "http://localhost.example.com", "must begin with https://"},
		{"http on a host that begins with 127.0.0.1", "http://127.0.0.1.example.com", "must begin with https://"},
		{"http on a private address", "http://10.0.0.1", "must begin with https://"},
		{"no scheme", "issuer.example.com", "does not begin with https://"},
		{"another scheme", "ldap://issuer.example.com", "does not begin with https://"},
		{"no host", "https:///realms/acme", "has no host"},
		{"nothing", "", "does not begin with https://"},
		{"a password", "https://alice:secret@issuer.example.com", "must not have a user name or password"},
		{"a query", "https://issuer.example.com?tenant=a", "must not have a query"},
		{"a fragment", "https://issuer.example.com#a", "must not have a fragment"},
		{"no URL", "https://issuer\x00secret", "is not a URL"},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			i, err := NewIssuer(test.url)
			switch {
			case test.want == "" && err != nil:
				t.Fatal(err)
			case test.want == "" && i.URL() != test.url:
				t.Errorf("it is %q", i.URL())
			case test.want == "":
			case err == nil || !strings.Contains(err.Error(), test.want):
				t.Errorf("got error %v, want one with %q", err, test.want)
			case strings.Contains(err.Error(), "secret"):
				t.Errorf("error %q has the password in it", err)
			}
		})
	}
}

func TestIssuerClientHasATimeout(t *testing.T) {
	if got := secureClient(new(http.Client)).Timeout; got != issuerTimeout {
		t.Errorf("one without has %s", got)
	}
	given := &http.Client{Timeout: time.Second}
	if got := secureClient(given).Timeout; got != time.Second {
		t.Errorf("one with a second has %s", got)
	}
	if given.CheckRedirect != nil {
		t.Error("the given client was changed")
	}
}

func TestEndpoints(t *testing.T) {
	p := newProvider(t)
	i := p.issuer()
	for range 3 {
		authorization, token, err := i.Endpoints(t.Context())
		if err != nil || authorization != p.server.URL+"/authorize" || token != p.server.URL+"/token" {
			t.Errorf("got %q, %q, %v", authorization, token, err)
		}
	}
	if got := p.fetched(); got != "1 configurations, 0 key sets" {
		t.Errorf("it fetched %s", got)
	}
}

func TestInvalidIssuerConfigurations(t *testing.T) {
	set := func(name string, value any) func(*provider) {
		return func(p *provider) { p.config = func(c map[string]any) { c[name] = value } }
	}
	tests := []struct {
		rule   string
		change func(*provider)
		want   string
	}{
		{"of another issuer", set("issuer", "https://other.example.com"), `calls itself "https://other.example.com"`},
		{"of no issuer", set("issuer", nil), "calls itself"},
		{"without keys", set("jwks_uri", nil), "jwks_uri"},
		{"with keys over plain http", set("jwks_uri", "http://issuer.example.com/keys"), "jwks_uri"},
		{"without a login endpoint", set("authorization_endpoint", ""), "authorization_endpoint"},
		{"without a token endpoint", set("token_endpoint", nil), "token_endpoint"},
		{"with a token endpoint over plain http", set("token_endpoint", "http://issuer.example.com"), "token_endpoint"},
		{"not JSON", func(p *provider) {
			p.answer = func(w http.ResponseWriter) { w.Write([]byte("<html>")) }
		}, "not the expected JSON"},
		{"too long", func(p *provider) {
			p.answer = func(w http.ResponseWriter) { w.Write(make([]byte, maxDocument+1)) }
		}, "longer than"},
		{"an error", func(p *provider) { p.down.Store(true) }, "answers 503"},
		{"no server", func(p *provider) { p.server.Close() }, "refused"},
		{"redirecting to plain http", func(p *provider) {
			p.answer = func(w http.ResponseWriter) {
				w.Header().Set("Location", "http://issuer.example.com/")
				w.WriteHeader(http.StatusFound)
			}
		}, "must begin with https://"},
		{"redirecting in circles", func(p *provider) {
			p.answer = func(w http.ResponseWriter) {
				w.Header().Set("Location", p.server.URL+"/keys")
				w.WriteHeader(http.StatusFound)
			}
		}, "redirects too often"},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			p := newProvider(t)
			test.change(p)
			_, _, err := p.issuer().Endpoints(t.Context())
			if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want ErrUnavailable with %q", err, test.want)
			}
		})
	}
}

// TestConcurrentRequestsShareOneFetch: one that gives up does not affect the
// others.
func TestConcurrentRequestsShareOneFetch(t *testing.T) {
	p := newProvider(t)
	asked, release := make(chan struct{}), make(chan struct{})
	p.answer = func(w http.ResponseWriter) {
		close(asked) // a second request would panic
		<-release
		p.answer = nil
		w.WriteHeader(http.StatusOK)
		w.Write([]byte(`{"issuer":"` + p.server.URL + `","jwks_uri":"https://a/","authorization_endpoint":"https://a/","token_endpoint":"https://a/"}`))
	}
	i := p.issuerAt(time.Now)
	ctx, giveUp := context.WithCancel(t.Context())
	first := make(chan error)
	go func() {
		_, _, err := i.Endpoints(ctx)
		first <- err
	}()
	<-asked
	giveUp()
	if err := <-first; !errors.Is(err, ErrUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("the request that gave up got error %v", err)
	}
	var done sync.WaitGroup
	for range 4 {
		done.Go(func() {
			if _, _, err := i.Endpoints(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	close(release)
	done.Wait()
}

func TestIssuerThatHangs(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer server.Close()
	defer close(release)
	i, err := newIssuer(server.URL, &http.Client{Timeout: time.Millisecond}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := i.Endpoints(t.Context()); !errors.Is(err, ErrUnavailable) {
		t.Errorf("got error %v", err)
	}
}

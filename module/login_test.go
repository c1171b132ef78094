package module

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-terraform/caddy-terraform-registry/access/oidc"
	"github.com/caddy-terraform/caddy-terraform-registry/access/oidc/oidctest"
	"github.com/caddy-terraform/caddy-terraform-registry/module/authenticate"
)

func readLogin(t *testing.T, l Login, logger *slog.Logger) *login {
	t.Helper()
	worked, err := l.read(caddy.NewReplacer(), logger)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = worked.close() })
	return worked
}

func TestLoginDocument(t *testing.T) {
	s := oidctest.NewIssuer(t)
	t.Setenv("REGISTRY_CLIENT", "terraform-cli")
	tests := []struct {
		rule  string
		login Login
		want  string
	}{
		{"fixed endpoints", Login{Client: "cli", Authz: "https://a.example.com/authorize?audience=registry", Token: "/oauth/token"},
			`{"client":"cli","grant_types":["authz_code"],"authz":"https://a.example.com/authorize?audience=registry","token":"/oauth/token","ports":[10000,10010]}`},
		{"ports and scopes", Login{Client: "cli", Authz: "/a", Token: "/t", Ports: []int{20000, 20020}, Scopes: []string{"openid", "registry"}},
			`{"client":"cli","grant_types":["authz_code"],"authz":"/a","token":"/t","ports":[20000,20020],"scopes":["openid","registry"]}`},
		{"endpoints of an issuer", Login{Client: "{env.REGISTRY_CLIENT}", Issuer: s.URL},
			`{"client":"terraform-cli","grant_types":["authz_code"],"authz":"` + s.URL + `/authorize","token":"` + s.URL + `/token","ports":[10000,10010]}`},
		{"one endpoint of an issuer", Login{Client: "cli", Issuer: s.URL, Authz: s.URL + "/authorize?audience=registry"},
			`{"client":"cli","grant_types":["authz_code"],"authz":"` + s.URL + `/authorize?audience=registry","token":"` + s.URL + `/token","ports":[10000,10010]}`},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			l := readLogin(t, test.login, slog.New(slog.DiscardHandler))
			document := l.document(t.Context())
			got, err := json.Marshal(document)
			if err != nil || string(got) != test.want {
				t.Errorf("got %s, %v, want %s", got, err, test.want)
			}
			if l.document(t.Context()) != document {
				t.Error("each call returns another pointer")
			}
		})
	}
}

// While the issuer is unavailable no login is offered, which is logged once.
func TestLoginOfAnUnavailableIssuer(t *testing.T) {
	s := oidctest.NewIssuer(t)
	s.Broken.Store(true)
	var log bytes.Buffer
	l := readLogin(t, Login{Client: "cli", Issuer: s.URL}, slog.New(slog.NewTextHandler(&log, nil)))
	for range 3 {
		if document := l.document(t.Context()); document != nil {
			t.Errorf("the login is %+v", document)
		}
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 1 || strings.Count(log.String(), "\n") != 1 {
		t.Errorf("it warned %d times: %s", n, &log)
	}
	if n := s.Asked.Load(); n != 1 {
		t.Errorf("the issuer was asked %d times", n)
	}
}

func TestLoginOutageEnds(t *testing.T) {
	s := oidctest.NewIssuer(t)
	var log bytes.Buffer
	l := readLogin(t, Login{Client: "cli", Issuer: s.URL}, slog.New(slog.NewTextHandler(&log, nil)))
	l.unavailable = true
	for range 2 {
		if l.document(t.Context()) == nil {
			t.Error("no login is offered")
		}
	}
	if log.Len() == 0 || strings.Count(log.String(), "\n") != 1 || l.unavailable {
		t.Errorf("the log has %q", &log)
	}
}

// A client that leaves says nothing about the issuer.
func TestLoginAfterTheClientWentAway(t *testing.T) {
	s := oidctest.NewIssuer(t)
	s.Broken.Store(true)
	var log bytes.Buffer
	l := readLogin(t, Login{Client: "cli", Issuer: s.URL}, slog.New(slog.NewTextHandler(&log, nil)))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if l.document(ctx) != nil || log.Len() > 0 {
		t.Errorf("the log has %q", &log)
	}
}

func TestLoginIsOptional(t *testing.T) {
	var none *Login
	l, err := none.read(caddy.NewReplacer(), slog.New(slog.DiscardHandler))
	if l != nil || err != nil {
		t.Errorf("got %v, %v", l, err)
	}
	if err := l.close(); err != nil {
		t.Error(err)
	}
}

// A login has the same issuer as the providers in auth, and releases it once.
func TestLoginSharesTheIssuer(t *testing.T) {
	s := oidctest.NewIssuer(t)
	acquire := func() *oidc.Issuer {
		t.Helper()
		issuer, err := authenticate.AcquireIssuer(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		return issuer
	}
	release := func(issuer *oidc.Issuer) {
		t.Helper()
		if err := authenticate.ReleaseIssuer(issuer); err != nil {
			t.Error(err)
		}
	}
	issuer := acquire()
	l := readLogin(t, Login{Client: "cli", Issuer: s.URL}, slog.New(slog.DiscardHandler))
	if l.issuer != issuer {
		t.Error("the login has another issuer")
	}
	if err := l.close(); err != nil {
		t.Error(err)
	}
	l.issuer = nil // released
	if acquire() != issuer {
		t.Error("the login has released the issuer of others")
	}
	release(issuer)
	release(issuer)
	another := acquire()
	if another == issuer {
		t.Error("the login has not released the issuer")
	}
	release(another)
}

func TestLoginOptions(t *testing.T) {
	good := func(change func(*Login)) Login {
		l := Login{Client: "cli", Authz: "/authorize", Token: "/token"}
		change(&l)
		return l
	}
	tests := []struct {
		rule  string
		login Login
		want  string // in the error, empty without
	}{
		{"paths", good(func(l *Login) {}), ""},
		{"a path with a query", good(func(l *Login) { l.Authz = "/authorize?a=b" }), ""},
		{"https", good(func(l *Login) { l.Token = "https://auth.example.com/token" }), ""},
		{"http for localhost", good(func(l *Login) { l.Token = "http://localhost:8080/token" }), ""},
		{"two ports", good(func(l *Login) { l.Ports = []int{1024, 1025} }), ""},
		{"the highest port", good(func(l *Login) { l.Ports = []int{65000, 65535} }), ""},
		{"a scope that is a URL", good(func(l *Login) { l.Scopes = []string{"api://registry/.default"} }), ""},
		{"no client", good(func(l *Login) { l.Client = "" }), "login: client: it is missing"},
		{"no authz", good(func(l *Login) { l.Authz = "" }), "login: authz and token are required"},
		{"no token", good(func(l *Login) { l.Token = "" }), "login: authz and token are required"},
		{"an issuer without effect", good(func(l *Login) { l.Issuer = "https://issuer.example.com" }), "an issuer has no effect"},
		{"an issuer over http", Login{Client: "cli", Issuer: "http://issuer.example.com"}, "login: issuer:"},
		{"http elsewhere", good(func(l *Login) { l.Authz = "http://auth.example.com/" }), "login: authz: "},
		{"no slash", good(func(l *Login) { l.Token = "oauth/token" }), "login: token: "},
		{"a host without scheme", good(func(l *Login) { l.Token = "//auth.example.com/token" }), "neither a URL"},
		{"another scheme", good(func(l *Login) { l.Token = "ftp://auth.example.com/token" }), "does not begin with https://"},
		{"a password", good(func(l *Login) { l.Token = "https://a:secret@auth.example.com/token" }), "must not have a user name or password"},
		{"a fragment", good(func(l *Login) { l.Authz = "/authorize#a" }), "must not have a fragment"},
		{"an invalid path", good(func(l *Login) { l.Authz = "/%zz" }), "is not a path"},
		{"one port", good(func(l *Login) { l.Ports = []int{10000} }), "ports: there are 1"},
		{"three ports", good(func(l *Login) { l.Ports = []int{10000, 10001, 10002} }), "ports: there are 3"},
		{"equal ports", good(func(l *Login) { l.Ports = []int{10000, 10000} }), "is not lower than"},
		{"ports in the wrong order", good(func(l *Login) { l.Ports = []int{10010, 10000} }), "is not lower than"},
		{"a privileged port", good(func(l *Login) { l.Ports = []int{1023, 10000} }), "not both between"},
		{"a port that is too high", good(func(l *Login) { l.Ports = []int{10000, 65536} }), "not both between"},
		{"two scopes in one", good(func(l *Login) { l.Scopes = []string{"openid profile"} }), `scopes: "openid profile" is not a scope`},
		{"an empty scope", good(func(l *Login) { l.Scopes = []string{""} }), "scopes:"},
		{"a quoted scope", good(func(l *Login) { l.Scopes = []string{`"openid"`} }), "scopes:"},
		{"a placeholder of requests", good(func(l *Login) { l.Client = "{http.request.host}" }), "login: client:"},
		{"an unset variable", good(func(l *Login) { l.Scopes = []string{"{env.REGISTRY_UNSET}"} }), "login: scopes:"},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			l, err := test.login.read(caddy.NewReplacer(), slog.New(slog.DiscardHandler))
			switch {
			case test.want == "":
				if err != nil {
					t.Fatal(err)
				}
				if err := l.close(); err != nil {
					t.Error(err)
				}
			case err == nil || !strings.Contains(err.Error(), test.want):
				t.Errorf("got error %v, want one with %q", err, test.want)
			case strings.Contains(err.Error(), "secret"):
				t.Errorf("error %q has the password in it", err)
			}
		})
	}
}

package module

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-terraform/caddy-terraform-registry/access/oidc/oidctest"
)

// A reader is a browser at one or more sites of one name.
type reader struct {
	t       *testing.T
	cookies map[string]string
	ctx     context.Context // of requests; may be nil
}

// ask sends a request, and keeps the cookies of the answer. The next handler answers 418
// with the cookies that it sees.
func (b *reader) ask(h *Handler, method, target string, header ...string) *httptest.ResponseRecorder {
	b.t.Helper()
	if strings.HasPrefix(target, "/") {
		target = "https://registry.example.com" + target
	}
	w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(cmp.Or(b.ctx, b.t.Context()), method, target, nil)
	for name, value := range b.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, new(caddyhttp.Server))
	next := caddyhttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		w.WriteHeader(http.StatusTeapot)
		_, err := fmt.Fprintf(w, "cookies: %s", r.Header.Get("Cookie"))
		return err
	})
	if err := h.ServeHTTP(w, r, next); err != nil {
		b.t.Fatal(err)
	}
	for _, c := range w.Result().Cookies() {
		if b.cookies == nil {
			b.cookies = make(map[string]string)
		}
		b.cookies[c.Name] = c.Value
		if c.MaxAge < 0 {
			delete(b.cookies, c.Name)
		}
	}
	return w
}

// begin begins to sign in, and returns the URL to which the issuer would send the
// browser back.
func (b *reader) begin(s *oidctest.Issuer, h *Handler, to string) string {
	b.t.Helper()
	w := b.ask(h, http.MethodGet, "/_registry/login?to="+url.QueryEscape(to))
	location, err := url.Parse(w.Header().Get("Location"))
	if err != nil || w.Code != http.StatusSeeOther || w.Header().Get("Cache-Control") != "no-store" || !strings.HasPrefix(location.String(), s.URL+"/authorize?") {
		b.t.Fatalf("got %d %v", w.Code, w.Header())
	}
	return location.Query().Get("redirect_uri") + "?" + s.Login(location.String()).Encode()
}

// signInHandler returns a private registry in which people sign in.
func signInHandler(c *configuration, s *oidctest.Issuer, root string, change ...func(*Handler)) *Handler {
	c.t.Helper()
	h := Handler{
		Root: root, UI: new(UI), Login: &Login{Client: "cli", Issuer: s.URL, Secret: "{env.REGISTRY_TEST_SECRET}"},
		AuthRaw: []json.RawMessage{json.RawMessage(fmt.Sprintf(`{"provider":"terraform_oidc","issuer":%q,"audience":["registry"]}`, s.URL))},
		Access:  &Access{Rules: []AccessRule{{"allow", "group:dev", "read", []string{"acme"}}, {"allow", "root", "manage", []string{"*"}}}},
	}
	for _, f := range change {
		f(&h)
	}
	return c.mustHandle(h)
}

const privatePage = "/modules/acme/vpc/aws/1.0.0"

func TestPeopleSignIn(t *testing.T) {
	t.Setenv("REGISTRY_TEST_SECRET", "hush")
	s := oidctest.NewIssuer(t)
	s.Claims = map[string]any{"groups": []string{"dev"}}
	storage, root := t.TempDir(), sampleTree(t)
	c, d := newConfigurationIn(t, storage), newConfigurationIn(t, storage)
	one, other := signInHandler(c, s, root), signInHandler(d, s, root)
	elsewhere := signInHandler(d, s, root, func(h *Handler) { h.Login.Client = "other" })
	c.mustStart()
	d.mustStart()
	snapshot(t, one)
	snapshot(t, other)
	b := &reader{t: t}

	if w := b.ask(one, http.MethodGet, privatePage); w.Code != http.StatusUnauthorized || !strings.Contains(w.Body.String(), "/_registry/login?to=") {
		t.Fatalf("got %d %s", w.Code, w.Body)
	}
	callback := b.begin(s, one, privatePage)
	if w := (&reader{t: t}).ask(one, http.MethodGet, callback); w.Code != http.StatusBadRequest || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("another browser gets %d %v", w.Code, w.Header())
	}
	if w := b.ask(one, http.MethodHead, callback); w.Code != http.StatusNoContent || len(b.cookies) != 1 {
		t.Errorf("a HEAD finishes nothing: %d, %v", w.Code, b.cookies)
	}
	if w := b.ask(one, http.MethodPost, callback); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("an answer by POST: %d", w.Code)
	}
	if w := b.ask(other, http.MethodGet, callback); w.Code != http.StatusSeeOther || w.Header().Get("Location") != privatePage || len(b.cookies) != 1 {
		t.Fatalf("got %d %v %s, %v", w.Code, w.Header(), w.Body, b.cookies)
	}
	if got := s.Secret.Load(); got != "hush" {
		t.Errorf("the issuer is given the secret %q", got)
	}
	if one.Login.Secret != "{env.REGISTRY_TEST_SECRET}" {
		t.Error("the secret is in the configuration")
	}
	for rule, test := range map[string]struct {
		h      *Handler
		path   string
		status int
		has    string
	}{
		"a page":                          {one, privatePage, 200, "alice"},
		"a page of the other instance":    {other, privatePage, 200, "/_registry/logout"},
		"a page that is hidden":           {one, "/_registry/report", 404, ""},
		"a page of a site of another":     {elsewhere, privatePage, 401, ""},
		"a document of a protocol":        {one, "/v1/modules/acme/vpc/aws/versions", 401, "is private"},
		"a list of the API":               {one, "/v1/modules", 200, `"modules":[]`},
		"a file":                          {one, "/v1/modules/acme/vpc/aws/1.0.0/archive.tar.gz", 401, ""},
		"discovery":                       {one, "/.well-known/terraform.json", 200, ""},
		"another handler":                 {one, "/elsewhere", 418, "cookies: "},
		"the sign-in of who is signed in": {one, "/_registry/login?to=/browse/modules", 303, ""},
		"the callback, once more":         {one, callback, 303, ""},
	} {
		w := b.ask(test.h, http.MethodGet, test.path)
		if w.Code != test.status || !strings.Contains(w.Body.String(), test.has) || test.status == 418 && w.Body.String() != "cookies: " {
			t.Errorf("%s: got %d %s", rule, w.Code, w.Body)
		}
		if test.path == privatePage && (!slices.Contains(w.Header().Values("Vary"), "Cookie") || w.Header().Get("Cache-Control") != "private, no-cache") {
			t.Errorf("%s: caches are told %v", rule, w.Header())
		}
		if location := w.Header().Get("Location"); w.Code == 303 && location != "/" && location != "/browse/modules" {
			t.Errorf("%s leads to %s", rule, location)
		}
	}
	if len(b.cookies) != 1 {
		t.Errorf("something has ended the session, or begun another: %v", b.cookies)
	}

	for origin, out := range map[string]bool{"https://evil.example": false, "null": false, "https://registry.example.com": true} {
		left := &reader{t: t, cookies: map[string]string{}}
		for name, value := range b.cookies {
			left.cookies[name] = value
		}
		w := left.ask(one, http.MethodPost, "/_registry/logout", "Origin", origin)
		if w.Code != http.StatusSeeOther || (len(left.cookies) == 0) != out {
			t.Errorf("a form of %s: %d, %v", origin, w.Code, left.cookies)
		}
	}
	if w := (&reader{t: t}).ask(one, http.MethodPost, "/_registry/logout"); len(w.Result().Cookies()) > 0 {
		t.Error("a form that comes without the session ends it")
	}
	if w := b.ask(one, http.MethodGet, "/_registry/logout"); w.Code != http.StatusOK || len(b.cookies) != 1 || !strings.Contains(w.Body.String(), "You are signed in as alice.") {
		t.Errorf("a link signs out: %d, %v", w.Code, b.cookies)
	}
}

// A session that cannot be read at the moment is valid when it can be read again. Signing out ends
// it in the browser nevertheless.
func TestSigningOutWhileTheStorageFails(t *testing.T) {
	t.Setenv("REGISTRY_TEST_SECRET", "hush")
	s := oidctest.NewIssuer(t)
	s.Claims = map[string]any{"groups": []string{"dev"}}
	storage, root := t.TempDir(), sampleTree(t)
	d := newConfigurationWith(t, closingIn(storage))
	other := signInHandler(d, s, root)
	d.mustStart()
	os.Remove(filepath.Join(storage, "terraform_registry", "link_keys.json")) // as if one instance rotated the keys
	c := newConfigurationWith(t, closingIn(storage))
	one := signInHandler(c, s, root)
	c.mustStart()
	snapshot(t, one)
	snapshot(t, other)
	b := &reader{t: t}
	b.ask(one, http.MethodGet, b.begin(s, one, privatePage))
	if w := b.ask(one, http.MethodGet, privatePage); w.Code != http.StatusOK {
		t.Fatalf("signed in: %d", w.Code)
	}
	before(d.app(), func(method, key string) error { return errors.New("the storage is down") })
	if w := b.ask(other, http.MethodGet, "/_registry/logout"); !strings.Contains(w.Body.String(), "Your session cannot be read at the moment.") || !strings.Contains(w.Body.String(), "<form ") {
		t.Errorf("the page to sign out is %d\n%s", w.Code, w.Body)
	}
	if w := b.ask(other, http.MethodPost, "/_registry/logout", "Origin", "https://registry.example.com"); w.Code != http.StatusSeeOther || len(b.cookies) > 0 {
		t.Errorf("got %d, and the browser has %v", w.Code, b.cookies)
	}
}

// A person has the same name and the same groups in rules, by a token and by a session.
func TestASessionHasTheConfiguredSubject(t *testing.T) {
	for _, test := range []struct {
		rule           string
		access         Access
		token, session int
	}{
		{"a denied subject", Access{Subject: "people:{http.auth.user.id}", Rules: []AccessRule{
			{"deny", "people:alice", "read", []string{"acme/vpc"}}, {"allow", "authenticated", "read", []string{"acme"}},
		}}, 404, 404},
		{"an allowed subject", Access{Subject: "people:{http.auth.user.id}", Rules: []AccessRule{{"allow", "people:alice", "read", []string{"acme"}}}}, 200, 200},
		{"an allowed group", Access{Groups: "people:{http.auth.user.groups}", Rules: []AccessRule{{"allow", "group:people:dev", "read", []string{"acme"}}}}, 200, 200},
		{"the group without what is put before it", Access{Groups: "people:{http.auth.user.groups}", Rules: []AccessRule{{"allow", "group:dev", "read", []string{"acme"}}}}, 404, 404},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Setenv("REGISTRY_TEST_SECRET", "hush")
			s := oidctest.NewIssuer(t)
			s.Claims = map[string]any{"groups": []string{"dev"}}
			c := newConfiguration(t)
			h := signInHandler(c, s, sampleTree(t), func(h *Handler) { h.Access = &test.access })
			c.mustStart()
			snapshot(t, h)
			b := &reader{t: t}
			if w := b.ask(h, http.MethodGet, privatePage, "Authorization", "Bearer "+s.Mint(s.Claims)); w.Code != test.token {
				t.Errorf("by a token: %d", w.Code)
			}
			b.ask(h, http.MethodGet, b.begin(s, h, "/"))
			if w := b.ask(h, http.MethodGet, privatePage); w.Code != test.session {
				t.Errorf("by a session: %d", w.Code)
			}
		})
	}
}

// Pages may be below the registry's prefix, where a POST publishes something otherwise.
func TestPeopleSignOutBelowThePrefix(t *testing.T) {
	t.Setenv("REGISTRY_TEST_SECRET", "hush")
	s := oidctest.NewIssuer(t)
	s.Claims = map[string]any{"groups": []string{"dev"}}
	c := newConfiguration(t)
	h := signInHandler(c, s, sampleTree(t), func(h *Handler) {
		h.Prefix, h.UI.Path, h.Publish = "/registry", "/registry/pages", new(Publish)
	})
	c.mustStart()
	snapshot(t, h)
	b := &reader{t: t}
	w := b.ask(h, http.MethodGet, "/registry/pages/_registry/login")
	location, err := url.Parse(w.Header().Get("Location"))
	if err != nil || w.Code != http.StatusSeeOther {
		t.Fatalf("got %d %v", w.Code, w.Header())
	}
	b.ask(h, http.MethodGet, location.Query().Get("redirect_uri")+"?"+s.Login(location.String()).Encode())
	const logout = "/registry/pages/_registry/logout"
	if w := b.ask(h, http.MethodGet, logout); len(b.cookies) != 1 || !strings.Contains(w.Body.String(), `action="`+logout+`"`) {
		t.Fatalf("nobody is signed in: %d %s", w.Code, w.Body)
	}
	for _, path := range []string{"/registry/pages/", "/registry/_registry/logout", "/registry/pages/_registry/login"} {
		if w := b.ask(h, http.MethodPost, path, "Origin", "https://registry.example.com"); w.Code != http.StatusNotFound || len(b.cookies) != 1 {
			t.Errorf("a POST to %s gets %d, %v", path, w.Code, b.cookies)
		}
	}
	if w := b.ask(h, http.MethodPost, logout, "Origin", "https://registry.example.com"); w.Code != http.StatusSeeOther || len(b.cookies) != 0 {
		t.Errorf("got %d %s, %v", w.Code, w.Body, b.cookies)
	}
}

// Signing in always leads back to a page of this site.
func TestSignInLeadsToPagesAlone(t *testing.T) {
	t.Setenv("REGISTRY_TEST_SECRET", "hush")
	s := oidctest.NewIssuer(t)
	c := newConfiguration(t)
	h := signInHandler(c, s, sampleTree(t))
	c.mustStart()
	for to, want := range map[string]string{
		"/search?q=a&x=b":                            "/search?q=a&x=b",
		"//evil.example":                             "/",
		`/\evil.example`:                             "/",
		`\\evil.example`:                             "/",
		"/%2f%2fevil.example":                        "/",
		"/%5cevil.example":                           "/",
		"https://evil.example/browse/modules":        "/",
		"https:evil.example":                         "/",
		"javascript:alert(1)":                        "/",
		"/\t/evil.example":                           "/",
		"/browse/modules\r\nSet-Cookie: a=b":         "/",
		"/v1/modules":                                "/",
		"/_registry/login?to=/_registry/login":       "/",
		"/_registry/callback?code=a":                 "/",
		"/_registry/logout":                          "/",
		"/search?q=" + strings.Repeat("long", 1000):  "/", // too long for a cookie
		"/modules/acme/vpc/aws//evil.example":        "/",
		"/modules/acme/vpc/aws/1.0.0#//evil.example": privatePage,
	} {
		b := &reader{t: t}
		w := b.ask(h, http.MethodGet, b.begin(s, h, to))
		if w.Code != http.StatusSeeOther || w.Header().Get("Location") != want {
			t.Errorf("%.60q leads to %d %.80q, want %q", to, w.Code, w.Header().Get("Location"), want)
		}
	}
	b := &reader{t: t}
	for _, header := range [][]string{{"Sec-Purpose", "prefetch;prerender"}, {"Purpose", "prefetch"}, {"X-Moz", "prefetch"}} {
		if w := b.ask(h, http.MethodGet, "/_registry/login", header...); w.Code != http.StatusServiceUnavailable || len(b.cookies) > 0 || w.Header().Get("Location") != "" {
			t.Errorf("a browser that only looks ahead with %v: %d %v", header, w.Code, w.Header())
		}
	}
	if w := b.ask(h, http.MethodHead, "/_registry/login"); w.Code != http.StatusNoContent || len(b.cookies) > 0 {
		t.Errorf("a HEAD begins to sign in: %d %v", w.Code, b.cookies)
	}
}

// Each failure is a page with a link, and without an automatic redirect.
func TestSigningInFails(t *testing.T) {
	t.Setenv("REGISTRY_TEST_SECRET", "hush")
	for _, test := range []struct {
		rule   string
		claims map[string]any
		change func(s *oidctest.Issuer, callback string) string
		status int
		has    string
	}{
		{"the person cancels", nil, func(_ *oidctest.Issuer, callback string) string { return callback + "&error=access_denied" }, 403, "has not let you in"},
		{"an account that is not accepted", map[string]any{"sub": ""}, nil, 403, "again=yes"},
		{"a token that has expired", map[string]any{"exp": time.Now().Add(-time.Hour).Unix()}, nil, 403, "does not accept the account"},
		{"the issuer is away", nil, func(s *oidctest.Issuer, callback string) string { s.Broken.Store(true); return callback }, 503, "does not answer at the moment"},
		{"a state of another", nil, func(_ *oidctest.Issuer, callback string) string { return callback + "x" }, 400, "has ended"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			s := oidctest.NewIssuer(t)
			s.Claims = test.claims
			c := newConfiguration(t)
			h := signInHandler(c, s, sampleTree(t))
			c.mustStart()
			b := &reader{t: t}
			callback := b.begin(s, h, privatePage)
			if test.change != nil {
				callback = test.change(s, callback)
			}
			w := b.ask(h, http.MethodGet, callback)
			if w.Code != test.status || !strings.Contains(w.Body.String(), test.has) || !strings.Contains(w.Body.String(), `href="/_registry/login?`) ||
				w.Header().Get("Location") != "" || w.Header().Get("Refresh") != "" || w.Header().Get("Cache-Control") != "no-store" {
				t.Errorf("got %d %v %s", w.Code, w.Header(), w.Body)
			}
			if _, signedIn := b.cookies["__Host-terraform-registry"]; signedIn {
				t.Error("there is a session")
			}
			if test.status != 400 && len(b.cookies) != 0 {
				t.Errorf("the attempt goes on: %v", b.cookies)
			}
		})
	}
	s := oidctest.NewIssuer(t)
	s.Broken.Store(true)
	c := newConfiguration(t)
	h := signInHandler(c, s, sampleTree(t))
	c.mustStart()
	b := &reader{t: t}
	if w := b.ask(h, http.MethodGet, "/_registry/login?to="+privatePage); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" ||
		!strings.Contains(w.Body.String(), `href="`+privatePage+`"`) || len(b.cookies) > 0 {
		t.Errorf("an issuer that was never there: %d %v %s", w.Code, w.Header(), w.Body)
	}
}

// Who leaves while the issuer is asked says nothing about the issuer: anyone could fill the log.
func TestWhoLeavesIsNoOutage(t *testing.T) {
	t.Setenv("REGISTRY_TEST_SECRET", "hush")
	for _, test := range []struct {
		rule   string
		begin  func(b *reader, s *oidctest.Issuer, h *Handler) (target string, header []string)
		logged string // if the issuer is down and the client stays
	}{
		{"with a token", func(_ *reader, s *oidctest.Issuer, _ *Handler) (string, []string) {
			return "/v1/modules/acme/vpc/aws/versions", []string{"Authorization", "Bearer " + s.Mint(nil)}
		}, "credentials cannot be checked"},
		{"at signing in", func(*reader, *oidctest.Issuer, *Handler) (string, []string) { return "/_registry/login", nil }, "people cannot sign in at the moment"},
		{"when back from the issuer", func(b *reader, s *oidctest.Issuer, h *Handler) (string, []string) {
			return b.begin(s, h, privatePage), nil
		}, "people cannot sign in at the moment"},
	} {
		for _, leaves := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, leaving: %t", test.rule, leaves), func(t *testing.T) {
				s, c := oidctest.NewIssuer(t), newConfiguration(t)
				h := signInHandler(c, s, sampleTree(t))
				c.mustStart()
				snapshot(t, h)
				var log bytes.Buffer
				h.logger = slog.New(slog.NewTextHandler(&log, nil))
				h.pages.Logger = h.logger
				b := &reader{t: t}
				target, header := test.begin(b, s, h)
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				b.ctx = ctx
				s.Broken.Store(true)
				want := 1
				if leaves {
					s.WhenAsked.Store(leave)
					want = 0
				}
				if w := b.ask(h, http.MethodGet, target, header...); w.Code != http.StatusServiceUnavailable {
					t.Errorf("got %d %s", w.Code, w.Body)
				}
				if strings.Count(log.String(), "level=ERROR") != want || strings.Count(log.String(), test.logged) != want {
					t.Errorf("the log has %q", log.String())
				}
			})
		}
	}
}

func TestWhoCanSignIn(t *testing.T) {
	t.Setenv("REGISTRY_TEST_SECRET", "hush")
	s, other := oidctest.NewIssuer(t), oidctest.NewIssuer(t)
	c, root := newConfiguration(t), sampleTree(t)
	tokens, _ := tokensProvider(t, "ci")
	plain := func(h *Handler) { h.Login.Secret = "" }
	tests := []struct {
		rule    string
		handler *Handler
		button  bool
	}{
		{"with the issuer of the login", signInHandler(c, s, root), true},
		{"by a password", signInHandler(c, s, root, func(h *Handler) { h.Login, h.AuthRaw = nil, []json.RawMessage{tokens, basicAuth(t, "bob", "secret")} }), true},
		{"by tokens alone", signInHandler(c, s, root, func(h *Handler) { h.Login, h.AuthRaw = nil, []json.RawMessage{tokens} }), false},
		{"by tokens of an issuer", signInHandler(c, s, root, func(h *Handler) { h.Login = nil }), false},
		{"with the issuer of a login whose tokens are not accepted", signInHandler(c, s, root, plain, func(h *Handler) { h.Login.Issuer = other.URL }), false},
		{"at a login without an issuer", signInHandler(c, s, root, func(h *Handler) { h.Login = &Login{Client: "cli", Authz: "/a", Token: "/t"} }), false},
		{"before the registry", signInHandler(c, s, root, func(h *Handler) { h.Login, h.AuthRaw = nil, nil }), false},
	}
	c.mustStart()
	snapshot(t, tests[0].handler)
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			b := &reader{t: t}
			for _, path := range []string{"/", privatePage} {
				if w := b.ask(test.handler, http.MethodGet, path); strings.Contains(w.Body.String(), "/_registry/login") != test.button {
					t.Errorf("%s: %d, it has a button: %v", path, w.Code, !test.button)
				}
			}
			if w := b.ask(test.handler, http.MethodGet, "/_registry/login"); (w.Code == http.StatusNotFound) == test.button {
				t.Errorf("the sign-in itself: %d", w.Code)
			}
		})
	}
}

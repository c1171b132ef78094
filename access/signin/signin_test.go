package signin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/access/oidc"
	"github.com/caddy-terraform/caddy-terraform-registry/access/oidc/oidctest"
)

const redirectURI = "https://registry.example.com/_registry/callback"

// A site is an instance of a registry, and the settings that tests change.
type site struct {
	*SignIn
	keys  *access.LinkKeys
	ahead time.Duration // its clock
}

func rulesOf(t *testing.T, lines ...string) *access.Rules {
	t.Helper()
	var rules []access.Rule
	for _, line := range lines {
		rule, err := access.ParseRule(strings.Fields(line)...)
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, rule)
	}
	return access.NewRules(rules...)
}

// newSite returns an instance with the given keys, or with new keys if they are nil.
func newSite(t *testing.T, i *oidctest.Issuer, keys *access.LinkKeys) *site {
	t.Helper()
	issuer, err := oidc.NewIssuer(i.URL)
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := oidc.NewVerifier(issuer, oidc.Options{Audience: []string{"registry"}})
	if err != nil {
		t.Fatal(err)
	}
	if keys == nil {
		keys = access.NewLinkKeys(time.Now())
	}
	s := &site{keys: keys}
	s.SignIn = &SignIn{
		Client: &oidc.Client{Issuer: issuer, ID: "cli", Verifiers: []*oidc.Verifier{verifier}},
		Sealer: &access.Sealer{Keys: func() *access.LinkKeys { return s.keys }},
		Rules:  rulesOf(t, "allow group:dev read acme", "allow group:ops-* read *"),
		Scope:  "a registry",
		Now:    func() time.Time { return time.Now().Add(s.ahead) },
	}
	return s
}

// A browser has the cookies of one host.
type browser map[string]string

func (b browser) take(t *testing.T, cookies ...*http.Cookie) {
	t.Helper()
	for _, c := range cookies {
		if !strings.HasPrefix(c.Name, "__Host-") || !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" || c.Valid() != nil {
			t.Errorf("the cookie is %s", c)
		}
		if c.MaxAge < 0 {
			delete(b, c.Name)
		} else {
			b[c.Name] = c.Value
		}
	}
}

// request is for a page, or for the redirect URI with a query.
func (b browser) request(query url.Values) *http.Request {
	r := httptest.NewRequest(http.MethodGet, redirectURI+"?"+query.Encode(), nil)
	for name, value := range b {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	return r
}

// begin sends a browser to the issuer, and returns the location.
func (b browser) begin(t *testing.T, s *site, to string) string {
	t.Helper()
	location, cookie, err := s.Begin(t.Context(), redirectURI, to, false)
	if err != nil {
		t.Fatal(err)
	}
	b.take(t, cookie)
	return location
}

// signIn signs a browser in.
func (b browser) signIn(t *testing.T, s *site, i *oidctest.Issuer) *http.Cookie {
	t.Helper()
	to, session, err := s.Finish(b.request(i.Login(b.begin(t, s, "/modules/acme/vpc/aws"))))
	if err != nil || to != "/modules/acme/vpc/aws" {
		t.Fatalf("got %q, %v", to, err)
	}
	b.take(t, EndAttempt(), session)
	return session
}

func (b browser) wantSubject(t *testing.T, s *site, want access.Subject) {
	t.Helper()
	if got, err := s.Subject(b.request(nil)); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

var (
	nobody = access.Subject{}
	alice  = access.Subject{ID: "alice", Groups: []string{"dev", "ops-1"}}
)

func TestSignIn(t *testing.T) {
	i := oidctest.NewIssuer(t)
	i.Claims = map[string]any{"groups": []string{"all", "dev", "ops-1", "ops-2"}}
	one := newSite(t, i, nil)
	other := newSite(t, i, one.keys)
	b := browser{}
	b.wantSubject(t, one, nobody)
	location := b.begin(t, one, "/search?q=vpc")
	if u, err := url.Parse(location); err != nil || len(u.Query().Get("state")) < 26 || len(u.Query().Get("nonce")) < 26 || len(u.Query().Get("code_challenge")) != 43 {
		t.Errorf("the browser is sent to %s", location)
	}
	to, session, err := other.Finish(b.request(i.Login(location))) // another instance may finish the attempt
	if err != nil || to != "/search?q=vpc" {
		t.Fatalf("got %q, %v", to, err)
	}
	if session.MaxAge < 3500 || session.MaxAge > 3600 {
		t.Errorf("the session lasts %d s, want that of the token", session.MaxAge)
	}
	b.take(t, EndAttempt(), session)
	if len(b) != 1 {
		t.Errorf("the browser keeps %v", b)
	}
	b.wantSubject(t, one, alice) // all instances know the subject, and the groups in rules
	b.wantSubject(t, other, alice)
	b.take(t, EndSession())
	b.wantSubject(t, one, nobody)
	if len(b) != 0 {
		t.Errorf("the browser keeps %v", b)
	}
}

// Only the browser that has begun to sign in on this site, a moment ago, can finish.
func TestOnlyWhoBeginsFinishes(t *testing.T) {
	i, other := oidctest.NewIssuer(t), oidctest.NewIssuer(t)
	keys := access.NewLinkKeys(time.Now())
	for _, test := range []struct {
		rule   string
		change func(s *site, b browser, query url.Values)
		want   error
	}{
		{"the one that began", func(*site, browser, url.Values) {}, nil},
		{"the issuer names itself", func(_ *site, _ browser, q url.Values) { q.Set("iss", i.URL) }, nil},
		{"another browser, which is sent an attacker's answer", func(_ *site, b browser, _ url.Values) { clear(b) }, ErrNoAttempt},
		{"a browser with an attempt of its own, which is sent an attacker's answer", func(s *site, b browser, q url.Values) {
			q.Set("state", i.Login((browser{}).begin(t, s, "/")).Get("state"))
		}, ErrNoAttempt},
		{"an attacker's code with the state of this browser", func(s *site, _ browser, q url.Values) {
			q.Set("code", i.Login((browser{}).begin(t, s, "/")).Get("code"))
		}, oidc.ErrCode},
		{"no state", func(_ *site, _ browser, q url.Values) { q.Del("state") }, ErrNoAttempt},
		{"an empty state", func(_ *site, _ browser, q url.Values) { q.Set("state", "") }, ErrNoAttempt},
		{"two states", func(_ *site, _ browser, q url.Values) { q.Add("state", "x") }, ErrNoAttempt},
		{"no code", func(_ *site, _ browser, q url.Values) { q.Del("code") }, oidc.ErrCode},
		{"an attempt that took too long", func(s *site, _ browser, _ url.Values) { s.ahead = attemptLife }, ErrNoAttempt},
		{"an attempt at a site with another scope", func(s *site, _ browser, _ url.Values) { s.Scope = "another registry" }, ErrNoAttempt},
		{"an attempt with a key that is gone", func(s *site, _ browser, _ url.Values) { s.keys = access.NewLinkKeys(time.Now()) }, ErrNoAttempt},
		{"no key is known yet", func(s *site, _ browser, _ url.Values) { s.keys = nil }, access.ErrNoLinkKeys},
		{"a session in place of an attempt", func(s *site, b browser, _ url.Values) {
			c := (browser{}).signIn(t, s, i)
			b[attemptCookie] = c.Value
		}, ErrNoAttempt},
		{"an attempt that was tampered with", func(_ *site, b browser, _ url.Values) {
			b[attemptCookie] = b[attemptCookie][:60] + "A" + b[attemptCookie][61:] + "AAAA"
		}, ErrNoAttempt},
		{"the answer of another issuer", func(_ *site, _ browser, q url.Values) { q.Set("iss", other.URL) }, oidc.ErrRefused},
		{"the ID token of another login", func(*site, browser, url.Values) { i.Claims = map[string]any{"nonce": "other"} }, oidc.ErrRefused},
		{"the person cancels", func(_ *site, _ browser, q url.Values) { q.Del("code"); q.Set("error", "access_denied") }, ErrDeclined},
		{"an error of an attacker's", func(_ *site, b browser, q url.Values) { clear(b); q.Set("error", "access_denied") }, ErrNoAttempt},
		{"the issuer is away", func(*site, browser, url.Values) { i.Broken.Store(true) }, oidc.ErrUnavailable},
		{"an access token with a life that makes no sense", func(*site, browser, url.Values) { i.Life = -time.Second }, nil},
	} {
		t.Run(test.rule, func(t *testing.T) {
			i.Claims, i.Life = nil, 0
			defer i.Broken.Store(false)
			s, b := newSite(t, i, keys), browser{}
			query := i.Login(b.begin(t, s, "/browse/modules"))
			test.change(s, b, query)
			to, session, err := s.Finish(b.request(query))
			if !errors.Is(err, test.want) || (session == nil) != (err != nil) {
				t.Fatalf("got %v, %v, want %v", session, err, test.want)
			}
			// Only a browser that has begun has a page to return to.
			if began := !errors.Is(err, ErrNoAttempt) && !errors.Is(err, access.ErrNoLinkKeys); (to == "/browse/modules") != began {
				t.Errorf("the way back is %q", to)
			}
		})
	}
}

func TestAnAnswerCountsOnce(t *testing.T) {
	i := oidctest.NewIssuer(t)
	s, b := newSite(t, i, nil), browser{}
	query := i.Login(b.begin(t, s, "/"))
	request := b.request(query)
	_, session, err := s.Finish(request)
	if err != nil {
		t.Fatal(err)
	}
	b.take(t, EndAttempt(), session)
	if _, _, err := s.Finish(b.request(query)); !errors.Is(err, ErrNoAttempt) {
		t.Errorf("reloading: %v", err)
	}
	if _, again, err := s.Finish(request); !errors.Is(err, oidc.ErrCode) || again != nil {
		t.Errorf("who has kept the cookie: %v", err)
	}
	b.wantSubject(t, s, access.Subject{ID: "alice"})
}

// A new session does not depend on the session before.
func TestASignInDoesNotContinueASession(t *testing.T) {
	i := oidctest.NewIssuer(t)
	s, b := newSite(t, i, nil), browser{}
	i.Claims = map[string]any{"groups": []string{"dev"}}
	before := b.signIn(t, s, i).Value
	i.Claims = map[string]any{"sub": "bob"}
	if after := b.signIn(t, s, i).Value; after == before {
		t.Error("the session is the same")
	}
	b.wantSubject(t, s, access.Subject{ID: "bob"})
}

func TestSessionEnds(t *testing.T) {
	i := oidctest.NewIssuer(t)
	for _, test := range []struct {
		rule         string
		life         time.Duration
		after, until time.Duration
	}{
		{"with its token", 0, 59 * time.Minute, time.Hour},
		{"with its access token", 2 * time.Hour, time.Hour + 59*time.Minute, 2 * time.Hour},
		{"after twelve hours", 30 * 24 * time.Hour, 12*time.Hour - time.Minute, 12 * time.Hour},
	} {
		t.Run(test.rule, func(t *testing.T) {
			i.Life = test.life
			s, b := newSite(t, i, nil), browser{}
			b.signIn(t, s, i)
			s.ahead = test.after
			b.wantSubject(t, s, access.Subject{ID: "alice"})
			s.ahead = test.until
			b.wantSubject(t, s, nobody)
		})
	}
	i.Life = 0
	s := newSite(t, i, nil)
	i.Claims = map[string]any{"exp": time.Now().Add(500 * time.Millisecond).Unix()}
	b := browser{}
	if _, session, err := s.Finish(b.request(i.Login(b.begin(t, s, "/")))); !errors.Is(err, oidc.ErrRefused) {
		t.Errorf("a token that expires at once: %v, %v", session, err)
	}
}

func TestSessionCountsWhereItWasMade(t *testing.T) {
	i, other := oidctest.NewIssuer(t), oidctest.NewIssuer(t)
	one := newSite(t, i, nil)
	b := browser{}
	b.signIn(t, one, i)
	for _, test := range []struct {
		rule   string
		change func(s *site)
		want   access.Subject
	}{
		{"at another instance", func(*site) {}, access.Subject{ID: "alice"}},
		{"at a site with another scope, such as other claims", func(s *site) { s.Scope = "another registry" }, nobody},
		{"at a site with another client", func(s *site) { s.Client.ID = "other" }, nobody},
		{"at a site with another issuer", func(s *site) { s.Client = newSite(t, other, nil).Client }, nobody},
		{"where rules name other groups", func(s *site) { s.Rules = rulesOf(t, "allow group:sec read *") }, nobody},
		{"where rules name the same groups", func(s *site) {
			s.Rules = rulesOf(t, "deny group:dev read acme", "allow group:ops-* read x", "allow bob read *")
		}, access.Subject{ID: "alice"}},
		{"with other keys", func(s *site) { s.keys = access.NewLinkKeys(time.Now()) }, nobody},
	} {
		t.Run(test.rule, func(t *testing.T) {
			s := newSite(t, i, one.keys)
			test.change(s)
			b.wantSubject(t, s, test.want)
		})
	}
	for rule, value := range map[string]string{
		"an attempt in place of a session": func() string { b := browser{}; b.begin(t, one, "/"); return b[attemptCookie] }(),
		"one that was cut off":             b[sessionCookie][:50],
		"one that was made up":             "eyJzIjoicm9vdCIsImUiOjk5OTk5OTk5OTl9",
		"an empty one":                     "",
	} {
		t.Run(rule, func(t *testing.T) { (browser{sessionCookie: value}).wantSubject(t, one, nobody) })
	}
	one.keys = nil
	if _, err := one.Subject(b.request(nil)); !errors.Is(err, access.ErrNoLinkKeys) {
		t.Errorf("before keys are known: %v", err)
	}
	if _, err := one.Subject((browser{}).request(nil)); err != nil {
		t.Errorf("without a session no keys are needed: %v", err)
	}
}

func TestSessionFitsIntoACookie(t *testing.T) {
	i := oidctest.NewIssuer(t)
	s, b := newSite(t, i, nil), browser{}
	var many []string
	for n := range 500 {
		many = append(many, fmt.Sprintf("a group with a long name, the %dth", n), fmt.Sprintf("ops-%d", n))
	}
	i.Claims = map[string]any{"groups": many}
	if c := b.signIn(t, s, i); len(c.String()) > 400 {
		t.Errorf("the cookie has %d bytes", len(c.String()))
	}
	b.wantSubject(t, s, access.Subject{ID: "alice", Groups: []string{"ops-0"}})
	i.Claims = map[string]any{"sub": strings.Repeat("a", 5000)}
	if _, session, err := s.Finish(b.request(i.Login(b.begin(t, s, "/")))); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a subject that is too long: %v, %v", session, err)
	}
	if _, _, err := s.Begin(t.Context(), redirectURI, "/"+strings.Repeat("a", 5000), false); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a page whose path is too long: %v", err)
	}
}

func TestSessionIsNotToBeRead(t *testing.T) {
	i := oidctest.NewIssuer(t)
	s, b := newSite(t, i, nil), browser{}
	location := b.begin(t, s, "/")
	u, _ := url.Parse(location)
	if strings.Contains(b[attemptCookie], u.Query().Get("state")) || strings.Contains(location, b[attemptCookie]) {
		t.Error("the attempt can be read")
	}
	if c := b.signIn(t, s, i); strings.Contains(c.Value, "alice") {
		t.Errorf("the session can be read: %s", c.Value)
	}
}

func TestBeginAtAnIssuerThatIsAway(t *testing.T) {
	i := oidctest.NewIssuer(t)
	i.Broken.Store(true)
	s := newSite(t, i, nil)
	if _, cookie, err := s.Begin(context.Background(), redirectURI, "/", false); !errors.Is(err, oidc.ErrUnavailable) || cookie != nil {
		t.Errorf("got %v, %v", cookie, err)
	}
}

func TestRemoveCookies(t *testing.T) {
	for _, test := range []struct {
		rule       string
		cookies    []string
		wantCookie []string
	}{
		{"none", nil, nil},
		{"others stay as they are", []string{`a=1;b="2 3";  c`, "d="}, []string{`a=1;b="2 3";  c`, "d="}},
		{"a session alone", []string{"__Host-terraform-registry=x"}, nil},
		{"a session among others", []string{"a=1; __Host-terraform-registry=x; b=2"}, []string{"a=1; b=2"}},
		{"both, twice, without spaces", []string{"__Host-terraform-registry=x;a=1;__Host-terraform-registry-sign-in=y", "__Host-terraform-registry=z"}, []string{"a=1"}},
		{"with a space before the sign", []string{"__Host-terraform-registry =x; a=1"}, []string{"a=1"}},
		{"another whose name begins in the same way", []string{"__Host-terraform-registry-of-others=1"}, []string{"__Host-terraform-registry-of-others=1"}},
		{"one whose value has the name", []string{"a=__Host-terraform-registry=1"}, []string{"a=__Host-terraform-registry=1"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			h := http.Header{}
			if test.cookies != nil {
				h["Cookie"] = test.cookies
			}
			RemoveCookies(h)
			if got := h["Cookie"]; !reflect.DeepEqual(got, test.wantCookie) {
				t.Errorf("got %q, want %q", got, test.wantCookie)
			}
		})
	}
}

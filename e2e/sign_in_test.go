package e2e_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// People sign in to the pages with the issuer of the login.

const signInHost = "registry.example.com"

// signInSite is a private registry with pages, beside another application that answers
// with the cookies of its request.
func signInSite(t *testing.T, openid *OpenID) Site {
	t.Helper()
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "cookies: "+r.Header.Get("Cookie"))
	}))
	t.Cleanup(app.Close)
	s := site(signInHost, privateTree(t), slices.Concat(openid.Authenticates("groups groups"), devReadsAcme, logsIn("issuer "+openid.Issuer), []string{"ui"})...)
	s.Directives = []string{"reverse_proxy /app " + app.URL}
	return s
}

// A visitor is a browser without a window. It keeps cookies, and follows a redirect
// only when a test says so. All hosts except the issuer lead to an instance.
type visitor struct {
	*http.Client
	t  *testing.T
	at *Registry
}

func newVisitor(t *testing.T, openid *OpenID, at *Registry) *visitor {
	t.Helper()
	client, err := at.client()
	if err != nil {
		t.Fatal(err)
	}
	v := &visitor{Client: client, t: t, at: at}
	if client.Jar, err = cookiejar.New(nil); err != nil {
		t.Fatal(err)
	}
	issuer := hostOf(t, openid.Issuer)
	transport := client.Transport.(*http.Transport)
	transport.DisableKeepAlives = true // each request may reach another instance
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if address == issuer {
			return new(net.Dialer).DialContext(ctx, network, address)
		}
		return v.at.https.dial(ctx)
	}
	client.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		if r.URL.Host != issuer {
			return http.ErrUseLastResponse
		}
		return nil
	}
	return v
}

func hostOf(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

// open gets a page of the registry.
func (v *visitor) open(path string) Response {
	v.t.Helper()
	if strings.HasPrefix(path, "/") {
		path = "https://" + signInHost + path
	}
	stays := *v.Client
	stays.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return sendWith(v.t, &stays, http.Header{}, path)
}

// logIn logs in at the issuer as a user, and returns the URL to which the issuer sends
// the browser. If the issuer knows the user, it asks again.
func (v *visitor) logIn(authorization, user string) string {
	v.t.Helper()
	answer, err := v.Get(authorization)
	for range 3 {
		var location string
		if err == nil {
			location = answer.Header.Get("Location")
		}
		p := openPage(v.t)(answer, err)
		if location != "" {
			return location
		}
		prompt := "consent"
		if strings.Contains(p.body, `name="login"`) {
			prompt = "login"
		}
		action, fields := p.form(v.t, prompt)
		if prompt == "login" {
			fields.Set("login", user)
			fields.Set("password", "any")
		}
		answer, err = v.PostForm(action, fields)
	}
	v.t.Fatal("the issuer asks again and again")
	return ""
}

// signIn begins to sign in at the registry, and returns the URL to which the issuer
// sends the browser.
func (v *visitor) signIn(to, user string) (callback string) {
	v.t.Helper()
	got := v.open("/_registry/login?to=" + url.QueryEscape(to))
	if got.Status != http.StatusSeeOther || got.Header.Get("Cache-Control") != "no-store" {
		v.t.Fatalf("signing in: %d %v\n%s", got.Status, got.Header, got.Body)
	}
	return v.logIn(got.Header.Get("Location"), user)
}

func (v *visitor) want(path string, status int, has string) Response {
	v.t.Helper()
	got := v.open(path)
	if got.Status != status || !strings.Contains(got.Body+got.Header.Get("Location"), has) {
		v.t.Errorf("%s: got %d %v\n%s\nwant %d with %q", path, got.Status, got.Header, got.Body, status, has)
	}
	return got
}

const signInPage = "/modules/acme/vpc/aws"

func TestSignInAtTwoInstances(t *testing.T) {
	t.Parallel()
	openid := startOpenID(t)
	there := signInSite(t, openid)
	one := startRegistry(t, there)
	other := startBeside(t, one, there)
	v := newVisitor(t, openid, one)

	got := v.want(signInPage, http.StatusUnauthorized, `href="/_registry/login?to=%2Fmodules%2Facme%2Fvpc%2Faws"`)
	if strings.Contains(got.Header.Get("WWW-Authenticate"), "Basic") {
		t.Errorf("the browser asks for a password: %v", got.Header)
	}
	callback := v.signIn(signInPage, "alice")
	if !strings.HasPrefix(callback, "https://"+signInHost+"/_registry/callback?") {
		t.Fatalf("the issuer sends the browser to %s", callback)
	}
	attacked := newVisitor(t, openid, one)
	attacked.want(callback, http.StatusBadRequest, "This attempt to sign in has ended.")
	attacked.want(signInPage, http.StatusUnauthorized, "Sign in")

	v.at = other // the other instance has not begun it
	v.want(callback, http.StatusSeeOther, signInPage)
	for _, at := range []*Registry{other, one} {
		v.at = at
		got := v.want(signInPage, http.StatusOK, "alice")
		if caching, vary := got.Header.Get("Cache-Control"), got.Header.Values("Vary"); caching != "private, no-cache" || !slices.Contains(vary, "Cookie") {
			t.Errorf("caches are told %q, %q", caching, vary)
		}
		if modified := sendWith(t, newVisitor(t, openid, at).Client, http.Header{"If-None-Match": {got.Header.Get("ETag")}}, "https://"+signInHost+signInPage); modified.Status != http.StatusUnauthorized {
			t.Errorf("with the validator of another: %d", modified.Status)
		}
	}
	v.want(callback, http.StatusSeeOther, "/")             // reloaded: nothing happens again
	v.want("/modules/secret/vpc/aws", 404, "Not found")    // hidden from alice
	v.want("/_registry/login?to=//evil.example", 303, "/") // no user needs to sign in

	t.Run("a session counts for pages alone", func(t *testing.T) {
		v.want("/v1/modules/acme/vpc/aws/versions", http.StatusUnauthorized, "is private")
		v.want("/v1/providers/acme/demo/versions", http.StatusUnauthorized, "is private")
		page := v.open(signInPage)
		link := hrefWith(t, page.Body, "/v1/modules/acme/vpc/aws/")
		if got := newVisitor(t, openid, other).open(link); got.Status != http.StatusOK {
			t.Errorf("the link %s: %d %s", link, got.Status, got.Body)
		}
	})
	t.Run("another application does not see it", func(t *testing.T) {
		v.Jar.SetCookies(&url.URL{Scheme: "https", Host: signInHost}, []*http.Cookie{{Name: "theirs", Value: "1"}})
		if got := v.open("/app"); got.Body != "cookies: theirs=1" {
			t.Errorf("it gets %q", got.Body)
		}
	})
	t.Run("another user signs in after signing out", func(t *testing.T) {
		v := newVisitor(t, openid, one)
		v.want(v.signIn(signInPage, "bob"), http.StatusSeeOther, signInPage)
		v.want(signInPage, http.StatusNotFound, "bob") // bob is in no group
		v.want("/_registry/logout", http.StatusOK, "You are signed in as bob.")
		for origin, out := range map[string]bool{"https://evil.example": false, "null": false, "https://" + signInHost: true} {
			request, err := http.NewRequest(http.MethodPost, "https://"+signInHost+"/_registry/logout", nil)
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Origin", origin)
			answer, err := newVisitorWith(v).Do(request)
			p := openPage(t)(answer, err)
			if cleared := len(answer.Cookies()) > 0; cleared != out || p.status != http.StatusSeeOther {
				t.Errorf("a form of %s: %d, it signs out: %v", origin, p.status, cleared)
			}
		}
		openPage(t)(v.PostForm("https://"+signInHost+"/_registry/logout", nil))
		v.want("/_registry/logout", http.StatusOK, "You are not signed in")
		v.want(signInPage, http.StatusUnauthorized, "Sign in")
	})
	t.Run("the log has no secret", func(t *testing.T) {
		cookies := v.Jar.Cookies(&url.URL{Scheme: "https", Host: signInHost})
		for _, r := range []*Registry{one, other} {
			for _, e := range r.Log.Entries() {
				for _, c := range cookies {
					if len(c.Value) > 8 && strings.Contains(e.Line, c.Value) || issuedToken.MatchString(e.Line) {
						t.Errorf("the log has the cookie or a token: %s", e.Line)
					}
				}
			}
		}
		named := slices.ContainsFunc(one.Log.Accesses(signInHost), func(e Entry) bool { return strings.Contains(e.Line, `"user_id":"alice"`) })
		if !named {
			t.Error("no entry names the user")
		}
	})

	t.Run("while the issuer is away", func(t *testing.T) {
		w := newVisitor(t, openid, one)
		callback := w.signIn(signInPage, "alice")
		openid.Stop()
		got := w.want(callback, http.StatusServiceUnavailable, `href="/modules/acme/vpc/aws"`)
		if got.Header.Get("Retry-After") == "" {
			t.Error("it does not say when to try again")
		}
		v.want(signInPage, http.StatusOK, "alice") // a session does not need it
		one.Restart(t, there)
		w.want("/_registry/login?to=/browse/modules", http.StatusServiceUnavailable, "does not answer at the moment")
		v.at = one
		v.want(signInPage, http.StatusOK, "alice")
	})
	t.Run("keys that are gone end sessions", func(t *testing.T) {
		if err := os.Remove(one.path("data", "caddy", "terraform_registry", "link_keys.json")); err != nil {
			t.Fatal(err)
		}
		one.Restart(t, there)
		v.at = one
		v.want(signInPage, http.StatusUnauthorized, "Sign in")
	})
}

// newVisitorWith returns a visitor with the cookies of another visitor, who keeps them.
func newVisitorWith(v *visitor) *visitor {
	v.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		v.t.Fatal(err)
	}
	u := &url.URL{Scheme: "https", Host: signInHost}
	jar.SetCookies(u, v.Jar.Cookies(u))
	c := *v.Client
	c.Jar = jar
	return &visitor{&c, v.t, v.at}
}

// hrefWith returns the link of a page that begins with a text.
func hrefWith(t *testing.T, body, begin string) string {
	t.Helper()
	root, err := html.Parse(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for n := range root.Descendants() {
		for _, a := range n.Attr {
			if a.Key == "href" && strings.HasPrefix(a.Val, begin) {
				return a.Val
			}
		}
	}
	t.Fatalf("no link begins with %s:\n%s", begin, body)
	return ""
}

// The client has a secret, which is kept in a file, and the pages are below a path.
func TestSignInWithASecret(t *testing.T) {
	t.Parallel()
	openid := startOpenID(t)
	const host, wrong = "confidential.example.com", "wrong.example.com"
	secret, other := filepath.Join(t.TempDir(), "secret"), filepath.Join(t.TempDir(), "other")
	writeFile(t, secret, "the secret of the pages")
	writeFile(t, other, "another secret")
	with := func(host, file string, further ...string) Site {
		return site(host, privateTree(t), slices.Concat(openid.Authenticates("groups groups"), devReadsAcme,
			[]string{"login {", "client pages", "secret {file." + file + "}", "issuer " + openid.Issuer, "}", "ui /registry"}, further)...)
	}
	registry := startRegistry(t, with(host, secret), with(wrong, other, "public_url https://"+host))
	v := newVisitor(t, openid, registry)
	begun := v.want("https://"+host+"/registry/_registry/login?to=/registry"+signInPage, http.StatusSeeOther, openid.Issuer)
	callback := v.logIn(begun.Header.Get("Location"), "alice")
	v.want(callback, http.StatusSeeOther, "/registry"+signInPage)
	v.want("https://"+host+"/registry"+signInPage, http.StatusOK, "alice")

	begun = v.want("https://"+wrong+"/registry/_registry/login", http.StatusSeeOther, openid.Issuer)
	callback = strings.Replace(v.logIn(begun.Header.Get("Location"), "alice"), host, wrong, 1)
	v.want(callback, http.StatusInternalServerError, "Signing in failed")
	registry.Log.Wait(t, "it says why", func(e Entry) bool {
		return strings.Contains(e.Line, "signing in failed") && strings.Contains(e.Line, "invalid_client")
	})
	for _, e := range registry.Log.Entries() {
		if strings.Contains(e.Line, "the secret of the pages") || strings.Contains(e.Line, "another secret") {
			t.Errorf("the secret is in the log: %s", e.Line)
		}
	}
}

// A person with a browser goes from a private page to the issuer and back, and out
// again.
func TestSignInWithABrowser(t *testing.T) {
	t.Parallel()
	openid := startOpenID(t)
	registry := startBrowsable(t, signInSite(t, openid), site("tokens.example.com", privateTree(t), slices.Concat(openid.Authenticates(), devReadsAcme, []string{"ui"})...))
	issuer := hostOf(t, openid.Issuer)
	registry.Proxy.Route(issuer, endpoint{"tcp", issuer})
	const home = "https://" + signInHost

	tab := openTab(t, registry)
	tab.OpenAs(home+signInPage, http.StatusUnauthorized)
	tab.noViolations(t, "the page that asks to sign in")
	tab.MayGoTo(issuer)
	tab.Follow(".actions a.button")
	tab.Type("input[name=login]", "alice")
	tab.Submit("input[name=password]", "any")
	tab.Follow("button[type=submit]") // the button consents
	tab.Problems()                    // problems of the issuer's pages are not ours
	if path, nav := tab.Path(), tab.Text(".site-nav"); path != signInPage || !strings.Contains(nav, "alice") {
		t.Fatalf("signed in, at %s with %q", path, nav)
	}
	if cookies := evaluate[string](tab, "document.cookie"); cookies != "" {
		t.Errorf("scripts see %q", cookies)
	}
	tab.Resize(phoneWidth, phoneHeight)
	if wide := tab.Overflow(); len(wide) > 0 {
		t.Errorf("on a phone: %q", wide)
	}
	tab.Resize(desktopWidth, desktopHeight)
	tab.Open(home + "/browse/modules")
	if names := tab.Texts(".results .name a"); len(names) == 0 {
		t.Error("nothing is listed")
	}

	tab.Follow(".site-nav .user a")
	tab.noViolations(t, "the page that signs out")
	tab.Follow("form button.button")
	if path, text := tab.Path(), tab.Text("main"); path != "/_registry/logout" || !strings.Contains(text, "You are not signed in") {
		t.Errorf("signed out, at %s: %s", path, text)
	}
	tab.noViolations(t, "the page of who has signed out")
	tab.Follow(`main a[href^="` + openid.Issuer + `"]`)
	tab.Follow("button[value=yes]")
	tab.Problems()
	if path, nav := tab.Path(), tab.Text(".site-nav"); path != "/" || !strings.Contains(nav, "Sign in") {
		t.Errorf("signed out there, too, at %s with %q", path, nav)
	}
	tab.OpenAs(home+signInPage, http.StatusUnauthorized)

	// If people cannot sign in, no page says that they can.
	tab = openTab(t, registry)
	tab.OpenAs("https://tokens.example.com"+signInPage, http.StatusUnauthorized)
	if text := tab.Text("body"); strings.Contains(text, "Sign in") || !strings.Contains(text, "This page is private") {
		t.Errorf("the page says %s", text)
	}
	registry.Log.Wait(t, "it is said at the start", func(e Entry) bool {
		return strings.Contains(e.Line, "people cannot sign in to the pages with a browser")
	})
}

func (tab *Tab) noViolations(t *testing.T, page string) {
	t.Helper()
	if v := tab.Violations(); len(v) > 0 {
		t.Errorf("%s: %q", page, v)
	}
}

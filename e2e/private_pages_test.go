package e2e_test

import (
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"
)

// Names of modules that no request contains, so that an answer contains them only if it
// reveals them.
const secretName, publicName = "platypus", "wombat"

// readableTree is a private tree with everything that has a page: a public module and
// provider in the namespace open, and the same in acme, hosted and mirrored. A version
// of each in acme is withdrawn. The files are old enough for the first scan to offer
// them.
func readableTree(t *testing.T) *Tree {
	t.Helper()
	files := newTree(t).
		Provider("open/demo", "1.0.0").
		Module("open/vpc/aws", "1.0.0", asFolder).
		Module("open/"+publicName+"/aws", "1.0.0", asFolder)
	for _, registry := range []string{"", "other.example.com/"} {
		provider, module := registry+"acme/demo", registry+"acme/vpc/aws"
		files.Provider(provider, "0.9.0").
			Provider(provider, "1.0.0").
			Module(module, "0.9.0", asTarGz).
			Module(module, "1.0.0", asFolder).
			Module(module, "1.1.0", asFolder).
			Module(registry+"acme/"+secretName+"/aws", "1.0.0", asFolder)
		writeFile(t, files.Path("providers/"+provider+"/1.0.0/docs/index.md"), "# Demo of a "+secretName+"\n")
		writeFile(t, files.Path("providers/"+provider+"/1.0.0/docs/resources/greeting.md"), "# A greeting\n")
		writeFile(t, files.Path("providers/"+provider+"/registry.hcl"), `withdrawn "0.9.0" { reason = "It has a `+secretName+`." }`)
		writeFile(t, files.Path("modules/"+module+"/1.0.0/examples/complete/main.tf"), `variable "`+secretName+`" {}`)
		writeFile(t, files.Path("modules/"+module+"/registry.hcl"), `withdrawn "0.9.0" { reason = "It has a `+secretName+`." }`)
	}
	long := time.Now().Add(-time.Hour)
	err := filepath.WalkDir(files.Dir, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Chtimes(path, long, long))
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// A caller asks for pages and documents with the credentials of a browser or client.
type caller struct{ name, authorization string }

// answersOf are the statuses of the answers to an anonymous caller, a wrong password, a
// user who may read something else, a reader, the same reader by a token, and an
// operator.
type answersOf [6]int

var (
	forEveryone  = answersOf{200, 200, 200, 200, 200, 200}
	forReaders   = answersOf{401, 401, 404, 200, 200, 200}
	forOperators = answersOf{401, 401, 404, 404, 404, 200}
	ofWithdrawn  = answersOf{401, 401, 404, 410, 410, 410}
	ofAbsent     = answersOf{401, 401, 404, 404, 404, 404}
	ofMoved      = answersOf{308, 308, 308, 308, 308, 308}
	ofLogin      = answersOf{302, 302, 302, 302, 302, 302}
	ofSignedIn   = answersOf{401, 401, 302, 302, 302, 302}
	ofDownloads  = answersOf{401, 401, 404, 204, 204, 204}
	ofLatest     = answersOf{401, 401, 404, 302, 302, 302}
	ofArchives   = answersOf{401, 401, 200, 200, 200, 200} // a stranger sees none of them

	// Lists show each user the visible packages. Wrong credentials are refused, since a
	// list of public packages would look complete.
	ofLists = answersOf{200, 401, 200, 200, 200, 200}
)

// privatePages are paths of all pages, by the answers to them.
func privatePages() map[string]answersOf {
	paths := make(map[string]answersOf)
	add := func(want answersOf, list ...string) {
		for _, path := range list {
			paths[path] = want
		}
	}
	add(forEveryone, "/", "/search", "/search?q=vpc", "/search?q=acme", "/search/modules?q=subnet", "/search/providers?q=demo",
		"/browse/modules", "/browse/modules?namespace=acme", "/browse/modules?provider=aws", "/browse/modules?registry=other.example.com", "/browse/modules?offset=1",
		"/browse/providers", "/browse/providers?namespace=acme", "/browse/providers?offset=1",
		"/modules/open/vpc/aws", "/modules/open/vpc/aws/1.0.0?tab=outputs", "/providers/open/demo", "/providers/open/demo/1.0.0?tab=versions")
	for _, registry := range []string{"", "/registries/other.example.com"} {
		m, p := registry+"/modules/acme/vpc/aws", registry+"/providers/acme/demo"
		add(forReaders, m, m+"/latest", m+"/1.0.0", m+"/1.0.0/submodules/subnet", m+"/latest/submodules/subnet?tab=outputs", m+"/1.0.0/examples/complete",
			m+"/1.0.0/files/README.md", m+"/1.0.0/code", m+"/latest/code/README.md", p, p+"/latest", p+"/1.0.0", p+"?tab=versions", p+"/1.0.0/docs", p+"/latest/docs/resources/greeting")
		for _, tab := range []string{"inputs", "outputs", "versions", "changes", "changes&from=1.0.0", "submodules"} {
			add(forReaders, m+"?tab="+tab)
		}
		add(forReaders, m+"/1.0.0?tab=examples")
		add(ofWithdrawn, m+"/0.9.0", p+"/0.9.0")
		add(ofAbsent, m+"/7.0.0", m+"/1.0.0/submodules/nothing", m+"/1.0.0/files/nothing", m+"/1.0.0/code/nothing", m+"?tab=nothing", m+"?tab=changes&from=0.9.0",
			strings.Replace(m, "vpc", "nothing", 1), p+"/7.0.0", p+"/1.0.0/docs/resources/nothing", strings.Replace(p, "demo", "nothing", 1))
		add(ofMoved, strings.Replace(m, "acme", "ACME", 1), m+"?tab=readme", m+"/", p+"/1.0.0/")
	}
	add(forOperators, "/_registry/report")
	add(ofLogin, "/_registry/login", "/_registry/login?to=/modules/acme/vpc/aws", "/_registry/login?to=//evil.example")
	add(ofSignedIn, "/?sign-in=/modules/acme/vpc/aws", "/?sign-in=//evil.example")
	return paths
}

// privateDocuments are paths of the whole API, by the answers to them.
func privateDocuments() map[string]answersOf {
	const m, p, mirror = "/v1/modules/acme/vpc/aws", "/v1/providers/acme/demo", "/v1/mirror/other.example.com/acme/demo"
	zip := "/terraform-provider-demo_1.0.0_" + thisPlatform + ".zip"
	paths := map[string]answersOf{
		"/.well-known/terraform.json": forEveryone, "/v1/modules/open/vpc/aws": forEveryone, "/v1/providers/open/demo/versions": forEveryone,
		m + "/1.0.0/download": ofDownloads, m + "/download": ofLatest, mirror + "/1.0.0.json": ofArchives, mirror + "/7.0.0.json": ofArchives,
	}
	for want, list := range map[answersOf][]string{
		ofLists: {
			"/v1/modules", "/v1/modules?limit=1", "/v1/modules/acme", "/v1/modules/acme/vpc", "/v1/modules?namespace=acme&provider=aws", "/v1/modules/search?q=vpc",
			"/v1/providers", "/v1/providers/acme", "/v1/providers/search?q=demo",
		},
		forReaders: {
			m, m + "/1.0.0", m + "/versions", m + "/1.0.0/archive.tar.gz", p, p + "/1.0.0", p + "/versions",
			p + "/1.0.0/download/" + strings.Replace(thisPlatform, "_", "/", 1), mirror + "/index.json", mirror + zip,
			"/v1/mirror/registry.example.com/acme/demo/index.json", "/v1/mirror/-/acme/demo" + zip,
			"/v1/modules/other.example.com/acme/vpc/aws/1.0.0/archive.tar.gz",
		},
		ofWithdrawn: {m + "/0.9.0", m + "/0.9.0/download", m + "/0.9.0/archive.tar.gz", p + "/0.9.0"},
		ofAbsent:    {m + "/7.0.0", m + "/7.0.0/download", p + "/7.0.0", "/v1/modules/acme/nothing/aws", "/v1/providers/acme/nothing/versions", "/v1/mirror/other.example.com/acme/nothing/index.json"},
	} {
		for _, path := range list {
			paths[path] = want
		}
	}
	return paths
}

// Every page and every document of a private registry, for each kind of user: in a
// registry with public packages, and in one where an anonymous user may read nothing.
func TestPrivatePages(t *testing.T) {
	t.Parallel()
	hash, err := bcrypt.GenerateFromPassword([]byte("a long password"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	tokens := newTokens(t)
	token := tokens.New("ci")
	options := func(anonymous, path string) []string {
		lines := []string{"ui " + path, "auth terraform_tokens " + tokens.File, "auth http_basic bcrypt registry {"}
		for _, user := range []string{"stranger", "alice", "root"} {
			lines = append(lines, user+" "+string(hash))
		}
		return append(lines, "}", "access {", anonymous,
			"allow stranger read somewhere", "allow alice read acme other.example.com/acme", "allow ci read acme other.example.com/acme",
			"allow root read *", "allow root manage *", "}")
	}
	registry := startRegistry(t,
		site("registry.example.com", readableTree(t), options("allow anonymous read open", "/")...),
		site("closed.example.com", readableTree(t), options("deny anonymous read *", "/registry")...))
	basic := func(user, password string) string {
		r := http.Request{Header: http.Header{}}
		r.SetBasicAuth(user, password)
		return r.Header.Get("Authorization")
	}
	callers := [len(answersOf{})]caller{
		{"nobody", ""}, {"a wrong password", basic("alice", "wrong")}, {"a stranger", basic("stranger", "a long password")},
		{"a reader", basic("alice", "a long password")}, {"a token", "Bearer " + token}, {"an operator", basic("root", "a long password")},
	}
	client, err := registry.client()
	if err != nil {
		t.Fatal(err)
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	send := func(t *testing.T, as caller, url string) Response {
		t.Helper()
		header := http.Header{}
		if as.authorization != "" {
			header.Set("Authorization", as.authorization)
		}
		return sendWith(t, client, header, url)
	}

	t.Run("where anyone may read something", func(t *testing.T) {
		const home = "https://registry.example.com"
		for path, want := range privatePages() {
			for i, as := range callers {
				got := send(t, as, home+path)
				if got.Status != want[i] {
					t.Errorf("%s as %s: got %d, want %d", path, as.name, got.Status, want[i])
				}
				checkPrivatePage(t, path+" as "+as.name, got)
				if i < 3 && strings.Contains(got.Body, secretName) {
					t.Errorf("%s as %s tells what is hidden:\n%s", path, as.name, got.Body)
				}
			}
		}
		for _, path := range []string{"/", "/browse/modules", "/search?q=acme", "/v1/modules", "/modules/acme/vpc/aws/1.0.0/examples/complete?tab=inputs"} {
			if got := send(t, callers[3], home+path); !strings.Contains(got.Body, secretName) {
				t.Errorf("%s does not tell a reader of what is hidden from others", path)
			}
		}
		for path, want := range privateDocuments() {
			for i, as := range callers {
				got := send(t, as, home+path)
				if got.Status != want[i] {
					t.Errorf("%s as %s: got %d %.200s, want %d", path, as.name, got.Status, got.Body, want[i])
				}
				if i < 3 && strings.Contains(got.Body, secretName) {
					t.Errorf("%s as %s tells what is hidden:\n%s", path, as.name, got.Body)
				}
				if strings.Contains(path, "acme") && !strings.HasPrefix(got.Header.Get("Cache-Control"), "private") {
					t.Errorf("%s as %s: Cache-Control is %q", path, as.name, got.Header.Get("Cache-Control"))
				}
			}
		}
	})

	t.Run("where nobody unknown may read anything", func(t *testing.T) {
		const home = "https://closed.example.com"
		for path, want := range privatePages() {
			if slices.Contains([]answersOf{ofMoved, ofLogin}, want) {
				continue // nothing has been looked up yet
			}
			for _, as := range callers[:2] {
				got := send(t, as, home+"/registry"+path)
				if got.Status != http.StatusUnauthorized {
					t.Errorf("%s as %s: got %d, want 401", path, as.name, got.Status)
				}
				checkPrivatePage(t, path+" as "+as.name, got)
				if strings.Contains(got.Body, secretName) || strings.Contains(got.Body, publicName) {
					t.Errorf("%s as %s tells what there is:\n%s", path, as.name, got.Body)
				}
			}
		}
		for path, want := range privateDocuments() {
			switch got := send(t, callers[0], home+path); {
			case path == "/.well-known/terraform.json" && got.Status == http.StatusOK:
			case want == ofLists:
				if got.Status != http.StatusOK || !strings.Contains(got.Body, `":[]`) {
					t.Errorf("%s: got %d %s, want an empty list", path, got.Status, got.Body)
				}
			case got.Status != http.StatusUnauthorized || !strings.HasPrefix(got.Header.Get("WWW-Authenticate"), "Bearer"):
				t.Errorf("%s: got %d with %v", path, got.Status, got.Header)
			}
		}
		if got := send(t, callers[3], home+"/registry/modules/acme/vpc/aws"); got.Status != http.StatusOK || !strings.Contains(got.Body, "acme") {
			t.Errorf("a reader: got %d", got.Status)
		}
	})

	t.Run("static files are for everyone and for caches", func(t *testing.T) {
		body := send(t, callers[0], "https://closed.example.com/registry/").Body
		files := regexp.MustCompile(`(?:href|src)="(/registry/_registry/[^"]+\.(?:css|js|svg))"`).FindAllStringSubmatch(body, -1)
		if len(files) < 3 {
			t.Fatalf("the page has %d static files: %s", len(files), body)
		}
		for _, file := range files {
			if got := send(t, callers[0], "https://closed.example.com"+file[1]); got.Status != http.StatusOK || !strings.HasPrefix(got.Header.Get("Cache-Control"), "public") {
				t.Errorf("%s: got %d with %v", file[1], got.Status, got.Header)
			}
		}
	})

	t.Run("a browser signs in and is led back", func(t *testing.T) {
		const home = "https://registry.example.com"
		at := home + "/_registry/login?to=" + url.QueryEscape("/modules/acme/vpc/aws?tab=outputs")
		for _, want := range []string{"/?sign-in=%2Fmodules%2Facme%2Fvpc%2Faws%3Ftab%3Doutputs", "/modules/acme/vpc/aws?tab=outputs", ""} {
			got := send(t, callers[3], at)
			if got.Header.Get("Location") != want {
				t.Fatalf("%s leads to %q, want %q", at, got.Header.Get("Location"), want)
			}
			at = home + want
		}
		for _, evil := range []string{"//evil.example", "/\\evil.example", "\\\\evil.example", "/%2f%2fevil.example", "https://evil.example", "/v1/modules", "/\r\nX-Evil: 1"} {
			if got := send(t, callers[3], home+"/?sign-in="+url.QueryEscape(evil)); got.Status != http.StatusFound || got.Header.Get("Location") != "/" || got.Header.Get("X-Evil") != "" {
				t.Errorf("%q leads to %v", evil, got.Header)
			}
		}
	})

	t.Run("the log tells of pages, and no secret", func(t *testing.T) {
		named := false
		for _, e := range registry.Log.Accesses("registry.example.com") {
			named = named || strings.Contains(e.Line, `"kind":"page","address":"acme/vpc/aws","version":"1.1.0"`) && strings.Contains(e.Line, `"user_id":"alice"`)
		}
		if !named {
			t.Error("no entry names the page and the user")
		}
		for _, e := range registry.Log.Entries() {
			for _, as := range callers[1:] {
				if _, secret, _ := strings.Cut(as.authorization, " "); strings.Contains(e.Line, secret) {
					t.Errorf("the credentials of %s are in the log: %s", as.name, e.Line)
				}
			}
		}
	})
}

// checkPrivatePage checks the header of an answer: no shared cache keeps it, and a
// browser that is refused is asked for a password.
func checkPrivatePage(t *testing.T, what string, got Response) {
	t.Helper()
	if caching := got.Header.Get("Cache-Control"); caching != "private, no-cache" {
		t.Errorf("%s: Cache-Control is %q", what, caching)
	}
	if asks := slices.Contains(got.Header.Values("WWW-Authenticate"), `Basic realm="registry"`); asks != (got.Status == http.StatusUnauthorized) {
		t.Errorf("%s: %d with %q", what, got.Status, got.Header.Values("WWW-Authenticate"))
	}
	if location := got.Header.Get("Location"); location != "" && (!strings.HasPrefix(location, "/") || strings.HasPrefix(location, "//")) {
		t.Errorf("%s leads to %s", what, location)
	}
}

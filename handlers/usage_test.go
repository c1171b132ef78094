package handlers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
	"github.com/caddy-terraform/caddy-terraform-registry/usage"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// counting has a registry count downloads, in memory.
func counting(g *handlers.Registry) *handlers.Registry {
	g.Usage = usage.NewCounter(usage.Options{Keep: 400 * 24 * time.Hour, Storage: empty{}})
	if err := g.Usage.Sync(context.Background()); err != nil {
		panic(err) // the storage never fails
	}
	return g
}

// An empty storage takes everything and has nothing.
type empty struct{}

func (empty) List(context.Context) ([]string, error)          { return nil, nil }
func (empty) Load(context.Context, string) ([]byte, error)    { return nil, fs.ErrNotExist }
func (empty) Store(context.Context, string, []byte) error     { return nil }
func (empty) Delete(context.Context, string) error            { return nil }
func (empty) Lock(context.Context) (unlock func(), err error) { return func() {}, nil }

// downloads returns what has been counted today, as "ADDRESS VERSION PLATFORM COUNT" and
// "ADDRESS VERSION USER COUNT".
func downloads(g *handlers.Registry) (lines []string) {
	for _, u := range g.Usage.All(1).Addresses {
		for _, d := range u.Days {
			words := fmt.Sprintf("%s %s %s %d", u.Address, d.Version, d.Platform, d.Downloads)
			lines = append(lines, strings.Join(strings.Fields(words), " "))
		}
		for _, by := range u.By {
			lines = append(lines, fmt.Sprintf("%s %s %s %d", u.Address, by.Version, by.Who, by.Requests))
		}
	}
	return lines
}

func TestWhatIsADownload(t *testing.T) {
	files, _ := everything(t)
	snapshot := scan(t, files)
	b := bucketWith(t, files)
	o := options(t, files)
	o.Listed = source.Directories{Root: "."}.Listed(b)
	inStore := scanWith(t, o)
	const (
		zip     = "/v1/mirror/" + ownHost + "/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip"
		archive = "/v1/modules/acme/vpc/aws/1.0.0/archive.tar.gz"

		provider, module = "acme/demo 1.0.0 linux_amd64 1", "acme/vpc/aws 1.0.0 1"
	)
	etag := serve(t, registry(snapshot)).do(http.MethodHead, absolute(zip)).Header.Get("Etag")
	for _, test := range []struct {
		rule, method, path string
		headers            []string
		status             int
		want               string // empty: nothing is counted
	}{
		{"a provider's package", "GET", zip, nil, 200, provider},
		{"a module's package", "GET", archive, nil, 200, module},
		{"the package of what is mirrored", "GET", "/v1/mirror/registry.terraform.io/hashicorp/null/terraform-provider-null_3.2.0_linux_amd64.zip", nil, 200, "registry.terraform.io/hashicorp/null 3.2.0 linux_amd64 1"},
		{"all of a package as a range", "GET", zip, []string{"Range: bytes=0-"}, 206, provider},
		{"the rest of a package, after a download that broke off", "GET", zip, []string{"Range: bytes=10-"}, 206, provider},
		{"the last bytes", "GET", zip, []string{"Range: bytes=-10"}, 206, provider},
		{"the beginning of a package is none", "GET", zip, []string{"Range: bytes=0-9"}, 206, ""},
		{"a range in the middle is none", "GET", zip, []string{"Range: bytes=10-19"}, 206, ""},
		{"several ranges are none", "GET", zip, []string{"Range: bytes=0-9,20-29"}, 206, ""},
		{"what the client has is none", "GET", zip, []string{"If-None-Match: " + etag}, 304, ""},
		{"HEAD is none", "HEAD", zip, nil, 200, ""},
		{"a range that is not there is none", "GET", zip, []string{"Range: bytes=99999999-"}, 416, ""},
		{"where a module's package is is none", "GET", "/v1/modules/acme/vpc/aws/1.0.0/download", nil, 204, ""},
		{"where a provider's package is is none", "GET", "/v1/providers/acme/demo/1.0.0/download/linux/amd64", nil, 200, ""},
		{"a list of versions is none", "GET", "/v1/modules/acme/vpc/aws/versions", nil, 200, ""},
		{"SHA256SUMS is none", "GET", "/v1/mirror/" + ownHost + "/acme/demo/terraform-provider-demo_1.0.0_SHA256SUMS", nil, 200, ""},
		{"what is not there is none", "GET", "/v1/modules/acme/vpc/aws/9.9.9/archive.tar.gz", nil, 404, ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			g := counting(registry(snapshot))
			if a := do(g, test.method, test.path, test.headers...); a.Code != test.status {
				t.Fatalf("got %d %s", a.Code, a.Body)
			}
			if got := strings.Join(downloads(g), ", "); got != test.want {
				t.Errorf("counted %q, want %q", got, test.want)
			}
		})
	}
	for _, test := range []struct {
		rule    string
		headers []string
		want    string
	}{
		{"a package that the store serves", nil, provider},
		{"the beginning of such a package", []string{"Range: bytes=0-"}, provider},
		{"the rest of such a package is none", []string{"Range: bytes=10-"}, ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			g := counting(registry(inStore))
			g.Redirect = time.Minute
			if a := do(g, "GET", zip, test.headers...); a.Code != 307 {
				t.Fatalf("got %d %s", a.Code, a.Body)
			}
			if got := strings.Join(downloads(g), ", "); got != test.want {
				t.Errorf("counted %q, want %q", got, test.want)
			}
		})
	}
}

// What the tree has under the registry's own name is counted as it is asked for: without a name.
func TestPackagesUnderTheOwnNameAreCountedWithoutIt(t *testing.T) {
	files, _ := everything(t)
	files.Write("modules/"+ownHost+"/acme/named/aws/1.0.0/main.tf", "# a module")
	files.Provider(ownHost+"/acme/named", "1.0.0", "linux_amd64")
	g := counting(registry(scan(t, files)))
	location := do(g, "GET", "/v1/modules/acme/named/aws/1.0.0/download").Header().Get("X-Terraform-Get")
	url, err := url.Parse(location)
	if err != nil || !strings.Contains(url.Path, ownHost) {
		t.Fatalf("the package is at %s, %v", location, err)
	}
	for _, path := range []string{url.Path, "/v1/mirror/" + ownHost + "/acme/named/terraform-provider-named_1.0.0_linux_amd64.zip"} {
		if a := do(g, "GET", path); a.Code != 200 {
			t.Fatalf("%s: got %d %s", path, a.Code, a.Body)
		}
	}
	got := downloads(g)
	slices.Sort(got)
	if want := []string{"acme/named 1.0.0 linux_amd64 1", "acme/named/aws 1.0.0 1"}; !slices.Equal(got, want) {
		t.Errorf("counted %q, want %q", got, want)
	}
}

// A package counts when it is fetched from its origin, too.
func TestFetchedPackagesAreCounted(t *testing.T) {
	origin, _ := signedTree(t)
	p := pullThrough(t, origin, pull.Policy{}, nil)
	g := counting(p.registry)
	for range 2 {
		if a := do(g, "GET", originPath+"demo/terraform-provider-demo_1.0.0_linux_amd64.zip"); a.Code != 200 {
			t.Fatalf("got %d %s", a.Code, a.Body)
		}
	}
	if got := downloads(g); len(got) != 1 || !strings.HasSuffix(got[0], "/acme/demo 1.0.0 linux_amd64 2") {
		t.Errorf("counted %q", got)
	}
}

// A download that the client or the registry breaks off does not count.
func TestBrokenDownloadsAreNotCounted(t *testing.T) {
	files, _ := everything(t)
	snapshot := scan(t, files)
	g := counting(registry(snapshot))
	const path = "/v1/mirror/" + ownHost + "/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip"
	w := &leaving{header: make(http.Header)}
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Host = ownHost
	func() {
		defer func() { _ = recover() }() // an answer that is broken off
		g.ServeHTTP(w, r)
	}()
	if got := downloads(g); len(got) > 0 {
		t.Errorf("counted %v", got)
	}
}

// A leaving client takes no byte.
type leaving struct{ header http.Header }

func (l *leaving) Header() http.Header       { return l.header }
func (*leaving) WriteHeader(int)             {}
func (*leaving) Write(p []byte) (int, error) { return 0, fmt.Errorf("the client has left") }

// What may not be read is neither counted for those who may not read it, nor do they learn of
// its counts.
func TestUsageIsForThoseWhoMayRead(t *testing.T) {
	g := counting(private(t))
	g.UsageBy = usage.BySubject
	s := serve(t, g)
	const archive = "/v1/modules/acme/vpc/aws/1.0.0/archive.tar.gz"
	for _, who := range []string{anonymous, stranger, garbage} {
		do(g, "GET", archive, who)
		do(g, "GET", "/v1/modules/acme/vpc/aws/1.0.0/download", who)
	}
	if got := downloads(g); len(got) > 0 {
		t.Fatalf("counted %v", got)
	}
	do(g, "GET", archive, reader)
	for _, test := range []struct {
		who    string
		status int
	}{{anonymous, 401}, {garbage, 401}, {stranger, 404}, {reader, 200}} {
		var got wire.Usage
		a := s.get("/v1/modules/acme/vpc/aws/usage", test.who)
		if a.StatusCode != test.status {
			t.Errorf("%s: got %d %s", test.who, a.StatusCode, a.body)
		}
		if other := s.get("/v1/modules/acme/none/aws/usage", test.who); test.status != 200 && other.StatusCode != test.status {
			t.Errorf("%s: what does not exist is %d", test.who, other.StatusCode)
		}
		if test.status == 200 && (json.Unmarshal([]byte(a.body), &got) != nil || got.Downloads != 1 || a.Header.Get("Cache-Control") != "private, no-cache") {
			t.Errorf("%s: %s, %s", test.who, a.body, a.Header)
		}
	}
}

// With by, those are counted who are told where a package is; who they are is for those who may
// manage it.
func TestUsersAreCountedOnRequest(t *testing.T) {
	for by, want := range map[string][]string{
		"":              {},
		usage.BySubject: {"acme/demo 1.0.0 reader 2", "acme/vpc/aws 1.0.0 reader 1"},
		usage.ByGroup:   {"acme/demo 1.0.0 builders 2", "acme/vpc/aws 1.0.0 builders 1"},
	} {
		t.Run("by "+by, func(t *testing.T) {
			g := counting(private(t, "allow anonymous read open", "allow group:builders read acme", "allow owner manage acme"))
			g.Authenticate = func(r *http.Request) (access.Subject, error) {
				_, token, _ := strings.Cut(r.Header.Get("Authorization"), "Bearer ")
				return access.Subject{ID: token, Groups: []string{"builders", "readers of news"}}, nil
			}
			g.UsageBy = by
			s := serve(t, g)
			for _, path := range []string{
				"/v1/modules/acme/vpc/aws/1.0.0/download", "/v1/providers/acme/demo/1.0.0/download/linux/amd64", "/v1/mirror/" + ownHost + "/acme/demo/1.0.0.json",
				"/v1/modules/open/vpc/aws/1.0.0/download", // public: nobody is asked who they are
			} {
				do(g, "GET", path, reader)
			}
			got := downloads(g)
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
			names := func(who string) int {
				var u wire.Usage
				s.json("/v1/modules/acme/vpc/aws/usage", &u, who)
				return len(u.By)
			}
			if names(reader) != 0 {
				t.Error("a reader learns who downloads")
			}
			if n := names("Authorization: Bearer owner"); n != min(len(want), 1) {
				t.Errorf("who may manage it learns of %d", n)
			}
		})
	}
}

// A rule may name groups by a wildcard: each of them is counted, and each once.
func TestAllGroupsThatRulesNameAreCounted(t *testing.T) {
	g := counting(private(t, "allow group:team-* read acme", "allow group:team-b read open", "allow group:builders read acme"))
	g.Authenticate = func(*http.Request) (access.Subject, error) {
		return access.Subject{ID: "ci", Groups: []string{"news", "team-b", "team-a", "team-b", "builders"}}, nil
	}
	g.UsageBy = usage.ByGroup
	do(g, "GET", "/v1/modules/acme/vpc/aws/1.0.0/download", reader)
	got := downloads(g)
	slices.Sort(got)
	if want := []string{"acme/vpc/aws 1.0.0 builders 1", "acme/vpc/aws 1.0.0 team-a 1", "acme/vpc/aws 1.0.0 team-b 1"}; !slices.Equal(got, want) {
		t.Errorf("counted %q, want %q", got, want)
	}
}

// Users may be known by a client certificate, or by a proxy that has asked for a password: their
// requests have no credentials.
func TestManagersNeedNoTokenToSeeUsers(t *testing.T) {
	g := counting(private(t, "allow anonymous read open", "allow owner read acme", "allow owner manage acme open", "allow reader read acme"))
	g.Authenticate = func(r *http.Request) (access.Subject, error) {
		return access.Subject{ID: r.Header.Get("Remote-User")}, nil
	}
	g.UsageBy = usage.BySubject
	for _, a := range []string{"acme/vpc/aws", "open/vpc/aws"} { // open was private, say
		parsed, err := address.Parse(a)
		if err != nil {
			t.Fatal(err)
		}
		g.Usage.Add(usage.Use{Address: parsed, Version: "1.0.0", By: "ci"})
		for user, want := range map[string]int{"owner": 1, "reader": 0} {
			var u wire.Usage
			answer := do(g, "GET", "/v1/modules/"+a+"/usage", "Remote-User: "+user)
			if err := json.Unmarshal(answer.Body.Bytes(), &u); err != nil || len(u.By) != want {
				t.Errorf("%s is told of %d users of %s, want %d: %s", user, len(u.By), a, want, answer.Body)
			}
			if caching := answer.Header().Get("Cache-Control"); caching != "private, no-cache" {
				t.Errorf("what %s is told of %s is %s", user, a, caching)
			}
		}
	}
}

func TestUsageDocument(t *testing.T) {
	files, _ := everything(t)
	g := counting(registry(scan(t, files)))
	vpc, _ := address.Parse("acme/vpc/aws")
	demo, _ := address.Parse("acme/demo")
	for _, u := range []usage.Use{
		{Address: vpc, Version: "1.0.0"}, {Address: vpc, Version: "1.10.0"}, {Address: vpc, Version: "1.10.0"},
		{Address: demo, Version: "1.0.0", Platform: "linux_amd64"},
	} {
		g.Usage.Add(u)
	}
	today := usage.DayOf(time.Now()).String()
	s := serve(t, g)
	want := `{"address":"acme/vpc/aws","since":"","downloads":3,"downloads_30_days":3,"last_used":"` + today + `","versions":[` +
		`{"version":"1.10.0","downloads":2,"downloads_30_days":2,"last_used":"` + today + `"},{"version":"1.0.0","downloads":1,"downloads_30_days":1,"last_used":"` + today + `"}],` +
		`"days":[{"day":"` + today + `","version":"1.0.0","downloads":1},{"day":"` + today + `","version":"1.10.0","downloads":2}]}`
	if got := s.get("/v1/modules/acme/vpc/aws/usage"); got.body != want {
		t.Errorf("got\n%s\nwant\n%s", got.body, want)
	}
	for path, status := range map[string]int{
		"/v1/providers/acme/demo/usage":                                       200,
		"/v1/providers/acme/none/usage":                                       404,
		"/v1/registries/registry.terraform.io/providers/hashicorp/null/usage": 200,
		"/v1/modules/acme/vpc/aws/usage?days=0":                               400,
		"/v1/modules/acme/vpc/aws/usage?days=400":                             200,
	} {
		if a := s.get(path); a.StatusCode != status {
			t.Errorf("%s: got %d %s", path, a.StatusCode, a.body)
		}
	}
	for path, want := range map[string]string{
		"/v1/modules":                                    `"downloads":3,`,
		"/v1/modules/acme/vpc/aws":                       `"downloads":3,`,
		"/v1/modules/acme/vpc/aws/1.0.0":                 `"downloads":3,`,
		"/v1/modules/search?q=vpc":                       `"downloads":3,`,
		"/v1/providers":                                  `"downloads":1,`,
		"/v1/providers/acme/demo":                        `"downloads":1,`,
		"/v1/registries/registry.terraform.io/providers": `"downloads":0,`,
	} {
		if a := s.get(path); !strings.Contains(a.body, want) {
			t.Errorf("%s lacks %s: %s", path, want, a.body)
		}
	}
	mustRefuse(t, serve(t, registry(scan(t, files))).get("/v1/modules/acme/vpc/aws/usage"), 404)
}

// Before the counts have been read, as after a start or while the storage fails, nobody is told that
// there were no downloads. Who may not read an address is not told that either.
func TestUnknownCountsAreNotZero(t *testing.T) {
	g := private(t)
	g.Usage = usage.NewCounter(usage.Options{Keep: 400 * 24 * time.Hour, Storage: empty{}})
	g.Usage.Add(usage.Use{Address: address.Address{Namespace: "acme", Name: "vpc", System: "aws"}, Version: "1.0.0"})
	s := serve(t, g)
	for _, test := range []struct {
		path, who string
		status    int
	}{
		{"/v1/modules/acme/vpc/aws/usage", reader, 503},
		{"/v1/modules/acme/vpc/aws/usage", stranger, 404},
		{"/v1/modules/acme/vpc/aws/usage", anonymous, 401},
		{"/v1/modules/acme/removed/aws/usage", reader, 503}, // it may have counts
	} {
		mustRefuse(t, s.get(test.path, test.who), test.status)
	}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Authorization", strings.TrimPrefix(reader, "Authorization: "))
	visit := func() (found map[string]usage.Summary) {
		err := g.Visit(r, func(v *handlers.View) error {
			found = v.Usage(address.Address{Namespace: "acme", Name: "vpc", System: "aws"})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if found := visit(); found != nil {
		t.Errorf("a page has %v", found)
	}
	if err := g.Usage.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if found := visit(); len(found) != 2 {
		t.Errorf("when they have been read, a page has %v", found)
	}
	if a := s.get("/v1/modules/acme/vpc/aws/usage", reader); a.StatusCode != 200 {
		t.Errorf("when they have been read, it is %d", a.StatusCode)
	}
}

// A list with counts is made again when the counts have changed, and not before.
func TestListsHaveNewCounts(t *testing.T) {
	files, _ := everything(t)
	g := counting(registry(scan(t, files)))
	vpc, _ := address.Parse("acme/vpc/aws")
	s := serve(t, g)
	first := s.get("/v1/modules/acme/vpc/aws").Header.Get("Etag")
	g.Usage.Add(usage.Use{Address: vpc, Version: "1.0.0"})
	if again := s.get("/v1/modules/acme/vpc/aws").Header.Get("Etag"); again != first {
		t.Error("it is made again for each download")
	}
	_ = g.Usage.Sync(t.Context())
	if again := s.get("/v1/modules/acme/vpc/aws").Header.Get("Etag"); again == first {
		t.Error("it keeps the old count")
	}
}

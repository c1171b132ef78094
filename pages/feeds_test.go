package pages

import (
	"crypto/tls"
	"encoding/xml"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/html/atom"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/feed"
	"github.com/caddy-terraform/caddy-terraform-registry/pages/route"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
)

// An atomFeed is a feed as a reader reads it.
type atomFeed struct {
	XMLName  xml.Name  `xml:"http://www.w3.org/2005/Atom feed"`
	ID       string    `xml:"id"`
	Title    string    `xml:"title"`
	Updated  time.Time `xml:"updated"`
	Subtitle string    `xml:"subtitle"`
	Entries  []struct {
		ID      string    `xml:"id"`
		Title   string    `xml:"title"`
		Updated time.Time `xml:"updated"`
		Link    struct {
			Href string `xml:"href,attr"`
		} `xml:"link"`
		Content string `xml:"content"`
	} `xml:"entry"`
}

func (s *Site) feed(t *testing.T, path, user string) atomFeed {
	t.Helper()
	w := s.get(path, user)
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/atom+xml; charset=utf-8" {
		t.Fatalf("%s: %d, %v", path, w.Code, w.Header())
	}
	var f atomFeed
	if err := xml.Unmarshal(w.Body.Bytes(), &f); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return f
}

func (f atomFeed) titles() (titles []string) {
	for _, e := range f.Entries {
		titles = append(titles, e.Title)
	}
	return titles
}

func setTime(t *testing.T, files *indextest.Tree, name string, at time.Time) {
	t.Helper()
	if err := files.Fs.Chtimes(name, at, at); err != nil {
		t.Fatal(err)
	}
}

func TestFeeds(t *testing.T) {
	files := siteTree(t)
	changed := indextest.Born.Add(48 * time.Hour).Truncate(time.Second)
	setTime(t, files, "modules/acme/vpc/aws/registry.hcl", changed)
	s := siteOf(t, snapshotOf(t, files))
	f := s.feed(t, "/modules/acme/vpc/aws/feed.atom", "")
	for _, want := range []string{
		"acme/vpc/aws 2.0.0-rc.1", "acme/vpc/aws 1.4.0", "acme/vpc/aws 1.3.0", "acme/vpc/aws 1.2.0",
		"acme/vpc/aws 1.2.0 is deprecated", "acme/vpc/aws 1.1.0 is withdrawn",
	} {
		if !slices.Contains(f.titles(), want) {
			t.Errorf("the feed of a module lacks %q: %q", want, f.titles())
		}
	}
	for _, e := range f.Entries {
		if e.Title == "acme/vpc/aws 1.2.0 is deprecated" && (e.Content != "Subnets overlap." || e.Link.Href != "http://registry.example.com/modules/acme/vpc/aws/1.2.0" || !e.Updated.Equal(changed)) {
			t.Errorf("a deprecation is %+v", e)
		}
	}
	if f.ID != "tag:registry.example.com,2026:/modules/acme/vpc/aws" || !f.Updated.Equal(f.Entries[0].Updated) {
		t.Errorf("the feed is %s of %s", f.ID, f.Updated)
	}

	for path, want := range map[string]struct{ has, hasNot string }{
		"/feed.atom":                                  {"registry.terraform.io/hashicorp/null 3.2.0", "x"},
		"/modules/acme/feed.atom":                     {"acme/demo ", "hashicorp/"},
		"/modules/acme/vpc/feed.atom":                 {"acme/vpc/aws 1.4.0", "acme/labels"},
		"/providers/acme/demo/feed.atom":              {"acme/demo ", "acme/vpc"},
		"/registries/registry.terraform.io/feed.atom": {"registry.terraform.io/acme/tags/null 1.0.0", "acme/vpc"},
	} {
		titles := strings.Join(s.feed(t, path, "").titles(), "\n")
		if !strings.Contains(titles, want.has) || strings.Contains(titles, want.hasNot) {
			t.Errorf("%s has\n%s", path, titles)
		}
	}

	// A known entry keeps its ID, and another reason is news.
	ids := make(map[string]bool)
	for _, e := range f.Entries {
		if ids[e.ID] {
			t.Errorf("two entries have the ID %s", e.ID)
		}
		ids[e.ID] = true
	}
	files.Write("modules/acme/vpc/aws/registry.hcl", "deprecated \"1.2.0\" {\n  reason = \"It leaks.\"\n}\nwithdrawn \"1.1.0\" {\n  reason = \"Its key is public.\"\n}\n")
	var news []string
	for _, e := range siteOf(t, snapshotOf(t, files)).feed(t, "/modules/acme/vpc/aws/feed.atom", "").Entries {
		if !ids[e.ID] {
			news = append(news, e.Title+": "+e.Content)
		}
	}
	if !slices.Equal(news, []string{"acme/vpc/aws 1.2.0 is deprecated: It leaks."}) {
		t.Errorf("after another deprecation, new is %q", news)
	}
}

func TestAFeedHasTheNewestEntries(t *testing.T) {
	files := indextest.New(t)
	for n := range 60 {
		name := fmt.Sprintf("modules/acme/vpc/aws/1.%d.0/main.tf", n)
		setTime(t, files.Write(name, "# a module"), name, indextest.Born.Add(time.Duration(n)*time.Hour))
	}
	titles := siteOf(t, snapshotOf(t, files)).feed(t, "/feed.atom", "").titles()
	if len(titles) != 50 || titles[0] != "acme/vpc/aws 1.59.0" || titles[49] != "acme/vpc/aws 1.10.0" {
		t.Errorf("it has %d entries: %q", len(titles), titles)
	}
}

// A reader of feeds sends credentials when it is asked for them.
func TestAPrivateFeed(t *testing.T) {
	s := siteOf(t, snapshotOf(t, privateTree(t)), "allow alice read *", "allow bob read open")
	for _, path := range []string{"/feed.atom", "/modules/secret/feed.atom", "/modules/open/vpc/aws/feed.atom", "/modules/nothing/feed.atom", "/modules/no/thing/aws/feed.atom"} {
		w := s.get(path, "")
		if w.Code != http.StatusUnauthorized || w.Header().Get("WWW-Authenticate") != `Basic realm="registry"` {
			t.Errorf("%s: to nobody it answers %d, %v", path, w.Code, w.Header())
		}
	}
	if titles := strings.Join(s.feed(t, "/feed.atom", "alice").titles(), " "); !strings.Contains(titles, "secret/vault/aws 1.0.0") {
		t.Errorf("who may read all gets %s", titles)
	}
	if titles := strings.Join(s.feed(t, "/feed.atom", "bob").titles(), " "); strings.Contains(titles, "secret") || !strings.Contains(titles, "open/vpc/aws") {
		t.Errorf("who may read a namespace gets %s", titles)
	}
	if w := s.get("/modules/secret/feed.atom", "bob"); w.Code != http.StatusNotFound {
		t.Errorf("of a hidden namespace he gets %d", w.Code)
	}
	if w := s.get("/feed.atom", "alice"); w.Header().Get("Cache-Control") != "private, no-cache" {
		t.Errorf("caches may keep it: %v", w.Header())
	}
}

// A module that cannot be read at the moment is not absent. The feed of a namespace has the
// others meanwhile.
func TestFeedsOfWhatIsNotReadYet(t *testing.T) {
	files := indextest.New(t)
	for _, name := range []string{"half", "gone"} {
		files.Write("modules/acme/"+name+"/aws/1.0.0/main.tf", "# a module")
		files.Write("modules/acme/"+name+"/aws/1.1.0.zip", indextest.Zip("main.tf", "# one"))
	}
	files.Write("modules/acme/gone/aws/registry.hcl", "withdrawn \"1.0.0\" {}\n")
	files.Write("modules/acme/vpc/aws/1.0.0/main.tf", "# a module")
	var faults treetest.Faults
	faults.When(func(_ int, o treetest.Operation) error {
		if strings.HasSuffix(o.Path, ".zip") && o.Name != "stat" {
			return syscall.EIO
		}
		return nil
	})
	s := siteOf(t, scanned(t, faults.Open(files.Open)))
	for _, name := range []string{"half", "gone"} {
		if w := s.get("/modules/acme/"+name+"/aws/feed.atom", ""); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
			t.Errorf("the feed of one, %s: %d %s", name, w.Code, w.Body)
		}
	}
	for _, path := range []string{"/feed.atom", "/modules/acme/feed.atom"} {
		f := s.feed(t, path, "")
		if got := f.titles(); !slices.Contains(got, "acme/vpc/aws 1.0.0") || !slices.Contains(got, "acme/half/aws 1.0.0") {
			t.Errorf("%s has %q", path, got)
		}
		if !strings.Contains(f.Subtitle, "cannot be read at the moment") {
			t.Errorf("%s does not say that it lacks something, but %q", path, f.Subtitle)
		}
	}
	if f := s.feed(t, "/modules/acme/vpc/feed.atom", ""); f.Subtitle != "" {
		t.Errorf("a feed that lacks nothing says %q", f.Subtitle)
	}
}

// The end of a module is news.
func TestFeedsOfWhatIsWithdrawnAsAWhole(t *testing.T) {
	files := indextest.New(t)
	for _, version := range []string{"1.0.0", "1.1.0", "1.2.0"} {
		files.Write("modules/acme/vpc/aws/"+version+"/main.tf", "# a module")
		files.Write("modules/acme/open/aws/"+version+"/main.tf", "# a module")
	}
	files.Provider("acme/demo", "1.0.0", "linux_amd64")
	for _, folder := range []string{"modules/acme/vpc/aws", "providers/acme/demo"} {
		files.Write(folder+"/registry.hcl", "withdrawn \">= 0\" {\n  reason = \"malware\"\n}\n")
	}
	// The registry's own name withdraws what lies under no name, and the other way round.
	files.Write("modules/acme/dns/aws/1.0.0/main.tf", "# a module").Write("modules/registry.example.com/acme/dns/aws/registry.hcl", "withdrawn \">= 0\" {}")
	files.Write("modules/registry.example.com/acme/key/aws/1.0.0/main.tf", "# a module").Write("modules/acme/key/aws/registry.hcl", "withdrawn \">= 0\" {}")
	s := siteOf(t, snapshotOf(t, files))
	for _, name := range []string{"dns", "key"} {
		for _, path := range []string{"/feed.atom", "/modules/acme/feed.atom", "/modules/acme/" + name + "/aws/feed.atom"} {
			var of []string
			for _, title := range s.feed(t, path, "").titles() {
				if strings.HasPrefix(title, "acme/"+name) {
					of = append(of, title)
				}
			}
			if !slices.Equal(of, []string{"acme/" + name + "/aws >= 0 is withdrawn"}) {
				t.Errorf("%s has of %s %q", path, name, of)
			}
		}
	}
	for _, path := range []string{"/feed.atom", "/modules/acme/feed.atom", "/modules/acme/vpc/aws/feed.atom", "/providers/acme/feed.atom"} {
		if got := s.feed(t, path, "").titles(); !slices.Contains(got, "acme/vpc/aws >= 0 is withdrawn") {
			t.Errorf("%s has %q", path, got)
		}
	}
	if got := s.feed(t, "/providers/acme/demo/feed.atom", "").titles(); !slices.Equal(got, []string{"acme/demo >= 0 is withdrawn"}) {
		t.Errorf("of a provider there is %q", got)
	}
}

// A feed also has news of old modules: a deprecation, a fix of an old version.
func TestAFeedHasWhatIsNewOfOldThings(t *testing.T) {
	files := indextest.New(t)
	write := func(name, text string, day int) {
		setTime(t, files.Write(name, text), name, indextest.Born.Add(time.Duration(day)*24*time.Hour))
	}
	for n := range 3 * maxFed {
		write(fmt.Sprintf("modules/acme/m%03d/aws/1.0.0/main.tf", n), "# a module", 100)
	}
	write("modules/acme/vpc/aws/2.0.0/main.tf", "# a module", 1)
	write("modules/acme/vpc/aws/1.0.1/main.tf", "# a fix", 300)
	write("modules/acme/dns/aws/1.0.0/main.tf", "# a module", 1)
	write("modules/acme/dns/aws/registry.hcl", "deprecated \">= 0\" {}", 200)
	write("modules/acme/key/aws/1.0.0/main.tf", "# a module", 1)
	write("modules/acme/key/aws/registry.hcl", "withdrawn \">= 0\" {}", 150)
	write("modules/acme/said/aws/1.0.0/main.tf", "# a module", 1)
	write("modules/acme/said/aws/registry.hcl", `description = "Not news."`, 400)
	got := siteOf(t, snapshotOf(t, files)).feed(t, "/feed.atom", "").titles()
	want := []string{"acme/vpc/aws 1.0.1", "acme/dns/aws >= 0 is deprecated", "acme/key/aws >= 0 is withdrawn", "acme/m000/aws 1.0.0"}
	if len(got) != feed.MaxEntries || !slices.Equal(got[:len(want)], want) {
		t.Errorf("it has %d entries: %q", len(got), got[:min(len(got), 6)])
	}
}

// A page and its feed are about the same.
func TestAFeedIsOfItsPage(t *testing.T) {
	files := siteTree(t)
	files.Provider("acme/vpc", "1.0.0", "linux_amd64")
	s := siteOf(t, snapshotOf(t, files))
	for _, path := range []string{"/modules/acme", "/providers/acme", "/modules/acme/vpc", "/registries/registry.terraform.io", "/registries/registry.example.com"} {
		listed := make(map[string]bool)
		for _, a := range elements(parse(t, s.get(path, "")), atom.A) {
			if to, ok := route.Parse(attr(a, "href")); ok && (to.Kind == route.Module || to.Kind == route.Provider) {
				listed[to.Address.String()] = true
			}
		}
		fed := make(map[string]bool)
		for _, title := range s.feed(t, strings.TrimSuffix(path, "/")+"/feed.atom", "").titles() {
			name, _, _ := strings.Cut(title, " ")
			fed[name] = true
		}
		if !maps.Equal(fed, listed) {
			t.Errorf("%s lists %v, and its feed has %v", path, listed, fed)
		}
	}
}

// Readers follow links by the way on which they have come, and tell entries by their IDs.
func TestLinksAndIDsOfFeeds(t *testing.T) {
	s := siteOf(t, snapshotOf(t, siteTree(t)))
	for _, test := range []struct {
		rule, host, forwarded string
		encrypted             bool
		link, id              string
	}{
		{"TLS", "registry.example.com", "", true, "https://registry.example.com/", "tag:registry.example.com,2026:/"},
		{"no TLS", "registry.example.com", "", false, "http://registry.example.com/", "tag:registry.example.com,2026:/"},
		{"a proxy has TLS", "registry.example.com", "https", false, "https://registry.example.com/", "tag:registry.example.com,2026:/"},
		{"a port is in no authority of a tag", "registry.example.com:8080", "", false, "http://registry.example.com:8080/", "tag:registry.example.com,2026:8080:/"},
	} {
		r := httptest.NewRequest(http.MethodGet, "/modules/acme/vpc/aws/feed.atom", nil)
		r.Host = test.host
		r.Header.Set("X-Forwarded-Proto", test.forwarded)
		if test.encrypted {
			r.TLS = new(tls.ConnectionState)
		}
		var f atomFeed
		if err := xml.Unmarshal(s.do(r).Body.Bytes(), &f); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(f.Entries[0].Link.Href, test.link) || !strings.HasPrefix(f.Entries[0].ID, test.id) || !strings.HasPrefix(f.ID, test.id) {
			t.Errorf("%s: %s, %s", test.rule, f.Entries[0].Link.Href, f.Entries[0].ID)
		}
	}
}

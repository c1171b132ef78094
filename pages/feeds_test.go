package pages

import (
	"encoding/xml"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// An atomFeed is a feed as a reader reads it.
type atomFeed struct {
	XMLName xml.Name  `xml:"http://www.w3.org/2005/Atom feed"`
	ID      string    `xml:"id"`
	Title   string    `xml:"title"`
	Updated time.Time `xml:"updated"`
	Entries []struct {
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

func TestFeeds(t *testing.T) {
	files := siteTree(t)
	changed := indextest.Born.Add(48 * time.Hour).Truncate(time.Second)
	if err := files.Fs.Chtimes("modules/acme/vpc/aws/registry.hcl", changed, changed); err != nil {
		t.Fatal(err)
	}
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
		if e.Title == "acme/vpc/aws 1.2.0 is deprecated" && (e.Content != "Subnets overlap." || e.Link.Href != "https://registry.example.com/modules/acme/vpc/aws/1.2.0" || !e.Updated.Equal(changed)) {
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

	// What is known stays one entry, and another reason is a new one.
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
		name := "modules/acme/vpc/aws/1." + string(rune('0'+n/10)) + string(rune('0'+n%10)) + ".0/main.tf"
		name = strings.Replace(name, "/1.0", "/1.", 1)
		files.Write(name, "# a module")
		at := indextest.Born.Add(time.Duration(n) * time.Hour)
		if err := files.Fs.Chtimes(name, at, at); err != nil {
			t.Fatal(err)
		}
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

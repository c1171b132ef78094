package pages

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
)

// searchSite has forty modules that require a provider with documentation, and call a module.
func searchSite(t *testing.T) *Site {
	t.Helper()
	files := indextest.New(t)
	for i := range 40 {
		version := "~> 1.0"
		if i == 7 {
			version = "~> 0.9"
		}
		files.Write(fmt.Sprintf("modules/team%d/storage%02d/%s/1.0.0/main.tf", i%2, i, []string{"aws", "google"}[i/30]), `
terraform {
  required_providers {
    demo = {
      source = "registry.example.com/acme/demo"
    }
  }
}
module "labels" {
  source  = "registry.example.com/acme/labels/null"
  version = "`+version+`"
}
resource "demo_bucket" "one" {}
resource "demo_unknown" "two" {}
data "demo_bucket" "three" {}
`)
	}
	files.Write("modules/team1/storage11/aws/1.0.0/modules/inner/main.tf", `
module "labels" {
  source  = "registry.example.com/acme/labels/null"
  version = "~> 1.0"
}
`)
	files.Write("modules/acme/labels/null/1.2.0/main.tf", `variable "team" {}`)
	files.Write("modules/acme/labels/null/1.2.0/modules/tags/main.tf", `variable "team" {}`)
	files.Write("modules/acme/labels/null/1.2.0/examples/complete/main.tf", `variable "team" {}`)
	files.Provider("acme/demo", "1.0.0", "linux_amd64").Docs("resources/bucket.md", "# demo_bucket", "guides/start.md", "# Getting <started>")
	return siteOf(t, snapshotOf(t, files))
}

// A result says why it was found; results can be filtered, and have pages.
func TestSearchPage(t *testing.T) {
	s := searchSite(t)
	for _, test := range []struct {
		rule, path  string
		has, hasNot []string
	}{
		{"a type of resources: what creates it, and its page", "/search?q=demo_bucket", []string{
			`<li>creates <code><mark>demo_bucket</mark></code></li>`, `href="/providers/acme/demo/latest/docs/resources/bucket"><mark>demo_bucket</mark></a>`, "All 40",
		}, []string{"Nothing has exactly"}},
		{"a name", "/search?q=labels", []string{`href="/modules/acme/labels/null">acme/<wbr><mark>labels</mark>/<wbr>null</a>`}, nil},
		{"a title is escaped", "/search?q=started", []string{`Getting &lt;<mark>started</mark>&gt;`}, []string{"<started>"}},
		{"similar words are said to be so", "/search?q=lables", []string{"<mark>labels</mark>", "Nothing has exactly these words"}, nil},
		{"facets of the kinds", "/search?q=demo_bucket", []string{
			`href="/search/modules?q=demo_bucket">Modules <span>40</span>`, `href="/search/documentation?q=demo_bucket">Documentation <span>1</span>`, `aria-current="true">All <span>41</span>`,
		}, nil},
		{"facets of the results", "/search?q=demo_bucket", []string{`href="/search?q=demo_bucket&amp;namespace=team1">team1 <span>20</span>`, `href="/search/modules?q=demo_bucket&amp;provider=google">google <span>10</span>`}, nil},
		{"a filter", "/search/modules?q=demo_bucket&provider=google", []string{`Modules <span class="tally">10</span>`, "team0/<wbr>storage30/<wbr>google", "Without filters"}, []string{"storage00"}},
		{"a filter counts in the other kinds", "/search/modules?q=demo_bucket&namespace=acme", []string{"Nothing matches these filters", `namespace=acme">Documentation <span>1</span>`}, nil},
		{"the second page", "/search/modules?q=demo_bucket&offset=30", []string{"31–40 of 40", `rel="prev"`}, []string{`rel="next"`}},
		{"a pasted source", "/search?q=source+%3D+%22registry.example.com/acme/labels/null//modules/tags%22", []string{`href="/modules/acme/labels/null/latest/submodules/tags"><mark>modules/tags</mark>`, `All <span>1</span>`}, nil},
		{"a submodule that is not there", "/search?q=registry.example.com/acme/labels/null//modules/nothing", []string{`href="/modules/acme/labels/null"`, `All <span>1</span>`}, []string{"latest/submodules"}},
		{"an example that is not there, while others are", "/search?q=registry.example.com/acme/labels/null//examples/nothing", []string{`href="/modules/acme/labels/null"`}, []string{"latest/examples"}},
		{"an example that is there", "/search?q=registry.example.com/acme/labels/null//examples/complete", []string{`href="/modules/acme/labels/null/latest/examples/complete"><mark>`}, nil},
		{"a submodule of a module that is not there", "/search?q=acme/labels/nul//modules/tags", []string{`href="/modules/acme/labels/null"`}, []string{"latest/submodules"}},
		{"nothing of a kind, but of others", "/search/providers?q=storage", []string{"Nothing of this kind matches", `href="/search/modules?q=storage">Modules <span>40</span>`, `All <span>40</span>`}, []string{"Nothing matches"}},
		{"an empty query", "/search", []string{"paste a source or a URL"}, nil},
		{"nothing, and what to try", "/search?q=nothinglikethis", []string{"Nothing has these words, or most of them.", "Try a single word of a name", `href="/browse/modules"`}, []string{"Hashes", "signing in"}},
		{"a hash, which is not searched", "/search?q=zh:" + strings.Repeat("0a", 32), []string{"Hashes are not searched. A provider’s page has the hashes of its packages"}, nil},
		{"what has most of the words is said to have most", "/search?q=labels+nowhere", []string{"<mark>labels</mark>", "Nothing has all of these words. These have most of them."}, []string{"These are similar"}},
		{"a message of a client", "/search?q=" + url.QueryEscape("Error: Unsupported argument\n\n  on main.tf line 12, in resource \"demo_bucket\" \"logs\":\n"+strings.Repeat("An argument is not expected here. ", 30)), []string{
			"Of this text, only <code>demo_bucket</code> was looked for.", `<mark>demo_bucket</mark>`, `Results for “Error: Unsupported argument on main.tf line 12, in resource &#34;demo_bucket&#34; &#34;logs&#34;: An argument is not expected here. An a…”`,
			`href="/search/modules?q=demo_bucket">Modules`, // no link has all of it
		}, nil},
		{"more words than are looked for", "/search?q=team0+team1+demo+bucket+one+two+three+four+nine", []string{"Of this text, only <code>team0 team1 demo bucket one two three four</code> was looked for."}, nil},
		{"the kind with the best result comes first", "/search?q=demo", []string{`<h2>Providers <span class="tally">1</span></h2>`}, nil},
		{"who calls a module, the stale first", "/modules/acme/labels/null?tab=used-by", []string{
			`<tbody>` + "\n" + `<tr><th scope="row"><a href="/modules/team1/storage07/aws">team1/<wbr>storage07/<wbr>aws</a>`, "<code>~&gt; 0.9</code>", "does not take 1.2.0", "takes 1.2.0",
		}, nil},
		{"who requires a provider", "/providers/acme/demo?tab=used-by", []string{"team0/<wbr>storage00/<wbr>aws", ">any<", "takes 1.0.0"}, nil},
		{"each module counts once", "/modules/acme/labels/null?tab=used-by", []string{`Used by <span class="tally">40</span>`, "storage11/<wbr>aws/<wbr>/<wbr>modules/<wbr>inner"}, []string{`<span class="tally">41</span>`}},
		{"who calls it, by the registry's own name", "/registries/registry.example.com/modules/acme/labels/null?tab=used-by", []string{`Used by <span class="tally">40</span>`}, nil},
		{"nobody", "/modules/team0/storage00/aws?tab=used-by", []string{"No module here uses it."}, nil},
		{"a resource leads to its documentation", "/modules/team0/storage00/aws?tab=resources", []string{
			`<a href="/providers/acme/demo/latest/docs/resources/bucket"><code>demo_<wbr>bucket</code></a>`, `<th scope="row"><code>demo_<wbr>unknown</code>`,
		}, []string{"data-sources/bucket"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			a := s.get(test.path, "")
			body := a.Body.String()
			if a.Code != http.StatusOK {
				t.Fatalf("got %d", a.Code)
			}
			for _, text := range test.has {
				if !strings.Contains(body, text) {
					t.Errorf("%q is missing in\n%s", text, body)
				}
			}
			for _, text := range test.hasNot {
				if strings.Contains(body, text) {
					t.Errorf("%q is there", text)
				}
			}
		})
	}
}

// unopened is a file system whose pages of documentation cannot be opened yet.
type unopened struct {
	afero.Fs
	opened chan struct{}
}

func (u unopened) Open(name string) (afero.File, error) {
	if strings.HasSuffix(name, ".md") {
		<-u.opened
	}
	return u.Fs.Open(name)
}

// Documentation is read after a start in the background. Until then, a search says what it lacks.
func TestDocumentationThatHasNotBeenReadYet(t *testing.T) {
	const notice = "The documentation of some providers has not been read yet."
	files := indextest.New(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64").Docs("resources/bucket.md", "# demo_bucket")
	files.Provider("acme/plain", "1.0.0", "linux_amd64")
	u := unopened{files.Fs, make(chan struct{})}
	x := index.New(index.Options{Open: indextest.On(t, u).Open})
	t.Cleanup(func() { x.Close() })
	for _, test := range []struct {
		rule     string
		snapshot func() *index.Snapshot
		isUnread bool
	}{
		{"before", func() *index.Snapshot {
			s, err := x.Rescan(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return s
		}, true},
		{"afterwards", func() *index.Snapshot {
			close(u.opened)
			return indextest.Rescan(t, x)
		}, false},
	} {
		snapshot := test.snapshot()
		for _, query := range []string{"demo_bucket", "demo", "nothinglikethis"} {
			body := siteOf(t, snapshot).get("/search?q="+query, "").Body.String()
			if strings.Contains(body, notice) != test.isUnread {
				t.Errorf("%s, %s: %s", test.rule, query, body)
			}
		}
		hidden := siteOf(t, snapshot, "allow anonymous read acme/plain")
		if body := hidden.get("/search?q=plain", "").Body.String(); strings.Contains(body, notice) {
			t.Errorf("%s, who does not see the provider is told: %s", test.rule, body)
		}
	}
}

// The cost of a page of results depends on the results that it shows, not on all pages of
// documentation that were found.
func TestCostOfManyResults(t *testing.T) {
	cost := func(pages int) float64 {
		var docs []string
		for i := range pages {
			docs = append(docs, fmt.Sprintf("resources/thing_%03d.md", i), "# A thing with a title")
		}
		files := indextest.New(t)
		files.Provider("acme/demo", "1.0.0", "linux_amd64").Docs(docs...)
		s := siteOf(t, snapshotOf(t, files))
		asked := 0
		return testing.AllocsPerRun(20, func() {
			asked++ // no page is asked for twice
			if a := s.get(fmt.Sprintf("/search?q=thing&offset=%d", asked), ""); !strings.Contains(a.Body.String(), fmt.Sprintf("All %d", pages)) {
				t.Fatalf("got %d: %s", a.Code, a.Body)
			}
		})
	}
	if few, many := cost(40), cost(640); many > few+100 {
		t.Errorf("results among 640 cost %v allocations, and among 40 they cost %v", many, few)
	}
}

// A pasted part of a module leads to its page, also while the package or another version of the
// module cannot be read.
func TestAPartIsFoundWhileFilesCannotBeRead(t *testing.T) {
	for _, test := range []struct{ rule, unreadable string }{
		{"the package", "1.0.0.zip"},
		{"another version", "1.1.0.zip"},
	} {
		files := indextest.New(t)
		files.Write("modules/acme/vpc/aws/1.0.0.zip", indextest.Zip("main.tf", "", "examples/full/main.tf", "# an example"))
		if test.unreadable == "1.1.0.zip" {
			files.Write("modules/acme/vpc/aws/1.1.0.zip", indextest.Zip("main.tf", "# a module"))
		}
		var faults treetest.Faults
		fail := func() {
			faults.When(func(_ int, o treetest.Operation) error {
				if strings.HasSuffix(o.Path, test.unreadable) && o.Name != "stat" {
					return syscall.EIO
				}
				return nil
			})
		}
		if test.unreadable == "1.1.0.zip" {
			fail()
		}
		s := siteOf(t, scanned(t, faults.Open(files.Open)))
		fail()
		w := s.get("/search?q=registry.example.com/acme/vpc/aws//examples/full", "")
		if want := `href="/modules/acme/vpc/aws/latest/examples/full"`; !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s cannot be read: no %s in %d %s", test.rule, want, w.Code, w.Body)
		}
	}
}

func TestSuggestions(t *testing.T) {
	s := searchSite(t)
	for query, want := range map[string]string{
		"demo_bucket":       "demo_bucket (resource of acme/demo) /providers/acme/demo/latest/docs/resources/bucket; team0/storage00/aws (module, creates demo_bucket) /modules/team0/storage00/aws; team0/storage02/aws (module, creates demo_bucket) /modules/team0/storage02/aws; team0/storage04/aws (module, creates demo_bucket) /modules/team0/storage04/aws; team0/storage06/aws (module, creates demo_bucket) /modules/team0/storage06/aws; team0/storage08/aws (module, creates demo_bucket) /modules/team0/storage08/aws; team0/storage10/aws (module, creates demo_bucket) /modules/team0/storage10/aws; team0/storage12/aws (module, creates demo_bucket) /modules/team0/storage12/aws",
		"acme/demo":         "acme/demo (provider) /providers/acme/demo; team0/storage00/aws (module, requires registry.example.com/acme/demo) /modules/team0/storage00/aws; team0/storage02/aws (module, requires registry.example.com/acme/demo) /modules/team0/storage02/aws; team0/storage04/aws (module, requires registry.example.com/acme/demo) /modules/team0/storage04/aws; team0/storage06/aws (module, requires registry.example.com/acme/demo) /modules/team0/storage06/aws; team0/storage08/aws (module, requires registry.example.com/acme/demo) /modules/team0/storage08/aws; team0/storage10/aws (module, requires registry.example.com/acme/demo) /modules/team0/storage10/aws; team0/storage12/aws (module, requires registry.example.com/acme/demo) /modules/team0/storage12/aws",
		"storage00+nowhere": "", // while more is typed
		"started":           "Getting <started> (guide of acme/demo) /providers/acme/demo/latest/docs/guides/start",
		"":                  "",
		"nothinglike":       "",
	} {
		a := s.get("/search/suggestions?q="+query, "")
		var list []suggestion
		if err := json.Unmarshal(a.Body.Bytes(), &list); err != nil || a.Header().Get("Content-Type") != "application/json" || list == nil {
			t.Fatalf("%s: %v: %s", query, err, a.Body)
		}
		var got []string
		for _, one := range list {
			got = append(got, one.Text+" ("+one.Of+") "+one.URL)
		}
		if strings.Join(got, "; ") != want {
			t.Errorf("%s: got\n%s", query, strings.Join(got, ";\n"))
		}
	}
}

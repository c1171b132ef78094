package pages

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// demoReleases writes the provider of the tests: releases with and without their
// publisher's signature and documentation, a deprecated one and a withdrawn one.
func demoReleases(t testing.TB, files *indextest.Tree) {
	t.Helper()
	publisher := indextest.NewPublisher(t)
	files.Keys("acme", publisher)
	files.Provider("acme/demo", "1.0.0", "linux_amd64")
	files.Provider("acme/demo", "0.9.0", "linux_amd64")
	files.Provider("acme/demo", "1.1.0", "linux_amd64").Docs("guides/start.md", "# Start")
	files.Provider("acme/demo", "1.2.0", "linux_amd64", "darwin_arm64", "windows_amd64").Manifest("5.0", "6.0").Signed(publisher).Docs(
		"index.md", "---\ndescription: Things of the demo service.\n---\n# Demo\n\nSee [things](resources/thing).\n\n```terraform\nprovider \"demo\" {}\n```\n",
		"resources/thing.md", `---
page_title: "demo_thing Resource - demo"
---

# demo_thing

-> **Note:** It has a [start](../guides/start.md), a [twin](../data-sources/thing#read), [an overview](../index.md),
[the same](/providers/acme/demo/latest/docs/resources/thing), [old](/docs/providers/demo/d/thing.html), [home](/providers/acme/demo/latest/docs), [another](/providers/acme/other/latest/docs/resources/thing),
[nothing](nothing.md), ![a drawing](../images/a.png) and <script>alert(1)</script>

## Schema

Its <a id="nestedblock--part"></a>[part](#nestedblock--part).

## Import

None.
`,
		"guides/start.md", "---\npage_title: Getting started\n---\ntext",
		"data-sources/thing.md", "text", "resources/demo_full.md", "text", "functions/parse.md", "text",
		"resources/old.md", "---\nsubcategory: Deprecated\n---\ntext", "resources/hidden.md~", "text")
	files.Write("providers/acme/demo/registry.hcl", `
source = "https://example.org/demo"
deprecated "1.0.0" {
  reason = "It forgets."
  link   = "https://example.org/forgets"
}
withdrawn "0.9.0" {
  reason = "Its key is public."
}
`)
}

// saysAll checks that a page has texts, in its text one after another or in attributes.
func saysAll(t *testing.T, w *httptest.ResponseRecorder, want ...string) {
	t.Helper()
	checkText(t, "the page", textIn(parse(t, w))+"\n"+w.Body.String(), want, nil)
}

func TestPathsOfProviders(t *testing.T) {
	s := siteOf(t, snapshotOf(t, siteTree(t)))
	for path, want := range map[string]string{
		"/providers/acme/demo":        "200",
		"/providers/acme/demo/latest": "200",
		"/providers/acme/demo/1.2.0":  "200",
		"/providers/ACME/demo/1.2.0":  "308 /providers/acme/demo/1.2.0",
		"/providers/acme/demo/9.9.9":  "404", "/providers/acme/demo/0.9.0": "410", "/providers/acme/nothing": "404",
		"/providers/acme/demo?tab=overview": "308 /providers/acme/demo", "/providers/acme/demo?tab=versions": "200", "/providers/acme/demo?tab=packages": "200", "/providers/acme/demo?tab=inputs": "404",
		"/providers/acme/demo/latest/docs": "200", "/providers/acme/demo/1.2.0/docs/": "308 /providers/acme/demo/1.2.0/docs",
		"/providers/acme/demo/1.2.0/docs/resources/thing": "200", "/providers/acme/demo/1.2.0/docs/data-sources/thing": "200",
		"/providers/acme/demo/1.2.0/docs/functions/parse": "200", "/providers/acme/demo/1.2.0/docs/guides/start": "200",
		"/providers/acme/demo/1.2.0/docs/resources/other": "404", "/providers/acme/demo/1.2.0/docs/resources": "308 /providers/acme/demo/1.2.0/docs",
		"/providers/acme/demo/1.2.0/docs/r/thing": "404", "/providers/acme/demo/1.2.0/docs/resources/thing/more": "404",
		"/providers/acme/demo/1.1.0/docs": "200", "/providers/acme/demo/1.0.0/docs": "404", "/providers/acme/demo/0.9.0/docs": "410",
		"/providers/acme/demo/1.2.0/other":                           "404",
		"/registries/registry.terraform.io/providers/hashicorp/null": "200", "/registries/registry.terraform.io/providers/acme/demo": "404",
	} {
		w := s.get(path, "")
		got := strings.TrimSpace(strconv.Itoa(w.Code) + " " + w.Header().Get("Location"))
		if got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

func TestProviderOverview(t *testing.T) {
	s := siteOf(t, snapshotOf(t, siteTree(t)))
	for _, test := range []struct {
		rule, path string
		want       []string
		lack       []string
	}{
		{
			"documentation, with what to paste beside it", "/providers/acme/demo",
			[]string{
				"acme/demo", "1.2.0", "latest", "3 platforms", "signed by Acme Providers", "protocol 5.0, 6.0", "Things of the demo service.",
				"Documentation 7", "Versions 3", "Packages 3", "required_providers", "Overview", "demo_thing", "See things.", "Signed byAcme Providers",
			},
			[]string{"newer version", "is deprecated", "SHA256SUMS"},
		},
		{
			"packages, and what vouches for them", "/providers/acme/demo?tab=packages",
			[]string{
				"acme/demo", "1.2.0", "latest", "3 platforms", "signed by Acme Providers", "protocol 5.0, 6.0", "Things of the demo service.", "example.org/demo",
				"linux_amd64", "darwin_arm64", "windows_amd64", `title="h1:`, "Signed by its publisher.", "Acme Providers", "never",
			},
			[]string{"newer version", "is deprecated"},
		},
		{
			"what the registry signs", "/providers/acme/demo/1.0.0",
			[]string{
				"Packages 1 Versions 3", "Signed by this registry.", "This version is deprecated. It forgets. Read more", "There is a newer version. Use 1.2.0", "protocol 5.0",
			},
			[]string{"Documentation", "signed by its publisher"},
		},
		{
			"a mirrored one says where it is from", "/registries/registry.terraform.io/providers/hashicorp/null",
			[]string{`"hashicorp/null"`, "network mirror or in place of registry.terraform.io", "registry.terraform.io"},
			[]string{"registry.example.com/hashicorp"},
		},
		{"one that is withdrawn says why", "/providers/acme/demo/0.9.0", []string{"acme/demo 0.9.0 has been withdrawn", "Its key is public.", "Latest version 1.2.0"}, nil},
		{"one that never was", "/providers/acme/demo/3.0.0", []string{"There is no version 3.0.0 of acme/demo.", "Latest version 1.2.0"}, nil},
	} {
		t.Run(test.rule, func(t *testing.T) {
			w := s.get(test.path, "")
			saysAll(t, w, test.want...)
			checkText(t, test.path, mainOf(t, w), nil, test.lack)
		})
	}
}

func TestProviderVersions(t *testing.T) {
	s := siteOf(t, snapshotOf(t, siteTree(t)))
	doc := parse(t, s.get("/providers/acme/demo?tab=versions", ""))
	var rows []string
	for _, row := range elements(doc, atom.Tr) {
		if len(elements(row, atom.A)) > 0 {
			rows = append(rows, textIn(row))
		}
	}
	want := []string{
		"1.2.0 latest 2 Jan 2026 3 Acme Providers", "1.1.0 2 Jan 2026 1 this registry", "1.0.0 deprecatedIt forgets. 2 Jan 2026 1 this registry", "0.9.0 withdrawnIts key is public.",
	}
	for i := range want {
		if i >= len(rows) || strings.Join(strings.Fields(rows[i]), " ") != want[i] {
			t.Fatalf("%q are not %q", rows, want)
		}
	}
}

// Documentation cannot do more on a page than be read.
func TestDocumentation(t *testing.T) {
	s := siteOf(t, snapshotOf(t, siteTree(t)))
	const path = "/providers/acme/demo/1.2.0/docs/resources/thing"
	w := s.get(path, "")
	doc := parse(t, w)
	title := textIn(elements(doc, atom.Title)[0])
	if !strings.HasPrefix(title, "demo_thing · acme/demo 1.2.0") {
		t.Errorf("the title is %q", title)
	}
	article := elements(doc, atom.Article)[0]
	links := make(map[string]string)
	for _, a := range elements(article, atom.A) {
		if attr(a, "class") != "anchor" {
			links[textIn(a)] = attr(a, "href")
		}
	}
	want := map[string]string{
		"start":       "/providers/acme/demo/1.2.0/docs/guides/start",
		"twin":        "/providers/acme/demo/1.2.0/docs/data-sources/thing#doc-read",
		"an overview": "/providers/acme/demo/1.2.0",
		"the same":    path, "old": "/providers/acme/demo/1.2.0/docs/data-sources/thing",
		"home": "/providers/acme/demo/1.2.0",
		"part": "#doc-nestedblock--part",
	}
	if !maps.Equal(links, want) {
		t.Errorf("the links are %q\nand not %q", links, want)
	}
	if len(elements(article, atom.Script))+len(elements(article, atom.Img)) > 0 || !strings.Contains(textIn(article), "a drawing and") {
		t.Errorf("the text is %q", textIn(article))
	}
	if !strings.Contains(w.Body.String(), `<div class="callout note" role="note">`) {
		t.Error("there is no callout")
	}
}

// The menu has all pages and marks the one that is shown. Every group opens without a
// script.
func TestDocumentationMenu(t *testing.T) {
	s := siteOf(t, snapshotOf(t, siteTree(t)))
	menu := func(path string) (entries []string) {
		doc := parse(t, s.get(path, ""))
		for n := range doc.Descendants() {
			if n.Type != html.ElementNode || attr(n, "id") != "contents" {
				continue
			}
			for e := range n.Descendants() {
				switch {
				case e.DataAtom == atom.Summary:
					entries = append(entries, "# "+textIn(e))
				case e.DataAtom == atom.A && attr(e, "aria-current") == "page":
					entries = append(entries, "* "+textIn(e))
				case e.DataAtom == atom.A:
					entries = append(entries, textIn(e))
				case e.DataAtom == atom.P:
					entries = append(entries, "## "+textIn(e))
				}
			}
		}
		return entries
	}
	want := []string{
		"# All 7 pages", "Overview", "# Guides 1", "Getting started", "# Resources 2", "demo_full", "* demo_thing", "# Data sources 1", "demo_thing", "# Functions 1", "parse",
		"# Deprecated 1", "## Resources", "demo_old",
	}
	if got := menu("/providers/acme/demo/1.2.0/docs/resources/thing"); !slices.Equal(got, want) {
		t.Errorf("%q\nis not\n%q", got, want)
	}
	if got := menu("/providers/acme/demo/1.1.0/docs"); !slices.Equal(got, []string{"# All 1 page", "# Guides 1", "* Start"}) {
		t.Errorf("without an overview the first page is shown: %q", got)
	}
}

// A version links to the same page of the other versions that have documentation.
func TestVersionsOfDocumentation(t *testing.T) {
	s := siteOf(t, snapshotOf(t, siteTree(t)))
	saysAll(t, s.get("/providers/acme/demo/1.2.0/docs/guides/start", ""), `href="/providers/acme/demo/1.1.0/docs/guides/start"`, `href="/providers/acme/demo/1.0.0"`)
	for path, want := range map[string][]string{
		"/providers/acme/demo/1.1.0/docs/resources/thing": {"The documentation of version 1.1.0 does not have this page. This is its overview. This page in 1.2.0", "All 1 page", `href="/providers/acme/demo/latest/docs/resources/thing"`},
		"/providers/acme/demo/1.1.0/docs/resources/never": {"The documentation of version 1.1.0 does not have this page. This is its overview.", `href="/providers/acme/demo/1.1.0/docs/guides/start"`},
		"/providers/acme/demo/1.0.0/docs/resources/thing": {"Version 1.0.0 has no documentation.", "SHA256SUMS", `href="/providers/acme/demo/1.2.0"`},
	} {
		w := s.get(path, "")
		if w.Code != http.StatusNotFound || w.Header().Get("ETag") != "" || strings.Contains(w.Body.String(), "/latest/docs/resources/never") {
			t.Errorf("%s: %d %v", path, w.Code, w.Header())
		}
		saysAll(t, w, want...)
	}
}

// with returns the elements that have an attribute.
func with(list []*html.Node, name, value string) []*html.Node {
	return slices.DeleteFunc(list, func(n *html.Node) bool { return attr(n, name) != value })
}

func textsOf(list []*html.Node) (all []string) {
	for _, n := range list {
		all = append(all, textIn(n))
	}
	return all
}

func linksIn(n *html.Node) (all []string) {
	for _, a := range elements(n, atom.A) {
		all = append(all, attr(a, "href"))
	}
	return all
}

// Documentation of thousands of pages costs a page no more than others: its menu leads to
// the pages near it, and to lists of all others.
func TestDocumentationOfThousandsOfPages(t *testing.T) {
	const pages, subcategories, most = 4000, 250, 30 << 10
	files := indextest.New(t)
	docs := []string{"index.md", "# Big\n"}
	for i := range pages {
		subcategory := "Everything else" // a third of them
		if i%3 > 0 {
			subcategory = fmt.Sprintf("Service number %d (Elastic %x)", i%subcategories, i%subcategories*7919)
		}
		docs = append(docs, fmt.Sprintf("resources/%x_thing_%04d.md", i*7919%65536, i), "---\nsubcategory: "+subcategory+"\ndescription: Manages thing "+strconv.Itoa(i)+"\n---\n# Thing\n")
	}
	files.Provider("acme/big", "1.0.0", "linux_amd64").Docs(docs...)
	s := siteOf(t, snapshotOf(t, files))
	const base = "/providers/acme/big"
	size := func(w *httptest.ResponseRecorder) int {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, err := z.Write(w.Body.Bytes())
		if err = cmp.Or(err, z.Close()); err != nil {
			t.Fatal(err)
		}
		return b.Len()
	}
	assets := 0
	for _, file := range regexp.MustCompile(`"(/_registry/[a-z]+-[^"]+)"`).FindAllStringSubmatch(s.get(base, "").Body.String(), -1) {
		assets += size(s.get(file[1], ""))
	}
	visited := make(map[string]bool)
	list := base + "?tab=pages"
	for next := list; next != ""; {
		doc := parse(t, s.get(next, ""))
		for _, to := range linksIn(doc) {
			if strings.HasPrefix(to, base+"/latest/docs/resources/") {
				visited[to] = true
			}
		}
		next = ""
		if further := with(elements(doc, atom.A), "rel", "next"); len(further) > 0 {
			next = attr(further[0], "href")
		}
	}
	if len(visited) != pages {
		t.Errorf("the list of all pages leads to %d of %d", len(visited), pages)
	}
	for _, page := range []struct{ rule, path, current string }{
		{"the overview", base, "Overview"},
		{"a page of a group", base + "/latest/docs/resources/1eef_thing_0001", "big_1eef_thing_0001"},
		{"a page of a large group", base + "/latest/docs/resources/0_thing_0000", "big_0_thing_0000"},
		{"the list of a group", base + "?tab=pages&group=Everything+else", "Everything else"},
		{"a search", base + "?tab=pages&q=thing+0001", ""},
	} {
		t.Run(page.rule, func(t *testing.T) {
			w := s.get(page.path, "")
			if w.Code != http.StatusOK {
				t.Fatal(w.Code)
			}
			if all := size(w) + assets; all > most || assets == 0 {
				t.Errorf("%d bytes are sent, of them %d for its files; want at most %d", all, assets, most)
			}
			menu := with(elements(parse(t, w), atom.Nav), "id", "contents")[0]
			current := textsOf(with(elements(menu, atom.A), "aria-current", "page"))
			if page.current != "" && !slices.Equal(current, []string{page.current}) {
				t.Errorf("the menu does not mark %q", page.current)
			}
			links := strings.ReplaceAll(strings.Join(linksIn(menu), " "), base+"/latest?", base+"?")
			for _, to := range []string{list, list + "&group=Everything+else"} {
				if !strings.Contains(links+" ", to+" ") {
					t.Errorf("the menu does not lead to %s", to)
				}
			}
		})
	}
	saysAll(t, s.get(base+"?tab=pages&q=thing+0001", ""), "Pages with “thing 0001” 1", "Manages thing 1")
	saysAll(t, s.get(base+"?tab=pages&q=nothing", ""), "No page has all of these words")
	if w := s.get(base+"?tab=pages&group=nothing", ""); w.Code != http.StatusNotFound {
		t.Errorf("the list of a group that does not exist: %d", w.Code)
	}
}

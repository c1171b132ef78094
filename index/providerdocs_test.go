package index_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/content"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
)

// docsOf lists the documentation of the only release of acme/demo.
func docsOf(t *testing.T, s *index.Snapshot) *content.Docs {
	t.Helper()
	docs, err := s.Docs(t.Context(), s.Provider(index.PlaceOf(ownDemo)).Releases[0])
	if err != nil {
		t.Fatal(err)
	}
	return docs
}

// navigation is how pages are listed, one each: "category/slug (subcategory)".
func navigation(d *content.Docs) (list []string) {
	for _, p := range d.Pages {
		text := string(p.Category) + "/" + p.Slug
		if p.Subcategory != "" {
			text += " (" + p.Subcategory + ")"
		}
		list = append(list, text)
	}
	return list
}

func TestDocsAreListed(t *testing.T) {
	frontMatter := func(subcategory string) string { return "---\nsubcategory: " + subcategory + "\n---\n" }
	for _, test := range []struct {
		rule  string
		files []string // in the folder of the release, with contents in turn
		want  []string
	}{
		{
			"what terraform-plugin-docs writes",
			[]string{
				"docs/index.md", "", "docs/resources/thing.md", "", "docs/data-sources/thing.md", "", "docs/guides/start.md", "",
				"docs/functions/parse.md", "", "docs/ephemeral-resources/token.md", "", "docs/list-resources/thing.md", "", "docs/actions/restart.md", "",
				"docs/state-stores/bucket.md", "",
			},
			[]string{
				"overview/", "guides/start", "resources/thing", "data-sources/thing", "ephemeral-resources/token", "list-resources/thing",
				"actions/restart", "state-stores/bucket", "functions/parse",
			},
		},
		{
			"the older layout",
			[]string{"website/docs/index.html.markdown", "", "website/docs/r/thing.html.markdown", "", "website/docs/d/thing.html.md", "", "website/docs/guides/start.html.markdown", ""},
			[]string{"overview/", "guides/start", "resources/thing", "data-sources/thing"},
		},
		{
			"of both layouts the older one",
			[]string{"docs/resources/new.md", "", "website/docs/r/old.html.markdown", ""},
			[]string{"resources/old"},
		},
		{
			"all suffixes",
			[]string{
				"docs/resources/a.md", "", "docs/resources/b.markdown", "", "docs/resources/c.html.md", "", "docs/resources/d.html.markdown", "",
				"docs/resources/e.md.html", "", "docs/resources/f.markdown.html", "",
			},
			[]string{"resources/a", "resources/b", "resources/c", "resources/d", "resources/e", "resources/f"},
		},
		{
			"nothing but pages",
			[]string{
				"docs/resources/a.md", "", "docs/resources/b.txt", "", "docs/resources/.md", "", "docs/resources/.c.md", "", "docs/resources/d.md~", "",
				"docs/resources/deep/e.md", "", "docs/other.md", "", "docs/images/f.md", "", "docs/cdktf/python/resources/a.md", "", "website/index.md", "",
			},
			[]string{"resources/a"},
		},
		{
			"no page whose name cannot be in a URL",
			[]string{"docs/resources/a.md", "", "docs/resources/b\xff.md", "", `docs/resources/c\d.md`, "", "docs/resources/e%2f f.md", ""},
			[]string{"resources/a", "resources/e%2f f"},
		},
		{
			"one page once",
			[]string{"docs/resources/a.html.markdown", frontMatter("First"), "docs/resources/a.md", frontMatter("Second")},
			[]string{"resources/a (First)"},
		},
		{
			"by subcategory, with Beta and Deprecated last",
			[]string{
				"docs/index.md", frontMatter("Zoo"), "docs/guides/a.md", frontMatter("Zoo"), "docs/resources/a.md", frontMatter("Zoo"), "docs/resources/b.md", "", "docs/resources/c.md", frontMatter("Deprecated"),
				"docs/resources/d.md", frontMatter("Beta"), "docs/resources/e.md", frontMatter("apes"), "docs/data-sources/a.md", frontMatter("Zoo"), "docs/resources/f.md", frontMatter("Zoo"),
			},
			[]string{
				"overview/ (Zoo)", "guides/a (Zoo)", "resources/b", "resources/e (apes)", "resources/a (Zoo)", "resources/f (Zoo)", "data-sources/a (Zoo)",
				"resources/d (Beta)", "resources/c (Deprecated)",
			},
		},
		{
			"each spelling of a subcategory apart",
			[]string{
				"docs/resources/a.md", frontMatter("Compute Engine"), "docs/resources/b.md", frontMatter("Compute engine"), "docs/resources/c.md", frontMatter("Compute Engine"), "docs/resources/d.md", frontMatter("compute engine"),
			},
			[]string{"resources/a (Compute Engine)", "resources/c (Compute Engine)", "resources/b (Compute engine)", "resources/d (compute engine)"},
		},
	} {
		t.Run(test.rule, func(t *testing.T) {
			files := indextest.New(t)
			release := files.Provider("acme/demo", "1.0.0", "linux_amd64")
			for i := 0; i < len(test.files); i += 2 {
				files.Write(release.VersionFolder()+"/"+test.files[i], test.files[i+1]+"text")
			}
			s := scan(t, files)
			nothingWithheld(t, s)
			if got := navigation(docsOf(t, s)); !slices.Equal(got, test.want) {
				t.Errorf("%q\nis not\n%q", got, test.want)
			}
		})
	}
}

// Documentation is part of a release, wherever its packages are, and nothing to
// report.
func TestDocsBelongToARelease(t *testing.T) {
	files := indextest.New(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64").Docs("index.md", "# One")
	files.ProviderIn("providers/acme/demo/2.0.0", "demo", "2.0.0", "linux_amd64").Docs("index.md", "# Two")
	files.Provider("acme/demo", "3.0.0", "linux_amd64")
	files.Write("providers/acme/demo/registry.hcl", `deprecated "1.0.0" {}`)
	files.Write("providers/acme/demo/4.0.0/docs/index.md", "# Four")
	s := scan(t, files)
	nothingWithheld(t, s)
	for version, title := range map[string]string{"1.0.0": "One", "2.0.0": "Two", "3.0.0": ""} {
		r := s.Provider(index.PlaceOf(ownDemo)).Release(version)
		docs, err := s.Docs(t.Context(), r)
		if err != nil || (docs != nil) != (title != "") || (r.Docs() != "") != (title != "") {
			t.Errorf("of %s there are %+v, %v", version, docs, err)
		} else if docs != nil && docs.Page(content.DocOverview, "").Title != title {
			t.Errorf("of %s there is %+v", version, docs.Pages)
		}
	}
	if p := problemOf(s.Report().Ignored, "providers/acme/demo/4.0.0/docs"); s.Report().IgnoredTotal != 1 || !strings.Contains(p.Detail, "no package of version 4.0.0") {
		t.Errorf("ignored is %+v", s.Report().Ignored)
	}
}

// A page has properties at its beginning, and its text comes without them.
func TestDocPage(t *testing.T) {
	files := indextest.New(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64").Docs(
		"resources/thing.md", "---\npage_title: \"demo_thing Resource\"\nsubcategory: Things\ndescription: |-\n  A thing.\n---\n\n# demo_thing\n",
		"resources/plain.md", "# A `plain` *page*\n\ntext\n")
	s := scan(t, files)
	docs := docsOf(t, s)
	for slug, want := range map[string][]string{
		"thing": {"demo_thing Resource", "Things", "A thing.", "docs/resources/thing.md", "\n# demo_thing\n"},
		"plain": {"A plain page", "", "", "docs/resources/plain.md", "# A `plain` *page*\n\ntext\n"},
	} {
		p := docs.Page(content.DocResources, slug)
		text, cut, err := s.ReadDoc(t.Context(), p)
		if got := []string{p.Title, p.Subcategory, p.Description, p.Path, text}; err != nil || cut || !slices.Equal(got, want) {
			t.Errorf("it is %q, %v", got, err)
		}
	}
	if docs.Page(content.DocResources, "other") != nil || docs.Page(content.DocGuides, "thing") != nil {
		t.Error("there are pages that nobody wrote")
	}
}

// Changes show with the next scan, which verifies nothing again.
func TestDocsChange(t *testing.T) {
	files := indextest.New(t)
	o := options(t, files.Open)
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC))) // the files are older than that
		release := files.Provider("acme/demo", "1.0.0", "linux_amd64").Docs("resources/thing.md", "# Before")
		x := newIndex(t, o)
		rescan := func() *index.Snapshot {
			t.Helper()
			s, err := x.Rescan(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		title := func(s *index.Snapshot) string {
			t.Helper()
			p := docsOf(t, s).Page(content.DocResources, "thing")
			if p == nil {
				return ""
			}
			return p.Title
		}
		first := rescan()
		if got := title(first); got != "Before" {
			t.Fatalf("it is %q", got)
		}
		release.Docs("resources/thing.md", "# Afterwards")
		if got := title(first); got != "Before" {
			t.Errorf("it is listed again at once: %q", got)
		}
		time.Sleep(time.Second)
		second := rescan()
		if got := title(second); got != "Afterwards" {
			t.Errorf("after a scan it is %q", got)
		}
		if second.Provider(index.PlaceOf(ownDemo)).Latest() != first.Provider(index.PlaceOf(ownDemo)).Latest() {
			t.Error("the release is verified again")
		}
		files.Remove(release.VersionFolder() + "/docs/resources/thing.md")
		if _, _, err := second.ReadDoc(t.Context(), docsOf(t, second).Page(content.DocResources, "thing")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the text of what is gone: %v", err)
		}
		time.Sleep(time.Second)
		if got := title(rescan()); got != "" {
			t.Errorf("after it is removed it is %q", got)
		}
		files.Remove(release.VersionFolder())
		if s := rescan(); s.Provider(index.PlaceOf(ownDemo)).Releases[0].Docs() != "" || docsOf(t, s) != nil {
			t.Error("there is documentation that was removed")
		}
	})
}

// A running index notices them at once.
func TestDocsAreWatched(t *testing.T) {
	_, files, o := onDisk(t)
	release := files.Provider("acme/demo", "1.0.0", "linux_amd64").Docs("resources/thing.md", "# Before")
	o.Watch = true
	r := run(t, o)
	titled := func(title string) func(*index.Snapshot) bool {
		return func(s *index.Snapshot) bool { return docsOf(t, s).Page(content.DocResources, "thing").Title == title }
	}
	r.until(t, titled("Before"))
	release.Docs("resources/thing.md", "# Afterwards")
	r.until(t, titled("Afterwards"))
}

// Links in documentation name pages in several ways.
func TestDocPageAt(t *testing.T) {
	files := indextest.New(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64").Docs("index.md", "", "resources/thing.md", "", "data-sources/thing.md", "")
	docs := docsOf(t, scan(t, files))
	for name, want := range map[string]string{
		"docs": "overview/", "docs/index.md": "overview/", "docs/index.html": "overview/", "website/docs/index": "overview/",
		"docs/resources/thing": "resources/thing", "docs/resources/thing.md": "resources/thing", "docs/r/thing.html": "resources/thing",
		"website/docs/d/thing.html.markdown": "data-sources/thing",
		"docs/resources/other":               "", "docs/resources": "", "docs/thing": "", "": "overview/", "thing": "",
	} {
		got := ""
		if p := docs.PageAt(name); p != nil {
			got = string(p.Category) + "/" + p.Slug
		}
		if got != want {
			t.Errorf("%q is %q, not %q", name, got, want)
		}
	}
}

func TestDocsAreBounded(t *testing.T) {
	files := indextest.New(t)
	release := files.Provider("acme/demo", "1.0.0", "linux_amd64")
	for i := range 5001 {
		release.Docs(fmt.Sprintf("resources/r%04d.md", i), "x")
	}
	release.Docs("index.md", "---\npage_title: "+strings.Repeat("long ", 100)+"\n---\n"+strings.Repeat("0123456789", 60<<10))
	s := scan(t, files)
	docs := docsOf(t, s)
	if len(docs.Pages) != 5000 || docs.LeftOut != 2 {
		t.Errorf("%d pages are listed, %d are left out", len(docs.Pages), docs.LeftOut)
	}
	overview := docs.Page(content.DocOverview, "")
	text, cut, err := s.ReadDoc(t.Context(), overview)
	if err != nil || !cut || len(text) > 500<<10 || len(text) < 499<<10 || len(overview.Title) > 210 {
		t.Errorf("%d bytes are read, cut %v, %v; the title is %q", len(text), cut, err, overview.Title)
	}
}

// Symlinks are followed in the tree, and lead to nothing outside of it.
func TestDocsDoNotLeaveTheTree(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	files := indextest.OnDisk(t, root)
	files.Provider("acme/demo", "1.0.0", "linux_amd64").Docs("resources/a.md", "# A")
	files.Write("providers/shared.md", "# Shared")
	if err := os.WriteFile(filepath.Join(outside, "secret.md"), []byte("# Secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	docs := filepath.Join(root, "providers/acme/demo/1.0.0/docs")
	for name, target := range map[string]string{
		"resources/b.md": "../../../../../shared.md", "resources/c.md": filepath.Join(outside, "secret.md"), "guides": outside, "resources/d.md": "d.md",
	} {
		if err := os.Symlink(target, filepath.Join(docs, name)); err != nil {
			t.Fatal(err)
		}
	}
	s, err := index.Scan(t.Context(), options(t, source.Directories{Root: root}.Open))
	if err != nil {
		t.Fatal(err)
	}
	list := docsOf(t, s)
	if got := navigation(list); !slices.Equal(got, []string{"resources/a", "resources/b"}) {
		t.Errorf("the pages are %q", got)
	}
	page := *list.Page(content.DocResources, "a")
	if err := os.Remove(filepath.Join(docs, "resources/a.md")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(outside, "secret.md"), filepath.Join(docs, "resources/a.md")); err != nil {
		t.Fatal(err)
	}
	if text, _, err := s.ReadDoc(t.Context(), &page); err == nil || strings.Contains(err.Error(), root) {
		t.Errorf("a page that became a symlink to %s: %q, %v", outside, text, err)
	}
}

func TestDocsInAFileSystem(t *testing.T) {
	files := indextest.New(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64").Docs("index.md", "# Demo")
	fsys := &counting{FS: seeking{mapFS(t, files)}}
	s, err := index.Scan(t.Context(), options(t, func() (tree.Tree, error) { return source.Directories{Root: "."}.OpenIn(fsys) }))
	if err != nil {
		t.Fatal(err)
	}
	for name, n := range fsys.since() {
		if strings.Contains(name, "docs") {
			t.Errorf("the scan opens %s %d times", name, n)
		}
	}
	docs := docsOf(t, s)
	if text, _, err := s.ReadDoc(t.Context(), &docs.Pages[0]); err != nil || text != "# Demo" || docs.Pages[0].Title != "Demo" {
		t.Errorf("%q, %v", text, err)
	}
	for range 10 {
		fsys.since()
		if docsOf(t, s) != docs || len(fsys.since()) > 0 {
			t.Error("it is listed again")
		}
	}
}

func TestDocsEndWithTheRequest(t *testing.T) {
	files := indextest.New(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64").Docs("index.md", "# Demo")
	s := scan(t, files)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Docs(ctx, s.Provider(index.PlaceOf(ownDemo)).Releases[0]); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}

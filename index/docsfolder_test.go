package index_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
)

// While a folder of documentation cannot be listed, a release keeps its documentation and is not
// verified again. Afterwards it has what is there, without being asked to look.
func TestDocsThatCannotBeListed(t *testing.T) {
	o, real := options(t, nil), time.Now()
	for _, test := range []struct {
		rule      string
		folders   []string // of documentation, in the folder of the release
		fails     string
		meanwhile string // what is removed during the fault

		before, during, after string // its documentation; during: after something was removed
	}{
		{"the older layout", []string{"website/docs"}, "website", "", "website/docs", "website/docs", "website/docs"},
		{"the older layout, of both", []string{"docs", "website/docs"}, "website", "", "website/docs", "website/docs", "website/docs"},
		{"the older layout, removed meanwhile", []string{"website/docs"}, "website", "website/docs", "website/docs", "website/docs", ""},
		{"the older layout of both, removed meanwhile", []string{"docs", "website/docs"}, "website", "website/docs", "website/docs", "website/docs", "docs"},
		{"the newer layout beside a folder without documentation", []string{"docs", "website/images"}, "website", "", "docs", "docs", "docs"},
		{"the newer layout beside it, removed meanwhile", []string{"docs", "website/images"}, "website", "docs", "docs", "", ""},
		{"no documentation", []string{"website/images"}, "website", "", "", "", ""},
		{"pages in the older layout", []string{"docs", "website/docs"}, "website/docs", "", "website/docs", "website/docs", "website/docs"},
		{"pages in the older layout, removed meanwhile", []string{"docs", "website/docs"}, "website/docs", "website", "website/docs", "docs", "docs"},
		{"pages in the newer layout", []string{"docs"}, "docs", "", "docs", "docs", "docs"},
		{"pages in the newer layout, removed meanwhile", []string{"docs"}, "docs", "docs", "docs", "", ""},
	} {
		for _, errno := range []syscall.Errno{syscall.EIO, syscall.ESTALE, syscall.EMFILE} {
			for _, operation := range []string{"open", "readdir"} {
				t.Run(fmt.Sprintf("%s: %s %v", test.rule, operation, errno), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						time.Sleep(time.Until(real)) // a bubble begins before the keys were made
						var faults treetest.Faults
						files, o := indextest.New(t), o
						o.Open, o.Now = faults.Open(files.Open), inAnHour
						folder := files.ProviderIn("providers/acme/demo/1.0.0", "demo", "1.0.0", "linux_amd64").VersionFolder()
						for _, name := range test.folders {
							files.Write(folder+"/"+name+"/index.md", "# "+name)
						}
						x := newIndex(t, o)
						x.Start()
						release := func(when, docs string) *index.Release {
							t.Helper()
							time.Sleep(time.Minute)
							synctest.Wait()
							r := x.Snapshot().Provider(index.PlaceOf(ownDemo)).Release("1.0.0")
							if docs != "" {
								docs = "acme/demo/1.0.0/" + docs
							}
							if r == nil || r.Docs() != docs {
								t.Fatalf("%s, the release is %+v, want the documentation %q", when, r, docs)
							}
							return r
						}
						before := release("before", test.before)
						faults.When(func(_ int, o treetest.Operation) error {
							if o.Name == operation && o.Path == folder+"/"+test.fails {
								return errno
							}
							return nil
						})
						x.Refresh("providers/acme/demo")
						if release("during the fault", test.before) != before {
							t.Error("the release is verified again")
						}
						if test.meanwhile != "" {
							files.Remove(folder + "/" + test.meanwhile)
							x.Refresh("providers/acme/demo")
							release("when it was removed", test.during)
						}
						faults.End()
						after := release("after the fault", test.after)
						docs, err := x.Snapshot().Docs(t.Context(), after)
						if titled := docs != nil && docs.Pages[0].Title == test.after; err != nil || titled != (test.after != "") {
							t.Errorf("after the fault, the documentation is %+v, %v", docs, err)
						}
					})
				})
			}
		}
	}
}

// A symlink may stand for the folder of documentation, or for the one above. While its target is
// unknown, it may lead to a folder. If it leads to nothing, there is no documentation.
func TestDocsBehindALinkThatCannotBeFollowed(t *testing.T) {
	for _, link := range []struct{ name, target, rest string }{
		{"website/docs", "../../../../shared", "New"},
		{"website", "../../../shared", "New"},
		{"docs", "../../../shared", ""},
	} {
		var faults treetest.Faults
		root := t.TempDir()
		files := indextest.OnDisk(t, root)
		folder := files.ProviderIn("providers/acme/demo/1.0.0", "demo", "1.0.0", "linux_amd64").VersionFolder()
		files.Write("providers/shared/index.md", "# Shared").Write("providers/shared/docs/index.md", "# Shared")
		if link.rest != "" {
			files.Write(folder+"/docs/index.md", "# "+link.rest)
		}
		at := filepath.Join(root, folder, link.name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.Symlink(link.target, at)); err != nil {
			t.Fatal(err)
		}
		o := options(t, faults.Open(source.Directories{Root: root}.Open))
		o.Now = inAnHour
		x := newIndex(t, o)
		for _, step := range []struct {
			rule  string
			do    func()
			title string // empty: there is no documentation
		}{
			{"a link to a folder", func() {}, "Shared"},
			{"a link that cannot be followed", func() {
				faults.When(func(_ int, o treetest.Operation) error {
					if o.Name == "stat" && strings.HasSuffix(o.Path, "/1.0.0/"+link.name) {
						return syscall.EIO
					}
					return nil
				})
			}, "Shared"},
			{"a link that can be followed again", func() { faults.End() }, "Shared"},
			{"a link to nothing", func() { files.Remove("providers/shared") }, link.rest},
		} {
			step.do()
			s := rescan(t, x)
			docs := docsOf(t, s)
			if docs == nil && step.title != "" || docs != nil && (len(docs.Pages) != 1 || docs.Pages[0].Title != step.title) {
				t.Errorf("%s: %s: the documentation is %+v", link.name, step.rule, docs)
			}
		}
	}
}

// Folders of categories are watched, too, although the folder with them could not be listed at
// first.
func TestDocsAreWatchedAfterAFault(t *testing.T) {
	var faults treetest.Faults
	var failed atomic.Bool
	root := t.TempDir()
	release := indextest.OnDisk(t, root).Provider("acme/demo", "1.0.0", "linux_amd64").Docs("resources/thing.md", "# Before")
	o := options(t, faults.Open(source.Directories{Root: root}.Open))
	o.Watch, o.Now = true, inAnHour // nothing is scanned again for being new
	faults.When(func(_ int, o treetest.Operation) error {
		if o.Name == "open" && strings.HasSuffix(o.Path, "/1.0.0/docs") && !failed.Swap(true) {
			return syscall.EMFILE
		}
		return nil
	})
	r := run(t, o)
	titled := func(title string) func(*index.Snapshot) bool {
		return func(s *index.Snapshot) bool {
			p := docsOf(t, s).Page("resources", "thing")
			return p != nil && p.Title == title
		}
	}
	r.until(t, titled("Before"))
	release.Docs("resources/thing.md", "# Afterwards")
	r.until(t, titled("Afterwards"))
}

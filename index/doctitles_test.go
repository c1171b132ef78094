package index_test

import (
	"context"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// titlesIn returns the slugs and titles of a provider's documentation.
func titlesIn(s *index.Snapshot, p index.Place) (titles []string) {
	provider := s.Provider(p)
	if provider == nil {
		return nil
	}
	for _, title := range provider.DocTitles().All() {
		titles = append(titles, title.Slug+" "+title.Title)
	}
	return titles
}

// rescanned scans the whole tree. Meanwhile titles may be read.
func rescanned(t *testing.T, x *index.Index) *index.Snapshot {
	t.Helper()
	s, err := x.Rescan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// untilTitles waits until a provider has these titles.
func untilTitles(t *testing.T, x *index.Index, p index.Place, want ...string) *index.Snapshot {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	s := x.Snapshot()
	for !slices.Equal(titlesIn(s, p), want) {
		last := titlesIn(s, p)
		if s = x.Next(ctx, s); s == nil {
			t.Fatalf("the titles are %q, want %q", last, want)
		}
	}
	return s
}

// The titles of the latest release are known, also after a page has changed, and are read
// once.
func TestTitlesOfDocumentation(t *testing.T) {
	files, store := indextest.New(t), new(memoryStore)
	files.Provider("acme/demo", "1.0.0", "linux_amd64").Docs("guides/start.md", "# Begin")
	latest := files.Provider("acme/demo", "1.1.0", "linux_amd64").Docs("guides/start.md", "# Start here", "resources/thing.md", "# thing")
	files.Provider("acme/demo", "2.0.0-rc.1", "linux_amd64").Docs("guides/start.md", "# Too early")
	pages := &pageGate{Fs: files.Fs}
	o := options(t, indextest.On(t, pages).Open)
	o.Store, o.Now = store, inAnHour
	x := index.New(o)
	place := index.PlaceOf(ownDemo)
	rescanned(t, x)
	first := untilTitles(t, x, place, "start Start here", "thing ")
	if s := rescanned(t, x); s.Provider(place) != first.Provider(place) {
		t.Error("it is another provider although nothing has changed")
	}
	if n := pages.opened("guides/start.md"); n != 1 {
		t.Errorf("a page is read %d times", n)
	}
	latest.Docs("guides/start.md", "# Start over there", "resources/thing.md", "# thing")
	rescanned(t, x)
	untilTitles(t, x, place, "start Start over there", "thing ")
	x.Close()

	pages.opens = nil
	again := newIndex(t, o)
	if s := rescanned(t, again); s.Read != 0 || len(titlesIn(s, place)) != 2 || pages.opened("guides/start.md") > 0 {
		t.Errorf("after a restart %d archives are read, and the titles are %q", s.Read, titlesIn(s, place))
	}
	files.Remove(latest.VersionFolder() + "/docs")
	if got := titlesIn(rescanned(t, again), place); got != nil {
		t.Errorf("without documentation there are %q", got)
	}
}

// A pageGate counts which pages are opened. Pages wait while it is closed, and fail as it
// says.
type pageGate struct {
	afero.Fs
	mutex  sync.Mutex
	opens  map[string]int
	begun  chan string   // receives the pages that wait
	closed chan struct{} // open after it is closed; nil: it is open
	fails  map[string]error
}

func (g *pageGate) Open(name string) (afero.File, error) {
	_, page, _ := strings.Cut(name, "/docs/")
	g.mutex.Lock()
	if g.opens == nil {
		g.opens = make(map[string]int)
	}
	g.opens[page]++
	closed, err := g.closed, g.fails[page]
	g.mutex.Unlock()
	if path.Ext(page) == ".md" && closed != nil {
		g.begun <- page
		<-closed
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return g.Fs.Open(name)
}

func (g *pageGate) opened(page string) int {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	return g.opens[page]
}

// fail makes a page, or a folder of pages, fail; nil ends that.
func (g *pageGate) fail(page string, err error) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.fails = map[string]error{page: err}
}

// Nothing waits for titles: no scan, no observer, no other instance, and nothing counts as
// unread for them.
func TestTitlesAreReadInTheBackground(t *testing.T) {
	files := indextest.New(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64").Docs("guides/start.md", "# Start here")
	pages := &pageGate{Fs: files.Fs, begun: make(chan string), closed: make(chan struct{})}
	o := options(t, indextest.On(t, pages).Open)
	o.Workers = 1
	r := run(t, o)
	told := make(chan []string, 1)
	r.Observe(&index.Observer{
		Scanned: func(_, now *index.Snapshot, _ time.Duration) { r.scans <- now },
		Changed: func(folders []string) { told <- folders },
	})
	<-r.Ready()
	r.scan(t) // it has ended
	<-pages.begun
	if s := rescanned(t, r.Index); !offers("acme/demo", "1.0.0")(s) || r.Progress() != nil {
		t.Errorf("offered is %+v", s.Report().Offered)
	}
	r.scan(t)
	files.Provider("acme/demo", "1.1.0", "linux_amd64").Docs("guides/start.md", "# Start there")
	r.Changed("providers/acme/demo")
	<-told
	if s := r.scan(t); !offers("acme/demo", "1.1.0")(s) {
		t.Errorf("offered is %+v", s.Report().Offered)
	}
	before := r.Stats().Scans
	close(pages.closed)
	<-pages.begun
	untilTitles(t, r.Index, index.PlaceOf(ownDemo), "start Start there")
	if now := r.Stats().Scans; now != before {
		t.Errorf("titles are reported as %d scans", now-before)
	}
}

// Titles that are being read while the folder is listed again are not read twice, but are
// compared with what the folder has afterwards.
func TestTitlesThatAreBeingRead(t *testing.T) {
	files := indextest.New(t)
	release := files.Provider("acme/demo", "1.0.0", "linux_amd64").Docs("guides/start.md", "# Start here", "guides/the_end.md", "# End")
	pages := &pageGate{Fs: files.Fs, begun: make(chan string), closed: make(chan struct{})}
	o := options(t, indextest.On(t, pages).Open)
	o.Now = inAnHour
	r := run(t, o)
	<-pages.begun
	for range 3 {
		rescanned(t, r.Index)
	}
	if n := pages.opened("guides/start.md"); n != 1 {
		t.Errorf("the page is read %d times", n)
	}
	release.Docs("guides/the_end.md", "# The very end")
	release.Docs("guides/start.md", "# Start over there")
	rescanned(t, r.Index)
	pages.mutex.Lock()
	close(pages.closed)
	pages.closed = nil
	pages.mutex.Unlock()
	untilTitles(t, r.Index, index.PlaceOf(ownDemo), "start Start over there", "the_end The very end")
}

// A page that cannot be read is not gone, and costs no other page its title.
func TestTitlesThatCannotBeRead(t *testing.T) {
	for _, test := range []struct {
		rule, what string
		err        error
		want, anew []string // the titles, if there were some before; and if there were none
	}{
		{"a page that fails for a while", "guides/start.md", syscall.EIO, []string{"end End", "more More", "start Start"}, []string{"end End", "more More", "start "}},
		{"a page that may not be read", "guides/start.md", syscall.EACCES, []string{"end End", "more More", "start Start"}, []string{"end End", "more More", "start "}},
		{"a folder of pages that fails for a while", "guides", syscall.ESTALE, []string{"end End", "start Start"}, nil},
		{"a folder of pages that may not be read", "guides", syscall.EACCES, []string{"end End", "start Start"}, nil},
	} {
		for name, isNew := range map[string]bool{"": false, ", of a new release": true} {
			t.Run(test.rule+name, func(t *testing.T) {
				files := indextest.New(t)
				release := files.Provider("acme/demo", "1.0.0", "linux_amd64").Docs("guides/start.md", "# Start", "guides/end.md", "# End")
				pages := &pageGate{Fs: files.Fs}
				o := options(t, indextest.On(t, pages).Open)
				o.Now = inAnHour
				x, place, want := index.New(o), index.PlaceOf(ownDemo), test.anew
				defer x.Close()
				if !isNew {
					rescanned(t, x)
					untilTitles(t, x, place, "end End", "start Start")
					want = test.want
				}
				release.Docs("guides/more.md", "# More")
				pages.fail(test.what, test.err)
				for n := pages.opened(test.what) + 2; pages.opened(test.what) < n; { // then the first of them has been read
					rescanned(t, x)
				}
				untilTitles(t, x, place, want...)
				pages.fail("", nil)
				rescanned(t, x)
				untilTitles(t, x, place, "end End", "more More", "start Start")
			})
		}
	}
}

// A merged provider has the titles of its latest release, wherever that lies, and also if
// that is not the latest one in its folder.
func TestTitlesOfAMergedProvider(t *testing.T) {
	for _, test := range []struct {
		rule, own, title string
		versions         []string
	}{
		{"under the HOSTNAME", "", "start Named 1.1.0", []string{"1.0.0", "1.1.0"}},
		{"without", "", "start Hosted 1.2.0", []string{"1.2.0", "1.1.0"}},
		{"of both, that under the HOSTNAME", "", "start Named 1.1.0", []string{"1.1.0", "1.1.0"}},
		{"the latest hosted one is withdrawn under the HOSTNAME", "withdrawn \"1.2.0\" {}\n", "start Hosted 1.1.0", []string{"1.1.0 1.2.0", "1.0.0"}},
		{"the latest hosted one is deprecated there", "deprecated \"1.2.0\" {}\n", "start Hosted 1.1.0", []string{"1.1.0 1.2.0", "1.0.0"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			files := indextest.New(t)
			for i, where := range []string{"", "registry.example.com/"} {
				for _, v := range strings.Fields(test.versions[i]) {
					files.Provider(where+"acme/demo", v, "linux_amd64").Docs("guides/start.md", "# "+[]string{"Hosted ", "Named "}[i]+v)
				}
			}
			if test.own != "" {
				files.Write("providers/registry.example.com/acme/demo/registry.hcl", test.own)
			}
			x := newIndex(t, options(t, files.Open))
			x.Start()
			<-x.Ready()
			untilTitles(t, x, index.Place{Address: ownDemo.WithHostname("registry.example.com"), Merged: true}, test.title)
		})
	}
}

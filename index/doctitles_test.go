package index_test

import (
	"slices"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// titlesIn returns the slugs and titles of a provider's documentation.
func titlesIn(s *index.Snapshot, p index.Place) (titles []string) {
	for _, title := range s.Provider(p).DocTitles().All() {
		titles = append(titles, title.Slug+" "+title.Title)
	}
	return titles
}

// The titles of the latest release are known, also after a page has changed, and are read
// once.
func TestTitlesOfDocumentation(t *testing.T) {
	files, store := indextest.New(t), new(memoryStore)
	files.Provider("acme/demo", "1.0.0", "linux_amd64").Docs("guides/start.md", "# Begin")
	latest := files.Provider("acme/demo", "1.1.0", "linux_amd64").Docs("guides/start.md", "# Start here", "resources/thing.md", "# thing")
	files.Provider("acme/demo", "2.0.0-rc.1", "linux_amd64").Docs("guides/start.md", "# Too early")
	o := options(t, files.Open)
	o.Store, o.Now = store, inAnHour
	x := index.New(o)
	place := index.PlaceOf(ownDemo)
	if got, want := titlesIn(rescan(t, x), place), []string{"start Start here", "thing "}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	before := x.Snapshot().Provider(place)
	if s := rescan(t, x); s.Provider(place) != before {
		t.Error("it is another provider although nothing has changed")
	}
	latest.Docs("guides/start.md", "# Start over there", "resources/thing.md", "# thing")
	if got, want := titlesIn(rescan(t, x), place), []string{"start Start over there", "thing "}; !slices.Equal(got, want) {
		t.Errorf("after a change: got %q, want %q", got, want)
	}
	x.Close()

	again := index.New(o)
	defer again.Close()
	if s := rescan(t, again); s.Read != 0 || len(titlesIn(s, place)) != 2 {
		t.Errorf("after a restart %d archives are read, and the titles are %q", s.Read, titlesIn(s, place))
	}
	files.Remove(latest.VersionFolder() + "/docs")
	if got := titlesIn(rescan(t, again), place); got != nil {
		t.Errorf("without documentation there are %q", got)
	}
}

// A merged provider has the titles of its latest release, wherever that lies.
func TestTitlesOfAMergedProvider(t *testing.T) {
	files := indextest.New(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64").Docs("guides/start.md", "# Hosted")
	files.Provider("registry.example.com/acme/demo", "1.1.0", "linux_amd64").Docs("guides/start.md", "# Named")
	x := index.New(options(t, files.Open))
	defer x.Close()
	place := index.Place{Address: ownDemo.At("registry.example.com"), Merged: true}
	if got, want := titlesIn(rescan(t, x), place), []string{"start Named"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

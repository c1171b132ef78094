package fill

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/signing"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

func TestCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache[string, int](2)
		has := func(key string, want int) {
			t.Helper()
			if got, ok := c.get(key); got != want || ok != (want != 0) {
				t.Errorf("%s: got %d, %v", key, got, ok)
			}
		}
		c.put("a", 1, 0)
		c.put("b", 2, time.Minute)
		has("a", 1)
		c.put("c", 3, 0) // there is no room for b, which was not used
		has("a", 1)
		has("b", 0)
		has("c", 3)
		c.put("c", 4, time.Minute)
		has("c", 4)
		time.Sleep(time.Minute)
		has("c", 0)
		c.remove("a")
		has("a", 0)
		c.put("d", 5, 0)
		if n := c.entries.Len(); n != 1 {
			t.Errorf("%d entries are left", n)
		}
	})
}

// The weight of all entries together is bounded.
func TestCacheIsBoundedByWeight(t *testing.T) {
	c := newCache[string, int](10).bounded(100, func(n int) int { return n })
	c.put("a", 40, 0)
	c.put("b", 40, 0)
	c.put("b", 50, 0) // in place of what it was
	if _, ok := c.get("a"); !ok || c.weight != 90 {
		t.Errorf("the weight is %d", c.weight)
	}
	c.put("c", 20, 0)
	if _, ok := c.get("b"); ok || c.weight != 60 {
		t.Errorf("the wrong entry was evicted, the weight is %d", c.weight)
	}
	c.remove("a")
	if c.weight != 20 {
		t.Errorf("the weight is %d", c.weight)
	}
}

// The weight of a release includes its keys, of which an origin may send a megabyte,
// and what a mirror says about its packages.
func TestReleasesHaveWeight(t *testing.T) {
	f, err := New(Options{Open: func() (tree.Tree, error) { return tree.Tree{}, nil }})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	armor, hash := strings.Repeat("k", 1<<20), strings.Repeat("h", 47)
	for what, r := range map[string]*upstream.Release{
		"keys":     {Keys: []signing.PublicKey{{Armor: armor}}},
		"packages": {Packages: []upstream.Package{{H1: slices.Repeat([]string{hash}, 1<<14)}, {Digests: make([]wire.SHA256, 1<<13)}}},
	} {
		for i := range maxReleases {
			f.releases.put(releaseID{version: fmt.Sprint(what, i)}, &approved{Release: r}, 0)
		}
		if n := f.releases.entries.Len(); n == 0 || n > maxReleaseBytes>>20 {
			t.Errorf("%s: %d releases with a megabyte each are kept", what, n)
		}
	}
}

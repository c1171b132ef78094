package fill

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

func TestMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory[string, int](2)
		has := func(key string, want int) {
			t.Helper()
			if got, ok := m.get(key); got != want || ok != (want != 0) {
				t.Errorf("%s is %d, %v", key, got, ok)
			}
		}
		m.put("a", 1, 0)
		m.put("b", 2, time.Minute)
		has("a", 1)
		m.put("c", 3, 0) // there is no room for b, which was not used
		has("a", 1)
		has("b", 0)
		has("c", 3)
		m.put("c", 4, time.Minute)
		has("c", 4)
		time.Sleep(time.Minute)
		has("c", 0)
		m.drop("a")
		has("a", 0)
		m.put("d", 5, 0)
		if len(m.entries) != m.order.Len() || len(m.entries) != 1 {
			t.Errorf("%d entries are in %d places", len(m.entries), m.order.Len())
		}
	})
}

// What is kept may weigh so much, all together.
func TestMemoryHasWeight(t *testing.T) {
	m := newMemory[string, int](10)
	m.room, m.weigh = 100, func(n int) int { return n }
	m.put("a", 40, 0)
	m.put("b", 40, 0)
	m.put("b", 50, 0) // in place of what it was
	if _, ok := m.get("a"); !ok || m.used != 90 {
		t.Errorf("%d is used", m.used)
	}
	m.put("c", 20, 0)
	if _, ok := m.get("b"); ok || m.used != 60 {
		t.Errorf("what was used last is gone, %d is used", m.used)
	}
	m.drop("a")
	if m.used != 20 {
		t.Errorf("%d is used", m.used)
	}
}

// Releases are bounded by what all that is kept of them weighs: also by keys, of
// which an origin may send a megabyte, and by what a mirror says of packages.
func TestReleasesHaveWeight(t *testing.T) {
	f, err := New(Options{Open: func() (index.Tree, error) { return index.Tree{}, nil }})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	armor, hash := strings.Repeat("k", 1<<20), strings.Repeat("h", 47)
	for what, r := range map[string]*upstream.Release{
		"keys":     {Keys: []signing.PublicKey{{Armor: armor}}},
		"packages": {Packages: []upstream.Package{{H1: slices.Repeat([]string{hash}, 1<<14)}, {Digests: make([]wire.SHA256, 1<<13)}}},
	} {
		for i := range mostReleases {
			f.releases.put(releaseID{version: fmt.Sprint(what, i)}, &vouched{Release: r}, 0)
		}
		if n := f.releases.order.Len(); n == 0 || n > mostVouching>>20 {
			t.Errorf("%s: %d releases with a megabyte each are kept", what, n)
		}
	}
}

package pull

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/cache"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// The weight of a release includes its keys, up to a megabyte from an origin, and the
// statements of a mirror about its packages.
func TestReleasesHaveWeight(t *testing.T) {
	f, err := New(Options{Open: func() (tree.Tree, error) { return tree.Tree{}, nil }})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	armor, hash := strings.Repeat("k", 1<<20), strings.Repeat("h", 47)
	for what, r := range map[string]*upstream.Release{
		"keys":     {Keys: []signing.PublicKey{{Armor: armor}}},
		"packages": {Packages: []upstream.Package{{FileHashes: slices.Repeat([]string{hash}, 1<<14)}, {Digests: make([]wire.SHA256, 1<<13)}}},
	} {
		for i := range maxReleases {
			f.releases.Put(releaseID{version: fmt.Sprint(what, i)}, &approved{Release: r}, cache.UntilEvicted)
		}
		n := 0
		for i := range maxReleases {
			if _, ok := f.releases.Get(releaseID{version: fmt.Sprint(what, i)}); ok {
				n++
			}
		}
		if n == 0 || n > maxReleaseBytes>>20 {
			t.Errorf("%s: %d releases with a megabyte each are kept", what, n)
		}
	}
}

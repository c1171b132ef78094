package checkout

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/pull/scratch"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

// Commits that are not in use take little of the disk, whatever repositories people name.
func TestFewCommitsAreKept(t *testing.T) {
	for _, test := range []struct {
		rule  string
		sizes map[string]int64 // by commit, which are kept in order
		want  string
	}{
		{"small ones, the last few", map[string]int64{"a": 1, "b": 1, "c": 1, "d": 1, "e": 1}, "b c d e"},
		{"large ones, as far as there is room", map[string]int64{"a": maxIdle / 2, "b": maxIdle / 2, "c": maxIdle / 2}, "b c"},
		{"the last one, whatever its size", map[string]int64{"a": 1, "b": 2 * maxIdle}, "b"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			c := New(t.Context(), nil)
			for _, commit := range slices.Sorted(maps.Keys(test.sizes)) {
				in, err := scratch.New()
				if err != nil {
					t.Fatal(err)
				}
				c.keep(commit, &checkout{Checkout: &upstream.Checkout{Size: test.sizes[commit]}, folder: in, users: 1})
			}
			if got := strings.Join(slices.Sorted(maps.Keys(c.kept)), " "); got != test.want {
				t.Errorf("kept are %s", got)
			}
			c.RemoveIdle()
		})
	}
}

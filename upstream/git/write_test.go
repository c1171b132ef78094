package git_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/upstream/git"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/upstreamtest"
)

// A repository may have a symlink and a folder of the same name, or names that are the
// same on the disk. What is written later does not go through the symlink.
func TestNothingIsWrittenThroughASymlink(t *testing.T) {
	for _, test := range []struct {
		rule  string
		later git.File
	}{
		{"a file", git.File{Mode: "100644", Name: "a/x"}},
		{"a file in a folder", git.File{Mode: "100644", Name: "a/b/x"}},
		{"a symlink", git.File{Mode: git.Symlink, Name: "a/x"}},
		{"a submodule", git.File{Mode: git.Submodule, Name: "a/x"}},
		{"a submodule in its place", git.File{Mode: git.Submodule, Name: "a"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			r := upstreamtest.NewRepository(t)
			opened, err := git.Open(t.Context(), r.Dir)
			if err != nil {
				t.Fatal(err)
			}
			into := t.TempDir()
			w := git.Writer{Left: 100}
			files := []git.File{{Mode: git.Symlink, Object: r.Object("there"), Name: "a"}, {Mode: "100644", Object: r.Object("y"), Name: "there/y"}}
			if refused, err := w.Write(t.Context(), opened, files, into); err != nil || len(refused) > 0 {
				t.Fatal(refused, err)
			}
			test.later.Object = r.Object("y")
			_, err = w.Write(t.Context(), opened, []git.File{test.later}, into)
			if _, is := errors.AsType[*git.DamagedError](err); !is {
				t.Errorf("got %v", err)
			}
			if got, err := os.ReadDir(filepath.Join(into, "there")); err != nil || len(got) != 1 {
				t.Errorf("the symlink's target has %v, %v", got, err)
			}
		})
	}
}

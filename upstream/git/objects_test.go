package git_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/upstream/git"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/upstreamtest"
)

// Entry returns the same as git for a path of a commit, whatever is above it.
func TestEntry(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		r := upstreamtest.NewRepository(t, "--object-format="+format)
		r.Write("main.tf", "# 1\n", "a/b/c.tf", "", "a/é b", "", "a.tf", "")
		if err := os.Symlink("a/b", filepath.Join(r.Dir, "link")); err != nil {
			t.Skip(err)
		}
		first := r.Commit()
		r.Git("update-index", "--add", "--cacheinfo", "160000,"+first+",sub")
		r.Git("commit", "--quiet", "--message", "A submodule")
		head := r.Git("rev-parse", "HEAD")
		opened, err := git.Open(t.Context(), r.Dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, test := range []struct {
			rule, name string
			mode       git.Mode // empty: nothing is there
		}{
			{"the root", "", git.Folder},
			{"a file", "main.tf", "100644"},
			{"a folder", "a", git.Folder},
			{"a folder in a folder", "a/b", git.Folder},
			{"a file in folders", "a/b/c.tf", "100644"},
			{"a name beyond ASCII, with a space", "a/é b", "100644"},
			{"a symlink", "link", git.Symlink},
			{"a submodule", "sub", git.Submodule},
			{"nothing", "no", ""},
			{"nothing in a folder", "a/no/x", ""},
			{"a path below a file", "main.tf/x", ""},
			{"a path behind a symlink", "link/c.tf", ""},
			{"a path in a submodule", "sub/main.tf", ""},
			{"the beginning of a name", "mai", ""},
			{"a name in another case", "MAIN.tf", ""},
			{"outside", "../x", ""},
			{"git's own", ".git/config", ""},
		} {
			t.Run(format+", "+test.rule, func(t *testing.T) {
				got, ok, err := opened.Entry(t.Context(), head, test.name)
				if err != nil || ok != (test.mode != "") || ok && (got.Mode != test.mode || got.Name != test.name) {
					t.Fatalf("got %v, %v, %v", got, ok, err)
				}
				if ok && got.Object != r.Git("rev-parse", head+":"+test.name) {
					t.Errorf("it is %s", got.Object)
				}
			})
		}
		if got, _, err := opened.Entry(t.Context(), head, "link/x/c.tf"); err != nil || got.Mode != git.Symlink || got.Name != "link" {
			t.Errorf("behind a symlink: got %v, %v", got, err)
		}
		if _, ok, err := opened.Entry(t.Context(), strings.Repeat("1", len(head)), "main.tf"); ok || err != nil {
			t.Errorf("of no commit: got %v, %v", ok, err)
		}
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A missing folder, or a file in its place, is not read as an empty folder, and the
// next request is answered again.
func TestEntryInADamagedRepository(t *testing.T) {
	r := upstreamtest.NewRepository(t)
	r.Write("main.tf", "")
	head := r.Commit()
	file := r.Object("x")
	lacking := r.GitWith("", "commit-tree", r.Tree("040000 tree "+strings.Repeat("1", 40)+"\ta"))
	wrong := r.GitWith("", "commit-tree", r.GitWith("40000 a\x00"+string(make([]byte, 7)), "hash-object", "-t", "tree", "-w", "--literally", "--stdin"))
	none := r.GitWith("", "commit-tree", r.GitWith("40000 a\x00"+strings.Repeat("\x01", 20), "hash-object", "-t", "tree", "-w", "--stdin"))
	opened, err := git.Open(t.Context(), r.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	for _, test := range []struct{ rule, commit, name string }{
		{"a folder that is not there", lacking, "a/x"},
		{"a folder whose ID is of nothing", none, "a/x"},
		{"a folder that breaks off", wrong, "a"},
		{"a file for a commit", file, "a"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			got, ok, err := opened.Entry(t.Context(), test.commit, test.name)
			if ok || err == nil && test.commit != file {
				t.Errorf("got %v, %v, %v", got, ok, err)
			}
			if _, ok, err := opened.Entry(t.Context(), head, "main.tf"); !ok || err != nil {
				t.Errorf("and then %v, %v", ok, err)
			}
		})
	}
}

// The process that prints objects ends with the context.
func TestEntryEndsWithItsContext(t *testing.T) {
	r := upstreamtest.NewRepository(t)
	r.Write("a/main.tf", "")
	head := r.Commit()
	opened, err := git.Open(t.Context(), r.Dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if _, ok, err := opened.Entry(ctx, head, "a"); !ok || err != nil {
		t.Fatal(ok, err)
	}
	cancel()
	if err := opened.Close(); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, _, err := opened.Entry(ctx, head, "a/main.tf"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

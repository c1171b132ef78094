package bucket_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
)

// A folder that is listed again stays as it is in the bucket, whichever others are listed with it.
func TestFoldersAreListedAgain(t *testing.T) {
	for _, row := range []struct {
		rule      string
		forgotten []string
	}{
		{"a folder", []string{"providers/ACME/demo"}},
		{"a folder in another spelling", []string{"providers/acme/demo"}},
		{"a folder and a folder in it", []string{"providers/ACME/demo", "providers/ACME/demo/1.0.0"}},
		{"a folder in another spelling and a folder in it", []string{"providers/acme/demo", "providers/ACME/demo/1.0.0"}},
		{"a folder in it and everything", []string{"providers/ACME/demo/1.0.0", "providers"}},
	} {
		t.Run(row.rule, func(t *testing.T) {
			b := new(treetest.Bucket)
			for _, name := range []string{"1.0.0/SUMS", "1.0.0/a.zip", "1.1.0/a.zip"} {
				b.Put("providers/ACME/demo/"+name, "content", time.Now())
			}
			listed := source.Directories{Root: "."}.Listed(b)
			lists := func(dir string) (names []string) {
				files, err := listed.Open(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				entries, err := files.Providers.Storage.List(dir)
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range entries {
					names = append(names, e.Name())
				}
				return names
			}
			lists("ACME/demo")
			for _, folder := range row.forgotten {
				listed.Forget(folder)
			}
			for dir, want := range map[string][]string{"ACME": {"demo"}, "ACME/demo": {"1.0.0", "1.1.0"}, "ACME/demo/1.0.0": {"SUMS", "a.zip"}} {
				if got := lists(dir); !slices.Equal(got, want) {
					t.Errorf("%s has %v, want %v", dir, got, want)
				}
			}
		})
	}
}

// One stray file hides nothing: a store may have a file with the name of a directory. Both are listed.
func TestADirectoryComesBeforeAFileOfItsName(t *testing.T) {
	b := new(treetest.Bucket)
	for _, name := range []string{"acme", "acme-one/demo/1.0.0/a.zip", "acme/demo", "acme/demo/1.0.0/a.zip"} {
		b.Put("providers/"+name, "content", time.Now())
	}
	files, err := source.Directories{Root: "."}.Listed(b).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := files.Providers
	for _, name := range []string{"acme", "acme/demo"} {
		if info, err := p.Stat(name); err != nil || !info.IsDir() {
			t.Errorf("%s is no directory (%v)", name, err)
		}
		if _, _, err := p.OpenRegular(name); !errors.Is(err, tree.ErrNotRegular) {
			t.Errorf("%s is opened: %v", name, err)
		}
	}
	for dir, want := range map[string]string{".": "acme acme-one/ acme/", "acme": "demo demo/", "acme/demo": "1.0.0/"} {
		entries, err := p.List(dir)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range entries {
			if e.IsDir() {
				e.Name += "/"
			}
			names = append(names, e.Name)
		}
		slices.Sort(names)
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s has %s, want %s", dir, got, want)
		}
	}
}

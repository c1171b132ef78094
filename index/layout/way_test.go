package layout_test

import (
	"slices"
	"syscall"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/index/layout"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
)

// What is new or gone lies in the lowest folder on its way that is still there as it was listed.
// Only this folder has to be listed again, and none of the thousands beside it.
func TestWhereSomethingCanBeNewOrGone(t *testing.T) {
	names := func(all ...string) map[string]bool {
		names := make(map[string]bool)
		for _, name := range all {
			names[name] = true
		}
		return names
	}
	before := map[string]map[string]bool{
		"providers":                         names("acme", "globex", "GLOBEX", "unlisted", "mirror.example.com"),
		"providers/acme":                    names("demo"),
		"providers/globex":                  names("demo"),
		"providers/GLOBEX":                  names("demo"),
		"providers/mirror.example.com":      names("acme"),
		"providers/mirror.example.com/acme": names("demo"),
	}
	for _, test := range []struct {
		rule, path string
		change     func(*indextest.Tree)
		want       []string
	}{
		{"a new provider, in its namespace", "providers/acme/new", func(*indextest.Tree) {}, []string{"providers/acme"}},
		{"a file in it, too", "providers/acme/new/1.0.0/x.zip", func(*indextest.Tree) {}, []string{"providers/acme"}},
		{"in the namespace of a hostname", "providers/mirror.example.com/acme/new", func(*indextest.Tree) {}, []string{"providers/mirror.example.com/acme"}},
		{"a namespace itself, in the folder above", "providers/acme", func(*indextest.Tree) {}, []string{"providers"}},
		{"a new namespace, in the folder above", "providers/initech/new", func(f *indextest.Tree) { f.Write("providers/initech/new/x", "x") }, []string{"providers"}},
		{"a namespace that is gone, in the folder above", "providers/acme/demo", func(f *indextest.Tree) { f.Remove("providers/acme") }, []string{"providers"}},
		{"a namespace that is a file now, in the folder above", "providers/acme/demo", func(f *indextest.Tree) {
			f.Remove("providers/acme")
			f.Write("providers/acme", "x")
		}, []string{"providers"}},
		{"a namespace with another spelling, in the folder above", "providers/acme/new", func(f *indextest.Tree) { f.Write("providers/ACME/demo/x", "x") }, []string{"providers"}},
		{"in each of two spellings", "providers/globex/new", func(*indextest.Tree) {}, []string{"providers/GLOBEX", "providers/globex"}},
		{"one of two spellings that is gone, in the folder above", "providers/globex/demo", func(f *indextest.Tree) { f.Remove("providers/globex") }, []string{"providers"}},
		{"a namespace that could not be listed before, in the folder above", "providers/unlisted/new", func(*indextest.Tree) {}, []string{"providers"}},
		{"a hostname in another spelling, in what is known of it", "providers/Mirror.Example.com/acme/new", func(*indextest.Tree) {}, []string{"providers/mirror.example.com/acme"}},
		{"the part itself", "providers", func(*indextest.Tree) {}, []string{"providers"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			files := indextest.New(t)
			for report, below := range before {
				for name := range below {
					if _, inside := before[report+"/"+name]; !inside {
						files.Write(report+"/"+name+"/x", "x")
					}
				}
			}
			test.change(files)
			if got := lowest(t, files, before, test.path, nil); !slices.Equal(got, test.want) {
				t.Errorf("it is in %v, want %v", got, test.want)
			}
		})
	}
	t.Run("a folder that has not changed is not listed", func(t *testing.T) {
		files := indextest.New(t)
		files.Write("providers/acme/demo/x", "x")
		part := layout.Providers(openFaulty(t, files, "providers", syscall.EIO))
		if got := part.Lowest("providers/acme/new", unchanged{before}); len(got) != 1 || got[0].Report != "providers/acme" {
			t.Errorf("it is in %v", got)
		}
		if got := part.Lowest("providers/acme/new", listed(before)); len(got) != 1 || got[0].Report != "providers" {
			t.Errorf("it is in %v, though the folder cannot be listed", got)
		}
	})
	t.Run("what cannot be read, in the folder above", func(t *testing.T) {
		files := indextest.New(t)
		files.Write("providers/acme/demo/x", "x").Write("providers/globex/demo/x", "x").Write("providers/mirror.example.com/acme/demo/x", "x")
		if got := lowest(t, files, before, "providers/mirror.example.com/acme/new", syscall.EIO); !slices.Equal(got, []string{"providers"}) {
			t.Errorf("it is in %v", got)
		}
	})
}

// lowest returns the lowest folders on the way to a path. The mirror's folder fails with an error,
// which may be nil.
func lowest(t *testing.T, files *indextest.Tree, before map[string]map[string]bool, report string, failure error) (folders []string) {
	opened := openFaulty(t, files, "providers/mirror.example.com", failure)
	for _, f := range layout.Providers(opened).Lowest(report, listed(before)) {
		folders = append(folders, f.Report)
	}
	return folders
}

// openFaulty opens a tree in which a folder fails with an error when it is listed.
func openFaulty(t *testing.T, files *indextest.Tree, folder string, failure error) tree.Tree {
	t.Helper()
	var faults treetest.Faults
	faults.When(func(_ int, o treetest.Operation) error {
		if o.Path == folder {
			return failure
		}
		return nil
	})
	opened, err := faults.Open(files.Open)()
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

// listed are the names that were listed before in each folder, all of which may have changed since.
type listed map[string]map[string]bool

func (l listed) Names(report string) map[string]bool { return l[report] }

func (listed) IsUnchanged(layout.Folder) bool { return false }

// unchanged are names that are known to be the same now.
type unchanged struct{ listed }

func (unchanged) IsUnchanged(layout.Folder) bool { return true }

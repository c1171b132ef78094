package tree_test

import (
	"errors"
	"path"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
)

func addressAt(hostname, names string) address.Address {
	a, err := address.Parse(path.Join(hostname, names))
	if err != nil {
		panic(err)
	}
	return a
}

// inMemory returns a tree in memory that has files of these names.
func inMemory(t *testing.T, faults *treetest.Faults, names ...string) tree.Tree {
	t.Helper()
	memory := afero.NewMemMapFs()
	for _, name := range names {
		if err := afero.WriteFile(memory, name, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	files, err := faults.Open(func() (tree.Tree, error) {
		return tree.Tree{Providers: treetest.On(memory, "providers"), Modules: treetest.On(memory, "modules"), Keys: treetest.On(memory, "keys")}, nil
	})()
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestFolderOfAnAddress(t *testing.T) {
	files := inMemory(t, new(treetest.Faults),
		"providers/ACME/Demo/x", "providers/acme.example/acme/demo/x", "providers/both/demo/x", "providers/BOTH/demo/x",
		"providers/xn--bcher-kva.example/acme/demo/x",
		"modules/Acme/VPC/aws/x",
		"providers/split/other/x", "providers/SPLIT/demo/terraform-provider-demo_1.0.0_linux_amd64.zip",
		"providers/stray/demo/README", "providers/STRAY/demo/1.0.0/x", "providers/STRAY/Demo/1.0.0/x",
		"modules/stray/vpc/aws/registry.hcl", "modules/Stray/vpc/aws/v1.0.0.tgz",
	)
	for _, test := range []struct{ rule, hostname, names, want string }{
		{"another spelling", "", "acme/demo", "providers/ACME/Demo"},
		{"half of it in another spelling", "", "acme/other", "providers/ACME/other"},
		{"its very name before another spelling", "", "both/demo", "providers/both/demo"},
		{"another spelling in a folder whose very name is there too", "", "split/demo", "providers/SPLIT/demo"},
		{"what is offered before its very name", "", "stray/demo", "providers/STRAY/Demo"},
		{"a module that is offered before its very name", "", "stray/vpc/aws", "modules/Stray/vpc/aws"},
		{"a hostname apart from a namespace", "acme.example", "acme/demo", "providers/acme.example/acme/demo"},
		{"a hostname in another spelling", "bücher.example", "acme/demo", "providers/xn--bcher-kva.example/acme/demo"},
		{"a module in another spelling", "", "acme/vpc/aws", "modules/Acme/VPC/aws"},
		{"none at all", "new.example", "new/demo", "providers/new.example/new/demo"},
		{"no module at all", "", "new/vpc/aws", "modules/new/vpc/aws"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			a := addressAt(test.hostname, test.names)
			f := files.Folder(a)
			part, dir, _ := f.Locate()
			if f.Path != test.want || path.Join(part.Path(), dir) != test.want || f.Address != a {
				t.Errorf("it is %s, and %s in the part", f.Path, path.Join(part.Path(), dir))
			}
		})
	}
}

// A Guard is asked about an address if nothing of it is there, and is told the names beside it.
func TestGuardedFolders(t *testing.T) {
	empty := errors.New("it is empty")
	for _, test := range []struct{ rule, hostname, names, asked string }{
		{"its folder is there", "", "acme/demo", ""},
		{"another spelling of it is there", "", "Acme/other", ""},
		{"its namespace is there", "", "acme/new", ""},
		{"its hostname is there", "acme.example", "new/new", ""},
		{"its namespace is not there", "", "new/demo", "providers: acme acme.example"},
		{"its hostname is not there", "new.example", "acme/demo", "providers: acme acme.example"},
		{"its part has nothing", "", "acme/vpc/aws", "modules: "},
		{"its part has nothing below its hostname either", "acme.example", "acme/vpc/aws", "modules: "},
	} {
		t.Run(test.rule, func(t *testing.T) {
			asked := ""
			files := inMemory(t, new(treetest.Faults), "providers/acme/demo/1.0.0/x", "providers/acme/OTHER/x", "providers/acme.example/acme/demo/x")
			guarded := files.Guarded(func(part tree.Part, report string, top []string) error {
				asked = report + ": " + strings.Join(top, " ")
				return empty
			})
			f := guarded.Folder(addressAt(test.hostname, test.names))
			_, _, err := f.Locate()
			_, unread := f.ReadMetadata()
			written := f.WriteMetadata(nil, []byte("x"))
			if refused := errors.Is(err, empty) && errors.Is(unread, empty) && errors.Is(written, empty); asked != test.asked || refused != (asked != "") || !refused && err != nil {
				t.Errorf("asked is %q: %v, %v, %v", asked, err, unread, written)
			}
			if _, _, err := files.Folder(addressAt(test.hostname, test.names)).Locate(); err != nil {
				t.Errorf("without a guard: %v", err)
			}
		})
	}
}

// While a folder on the way cannot be read, it is unknown which spelling of an address is
// offered. A file written then would make a second folder, which hides the first.
func TestFoldersThatCannotBeRead(t *testing.T) {
	a := addressAt("", "acme/demo")
	for _, errno := range []syscall.Errno{syscall.EIO, syscall.ESTALE, syscall.EMFILE, syscall.ETIMEDOUT} {
		faults := new(treetest.Faults)
		files := inMemory(t, faults, "providers/ACME/Demo/1.0.0/x")
		for n := 1; ; n++ {
			faults.Once(n, errno)
			_, dir, err := files.Folder(a).Locate()
			if asked, _ := faults.End(); asked < n {
				if err != nil || dir != "ACME/Demo" {
					t.Errorf("without a failure: %s (%v)", dir, err)
				}
				break
			}
			if !errors.Is(err, tree.ErrNotWritable) {
				t.Errorf("operation %d fails with %v: %s (%v)", n, errno, dir, err)
			}
		}
	}
}

// A copy begins with an empty file, whose content is not known yet.
func TestMetadataOfAFolder(t *testing.T) {
	name := "providers/acme/demo/" + tree.MetadataName
	for _, test := range []struct {
		rule, content string
		age           time.Duration
		want          string
		err           error
	}{
		{"content", "x", 0, "x", nil},
		{"an empty file may be a copy that has just begun", "", time.Minute, "", tree.ErrReserved},
		{"an empty file that nobody writes has nothing", "", tree.ReservedFor + time.Minute, "", nil},
	} {
		t.Run(test.rule, func(t *testing.T) {
			files := inMemory(t, new(treetest.Faults), name)
			fsys := treetest.FsOf(files.Providers)
			at := time.Now().Add(-test.age)
			if err := errors.Join(afero.WriteFile(fsys, name, []byte(test.content), 0o644), fsys.Chtimes(name, at, at)); err != nil {
				t.Fatal(err)
			}
			content, err := files.Folder(addressAt("", "acme/demo")).ReadMetadata()
			if string(content) != test.want || !errors.Is(err, test.err) {
				t.Errorf("it has %q, %v", content, err)
			}
		})
	}
}

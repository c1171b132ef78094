package index_test

import (
	"errors"
	"path"
	"syscall"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
)

func TestFolderOfAnAddress(t *testing.T) {
	files := indextest.New(t)
	for _, name := range []string{
		"providers/ACME/Demo/x", "providers/acme.example/acme/demo/x", "providers/both/demo/x", "providers/BOTH/demo/x",
		"providers/xn--bcher-kva.example/acme/demo/x",
		"modules/Acme/VPC/aws/x",
		"providers/split/other/x", "providers/SPLIT/demo/terraform-provider-demo_1.0.0_linux_amd64.zip",
		"providers/stray/demo/README", "providers/STRAY/demo/1.0.0/x", "providers/STRAY/Demo/1.0.0/x",
		"modules/stray/vpc/aws/registry.hcl", "modules/Stray/vpc/aws/v1.0.0.tgz",
	} {
		files.Write(name, "x")
	}
	open, err := files.Open()
	if err != nil {
		t.Fatal(err)
	}
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
			f := open.Folder(a)
			part, dir, _ := f.In()
			if f.Path != test.want || path.Join(part.Dir, dir) != test.want || f.Address != a {
				t.Errorf("it is %s, and %s in the part", f.Path, path.Join(part.Dir, dir))
			}
		})
	}
}

func TestKeysFileOfANamespace(t *testing.T) {
	p := indextest.NewPublisher(t)
	files := indextest.New(t).Keys("ACME", p).Keys("both", p).Keys("BOTH", p).Keys("a.example/Acme", p)
	open, err := files.Open()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ rule, hostname, namespace, want string }{
		{"another spelling", "", "acme", "keys/ACME.asc"},
		{"its very name before another spelling", "", "both", "keys/both.asc"},
		{"of a hostname", "a.example", "acme", "keys/a.example/Acme.asc"},
		{"none of a hostname", "b.example", "acme", "keys/b.example/acme.asc"},
		{"none at all", "", "new", "keys/new.asc"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			a := address.Address{}
			if test.hostname != "" {
				a = addressAt(test.hostname, "acme/demo")
			}
			part, name, _ := index.KeysFile(open, a.Hostname, test.namespace)
			if got := path.Join(part.Dir, name); got != test.want {
				t.Errorf("it is %s", got)
			}
		})
	}
}

// While a folder on the way cannot be read, it is unknown which spelling of an address is
// offered. A file written then would make a second folder, which hides the first.
func TestFoldersThatCannotBeRead(t *testing.T) {
	a := addressAt("", "acme/demo")
	for _, errno := range []syscall.Errno{syscall.EIO, syscall.ESTALE, syscall.EMFILE, syscall.ETIMEDOUT} {
		files := indextest.New(t).Write("providers/ACME/Demo/1.0.0/x", "x")
		var faults treetest.Faults
		open, err := faults.Open(files.Open)()
		if err != nil {
			t.Fatal(err)
		}
		for n := 1; ; n++ {
			faults.Once(n, errno)
			_, dir, err := open.Folder(a).In()
			_, failed := faults.End()
			if len(failed) == 0 {
				if err != nil || dir != "ACME/Demo" {
					t.Errorf("without a failure: %s (%v)", dir, err)
				}
				break
			}
			if !errors.Is(err, tree.ErrNotWritable) {
				t.Errorf("%v at %s: %s (%v)", errno, failed[0], dir, err)
			}
		}
	}
}

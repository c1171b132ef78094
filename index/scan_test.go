package index_test

import (
	"context"
	"io/fs"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
)

// options returns the options of a registry that signs releases without a publisher's
// signature.
func options(t testing.TB, open func() (tree.Tree, error)) index.Options {
	t.Helper()
	key, err := signing.ReadKey([]byte(indextest.NewPublisher(t).PrivateKey()), "")
	if err != nil {
		t.Fatal(err)
	}
	return index.Options{
		Open:   open,
		Signer: key,
	}
}

// onDisk returns a directory, the empty tree in it, and the options of a registry of it.
func onDisk(t testing.TB) (dir string, files *indextest.Tree, o index.Options) {
	t.Helper()
	dir = t.TempDir()
	return dir, indextest.OnDisk(t, dir), options(t, source.Directories{Root: dir}.Open)
}

// scan scans a tree once.
func scan(t testing.TB, files *indextest.Tree) *index.Snapshot {
	t.Helper()
	return scanWith(t, options(t, files.Open))
}

func scanWith(t testing.TB, o index.Options) *index.Snapshot {
	t.Helper()
	s, err := index.Scan(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const zipName = "terraform-provider-demo_1.0.0_linux_amd64.zip"

// short opens only so many files, and then fails like a process that has too many open
// files.
type short struct {
	afero.Fs
	left *atomic.Int64
}

func (s short) Open(name string) (afero.File, error) {
	if s.left.Add(-1) < 0 {
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.EMFILE}
	}
	return s.Fs.Open(name)
}

// A server short of descriptors learns nothing about its tree. A scan that no other scan
// follows then fails, wherever the shortage occurs.
func TestAScanWithTooFewDescriptorsFails(t *testing.T) {
	files := indextest.New(t)
	publisher := indextest.NewPublisher(t)
	files.Keys("acme", publisher)
	files.Provider("acme/demo", "1.0.0", "linux_amd64", "linux_arm64").Manifest("5.0").Signed(publisher)
	files.Write("modules/acme/vpc/aws/1.0.0/main.tf", "# a module\n")
	files.Write("modules/acme/vpc/aws/1.1.0.tar.gz", indextest.TarGz("main.tf", "# a module\n"))
	left := new(atomic.Int64)
	o := options(t, indextest.On(t, short{files.Fs, left}).Open)
	o.Workers = 1

	left.Store(1000)
	whole, err := index.Scan(context.Background(), o)
	if err != nil || len(whole.Report().Offered) != 3 || len(whole.Report().Withheld) > 0 {
		t.Fatalf("with enough: %v, %+v", err, whole)
	}
	needed := 1000 - left.Load()
	for enough := range needed {
		left.Store(enough)
		if s, err := index.Scan(context.Background(), o); err == nil || !strings.Contains(err.Error(), "too many open files") {
			t.Fatalf("with %d of %d: %v, %+v", enough, needed, err, s)
		}
	}
	t.Logf("a scan opens %d files and folders", needed)
}

// Clients compare addresses in their normal form, so only one folder can have an address.
// Which folder that is must only depend on the tree.
func TestTwoSpellingsOfAnAddress(t *testing.T) {
	provider := func(name string) func(*indextest.Tree) {
		return func(files *indextest.Tree) { files.ProviderIn("providers/"+name, "demo", "1.0.0", "linux_amd64") }
	}
	module := func(name string) func(*indextest.Tree) {
		return func(files *indextest.Tree) { files.Write("modules/"+name+"/1.0.0/main.tf", "x") }
	}
	stray := func(name string) func(*indextest.Tree) {
		return func(files *indextest.Tree) { files.Write(name, "x") }
	}
	for _, test := range []struct {
		rule     string
		write    []func(*indextest.Tree)
		offered  string // the folder it is served from
		reported string // the folder that is withheld; empty: none
	}{
		{"a provider in lower case is offered", []func(*indextest.Tree){provider("ACME/demo"), provider("acme/demo")}, "acme/demo", "providers/ACME/demo"},
		{"so is a module", []func(*indextest.Tree){module("acme/VPC/aws"), module("acme/vpc/aws")}, "acme/vpc/aws", "modules/acme/VPC/aws"},
		{"a file that is no release takes no provider away", []func(*indextest.Tree){stray("providers/ACME/demo/README"), provider("acme/demo")}, "acme/demo", ""},
		{"nor a module", []func(*indextest.Tree){stray("modules/acme/VPC/aws/README"), module("acme/vpc/aws")}, "acme/vpc/aws", ""},
		{"nor one in lower case", []func(*indextest.Tree){provider("ACME/demo"), stray("providers/acme/demo/README")}, "ACME/demo", ""},
		{"a hostname as clients write it is offered, or as they request it", []func(*indextest.Tree){provider("BÜCHER.example/acme/demo"), provider("xn--bcher-kva.example/acme/demo")}, "xn--bcher-kva.example/acme/demo", "providers/BÜCHER.example/acme/demo"},
		{"of two that are not in lower case it is the first", []func(*indextest.Tree){provider("ACME/demo"), provider("Acme/demo")}, "ACME/demo", "providers/Acme/demo"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			files := indextest.New(t)
			for _, write := range test.write {
				write(files)
			}
			s := scan(t, files)
			if len(s.Report().Offered) != 1 {
				t.Fatalf("offered is %+v", s.Report().Offered)
			}
			if served := pathOf(s); !strings.HasPrefix(served, test.offered+"/") {
				t.Errorf("it is served from %s", served)
			}
			if test.reported == "" {
				nothingWithheld(t, s)
				return
			}
			if p := problemOf(s.Report().Withheld, test.reported); p.Reason != tree.Duplicate || !strings.Contains(p.Detail, test.offered) || len(s.Report().Withheld) != 1 {
				t.Errorf("withheld is %+v", s.Report().Withheld)
			}
		})
	}
}

// pathOf returns the path of the only offered file.
func pathOf(s *index.Snapshot) string {
	for _, a := range []address.Address{ownDemo, withHostname("xn--bcher-kva.example", ownDemo)} {
		if p := s.Provider(index.PlaceOf(a)); p != nil {
			return p.Releases[0].Packages[0].File.Path()
		}
	}
	return s.Module(index.PlaceOf(ownVPC)).Versions[0].Archive.Path()
}

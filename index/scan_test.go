package index_test

import (
	"context"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
)

// options are those of a registry that signs what publishers did not.
func options(t testing.TB, open func() (index.Tree, error)) index.Options {
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

// scan looks at a tree once.
func scan(t testing.TB, tree *indextest.Tree) *index.Snapshot {
	t.Helper()
	return scanWith(t, options(t, tree.Open))
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

// Clients compare addresses in their normal form, so only one folder can have an
// address. Which one it is must not depend on anything but the tree.
func TestTwoSpellingsOfAnAddress(t *testing.T) {
	provider := func(name string) func(*indextest.Tree) {
		return func(tree *indextest.Tree) { tree.ProviderIn("providers/"+name, "demo", "1.0.0", "linux_amd64") }
	}
	module := func(name string) func(*indextest.Tree) {
		return func(tree *indextest.Tree) { tree.Write("modules/"+name+"/1.0.0/main.tf", "x") }
	}
	stray := func(name string) func(*indextest.Tree) {
		return func(tree *indextest.Tree) { tree.Write(name, "x") }
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
			tree := indextest.New(t)
			for _, write := range test.write {
				write(tree)
			}
			s := scan(t, tree)
			if len(s.Report.Offered) != 1 {
				t.Fatalf("offered is %+v", s.Report.Offered)
			}
			if served := pathOf(s); !strings.HasPrefix(served, test.offered+"/") {
				t.Errorf("it is served from %s", served)
			}
			if test.reported == "" {
				nothingWithheld(t, s)
				return
			}
			if p := problemOf(s.Report.Withheld, test.reported); p.Reason != index.Duplicate || !strings.Contains(p.Detail, test.offered) || len(s.Report.Withheld) != 1 {
				t.Errorf("withheld is %+v", s.Report.Withheld)
			}
		})
	}
}

// pathOf is where the one thing lies that is offered.
func pathOf(s *index.Snapshot) string {
	for _, a := range []address.Address{ownDemo, at("xn--bcher-kva.example", ownDemo)} {
		if p := s.Provider(a); p != nil {
			return p.Releases[0].Packages[0].File.Path()
		}
	}
	return s.Module(ownVPC).Versions[0].Archive.Path()
}

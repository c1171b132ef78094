package catalog_test

import (
	"context"
	"slices"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/catalog"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
)

// scan scans a tree once.
func scan(t testing.TB, files *indextest.Tree) *index.Snapshot {
	t.Helper()
	s, err := index.Scan(context.Background(), index.Options{Open: files.Open, Signer: signer(t)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func signer(t testing.TB) index.Signer {
	t.Helper()
	key, err := signing.ReadKey([]byte(indextest.NewPublisher(t).PrivateKey()), "")
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// rescan scans the whole tree, and returns what is offered then.
func rescan(t *testing.T, x *index.Index) *index.Snapshot {
	t.Helper()
	s, err := x.Rescan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestCatalog(t *testing.T) {
	files := indextest.New(t)
	for _, v := range []string{"1.0.0", "1.1.0", "2.0.0-rc.1"} {
		files.Write("modules/acme/vpc/aws/"+v+"/main.tf", "# "+v)
		files.Provider("acme/demo", v, "linux_amd64")
	}
	files.Write("modules/acme/vpc/aws/1.1.0/README.md", "# VPC\n\nA network with subnets.\n")
	files.Write("modules/acme/old/aws/1.0.0/main.tf", "# a module")
	files.Write("modules/acme/old/aws/registry.hcl", `
description = "Said by the operator"
deprecated "1.0.0" {
  reason = "use vpc"
}
`)
	files.Write("modules/a.example.com/acme/vpc/aws/3.0.0/main.tf", "# a module")
	files.Write("modules/c.example.com/acme/vpc/aws/registry.hcl", "withdrawn \">= 0\" {\n  reason = \"old\"\n}")
	files.Write("providers/acme/demo/registry.hcl", "source = \"https://example.com/demo\"\nowner = \"a team\"")
	s := scan(t, files)
	c := catalog.For(s)
	if catalog.For(s) != c {
		t.Error("the catalog of a snapshot is made twice")
	}

	var addresses []string
	for _, e := range c.Modules {
		addresses = append(addresses, e.Address.String())
	}
	if want := []string{"acme/old/aws", "acme/vpc/aws", "a.example.com/acme/vpc/aws"}; !slices.Equal(addresses, want) {
		t.Fatalf("got %q, want %q", addresses, want)
	}
	old, vpc, demo := c.Modules[0], c.Modules[1], c.Providers[0]
	if vpc.Version != "1.1.0" || vpc.Versions != 3 || vpc.Description != "A network with subnets." || vpc.Deprecated != nil || vpc.Published.Year() != 2026 {
		t.Errorf("the module is %+v", vpc)
	}
	if old.Description != "Said by the operator" || old.Deprecated == nil || old.Deprecated.Reason != "use vpc" {
		t.Errorf("what registry.hcl is about is %+v", old)
	}
	if demo.Version != "1.1.0" || demo.Source != "https://example.com/demo" || demo.Owner != "a team" {
		t.Errorf("the provider is %+v", demo)
	}
	own := vpc.Address.WithHostname("a.example.com")
	if e, ok := c.Merged(own); !ok || e.Version != "3.0.0" || e.Versions != 4 {
		t.Errorf("merged it is %+v, %v", e, ok)
	}
	if e, ok := c.Merged(vpc.Address.WithHostname("c.example.com")); !ok || e != nil {
		t.Errorf("if all versions are withdrawn under a HOSTNAME, merged it is %+v, %v", e, ok)
	}
	if _, ok := c.Merged(vpc.Address); ok {
		t.Error("what is found once is merged")
	}
	if !c.Has("a.example.com") || !c.Has("c.example.com") || c.Has("b.example.com") {
		t.Error("the hostnames are wrong")
	}
}

// Entries of what has not changed are the same in the next snapshot, with what was
// made of them for searches.
func TestCatalogKeepsEntries(t *testing.T) {
	files := indextest.New(t)
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		files.Write("modules/acme/"+name+"/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", "# a module"))
	}
	files.Provider("acme/demo", "1.0.0", "linux_amd64")
	files.Provider("acme/other", "1.0.0", "linux_amd64")
	x := index.New(index.Options{Open: files.Open, Signer: signer(t)})
	x.Start()
	t.Cleanup(func() { x.Close() })
	before := catalog.For(rescan(t, x))

	files.Write("modules/acme/b/aws/1.1.0.tar.gz", indextest.TarGz("main.tf", "# a newer one"))
	files.Write("modules/acme/c/aws/registry.hcl", `description = "New"`)
	files.Write("modules/acme/d/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", "# edited"))
	files.Remove("modules/acme/e")
	files.Provider("acme/other", "1.1.0", "linux_amd64")
	after := catalog.For(rescan(t, x))

	same := func(name string, list, earlier []*catalog.Entry) bool {
		find := func(list []*catalog.Entry) *catalog.Entry {
			i := slices.IndexFunc(list, func(e *catalog.Entry) bool { return e.Address.Name == name })
			return list[i]
		}
		return find(list) == find(earlier)
	}
	for name, want := range map[string]bool{"a": true, "b": false, "c": false, "d": false} {
		if same(name, after.Modules, before.Modules) != want {
			t.Errorf("%s is the same: %v", name, !want)
		}
	}
	for name, want := range map[string]bool{"demo": true, "other": false} {
		if same(name, after.Providers, before.Providers) != want {
			t.Errorf("%s is the same: %v", name, !want)
		}
	}
	if len(after.Modules) != 4 {
		t.Errorf("there are %d modules", len(after.Modules))
	}
	if len(find(t, after, "new")) != 1 || len(find(t, after, "acme")) != 4 {
		t.Error("the search does not have what is new")
	}
}

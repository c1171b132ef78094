package tree_test

import (
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/bench/internal/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
)

// A tree that is not offered as a whole would measure something else.
func TestAllIsOffered(t *testing.T) {
	if testing.Short() {
		t.Skip("generates a key")
	}
	publisher, err := signing.Generate()
	if err != nil {
		t.Fatal(err)
	}
	const packages = 3070
	made, err := tree.Make(t.Context(), t.TempDir(), packages, publisher)
	if err != nil {
		t.Fatal(err)
	}
	for i, content := range []tree.Content{tree.Program, tree.Noise} {
		big := tree.Big{Provider: tree.Provider{Namespace: "bench", Type: "big"}, Size: 5 << 20, Content: content}
		if _, err := big.Write(made.Root, []string{"1.0.0", "2.0.0"}[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := (tree.Big{Provider: tree.Provider{Namespace: "bench", Type: "big"}}).Sign(made.Root, "1.0.0", publisher); err != nil {
		t.Fatal(err)
	}
	part := tree.Signed("registry.terraform.io", "bench", "part", 2).Holding(3)
	if err := part.Write(made.Root, publisher); err != nil {
		t.Fatal(err)
	}
	snapshot, err := index.Scan(t.Context(), index.Options{
		Open: index.Directories{Root: made.Root}.Open,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range snapshot.Report.Withheld {
		t.Errorf("withheld: %s: %s", p.Path, p.Detail)
	}
	offered, bySignature := 0, make(map[bool]int)
	for _, o := range snapshot.Report.Offered {
		if o.Kind == index.KindProvider {
			offered += len(o.Platforms)
			bySignature[o.Signature != "none"] += len(o.Platforms)
		}
	}
	if offered != packages+2+2*3 {
		t.Errorf("%d packages are offered, want %d", offered, packages+2+2*3)
	}
	held := snapshot.Provider(address.Address{Hostname: "registry.terraform.io", Namespace: "bench", Name: "part"})
	if held == nil {
		t.Fatal("the provider with some packages is not there")
	}
	if n := len(held.Missing(held.Release("1.1.0"))); n != part.Platforms()-3 {
		t.Errorf("%d packages are listed and not held, want %d", n, part.Platforms()-3)
	}
	if bySignature[true] == 0 || bySignature[false] == 0 {
		t.Errorf("packages by whether their publisher signed them: %v, want some of both", bySignature)
	}
	if snapshot.Report.IgnoredTotal > 0 {
		t.Errorf("%d files are ignored, want none", snapshot.Report.IgnoredTotal)
	}
}

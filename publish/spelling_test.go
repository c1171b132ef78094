package publish_test

import (
	"testing"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/publish"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// A successful publication has an effect even in a folder with another spelling of the
// address, or below the registry's own hostname. A bucket has no events: the registry
// lists again whatever it has changed.
func TestFoldersOfOtherSpellings(t *testing.T) {
	const own = svchost.Hostname("registry.example.com")
	release := func(folder string) func(*indextest.Tree) {
		return func(files *indextest.Tree) {
			files.ProviderIn(folder+"/0.9.0", "demo", "0.9.0", "linux_amd64").Checksums()
		}
	}
	publishRelease := func(r *registry) {
		d := newDist(r.t, "")
		r.putAll(d, linuxZip, darwinZip, manifest, sums)
	}
	withdraw := func(r *registry) {
		f, err := publish.ParseMetadataFile(demo, tree.MetadataName)
		if err != nil {
			r.t.Fatal(err)
		}
		if _, err := r.Put(r.t.Context(), f, upload("withdrawn \"0.9.0\" {\n  reason = \"a leaked key in it\"\n}\n")); err != nil {
			r.t.Fatal(err)
		}
	}
	document := func(r *registry) {
		f, err := publish.ParseReleaseFile(demo, "0.9.0", "docs.zip")
		if err != nil {
			r.t.Fatal(err)
		}
		if _, err := r.Put(r.t.Context(), f, upload(indextest.Zip("docs/index.md", "# Demo"))); err != nil {
			r.t.Fatal(err)
		}
	}
	publishModule := func(r *registry) {
		if _, err := r.putModule("1.0.0.tar.gz", indextest.TarGz("main.tf", `output "a" { value = 1 }`)); err != nil {
			r.t.Fatal(err)
		}
	}
	hosted := func(s *index.Snapshot, version string) *index.Release {
		return s.Provider(index.Place{Address: demo.WithHostname(own), Merged: true}).Release(version)
	}
	withdrawn := func(s *index.Snapshot) bool { return hosted(s, "0.9.0") == nil }
	documented := func(s *index.Snapshot) bool {
		r := hosted(s, "0.9.0")
		return r != nil && r.Docs() != ""
	}
	for _, test := range []struct {
		rule string
		tree func(*indextest.Tree)
		do   func(*registry)
		seen func(*index.Snapshot) bool
	}{
		{"a release, spelled ACME/demo", release("providers/ACME/demo"), publishRelease, func(s *index.Snapshot) bool { return hosted(s, "1.0.0") != nil }},
		{"a withdrawal, spelled ACME/demo", release("providers/ACME/demo"), withdraw, withdrawn},
		{"a withdrawal, below the hostname", release("providers/registry.example.com/acme/demo"), withdraw, withdrawn},
		{"a withdrawal, below a hostname spelled otherwise", release("providers/Registry.Example.com/acme/Demo"), withdraw, withdrawn},
		{"documentation, spelled ACME/demo", release("providers/ACME/demo"), document, documented},
		{"documentation, below the hostname", release("providers/registry.example.com/acme/demo"), document, documented},
		{"a module, spelled ACME/vpc/aws", func(files *indextest.Tree) {
			files.Write("modules/ACME/vpc/aws/0.9.0.tar.gz", indextest.TarGz("main.tf", ""))
		}, publishModule, func(s *index.Snapshot) bool { return s.Module(index.PlaceOf(vpc)).Version("1.0.0") != nil }},
	} {
		t.Run(test.rule, func(t *testing.T) {
			eachTree(t, func(t *testing.T, on treeKind) {
				r := on.newRegistry(t, func(o *publish.Options) { o.Hostnames = []svchost.Hostname{own} })
				test.tree(r.Tree)
				if _, err := r.index.Rescan(t.Context()); err != nil {
					t.Fatal(err)
				}
				r.settle()
				if s := r.index.Snapshot(); hosted(s, "0.9.0") == nil && s.Module(index.PlaceOf(vpc)).Version("0.9.0") == nil {
					t.Fatal("0.9.0 is not offered")
				}
				test.do(r)
				if !test.seen(r.index.Snapshot()) {
					t.Errorf("it is not seen; the tree has %v", r.files())
				}
			})
		})
	}
}

package tree_test

import (
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

func TestNamesOfSourceRecords(t *testing.T) {
	for _, v := range []string{"1.0.0", "1.0.0-rc.1", "1.0.0+build.5"} {
		if got, ok := tree.VersionOfSource(tree.SourceName(v)); !ok || got != v {
			t.Errorf("%s: got %q, %v", v, got, ok)
		}
	}
	for _, name := range []string{"1.0.0.source.json", ".one.source.json", ".source.json", ".1.0.0.tar.gz", ".versions.json"} {
		if got, ok := tree.VersionOfSource(name); ok {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

package publish_test

import (
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/publish"
)

func TestMetadata(t *testing.T) { eachTree(t, testMetadata) }

func testMetadata(t *testing.T, on treeKind) {
	r := on.newRegistry(t)
	put := func(a address.Address, content string) (publish.Result, error) {
		f, err := publish.ParseMetadataFile(a, "registry.hcl")
		if err != nil {
			t.Fatal(err)
		}
		return r.Put(t.Context(), f, upload(content))
	}
	for _, a := range []address.Address{demo, vpc} {
		result, err := put(a, `description = "one"`)
		if err != nil || result.Outcome != publish.Added {
			t.Errorf("new: %+v, %v", result, err)
		}
		result, err = put(a, `description = "one"`)
		if err != nil || result.Outcome != publish.Unchanged {
			t.Errorf("the same: %+v, %v", result, err)
		}
		result, err = put(a, `description = "two"`)
		if err != nil || result.Outcome != publish.Added {
			t.Errorf("another: %+v, %v", result, err)
		}
		if m := r.index.Snapshot().Metadata(a); m == nil || m.Description != "two" {
			t.Errorf("the index has %+v", m)
		}
		_, err = put(a, "description = \"three\"\nowner = 1 +\nsauce = \"x\"\n")
		saying(t, err, publish.ErrRefused, "line")
	}
	absent := address.Address{Namespace: "acme", Name: "absent"}
	if result, err := put(absent, "\n"); err != nil {
		t.Errorf("one that says nothing, where there is none: %+v, %v", result, err)
	}
	r.holds("providers/acme/demo/registry.hcl", "modules/acme/vpc/aws/registry.hcl")
	if text := r.Read("providers/acme/demo/registry.hcl"); text != `description = "two"` {
		t.Errorf("the file says %q", text)
	}
	if _, err := publish.ParseMetadataFile(demo, "README.md"); err == nil {
		t.Error("another file of a provider as a whole is taken")
	}
}

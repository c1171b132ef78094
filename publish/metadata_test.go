package publish_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/publish"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

func TestMetadata(t *testing.T) { eachTree(t, testMetadata) }

func testMetadata(t *testing.T, on treeKind) {
	r := on.newRegistry(t)
	put := func(a address.Address, content string) (publish.Result, error) {
		f := metadataFile(t, a)
		return r.Put(t.Context(), f, upload(content))
	}
	mirrored := address.Address{Hostname: "registry.terraform.io", Namespace: "hashicorp", Name: "aws"}
	for _, a := range []address.Address{demo, vpc, mirrored} {
		if content, err := r.Metadata(a); !errors.Is(err, publish.ErrNothing) {
			t.Errorf("before: %q, %v", content, err)
		}
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
		if m := r.index.Snapshot().Metadata(index.PlaceOf(a)); m == nil || m.Description != "two" {
			t.Errorf("the index has %+v", m)
		}
		if content, err := r.Metadata(a); err != nil || string(content) != `description = "two"` {
			t.Errorf("it is %q, %v", content, err)
		}
		_, err = put(a, "description = \"three\"\nowner = 1 +\nsauce = \"x\"\n")
		saying(t, err, publish.ErrRefused, "line")
	}
	absent := address.Address{Namespace: "acme", Name: "absent"}
	if result, err := put(absent, "\n"); err != nil {
		t.Errorf("one that says nothing, where there is none: %+v, %v", result, err)
	}
	r.holds("providers/acme/demo/registry.hcl", "modules/acme/vpc/aws/registry.hcl", "providers/registry.terraform.io/hashicorp/aws/registry.hcl")
	if text := r.Read("providers/acme/demo/registry.hcl"); text != `description = "two"` {
		t.Errorf("the file says %q", text)
	}
	if _, err := publish.ParseMetadataFile(demo, "README.md"); err == nil {
		t.Error("another file of a provider as a whole is taken")
	}
}

// A precondition is about the file that is replaced, even if it came while the request
// waited for the lock.
func TestMetadataPrecondition(t *testing.T) { eachTree(t, testMetadataPrecondition) }

func testMetadataPrecondition(t *testing.T, on treeKind) {
	var r *registry
	meanwhile := ""
	r = on.newRegistry(t, func(o *publish.Options) {
		lock := o.Lock
		o.Lock = func(ctx context.Context, name string) (func(), error) {
			unlock, err := lock(ctx, name)
			if meanwhile != "" {
				r.Write("providers/acme/demo/registry.hcl", meanwhile)
			}
			return unlock, err
		}
	})
	refusal := errors.New("not this one")
	var asked wire.SHA256
	put := func(content string, refused error) error {
		f := metadataFile(t, demo)
		u := upload(content)
		asked = wire.SHA256{1}
		u.Precondition = func(now wire.SHA256) error { asked = now; return refused }
		_, err := r.Put(t.Context(), f, u)
		return err
	}
	if err := put(`owner = "one"`, refusal); !errors.Is(err, refusal) || asked != (wire.SHA256{}) {
		t.Errorf("without a file it is asked about %s: %v", asked, err)
	}
	r.holds()
	meanwhile = `owner = "copied"`
	if err := put(`owner = "one"`, refusal); !errors.Is(err, refusal) || asked != sha256.Sum256([]byte(meanwhile)) {
		t.Errorf("it is asked about %s: %v", asked, err)
	}
	if got := r.Read("providers/acme/demo/registry.hcl"); got != meanwhile {
		t.Errorf("there is %q", got)
	}
	if err := put(`owner = "one"`, nil); err != nil {
		t.Error(err)
	}
	if got := r.Read("providers/acme/demo/registry.hcl"); got != `owner = "one"` {
		t.Errorf("there is %q", got)
	}
}

package publish_test

import (
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/publish"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
)

// Nothing is published while the volume of the tree is not mounted: it would come into the empty
// folder, where it would end what scans keep, and a published version could be published with
// other bytes.
func TestEmptiedTrees(t *testing.T) { eachTree(t, testEmptiedTrees) }

func testEmptiedTrees(t *testing.T, on treeKind) {
	one, two := indextest.TarGz("main.tf", `output "a" { value = 1 }`), indextest.TarGz("main.tf", `output "a" { value = 2 }`)
	d, other := newDist(t, ""), newDist(t, "other")
	const withdrawal = `withdrawn "0.9.0" {}`
	r := on.newRegistry(t)
	putMetadata := func(content string) error {
		f := metadataFile(t, vpc)
		_, err := r.Put(t.Context(), f, upload(content))
		return err
	}
	putModule := func(name, content string) error {
		_, err := r.putModule(name, content)
		return err
	}
	put := func(name, content string) error {
		_, err := r.put(name, content)
		return err
	}
	if err := putMetadata(withdrawal); err != nil {
		t.Fatalf("a new registry takes nothing: %v", err)
	}
	if err := putModule("1.0.0.tar.gz", one); err != nil {
		t.Fatal(err)
	}
	r.putAll(d, linuxZip, darwinZip, manifest, sums)

	refused := func(when string) {
		t.Helper()
		for _, test := range []struct {
			rule string
			err  error
		}{
			{"another version of a module", putModule("1.1.0.tar.gz", one)},
			{"other bytes of a published version", putModule("1.0.0.tar.gz", two)},
			{"the bytes of a published version", putModule("1.0.0.tar.gz", one)},
			{"the withdrawn version of a module", putModule("0.9.0.tar.gz", one)},
			{"registry.hcl", putMetadata(`description = "new"`)},
			{"no registry.hcl", putMetadata("\n")},
			{"a package of another release of the version", put(linuxZip, other[linuxZip])},
			{"SHA256SUMS of a published release", put(sums, d[sums])},
			{"documentation of a published release", put("docs.zip", indextest.Zip("docs/index.md", "# Demo"))},
			{"what is staged is dropped", r.Drop(t.Context(), demo, "2.0.0")},
		} {
			unavailable(t, when+", "+test.rule, test.err)
		}
		_, err := r.Metadata(vpc)
		unavailable(t, when+", registry.hcl is read", err)
		_, err = r.State(t.Context(), demo, "1.0.0")
		unavailable(t, when+", what is published is read", err)
	}
	offered := func(when string) {
		t.Helper()
		r.index.Hint()
		s := r.index.Snapshot()
		for change := r.index.Changed(); !s.Sees(change) || s.Totals.Pending > 0; {
			s = r.index.Next(t.Context(), s)
		}
		if s.Module(index.PlaceOf(vpc)).Version("1.0.0") == nil || s.Provider(index.PlaceOf(demo)).Release("1.0.0") == nil || s.Metadata(index.PlaceOf(vpc)) == nil {
			t.Errorf("%s, offered are only %+v", when, s.Report().Offered)
		}
	}
	mount := r.unmount()
	refused("before a scan")
	offered("the volume is not mounted")
	refused("after a scan")
	offered("after all that was refused")
	r.holds()
	mount()

	offered("it is mounted again")
	saying(t, putModule("1.0.0.tar.gz", two), publish.ErrConflict, "a version never changes")
	if err := putModule("1.1.0.tar.gz", two); err != nil {
		t.Errorf("another version: %v", err)
	}
	if content, err := r.Metadata(vpc); err != nil || string(content) != withdrawal {
		t.Errorf("registry.hcl is %q, %v", content, err)
	}

	r.unmount()
	if _, err := r.index.Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := putModule("1.0.0.tar.gz", two); err != nil {
		t.Errorf("it is meant to be empty, as the operator has said by a rescan: %v", err)
	}
}

// unmount leaves an empty folder or bucket.
func (r *registry) unmount() (mount func()) {
	r.t.Helper()
	if r.bucket != nil {
		return r.bucket.Unmount(r.t)
	}
	return treetest.Unmount(r.t, r.root)
}

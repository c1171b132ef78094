package publish_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/publish"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
)

// newUnwatchedRegistry starts a registry that learns of no change of its tree.
func (k treeKind) newUnwatchedRegistry(t *testing.T) *registry {
	t.Helper()
	if k.bucket {
		return k.newRegistry(t)
	}
	root := t.TempDir()
	r := &registry{t: t, root: root, Tree: indextest.OnDisk(t, root)}
	open := source.Directories{Root: root}.Open
	r.start(index.Options{Open: open}, open)
	return r
}

// A publisher may send files that are already there, and rely on them as if they had been
// published now. They may be a moment old: from another instance, a copy, or a
// release completed after a crash.
func TestUnchangedIsOffered(t *testing.T) { eachTree(t, testUnchangedIsOffered) }

func testUnchangedIsOffered(t *testing.T, on treeKind) {
	t.Run("a release", func(t *testing.T) {
		d, r := newDist(t, ""), on.newUnwatchedRegistry(t)
		for name, content := range d {
			r.Write("providers/acme/demo/1.0.0/"+name, content)
		}
		if result := r.mustPut(linuxZip, d[linuxZip], publish.Unchanged); result.Message != "" {
			t.Error(result.Message)
		}
		r.offers(d)
	})
	t.Run("a module", func(t *testing.T) {
		content := indextest.TarGz("main.tf", `output "a" { value = 1 }`)
		r := on.newUnwatchedRegistry(t)
		r.Write("modules/acme/vpc/aws/1.0.0.tar.gz", content)
		result, err := r.putModule("1.0.0.tar.gz", content)
		if err != nil || result.Outcome != publish.Unchanged || result.Message != "" {
			t.Errorf("%+v, %v", result, err)
		}
		if r.index.Snapshot().Module(index.PlaceOf(vpc)).Version("1.0.0") == nil {
			t.Error("it is not offered")
		}
	})
	t.Run("what describes them", func(t *testing.T) {
		r := on.newUnwatchedRegistry(t)
		const description = `description = "one"`
		r.Write("providers/acme/demo/registry.hcl", description)
		f := metadataFile(t, demo)
		result, err := r.Put(t.Context(), f, upload(description))
		if err != nil || result.Outcome != publish.Unchanged {
			t.Errorf("%+v, %v", result, err)
		}
		if m := r.index.Snapshot().Metadata(index.PlaceOf(demo)); m == nil || m.Description != "one" {
			t.Errorf("the index has %+v", m)
		}
	})
	t.Run("documentation", func(t *testing.T) {
		d, r := newDist(t, ""), on.newUnwatchedRegistry(t)
		r.putAll(d, d.names()...)
		r.Write("providers/acme/demo/1.0.0/docs/index.md", "# Demo")
		r.mustPut("docs.zip", indextest.Zip("index.md", "# Demo"), publish.Unchanged)
		now := r.index.Snapshot()
		if now.Provider(index.PlaceOf(demo)).Release("1.0.0").Docs() == "" {
			t.Error("the index has no documentation")
		}
	})
}

// If the same bytes are there but withheld from clients, the answer says so.
func TestUnchangedIsWithheld(t *testing.T) { eachTree(t, testUnchangedIsWithheld) }

func testUnchangedIsWithheld(t *testing.T, on treeKind) {
	d, r := newDist(t, ""), on.newUnwatchedRegistry(t)
	for name, content := range d {
		r.Write("providers/acme/demo/1.0.0/"+name, content)
	}
	r.Write("providers/acme/demo/1.0.0/"+manifest, "{")
	result := r.mustPut(linuxZip, d[linuxZip], publish.Unchanged)
	if !strings.Contains(result.Message, "is not offered because of something else there") {
		t.Errorf("the message is %q", result.Message)
	}
}

// An eagerIndex scans before Changed returns, and never again. An index on another
// processor may do so.
type eagerIndex struct{ *index.Index }

func (x eagerIndex) Changed(folders ...string) index.Change {
	c := x.Index.Changed(folders...)
	_, _ = x.Rescan(context.Background())
	return c
}

// The only scan after a change may begin before its publisher waits for it.
func TestScansThatBeginAtOnce(t *testing.T) {
	root := t.TempDir()
	open := source.Directories{Root: root}.Open
	x := eagerIndex{index.New(index.Options{Open: open})}
	t.Cleanup(func() { x.Close() })
	p, err := publish.New(publish.Options{Open: open, Index: func() publish.Index { return x }, Lock: new(locks).lock})
	if err != nil {
		t.Fatal(err)
	}
	f := metadataFile(t, demo)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := p.Put(ctx, f, upload(`description = "one"`)); err != nil || ctx.Err() != nil {
		t.Errorf("%v, %v", err, ctx.Err())
	}
}

package publish_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/publish"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
)

// A request waits half a minute for a lock. Then its publisher is told to try again,
// and the log names the lock.
func TestLocksThatDoNotCome(t *testing.T) {
	d := newDist(t, "")
	module := indextest.TarGz("main.tf", "")
	docs := indextest.Zip("docs/index.md", "# Demo")
	for _, test := range []struct {
		rule string
		lock string
		put  func(r *registry) (publish.Result, error)
	}{
		{"of a release", "terraform_registry/publish/acme@demo@1.0.0", func(r *registry) (publish.Result, error) { return r.put(linuxZip, d[linuxZip]) }},
		{"of documentation", "terraform_registry/publish/acme@demo@1.0.0", func(r *registry) (publish.Result, error) { return r.put("docs.zip", docs) }},
		{"of a module", "terraform_registry/publish/acme/vpc/aws@1.0.0", func(r *registry) (publish.Result, error) { return r.putModule("1.0.0.tgz", module) }},
	} {
		t.Run(test.rule, func(t *testing.T) {
			root := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				r := newUnobserved(t, root)
				unlock, err := r.locks.lock(t.Context(), test.lock)
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				_, err = test.put(r)
				saying(t, err, publish.ErrUnavailable, "try again")
				if waited := time.Since(began); waited != 30*time.Second {
					t.Errorf("it has waited %s", waited)
				}
				if strings.Count(r.log.String(), "\n") != 1 || !strings.Contains(r.log.String(), strings.TrimPrefix(test.lock, "terraform_registry/publish/")) {
					t.Errorf("the log has %s", r.log)
				}
				unlock()
				if _, err := test.put(r); err != nil {
					t.Errorf("it is sent again: %v", err)
				}
			})
		})
	}
}

// newUnobserved returns a registry without an index.
func newUnobserved(t *testing.T, root string) *registry {
	t.Helper()
	r := &registry{t: t, root: root, Tree: indextest.OnDisk(t, root), locks: new(locks), log: new(bytes.Buffer)}
	o := publish.Options{Open: source.Directories{Root: root}.Open, Lock: r.locks.lock, Logger: slog.New(slog.NewTextHandler(r.log, nil))}
	withoutIndex(&o)
	var err error
	if r.Publisher, err = publish.New(o); err != nil {
		t.Fatal(err)
	}
	return r
}

// A lock outlives the context of the wait for it, and the request. Some storages renew a lock
// only as long as the context lives with which it was requested.
func TestLocksOutliveTheWaitForThem(t *testing.T) {
	root := t.TempDir()
	var locked atomic.Bool
	ended := false
	r := newUnobserved(t, root)
	ctx, leave := context.WithCancel(t.Context())
	var faults treetest.Faults
	faults.When(func(_ int, o treetest.Operation) error {
		if locked.Load() && o.Name != "sync" { // which goes on in the background since before
			leave()
		}
		return nil
	})
	o := publish.Options{Open: faults.Open(source.Directories{Root: root}.Open), Lock: func(ctx context.Context, _ string) (func(), error) {
		locked.Store(true)
		return func() { ended = ctx.Err() != nil }, nil
	}}
	withoutIndex(&o)
	var err error
	if r.Publisher, err = publish.New(o); err != nil {
		t.Fatal(err)
	}
	f, err := publish.ParseModuleFile(vpc, "1.0.0.tgz")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Put(ctx, f, upload(indextest.TarGz("main.tf", ""))); err != nil || ended || ctx.Err() == nil {
		t.Errorf("it ended before it was given back: %t (%v, the client has left: %v)", ended, err, ctx.Err())
	}
}

// Documentation of one version does not wait for the lock of another.
func TestDocumentationWaitsForItsOwnVersion(t *testing.T) {
	root := t.TempDir()
	docs := indextest.Zip("docs/index.md", "# Demo")
	synctest.Test(t, func(t *testing.T) {
		r := newUnobserved(t, root)
		unlock, err := r.locks.lock(t.Context(), "terraform_registry/publish/acme@demo@1.0.0")
		if err != nil {
			t.Fatal(err)
		}
		waiting := make(chan error)
		go func() {
			_, err := r.put("docs.zip", docs)
			waiting <- err
		}()
		synctest.Wait()
		f, err := publish.ParseReleaseFile(demo, "2.0.0", "docs.zip")
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := r.Put(t.Context(), f, upload(docs)); err != nil || time.Since(began) > 0 {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		unlock()
		if err := <-waiting; err != nil {
			t.Error(err)
		}
	})
}

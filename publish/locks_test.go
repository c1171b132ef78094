package publish_test

import (
	"context"
	"errors"
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
				r := newUnobserved(t, root, source.Directories{Root: root}.Open)
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

// A publisher that leaves while it waits is no failure of the registry.
func TestPublishersThatLeaveWhileTheyWaitForALock(t *testing.T) {
	root, module := t.TempDir(), indextest.TarGz("main.tf", "")
	synctest.Test(t, func(t *testing.T) {
		r := newUnobserved(t, root, source.Directories{Root: root}.Open)
		unlock, err := r.locks.lock(t.Context(), "terraform_registry/publish/acme/vpc/aws@1.0.0")
		if err != nil {
			t.Fatal(err)
		}
		defer unlock()
		ctx, leave := context.WithCancel(t.Context())
		waiting := make(chan error, 1)
		go func() {
			_, err := r.Put(ctx, moduleFile(t, "1.0.0.tgz"), upload(module))
			waiting <- err
		}()
		synctest.Wait()
		leave()
		if err := <-waiting; !errors.Is(err, publish.ErrInterrupted) || r.log.Len() > 0 {
			t.Errorf("it says %v, and the log has %s", err, r.log)
		}
	})
}

// A lock outlives the context of the wait for it, and the request. Some storages renew a lock
// only as long as the context lives with which it was requested.
func TestLocksOutliveTheWaitForThem(t *testing.T) {
	root := t.TempDir()
	var locked atomic.Bool
	ended := false
	ctx, leave := context.WithCancel(t.Context())
	var faults treetest.Faults
	faults.When(func(_ int, o treetest.Operation) error {
		if locked.Load() && o.Name != "sync" { // which goes on in the background since before
			leave()
		}
		return nil
	})
	r := newUnobserved(t, root, faults.Open(source.Directories{Root: root}.Open), func(o *publish.Options) {
		o.Lock = func(ctx context.Context, _ string) (func(), error) {
			locked.Store(true)
			return func() { ended = ctx.Err() != nil }, nil
		}
	})
	f := moduleFile(t, "1.0.0.tgz")
	if _, err := r.Put(ctx, f, upload(indextest.TarGz("main.tf", ""))); err != nil || ended || ctx.Err() == nil {
		t.Errorf("it ended before it was given back: %t (%v, the client has left: %v)", ended, err, ctx.Err())
	}
}

// Documentation of one version does not wait for the lock of another.
func TestDocumentationWaitsForItsOwnVersion(t *testing.T) {
	root := t.TempDir()
	docs := indextest.Zip("docs/index.md", "# Demo")
	synctest.Test(t, func(t *testing.T) {
		r := newUnobserved(t, root, source.Directories{Root: root}.Open)
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
		f := releaseFile(t, "2.0.0", "docs.zip")
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

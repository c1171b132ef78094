package index_test

import (
	"context"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
)

// slowFolder opens a tree in which nothing can be done with the folder of that path in the report
// until release is called.
func slowFolder(open func() (tree.Tree, error), report string) (slow func() (tree.Tree, error), release func()) {
	faults, opened := new(treetest.Faults), make(chan struct{})
	_, name, _ := strings.Cut(report, "/")
	faults.When(func(_ int, o treetest.Operation) error {
		if strings.HasSuffix(o.Path, name) {
			<-opened
		}
		return nil
	})
	return faults.Open(open), sync.OnceFunc(func() { close(opened) })
}

// duringFirstScan calls check while an index scans for the first time, in a bubble of testing/synctest.
// Another index has read the tree before a change, which may be nil. The folder of demo in the
// namespace slow cannot be listed until release is called.
func duringFirstScan(t *testing.T, files *indextest.Tree, change func(*index.Options), check func(t *testing.T, x *index.Index, release func())) {
	t.Helper()
	files.Provider("slow/demo", "1.0.0", "linux_amd64")
	o, written := options(t, files.Open), time.Now()
	o.Store, o.Identity, o.Workers = new(memoryStore), "tree", 2
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(written.Add(time.Hour))) // the bubble begins in 2000, and files must be old
		before := index.New(o)
		if _, err := before.Rescan(t.Context()); err != nil {
			t.Fatal(err)
		}
		before.Close()
		if change != nil {
			change(&o)
		}
		slow, release := slowFolder(o.Open, "providers/slow/demo")
		defer release() // Close waits for the scan
		o.Open = slow
		x := index.New(o)
		defer x.Close()
		x.Start()
		check(t, x, release)
	})
}

// While the first scan runs, an address is offered as soon as its folders have been listed, as far as
// that does not depend on others.
func TestAnAddressIsOfferedDuringTheFirstScan(t *testing.T) {
	publisher := indextest.NewPublisher(t)
	demo := index.PlaceOf(ownDemo)
	hosted := index.Place{Address: ownDemo.WithHostname("registry.example.com"), Merged: true}
	failing := func(folder string) func(*indextest.Tree, *index.Options) {
		return func(_ *indextest.Tree, o *index.Options) {
			var faults treetest.Faults
			faults.When(func(_ int, o treetest.Operation) error {
				if strings.HasSuffix(o.Path, folder) {
					return syscall.EIO
				}
				return nil
			})
			o.Open = faults.Open(o.Open)
		}
	}
	unknown := func(t *testing.T, s *index.Snapshot) {
		if !s.Unknown(demo) || s.Provider(demo) != nil {
			t.Errorf("it counts as known, with %+v", s.Provider(demo))
		}
	}
	for _, test := range []struct {
		rule   string
		build  func(*indextest.Tree)
		change func(*indextest.Tree, *index.Options) // after it has been read
		check  func(t *testing.T, s *index.Snapshot) // nil: SnapshotOf waits for the end of the scan
	}{
		{
			rule: "a provider",
			check: func(t *testing.T, s *index.Snapshot) {
				if p := s.Provider(demo); p.Release("1.0.0") == nil || p.Versions() == nil || s.Unknown(demo) {
					t.Errorf("it offers %+v", p)
				}
			},
		},
		{
			rule: "an address that has versions under a HOSTNAME, too",
			build: func(files *indextest.Tree) {
				files.Provider("registry.example.com/acme/demo", "2.0.0", "linux_amd64").Signed(publisher)
			},
			check: func(t *testing.T, s *index.Snapshot) {
				p := s.Provider(hosted)
				if p.Release("1.0.0") == nil || p.Release("2.0.0") == nil {
					t.Errorf("it offers %+v", p)
				}
			},
		},
		{
			rule: "another HOSTNAME does not count",
			change: func(files *indextest.Tree, _ *index.Options) { // its archive is unread
				files.Provider("secret.example.com/acme/demo", "2.0.0", "linux_amd64")
			},
			check: func(t *testing.T, s *index.Snapshot) {
				if s.Provider(hosted).Release("1.0.0") == nil {
					t.Errorf("it offers %+v", s.Provider(hosted))
				}
			},
		},
		{
			rule:   "an address that is not in the tree is absent",
			change: func(files *indextest.Tree, _ *index.Options) { files.Remove("providers/acme") },
			check: func(t *testing.T, s *index.Snapshot) {
				if s.Provider(demo) != nil || s.Unknown(demo) || s.Pending(demo, "") {
					t.Errorf("it offers %+v", s.Provider(demo))
				}
			},
		},
		{rule: "a folder that cannot be read is not absent", change: failing("acme/demo"), check: unknown},
		{rule: "nor is a folder in a namespace that cannot be read", change: failing("acme"), check: unknown},
		{
			rule: "an address in two spellings depends on both",
			build: func(files *indextest.Tree) {
				files.Write("providers/ACME/demo/registry.hcl", `description = "about it"`)
			},
		},
		{
			rule: "an archive that has not been read",
			change: func(files *indextest.Tree, _ *index.Options) {
				files.Provider("acme/demo", "1.1.0", "linux_amd64").Signed(publisher)
			},
		},
	} {
		t.Run(test.rule, func(t *testing.T) {
			files := indextest.New(t)
			files.Keys("acme", publisher)
			files.Provider("acme/demo", "1.0.0", "linux_amd64").Signed(publisher)
			if test.build != nil {
				test.build(files)
			}
			change := func(o *index.Options) {
				if test.change != nil {
					test.change(files, o)
				}
			}
			duringFirstScan(t, files, change, func(t *testing.T, x *index.Index, release func()) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				s := x.SnapshotOf(ctx, hosted)
				switch {
				case x.Snapshot() != nil:
					t.Fatal("the first scan has ended")
				case test.check != nil && s == nil:
					t.Error("it waits for the whole tree")
				case test.check != nil:
					test.check(t, s)
				case s != nil:
					t.Errorf("it does not wait, and offers %+v", s.Provider(demo))
				}
				release()
				<-x.Ready()
				synctest.Wait()
				if x.SnapshotOf(t.Context(), hosted) != x.Snapshot() {
					t.Error("after the scan it is not the latest snapshot")
				}
			})
		})
	}
}

// A version that a ledger refuses is not offered during the first scan either, as soon as it refuses.
func TestALedgerCountsDuringTheFirstScan(t *testing.T) {
	files := indextest.New(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64")
	files.Provider("acme/demo", "1.1.0", "linux_amd64")
	duringFirstScan(t, files, nil, func(t *testing.T, x *index.Index, _ func()) {
		ledger := new(refusing)
		x.SetLedger(ledger)
		for _, refused := range []string{"1.1.0", "1.0.0"} {
			ledger.refuse("acme/demo " + refused + " linux_amd64")
			p := x.SnapshotOf(t.Context(), index.PlaceOf(ownDemo)).Provider(index.PlaceOf(ownDemo))
			if len(p.ReleaseList()) != 1 || p.Release(refused) != nil {
				t.Errorf("%s is refused, and offered is %+v", refused, p)
			}
		}
	})
}

// A scan that is given up offers nothing: folders look empty to it.
func TestAScanThatIsGivenUpOffersNoAddress(t *testing.T) {
	files := indextest.New(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64")
	duringFirstScan(t, files, nil, func(t *testing.T, x *index.Index, _ func()) {
		synctest.Wait() // until there is nothing left but the slow folder
		x.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if s := x.SnapshotOf(ctx, index.PlaceOf(ownDemo)); s != nil {
			t.Errorf("it offers %+v", s.Provider(index.PlaceOf(ownDemo)))
		}
	})
}

package pull_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A package that the record has with other bytes than its origin sends is neither kept nor served.
// A package that is not on record, or has these bytes there, is fetched as ever.
func TestWhatAnOriginHasReplaced(t *testing.T) {
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	replaced := make(map[string]bool)
	begin := func(c *upstream.Client, policy pull.Policy) *mirroring {
		folders := indextest.New(t)
		return (&mirroring{Tree: folders}).start(t, c, pull.Options{
			Sources: sourceOf(c, policy), Open: folders.Open,
			Replaces: func(a address.Address, version string, on address.Platform, h1 string, sum wire.SHA256) time.Time {
				if a.Hostname != host || h1 == "" || sum == (wire.SHA256{}) {
					t.Errorf("asked is %s %s %s %s %s", a, version, on, h1, sum)
				}
				if replaced[a.Namespace+" "+version+" "+on.String()] {
					return since
				}
				return time.Time{}
			},
		})
	}
	replaced["acme 1.0.0 linux_amd64"] = true
	m := begin(newAcme(t).Client(t, upstream.Origin{}), pull.Policy{})
	m.mustRefuse(t, linuxZip, pull.ErrConflict, "version 1.0.0 is on record with other bytes since 2026-01-02T03:04:05Z")
	m.fill(t, darwinZip)
	replaced[vpc.Namespace+" 1.0.0 _"] = true
	begin(newModules(t, "").Client(t, upstream.Origin{}), withModules).mustRefuseModule(t, pull.ErrConflict, "is on record with other bytes")
}

// A module that was swapped in the tree is not served, although the index has none.
func TestAReplacedModuleInTheTreeIsNotServed(t *testing.T) {
	folders := indextest.New(t).Write("modules/"+vpc.String()+"/1.0.0.tar.gz", indextest.TarGz("main.tf", "# swapped in the tree"))
	c := newModules(t, "").Client(t, upstream.Origin{})
	m := (&mirroring{Tree: folders}).start(t, c, pull.Options{
		Sources: sourceOf(c, withModules), Open: folders.Open,
		Replaces: func(address.Address, string, address.Platform, string, wire.SHA256) time.Time { return time.Now() },
	})
	m.mustRefuseModule(t, pull.ErrConflict, "is on record with other bytes")
}

// Where packages must be on record, one that is fetched is handed out when it is. It stays in the
// tree, and is not fetched again.
func TestWhatIsFetchedMustBeOnRecord(t *testing.T) {
	recorded := make(map[string]bool)
	begin := func(c *upstream.Client, policy pull.Policy) *mirroring {
		folders := indextest.New(t)
		return (&mirroring{Tree: folders}).start(t, c, pull.Options{
			Sources: sourceOf(c, policy), Open: folders.Open,
			Await: func(_ context.Context, a address.Address, version string, on address.Platform) bool {
				return recorded[a.Namespace+" "+version+" "+on.String()]
			},
		})
	}
	m := begin(newAcme(t).Client(t, upstream.Origin{}), pull.Policy{})
	for range 2 {
		if f, err := m.Fill(background(), demo, linuxZip); f != nil || !errors.Is(err, pull.ErrNotOnRecord) {
			t.Errorf("got %v, %v", f, err)
		}
	}
	before := m.files(t)
	if !slices.ContainsFunc(before, func(name string) bool { return strings.HasSuffix(name, linuxZip) }) {
		t.Errorf("the tree has %q", before)
	}
	recorded["acme 1.0.0 linux_amd64"] = true
	m.fill(t, linuxZip)
	after := slices.DeleteFunc(m.files(t), func(name string) bool { return name == record })
	if !slices.Equal(before, after) {
		t.Errorf("the tree had %q, and now has %q", before, after)
	}
	m = begin(newModules(t, "").Client(t, upstream.Origin{}), withModules)
	if f, err := m.FillModule(background(), vpc, "1.0.0", nil); f != nil || !errors.Is(err, pull.ErrNotOnRecord) {
		t.Errorf("got %v, %v", f, err)
	}
	recorded[vpc.Namespace+" 1.0.0 _"] = true
	m.fillModule(t)
}

// A package that waits until it is on record keeps no other one waiting for a slot.
func TestPackagesThatWaitForTheRecordHaveNoSlot(t *testing.T) {
	s, names := many(t, upstream.MaxDownloads+1)
	s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
		var waiting sync.WaitGroup
		waiting.Add(len(names))
		folders := indextest.New(t)
		m := (&mirroring{Tree: folders}).start(t, c, pull.Options{
			Sources: sourceOf(c, pull.Policy{}), Open: folders.Open,
			Await: func(ctx context.Context, _ address.Address, _ string, _ address.Platform) bool {
				waiting.Done()
				all := make(chan struct{})
				go func() {
					waiting.Wait()
					close(all)
				}()
				select {
				case <-all:
					return true
				case <-ctx.Done():
					return false
				}
			},
		})
		defer m.Close()
		var fills sync.WaitGroup
		for _, name := range names {
			fills.Go(func() {
				if _, err := m.Fill(background(), demo, name); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
		fills.Wait()
	})
}

// Clients that follow a package get its end when it is on record, and not before.
func TestTheEndIsHeldBackUntilItIsOnRecord(t *testing.T) {
	for _, test := range []struct {
		rule     string
		recorded bool
	}{
		{"it comes to be on record", true},
		{"it does not", false},
	} {
		t.Run(test.rule, func(t *testing.T) {
			s := newSlowSite(t, indextest.Zip("terraform-provider-demo", noise(1<<20)))
			root := treeKind{}.root(t)
			s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
				s.goOn = make(chan struct{})
				entered := make(chan struct{})
				m := newMirror(t, (&mirroring{Tree: root.tree(t), root: root}).start(t, c, pull.Options{
					Sources: sourceOf(c, pull.Policy{}), Open: root.open,
					Await: func(ctx context.Context, _ address.Address, _ string, _ address.Platform) bool {
						select {
						case <-entered:
							return true
						case <-ctx.Done():
							return false
						}
					},
				}))
				defer m.filler.Close()
				f := m.ask(background())
				time.Sleep(followAfter + time.Millisecond)
				close(s.goOn)
				synctest.Wait()
				// A follower who was slower than the package came gets the rest from the tree, with the end.
				if got := f.now(); len(got.body) < s.half() || len(got.body) > len(s.content)-heldBack || got.ended {
					t.Errorf("before it is on record: %d bytes of %d", len(got.body), len(s.content))
				}
				if test.recorded {
					close(entered)
				}
				m.all.Wait()
				if got := f.now(); (got.body == s.content) != test.recorded || got.broken == test.recorded {
					t.Errorf("got %d bytes of %d, broken: %t", len(got.body), len(s.content), got.broken)
				}
			})
		})
	}
}

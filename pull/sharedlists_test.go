package pull_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/upstreamtest"
)

// twoInstances runs a test with two instances that mirror the site into one tree, in a bubble of time. Both
// have the list with 1.0.0, and the tree has its package if filled is true. release releases 1.1.0.
func twoInstances(t *testing.T, filled bool, test func(t *testing.T, release func(), a, b *mirroring)) {
	t.Helper()
	files, publisher := acme(t)
	s := newSite(t, files)
	release := func() {
		files.Provider("acme/demo", "1.1.0", "linux_amd64").Signed(publisher)
		s.Become(newSite(t, files))
	}
	s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
		folders := indextest.New(t)
		a, b := inMemory(t, c, pull.Policy{}, folders), inMemory(t, c, pull.Policy{}, folders)
		defer a.Close()
		defer b.Close()
		if filled {
			a.fill(t, linuxZip)
		}
		versionsOf(t, a)
		versionsOf(t, b)
		test(t, release, a, b)
	})
}

// A client gets a list from one instance, and a version in it from another one, whose own list is older.
func TestVersionsThatAnotherInstanceHasListed(t *testing.T) {
	for _, test := range []struct {
		rule   string
		filled bool
	}{
		{"the tree has the list", true},
		{"the tree has no list, and the origin is asked", false},
	} {
		t.Run(test.rule, func(t *testing.T) {
			twoInstances(t, test.filled, func(t *testing.T, release func(), a, b *mirroring) {
				time.Sleep(15 * time.Minute) // the lists are renewed, and served meanwhile
				release()
				versionsOf(t, a)
				synctest.Wait()
				if got := versionsOf(t, a); got != "1.1.0 1.0.0" {
					t.Fatalf("the first instance lists %q", got)
				}
				if _, err := b.Available(background(), demo, "1.1.0"); err != nil {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

// A hosted version is fetched at once by instances that have compared their lists a moment before, and a second
// later by those that were asked for it too early.
func TestHostedVersionsThatAnotherInstanceHasListed(t *testing.T) {
	for _, early := range []bool{false, true} {
		t.Run(fmt.Sprintf("asked too early: %v", early), func(t *testing.T) {
			c := connect(t, "")
			c.repository.Write("main.tf", "")
			c.repository.Commit("v1.0.0")
			c.list(t)
			told := *c
			told.mirroring = &mirroring{Tree: c.Tree, root: c.root}
			told.restart(t)
			c.list(t)
			if early {
				if _, err := c.FillModule(background(), hosted, "1.1.0", nil); !errors.Is(err, pull.ErrUnlisted) {
					t.Fatalf("got %v", err)
				}
			}
			c.repository.Commit("v1.1.0")
			if err := told.Renew(background(), hosted, time.Now(), true); err != nil {
				t.Fatal(err)
			}
			if early {
				pull.CheckListNow(c.Filler, hosted)
			}
			if _, err := c.ModuleFolder(background(), hosted, "1.1.0"); err != nil {
				t.Errorf("its folder: %v", err)
			}
			c.fillVersion(t, "1.1.0")
		})
	}
}

// A version that is requested too early is refused no longer than the list lacks it.
func TestVersionsThatAreRequestedBeforeTheyAreListed(t *testing.T) {
	twoInstances(t, true, func(t *testing.T, release func(), a, b *mirroring) {
		time.Sleep(9*time.Minute + 30*time.Second)
		if _, err := b.Available(background(), demo, "1.1.0"); !errors.Is(err, pull.ErrUnlisted) {
			t.Fatalf("got %v", err)
		}
		release()
		time.Sleep(31 * time.Second)
		versionsOf(t, b)
		synctest.Wait()
		if got := versionsOf(t, b); got != "1.1.0 1.0.0" {
			t.Fatalf("it lists %q", got)
		}
		if _, err := b.Available(background(), demo, "1.1.0"); err != nil {
			t.Errorf("got %v", err)
		}
	})
}

// The same, if another instance has asked the origin meanwhile.
func TestVersionsThatAreRequestedBeforeAnotherInstanceListsThem(t *testing.T) {
	twoInstances(t, true, func(t *testing.T, release func(), a, b *mirroring) {
		time.Sleep(15 * time.Minute)
		if _, err := b.Available(background(), demo, "1.1.0"); !errors.Is(err, pull.ErrUnlisted) {
			t.Fatalf("got %v", err)
		}
		release()
		time.Sleep(time.Second)
		if err := a.Renew(background(), demo, time.Now(), true); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if _, err := b.Available(background(), demo, "1.1.0"); err != nil {
			t.Errorf("got %v", err)
		}
	})
}

// A slow origin is waited for only a moment.
func TestVersionsThatASlowOriginMayHaveListed(t *testing.T) {
	s := newAcme(t)
	mirrored(t, s, pull.Policy{}, func(t *testing.T, m *mirroring) {
		versionsOf(t, m)
		time.Sleep(15 * time.Minute)
		s.Fault(versions, upstreamtest.Silence)
		began := time.Now()
		if _, err := m.Available(background(), demo, "1.1.0"); !errors.Is(err, pull.ErrUnlisted) || time.Since(began) > 3*time.Second {
			t.Errorf("got %v after %v", err, time.Since(began))
		}
	})
}

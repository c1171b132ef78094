package pull_test

import (
	"errors"
	"fmt"
	"net/http"
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
func twoInstances(t *testing.T, filled bool, test func(t *testing.T, s *site, release func(), a, b *mirroring)) {
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
		test(t, s, release, a, b)
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
			twoInstances(t, test.filled, func(t *testing.T, s *site, release func(), a, b *mirroring) {
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
			told := c.another(t)
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
	twoInstances(t, true, func(t *testing.T, s *site, release func(), a, b *mirroring) {
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
	twoInstances(t, true, func(t *testing.T, s *site, release func(), a, b *mirroring) {
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

// A version that the last known list lacks may exist, unless the origin says otherwise.
func TestVersionsThatTheLastKnownListLacks(t *testing.T) {
	for _, test := range []struct {
		rule  string
		age   time.Duration // of the list
		fault http.HandlerFunc
		want  error
	}{
		{"the origin still lists others", 15 * time.Minute, nil, pull.ErrUnlisted},
		{"the list need not be renewed", 5 * time.Minute, status(501), pull.ErrUnlisted},
		{"the origin has no such provider any more", 15 * time.Minute, status(404), pull.ErrUnlisted},
		{"the origin fails", 15 * time.Minute, status(501), upstream.ErrUnavailable},
		{"the origin refuses the token", 15 * time.Minute, status(401), upstream.ErrRefused},
		{"the origin is slow, and waited for only a moment", 15 * time.Minute, upstreamtest.Silence, upstream.ErrTimeout},
	} {
		t.Run(test.rule, func(t *testing.T) {
			twoInstances(t, true, func(t *testing.T, s *site, release func(), a, b *mirroring) {
				time.Sleep(test.age)
				s.Fault(versions, test.fault)
				for range 2 { // the second request finds the failure in memory
					began := time.Now()
					_, err := a.Available(background(), demo, "1.1.0")
					if !errors.Is(err, test.want) || errors.Is(err, upstream.ErrNotFound) != errors.Is(test.want, upstream.ErrNotFound) || time.Since(began) > 3*time.Second {
						t.Errorf("got %v after %v", err, time.Since(began))
					}
					time.Sleep(5 * time.Second)
				}
				s.Fault(versions, nil)
				release()
				if err := b.Renew(background(), demo, time.Now(), true); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				if _, err := a.Available(background(), demo, "1.1.0"); err != nil {
					t.Errorf("once another instance has listed it, got %v", err)
				}
			})
		})
	}
}

// The failure of a list does not refuse a version for longer than the list itself rests.
func TestARefusalEndsWhenTheListMayBeAskedForAgain(t *testing.T) {
	twoInstances(t, true, func(t *testing.T, s *site, release func(), a, _ *mirroring) {
		time.Sleep(15 * time.Minute)
		s.Fault(versions, status(401))
		if _, err := a.CurrentVersions(background(), demo); !errors.Is(err, upstream.ErrRefused) {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Second)
		if _, err := a.Available(background(), demo, "1.1.0"); !errors.Is(err, upstream.ErrRefused) {
			t.Errorf("while the failure is remembered, got %v", err)
		}
		s.Fault(versions, nil)
		release()
		time.Sleep(15 * time.Second)
		if _, err := a.Available(background(), demo, "1.1.0"); err != nil {
			t.Errorf("a minute after the failure, got %v", err)
		}
	})
}

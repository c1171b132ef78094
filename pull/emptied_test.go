package pull_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

// Nothing is fetched while the volume of the tree is not mounted, and no list is kept: it would
// come into the empty folder, where it would end what scans keep. Lists that are in memory are
// served.
func TestEmptiedTrees(t *testing.T) { eachTree(t, testEmptiedTrees) }

func testEmptiedTrees(t *testing.T, on treeKind) {
	root := on.root(t) // outside of the folder in which nothing may be left
	s := newModules(t, "")
	s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
		lists(s, "1.0.0", 10*day)
		s.Fault("/v1/modules/acme/vpc/aws/1.0.0", body(`{"published_at":"1999-01-01T00:00:00Z"}`))
		var latest *index.Snapshot // as an index has it that has not scanned the tree since
		m := &mirroring{Tree: root.tree(t), root: root}
		m.start(t, c, pull.Options{
			Sources: sourceOf(c, pull.Policy{Modules: true, MinAge: day}), Open: root.open,
			Snapshots: func() []*index.Snapshot { return []*index.Snapshot{nil, latest} },
		})
		defer m.Close()
		latest = m.scan(t)
		m.fill(t, linuxZip) // into a new tree
		m.fillModule(t)
		m.Write(moduleFolder+"registry.hcl", `withdrawn "0.9.0" {}`)
		latest = m.scan(t)
		had := len(m.files(t))

		mount := root.unmount(t)
		time.Sleep(time.Hour) // until lists have to be renewed, and the tree is opened again
		if got := versionsOf(t, m); got != "1.0.0" {
			t.Errorf("a list in memory is %q", got)
		}
		other := demo
		other.Name = "other"
		for _, test := range []struct {
			rule string
			do   func() error
		}{
			{"another package", func() error { _, err := m.Fill(background(), demo, darwinZip); return err }},
			{"a package that was there", func() error { _, err := m.Fill(background(), demo, linuxZip); return err }},
			{"a module that was there", func() error { _, err := m.FillModule(background(), vpc, "1.0.0", nil); return err }},
			{"a withdrawn version of a module", func() error { _, err := m.FillModule(background(), vpc, "0.9.0", nil); return err }},
			{"a list that is not in memory", func() error { _, err := m.Versions(background(), other); return err }},
		} {
			if err := test.do(); !errors.Is(err, pull.ErrUnread) || !errors.Is(err, tree.ErrEmptied) || !strings.Contains(err.Error(), "is its volume mounted?") {
				t.Errorf("%s: %v", test.rule, err)
			}
		}
		if m.RemoveLeftovers(background()) != 0 || m.log.count("is its volume mounted?") == 0 {
			t.Errorf("the log does not say what to do: %s", m.log.text.String())
		}
		m.mustHave(t)
		mount()

		time.Sleep(time.Second) // until the tree is opened again
		if n := len(m.files(t)); n != had {
			t.Errorf("there are %d files of %d", n, had)
		}
		m.fill(t, linuxZip)
		m.fill(t, darwinZip)
		m.fillModule(t)

		root.unmount(t)
		time.Sleep(time.Hour)
		latest = m.scan(t) // after a rescan that accepts it
		m.fill(t, linuxZip)
	})
}

// A volume may be unmounted while a package arrives.
func TestTreesThatAreEmptiedDuringAFill(t *testing.T) {
	eachTree(t, func(t *testing.T, on treeKind) {
		for _, test := range []struct {
			part, name, path string
			fill             func(m *mirroring) error
		}{
			{"providers", directory + linuxZip, zipFile, func(m *mirroring) error { _, err := m.Fill(background(), demo, linuxZip); return err }},
			{"modules", modulePackage, archivePath, func(m *mirroring) error { _, err := m.FillModule(background(), vpc, "1.0.0", nil); return err }},
		} {
			t.Run(test.part, func(t *testing.T) {
				s, root := newModules(t, ""), on.root(t)
				c := s.Client(t, upstream.Origin{})
				var latest *index.Snapshot
				m := &mirroring{Tree: root.tree(t), root: root}
				m.start(t, c, pull.Options{
					Sources: sourceOf(c, withModules), Open: root.open,
					Snapshots: func() []*index.Snapshot { return []*index.Snapshot{latest} },
				})
				m.fill(t, linuxZip)
				m.fillModule(t)
				latest = m.scan(t)
				m.Remove(test.name)
				mount := func() {}
				serve := s.Fault(test.path, nil)
				if serve == nil {
					serve = s.Edited()
				}
				s.Fault(test.path, func(w http.ResponseWriter, r *http.Request) {
					if on.bucket {
						mount = root.bucket.Unmount(t)
					} else {
						mount = treetest.Unmount(t, root.dir+"/"+test.part) // the root stays, which is open
					}
					serve(w, r)
				})
				if err := test.fill(m); !errors.Is(err, tree.ErrEmptied) {
					t.Errorf("got %v", err)
				}
				mount()
				s.Fault(test.path, serve)
				if err := test.fill(m); err != nil {
					t.Errorf("it is mounted again: %v", err)
				}
			})
		}
	})
}

// unmount leaves an empty folder or bucket.
func (r treeRoot) unmount(t testing.TB) (mount func()) {
	t.Helper()
	if r.bucket != nil {
		return r.bucket.Unmount(t)
	}
	return treetest.Unmount(t, r.dir)
}

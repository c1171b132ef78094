package pull_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

// The hashes that an origin announces for a release are still announced when the origin
// is down, and after a restart, even for packages that are not in the tree.
func TestAnnouncedHashesOutliveAnOutage(t *testing.T) {
	s := newAcme(t)
	s.InBubble(t, upstream.Origin{}, func(t *testing.T, c *upstream.Client) {
		folders := indextest.New(t)
		before := inMemory(t, c, pull.Policy{}, folders)
		before.fill(t, linuxZip)
		before.Close()
		if !slices.Contains(before.files(t), announcedFile) {
			t.Fatalf("the tree has %q", before.files(t))
		}
		for _, path := range []string{discovery, versions, metadata} {
			s.Fault(path, status(503))
		}
		time.Sleep(time.Hour)
		for rule, present := range map[string]bool{"as the index has it": true, "as it is on the disk": false} {
			m := inMemory(t, c, pull.Policy{}, folders)
			release := m.scan(t).Provider(index.PlaceOf(demo)).Release("1.0.0")
			if !present {
				release = nil
			}
			r, err := m.ReleaseFor(background(), demo, "1.0.0", linux, release)
			if err != nil || len(r.Announced) != 2 || len(r.Protocols) == 0 {
				t.Errorf("%s: got %+v, %v", rule, r, err)
			}
			m.Close()
		}
		synctest.Wait()
	})
}

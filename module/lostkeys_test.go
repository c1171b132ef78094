package module

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// A namespace still requires its keys after restarts, wherever the tree is served with
// the same storage.
func TestLostKeysFile(t *testing.T) {
	root, storage := t.TempDir(), t.TempDir()
	author, forger := indextest.NewPublisher(t), indextest.NewPublisher(t)
	files := indextest.OnDisk(t, root).Keys("acme", author)
	files.Provider("acme/demo", "1.0.0", "linux_amd64").Signed(author)
	signedBy := func(s *index.Snapshot, version string) string {
		r := s.Provider(index.PlaceOf(address.Address{Namespace: "acme", Name: "demo"})).Release(version)
		if r == nil {
			return ""
		}
		return r.Signature.String()
	}
	begin := func(storage string) (*configuration, *Handler, *heard) {
		c := newConfigurationIn(t, storage)
		h := c.mustHandle(Handler{Root: root, Rescan: -1})
		changed := c.hear(eventKeysChanged)
		c.mustStart()
		snapshot(t, h)
		return c, h, changed
	}
	c, h, changed := begin(storage)
	files.Remove("keys/acme.asc")
	files.Provider("acme/demo", "1.1.0", "linux_amd64").Signed(forger)
	rescan(t, h)
	events := changed.take()
	if len(events) != 1 || events[0].Data["namespace"] != "acme" || events[0].Data["missing"] != true || !slices.Equal(events[0].Data["before"].([]string), []string{author.ID()}) {
		t.Errorf("the events are %v", events)
	}
	c.cancel()
	_, h, _ = begin(storage)
	s := snapshot(t, h)
	if got := signedBy(s, "1.0.0"); got != "publisher "+author.ID() {
		t.Errorf("the release that the file verified is signed by %q", got)
	}
	if got := signedBy(s, "1.1.0"); got != "" {
		t.Errorf("the other release is offered, signed by %s", got)
	}
	if s.Totals.Withheld[tree.KeysMissing] != 2 {
		t.Errorf("withheld are %v", s.Report().Withheld)
	}
}

func TestAdminForgetsKeys(t *testing.T) {
	root, other := t.TempDir(), sampleTree(t)
	author := indextest.NewPublisher(t)
	files := indextest.OnDisk(t, root).Keys("registry.example/acme", author)
	files.Provider("registry.example/acme/demo", "1.0.0", "linux_amd64").Signed(author)
	live(t, Handler{Root: root}, Handler{Root: other})
	awaitLive(t)
	forget := func(query string, status int) (roots []string) {
		t.Helper()
		if got, _ := administer(t, http.MethodPost, "/terraform_registry/keys/forget?"+query, &roots); got != status {
			t.Errorf("%s: got %d, want %d", query, got, status)
		}
		return roots
	}
	forget("namespace=registry.example/acme", http.StatusConflict) // the file is there
	files.Remove("keys")
	forget("namespace=", http.StatusBadRequest)
	forget("namespace=a/b/c", http.StatusBadRequest)
	forget("namespace=acme", http.StatusNotFound)
	forget("namespace=registry.example/acme&root=/elsewhere", http.StatusNotFound)
	forget("namespace=registry.example/acme&root="+other, http.StatusNotFound)
	if roots := forget("namespace=registry.example/acme", http.StatusOK); !slices.Equal(roots, []string{root}) {
		t.Errorf("forgotten in %v", roots)
	}
	var reports map[string]*index.Report
	administer(t, http.MethodGet, "/terraform_registry/report?root="+root, &reports)
	if r := reports[root]; len(r.Withheld) > 0 || len(r.Offered) != 1 || !strings.HasPrefix(r.Offered[0].Signature, "registry ") {
		t.Errorf("the report is %+v", r)
	}
}

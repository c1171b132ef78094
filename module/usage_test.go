package module

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/usage"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// fetchModule downloads the module of sampleTree.
func fetchModule(t *testing.T, h *Handler) {
	t.Helper()
	snapshot(t, h)
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "/v1/modules/acme/vpc/aws/1.0.0/archive.tar.gz", nil)
	if !h.registry.ServeHTTP(w, r) || w.Code != http.StatusOK {
		t.Fatalf("got %d %s", w.Code, w.Body)
	}
}

func downloadsOfModule(t *testing.T, h *Handler) uint64 {
	t.Helper()
	vpc, err := address.Parse("acme/vpc/aws")
	if err != nil {
		t.Fatal(err)
	}
	if err := h.registry.Usage.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	return h.registry.Usage.Downloads(vpc)
}

// Counts outlive a reload, also one that keeps them for another time, and a restart. Another
// instance with the same storage has them too.
func TestUsageOutlivesConfigurations(t *testing.T) {
	root, storage := sampleTree(t), t.TempDir()
	begin := func(keep time.Duration) (*configuration, *Handler) {
		c := newConfigurationIn(t, storage)
		h := c.mustHandle(Handler{Root: root, SigningKey: &SigningKey{Off: true}, Usage: &Usage{Keep: caddy.Duration(keep)}})
		c.mustStart()
		return c, h
	}
	first, h := begin(0)
	fetchModule(t, h)
	second, same := begin(0)
	if same.registry.Usage != h.registry.Usage {
		t.Error("a reload counts anew")
	}
	first.cancel()
	fetchModule(t, same)
	third, other := begin(90 * 24 * time.Hour)
	second.cancel()
	fetchModule(t, same) // which began before the reload
	if n := downloadsOfModule(t, other); n != 3 {
		t.Errorf("with another time, there are %d", n)
	}
	fetchModule(t, other)
	third.cancel()
	_, fresh := begin(0)
	if n := downloadsOfModule(t, fresh); n != 4 {
		t.Errorf("after a restart, there are %d", n)
	}
}

// Downloads go on while a reload turns counting off. They are counted, which shows when it is on again.
func TestUsageThatIsTurnedOffIsWritten(t *testing.T) {
	root, storage := sampleTree(t), t.TempDir()
	counting := Handler{Root: root, SigningKey: &SigningKey{Off: true}, Usage: &Usage{}}
	off := counting
	off.Usage = nil
	h := liveIn(t, storage, nil, counting)[0]
	fetchModule(t, h)
	liveIn(t, storage, nil, off)
	h.registry.Usage.Add(usage.Use{Address: address.Address{Namespace: "acme", Name: "vpc", System: "aws"}, Version: "1.0.0"})
	if err := h.registry.Usage.Sync(t.Context()); err != nil { // or what writes it is waited for
		t.Error(err)
	}
	if n := downloadsOfModule(t, liveIn(t, storage, nil, counting)[0]); n != 2 {
		t.Errorf("%d of 2 downloads are counted", n)
	}
}

// When the process ends, Caddy may close the storage before it cleans up the registry.
func TestUsageIsWrittenBeforeTheStorageIsClosed(t *testing.T) {
	storage, counting := closingIn(t.TempDir()), Handler{Root: sampleTree(t), SigningKey: &SigningKey{Off: true}, Usage: &Usage{}}
	h := liveWith(t, storage, nil, counting)[0]
	fetchModule(t, h)
	if err := caddy.Stop(); err != nil {
		t.Fatal(err)
	}
	if n := downloadsOfModule(t, liveWith(t, storage, nil, counting)[0]); n != 1 {
		t.Errorf("%d of 1 downloads are counted", n)
	}
}

func TestUsageOfOneTreeIsKeptForOneTime(t *testing.T) {
	root := sampleTree(t)
	c := newConfiguration(t)
	c.mustHandle(Handler{Root: root, Usage: &Usage{}})
	if _, err := c.handle(Handler{Root: root, Usage: &Usage{Keep: caddy.Duration(24 * time.Hour)}}); err == nil {
		t.Error("one tree is kept for two times")
	}
	if _, err := c.handle(Handler{Root: root, Usage: &Usage{By: "address"}}); err == nil {
		t.Error("IP addresses are counted")
	}
}

func TestAdminTellsTheUsage(t *testing.T) {
	root := sampleTree(t)
	live(t, Handler{Root: root, SigningKey: &SigningKey{Off: true}, Usage: &Usage{}}, Handler{Root: t.TempDir(), SigningKey: &SigningKey{Off: true}})
	app, err := ConfiguredApp(caddy.ActiveContext())
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range app.handlers {
		if h.source.tree.root() == root {
			fetchModule(t, h)
		}
	}
	var all map[string]*wire.TreeUsage
	if status, _ := administer(t, http.MethodGet, "/terraform_registry/usage", &all); status != http.StatusOK {
		t.Fatalf("got %d", status)
	}
	if got := all[root]; len(all) != 1 || got == nil || len(got.Addresses) != 1 || got.Addresses[0].Downloads != 1 || got.Addresses[0].LastUsed != usage.DayOf(time.Now()).String() {
		t.Errorf("got %+v", all)
	}
	if status, _ := administer(t, http.MethodGet, "/terraform_registry/usage?days=0", &all); status != http.StatusOK || len(all[root].Addresses[0].Days) != 0 {
		t.Errorf("without days, got %d %+v", status, all)
	}
	if status, _ := administer(t, http.MethodGet, "/terraform_registry/usage?days=none", nil); status != http.StatusBadRequest {
		t.Errorf("days that are no number are %d", status)
	}
	if status, _ := administer(t, http.MethodGet, "/terraform_registry/usage?root=/elsewhere", nil); status != http.StatusNotFound {
		t.Errorf("another root is %d", status)
	}
}

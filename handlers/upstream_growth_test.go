package handlers_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// grown is an upstream that has a further platform of a release.
type grown struct {
	handlers.Upstream
	more  bool // than is held
	fails error
}

func (grown) Mirrors(address.Address) bool { return true }

func (u grown) MayHaveMore(_ address.Address, _ string, held func(address.Platform) bool) bool {
	return u.more && held(address.Platform{OS: "linux", Arch: "amd64"}) && !held(address.Platform{OS: "darwin", Arch: "arm64"})
}

func (grown) Available(context.Context, address.Address, string) ([]wire.Archive, error) {
	return []wire.Archive{{Platform: address.Platform{OS: "darwin", Arch: "arm64"}, URL: "x.zip", Hashes: []string{"zh:" + wire.SHA256{1}.String()}}}, nil
}

func (grown) Held(address.Address, string) *upstream.Filled { return nil }

func (u grown) Fill(context.Context, address.Address, string) (*upstream.Filled, error) {
	return nil, u.fails
}

// A release of which all is held that was signed is listed with what its registry
// has added, and the registry is asked only if it may have.
func TestPullThroughOfPlatformsThatAreAdded(t *testing.T) {
	publisher := indextest.NewPublisher(t)
	tree := indextest.New(t).Keys(originHost+"/acme", publisher)
	tree.Provider(originHost+"/acme/demo", "1.0.0", "linux_amd64").Signed(publisher)
	snapshot := scan(t, tree)
	for _, more := range []bool{false, true} {
		s := serve(t, &handlers.Registry{Snapshot: func() *index.Snapshot { return snapshot }, Upstream: grown{more: more}})
		got := s.hashes(joined + "demo/1.0.0.json")
		if len(got["linux_amd64"]) != 2 || (len(got["darwin_arm64"]) == 1) != more {
			t.Errorf("more: %v, got %v", more, got)
		}
	}
}

// A 404 says what is true: whether the registry has no such file, or the mirror does
// not ask for it.
func TestPullThroughSaysWhyThereIsNoFile(t *testing.T) {
	snapshot := scan(t, indextest.New(t))
	for _, test := range []struct {
		fails error
		says  string
	}{
		{upstream.ErrNotFound, "neither this mirror nor the registry of " + originHost + "/acme/demo has such a file"},
		{upstream.ErrNotMirrored, "does not fetch it from its registry"},
		{upstream.ErrTooYoung, "published too recently"},
	} {
		s := serve(t, &handlers.Registry{Snapshot: func() *index.Snapshot { return snapshot }, Upstream: grown{fails: test.fails}})
		a := s.get(joined + "demo/terraform-provider-demo_1.0.0_plan9_386.zip")
		mustRefuse(t, a, http.StatusNotFound)
		if !strings.Contains(a.body, test.says) {
			t.Errorf("it says %s", a.body)
		}
	}
}

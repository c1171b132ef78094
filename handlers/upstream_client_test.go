package handlers_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/fill"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// crowded is an upstream of which too much is waited for, and hears by whom.
type crowded struct {
	handlers.Upstream
	client string
}

var errCrowded = &upstream.Failure{Host: originHost, Kind: upstream.ErrBusy}

func (*crowded) Mirrors(address.Address) bool { return true }

func (*crowded) Held(address.Address, string) *fill.Filled { return nil }

func (u *crowded) Versions(ctx context.Context, _ address.Address) (fill.Offering, error) {
	u.client = upstream.ClientOf(ctx)
	return fill.Offering{}, errCrowded
}

func (u *crowded) Available(ctx context.Context, _ address.Address, _ string) ([]wire.Archive, error) {
	u.client = upstream.ClientOf(ctx)
	return nil, errCrowded
}

func (u *crowded) Fill(ctx context.Context, _ address.Address, _ string) (*fill.Filled, error) {
	u.client = upstream.ClientOf(ctx)
	return nil, errCrowded
}

// An upstream is told which client asks, and one that asks for too much is told to
// come back in a moment.
func TestPullThroughKnowsItsClients(t *testing.T) {
	snapshot, u := scan(t, indextest.New(t)), new(crowded)
	for _, test := range []struct {
		rule string
		tell func(*http.Request) string
		want string
	}{
		{"that of the connection", nil, "192.0.2.1"},
		{"what a proxy tells", func(r *http.Request) string { return r.Header.Get("X-Client") }, "198.51.100.7"},
		{"a proxy that tells nothing", func(*http.Request) string { return "" }, "192.0.2.1"},
	} {
		g := &handlers.Registry{Snapshot: func() *index.Snapshot { return snapshot }, Upstream: u, ClientAddress: test.tell}
		for _, file := range []string{"index.json", "1.0.0.json", "terraform-provider-demo_1.0.0_linux_amd64.zip"} {
			r := httptest.NewRequest(http.MethodGet, "https://registry.example.com"+joined+"demo/"+file, nil)
			r.RemoteAddr = "192.0.2.1:1234"
			r.Header.Set("X-Client", "198.51.100.7")
			w := httptest.NewRecorder()
			u.client = ""
			g.ServeHTTP(w, r)
			if u.client != test.want {
				t.Errorf("%s, %s: it is asked for %q", test.rule, file, u.client)
			}
			if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != "1" {
				t.Errorf("%s: got %d %v", file, w.Code, w.Header())
			}
		}
	}
}

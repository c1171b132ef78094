package handlers_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
)

// While the first scan runs, requests for one address are answered that clients make for init. All
// others are of everything, and wait.
func TestRequestsDuringTheFirstScan(t *testing.T) {
	publisher := indextest.NewPublisher(t)
	files := indextest.New(t)
	for _, namespace := range []string{"acme", "secret"} {
		files.Keys(namespace, publisher)
		files.Provider(namespace+"/demo", "1.0.0", "linux_amd64").Signed(publisher)
		files.Write("modules/"+namespace+"/vpc/aws/1.0.0.zip", indextest.Zip("main.tf", "# a module\n"))
	}
	s := scan(t, files)
	g := privately(t, &handlers.Registry{Snapshot: func() *index.Snapshot { return nil }}, "allow anonymous read acme")
	var asked []index.Place
	g.SnapshotOf = func(_ context.Context, p index.Place) *index.Snapshot {
		asked = append(asked, p)
		return s
	}
	const ok, missing, starting, denied = http.StatusOK, http.StatusNotFound, http.StatusServiceUnavailable, http.StatusUnauthorized
	for _, test := range []struct {
		path string
		want int
	}{
		{"/v1/providers/acme/demo/versions", ok},
		{"/v1/providers/acme/demo/1.0.0/download/linux/amd64", ok},
		{"/v1/providers/acme/none/versions", missing},
		{"/v1/mirror/" + ownHost + "/acme/demo/index.json", ok},
		{"/v1/mirror/" + ownHost + "/acme/demo/1.0.0.json", ok},
		{"/v1/mirror/-/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip", ok},
		{"/v1/modules/acme/vpc/aws/versions", ok},
		{"/v1/modules/acme/vpc/aws/1.0.0/download", http.StatusNoContent},
		{"/v1/modules/acme/vpc/aws/1.0.0/archive.zip", ok},

		{"/v1/providers", starting},
		{"/v1/modules/acme", starting},
		{"/v1/modules/search?q=vpc", starting},
		{"/v1/modules/acme/vpc/aws", starting},
		{"/v1/providers/acme/demo", starting},
	} {
		asked = nil
		if w := askAs(g, "", ownHost, test.path); w.Code != test.want {
			t.Errorf("%s: got %d, not %d: %s", test.path, w.Code, test.want, w.Body)
		}
		if (len(asked) > 0) != (test.want != starting) {
			t.Errorf("%s: asked for %v", test.path, asked)
		}
	}
	// The time of the answer must not tell whether an address is in the tree.
	for _, path := range []string{"/v1/providers/secret/demo/versions", "/v1/modules/secret/vpc/aws/versions", "/v1/providers/secret/none/versions"} {
		asked = nil
		if w := askAs(g, "", ownHost, path); w.Code != denied && w.Code != starting || len(asked) > 0 {
			t.Errorf("%s: got %d, and asked for %v", path, w.Code, asked)
		}
		if w := askAs(g, reader, ownHost, path); w.Code != starting || len(asked) > 0 {
			t.Errorf("%s, with a token: got %d, and asked for %v", path, w.Code, asked)
		}
	}
}

// A request waits for all folders that a later answer may depend on, and for no others.
func TestThePlaceThatIsLookedAtDuringTheFirstScan(t *testing.T) {
	files := indextest.New(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64")
	s := scan(t, files)
	demo := address.Address{Namespace: "acme", Name: "demo"}
	own := index.Place{Address: demo.WithHostname(ownHost), Merged: true, Hosted: true}
	other := index.PlaceOf(demo.WithHostname("other.example.com"))
	for _, test := range []struct {
		rule, path string
		private    bool
		want       index.Place
	}{
		{"a hosted provider, with and without HOSTNAME", "/v1/providers/acme/demo/versions", false, own},
		{"its files, which a registry.hcl under the HOSTNAME may withdraw", "/v1/mirror/-/acme/demo/terraform-provider-demo_1.0.0_linux_amd64.zip", false, own},
		{"with rules, without HOSTNAME alone", "/v1/providers/acme/demo/versions", true, index.Place{Address: demo, Hosted: true}},
		{"a mirrored provider", "/v1/mirror/other.example.com/acme/demo/index.json", true, other},
	} {
		var asked index.Place
		g := &handlers.Registry{Snapshot: func() *index.Snapshot { return nil }}
		g.SnapshotOf = func(_ context.Context, p index.Place) *index.Snapshot {
			asked = p
			return s
		}
		if test.private {
			g = privately(t, g, "allow anonymous read acme other.example.com/acme")
		}
		if askAs(g, "", ownHost, test.path); asked != test.want {
			t.Errorf("%s: it is %+v, not %+v", test.rule, asked, test.want)
		}
	}
}

// What is offered has been compared with the log, and a package that is fetched gets its entry from
// a snapshot.
func TestTheLogDuringTheFirstScan(t *testing.T) {
	files := indextest.New(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64")
	s := scan(t, files)
	for _, test := range []struct {
		rule     string
		log      *tlog.Log
		upstream pull.Upstream
		want     int
	}{
		{"the log has not been opened", nil, nil, http.StatusServiceUnavailable},
		{"the log is open", new(tlog.Log), nil, http.StatusOK},
		{"packages are fetched", new(tlog.Log), failing{fail: hang}, http.StatusServiceUnavailable},
	} {
		g := &handlers.Registry{
			Snapshot:   func() *index.Snapshot { return nil },
			SnapshotOf: func(context.Context, index.Place) *index.Snapshot { return s },
			Log:        func() *tlog.Log { return test.log },
			Upstream:   test.upstream,
		}
		if w := askAs(g, "", ownHost, "/v1/mirror/"+ownHost+"/acme/demo/index.json"); w.Code != test.want {
			t.Errorf("%s: got %d, not %d: %s", test.rule, w.Code, test.want, w.Body)
		}
	}
}

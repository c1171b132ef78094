package handlers_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A moduleOrigin is an upstream with modules, which it packs into the tree.
type moduleOrigin struct {
	pull.Upstream
	t        *testing.T
	tree     *indextest.Tree
	versions []string // the versions of every module
	fails    error    // the error of every method
	slow     bool     // a package takes longer than any request waits
	filled   []string // versions, in the order of the requests
}

func (o *moduleOrigin) Mirrors(a address.Address) bool { return a.IsModule() && a.Namespace == "acme" }

func (o *moduleOrigin) Versions(context.Context, address.Address) (pull.Offering, error) {
	offering := pull.Offering{Age: time.Second}
	for _, v := range o.versions {
		offering.Versions = append(offering.Versions, wire.ProviderVersion{Version: v})
	}
	return offering, o.fails
}

func (o *moduleOrigin) FillModule(ctx context.Context, a address.Address, version string, _ *index.Module) (*pull.FilledModule, error) {
	o.filled = append(o.filled, version)
	switch {
	case o.fails != nil:
		return nil, o.fails
	case !slices.Contains(o.versions, version):
		return nil, upstream.ErrNotFound
	case o.slow:
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	o.tree.Write(fmt.Sprintf("modules/%s/%s.tar.gz", a, version), indextest.TarGz("sub/main.tf", "# "+version))
	v := scan(o.t, o.tree).Module(index.PlaceOf(a)).Version(version)
	return &pull.FilledModule{Filled: pull.Filled{File: v.Archive, New: true}, Folder: v.Folder}, nil
}

func (o *moduleOrigin) ModuleFolder(context.Context, address.Address, string) (string, error) {
	return "modules/sub", o.fails
}

// fetchModules returns a registry whose tree is filled from an origin with these
// versions.
func fetchModules(t *testing.T, versions ...string) (*handlers.Registry, *moduleOrigin) {
	t.Helper()
	o := &moduleOrigin{t: t, tree: indextest.New(t), versions: versions}
	snapshot := scan(t, o.tree)
	rescan := func() { snapshot = scan(t, o.tree) }
	return &handlers.Registry{
		Snapshot: func() *index.Snapshot { return snapshot }, Upstream: o, Changed: func(...string) { rescan() },
		Next: func(_ context.Context, after *index.Snapshot, _ ...index.Selection) *index.Snapshot {
			if snapshot == after {
				rescan()
			}
			return snapshot
		},
	}, o
}

// A hosted module whose registry.hcl names a repository has versions that can be fetched, under whatever
// name of the registry it is requested.
func TestHostedModulesWithARepository(t *testing.T) {
	g, o := fetchModules(t, "1.1.0", "1.0.0", "0.9.0")
	o.tree.Write("modules/acme/vpc/aws/registry.hcl", "git {\n  url = \"https://git.example.com/acme/vpc\"\n}\nwithdrawn \"0.9.0\" {}\n")
	o.tree.Write("modules/acme/vpc/aws/1.0.0/main.tf", "# here")
	o.tree.Write("modules/acme/none/aws/registry.hcl", "owner = \"a\"\n")
	g.Changed()
	s := serve(t, g)
	if got := s.moduleVersions("acme/vpc/aws"); !slices.Equal(got, []string{"1.1.0", "1.0.0"}) {
		t.Errorf("its versions are %v", got)
	}
	for version, want := range map[string]string{"1.0.0": "archive.tar.gz", "1.1.0": "archive.tar.gz//sub"} {
		a := s.get("/v1/modules/acme/vpc/aws/" + version + "/download")
		if got, want := a.Header.Get("X-Terraform-Get"), "/v1/modules/acme/vpc/aws/"+version+"/"+want; a.StatusCode != http.StatusNoContent || got != want {
			t.Errorf("%s: got %d %s, want %s", version, a.StatusCode, got, want)
		}
	}
	if !slices.Equal(o.filled, []string{"1.1.0"}) {
		t.Errorf("it has fetched %v", o.filled)
	}
	mustRefuse(t, s.get("/v1/modules/acme/vpc/aws/0.9.0/download"), http.StatusGone)
	mustRefuse(t, s.get("/v1/modules/acme/none/aws/versions"), http.StatusNotFound)
	mustRefuse(t, s.get("/v1/modules/acme/none/aws/1.0.0/download"), http.StatusNotFound)
}

// A client gets a module in the same way whether or not the tree has it.
func TestStandInFetchesModules(t *testing.T) {
	g, o := fetchModules(t, "1.1.0", "1.0.0", "2.0.0-rc.1", "0.9.0", "0.9.0+a", "0.5.0+a", "0.4.0")
	o.tree.Write("modules/"+originHost+"/acme/vpc/aws/registry.hcl", "withdrawn \"0.9.0\" {\n  reason = \"CVE-2026-1\"\n}\n")
	o.tree.Write("modules/"+originHost+"/acme/vpc/aws/0.5.0/main.tf", "# only here")
	o.tree.Write("modules/"+originHost+"/acme/vpc/aws/0.4.0+a/main.tf", "# only here")
	g.Changed()
	s := serve(t, g)
	s.original = originHost

	s.rule("versions are those of the tree and of the origin, the plain one of several builds first, but for withdrawn ones", func(t *testing.T, s *site) {
		if got := s.moduleVersions("acme/vpc/aws"); !slices.Equal(got, []string{"2.0.0-rc.1", "1.1.0", "1.0.0", "0.5.0", "0.5.0+a", "0.4.0", "0.4.0+a"}) {
			t.Errorf("got %v", got)
		}
	})
	s.rule("the newest is one of all", func(t *testing.T, s *site) {
		a := s.get(originStandIn + "/modules/acme/vpc/aws/download")
		if got, want := a.Header.Get("Location"), originStandIn+"/modules/acme/vpc/aws/1.1.0/download"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
	s.rule("nothing is fetched before it is requested", func(t *testing.T, _ *site) {
		if len(o.filled) > 0 {
			t.Errorf("%v were", o.filled)
		}
	})
	s.rule("a download names the package in the tree, and the folder in it", func(t *testing.T, s *site) {
		a := s.get(originStandIn + "/modules/acme/vpc/aws/1.0.0/download")
		if got, want := a.Header.Get("X-Terraform-Get"), "/v1/modules/"+originHost+"/acme/vpc/aws/1.0.0/archive.tar.gz//sub"; a.StatusCode != http.StatusNoContent || got != want {
			t.Fatalf("got %d %s, want %s", a.StatusCode, got, want)
		}
		pack, folder := splitFolder(t, home+a.Header.Get("X-Terraform-Get"))
		if files := s.unpack(pack); files[folder+"/main.tf"] != "# 1.0.0" {
			t.Errorf("it has %v", files)
		}
	})
	s.rule("the package waits for the origin", func(t *testing.T, s *site) {
		const path = "/v1/modules/" + originHost + "/acme/vpc/aws/1.1.0/archive.tar.gz"
		if a := s.do(http.MethodHead, home+path); a.StatusCode != http.StatusOK || a.Header.Get("Content-Type") != "application/gzip" {
			t.Errorf("got %d %v", a.StatusCode, a.Header)
		}
		if a := s.get(path); a.StatusCode != http.StatusOK || a.body != o.tree.Read("modules/"+originHost+"/acme/vpc/aws/1.1.0.tar.gz") {
			t.Errorf("got %d", a.StatusCode)
		}
		mustRefuse(t, s.get(strings.ReplaceAll(path, "1.1.0/archive.tar.gz", "2.0.0-rc.1/archive.zip")), http.StatusNotFound)
	})
	s.rule("a detail is fetched and shown", func(t *testing.T, s *site) {
		var d moduleDetail
		if s.json(originStandIn+"/modules/acme/dns/aws/1.0.0", &d); d.ID != "acme/dns/aws/1.0.0" {
			t.Errorf("got %s", d.ID)
		}
		if s.json(originStandIn+"/modules/acme/bucket/aws", &d); d.ID != "acme/bucket/aws/1.1.0" {
			t.Errorf("of the latest, got %s", d.ID)
		}
	})
	s.rule("what is withdrawn, or no version, is not fetched", func(t *testing.T, s *site) {
		before := len(o.filled)
		mustRefuse(t, s.get(originStandIn+"/modules/acme/vpc/aws/0.9.0/download"), http.StatusGone)
		mustRefuse(t, s.get("/v1/modules/"+originHost+"/acme/vpc/aws/0.9.0/archive.tar.gz"), http.StatusGone)
		for _, version := range []string{"latest", "v1.1.0", "1.1"} {
			mustRefuse(t, s.get(originStandIn+"/modules/acme/vpc/aws/"+version+"/download"), http.StatusNotFound)
		}
		if len(o.filled) != before {
			t.Errorf("%v were", o.filled[before:])
		}
	})
	s.rule("other addresses are the tree's alone", func(t *testing.T, s *site) {
		a := s.get(originStandIn + "/modules/other/vpc/aws/versions")
		if mustRefuse(t, a, http.StatusNotFound); !strings.Contains(a.body, "and does not fetch it from its origin") {
			t.Errorf("it says %s", a.body)
		}
		mustRefuse(t, s.get("/v1/modules/acme/dns/aws/1.0.0/download"), http.StatusNotFound)
	})
}

// Pages show what is in the tree, and fetch nothing. They can tell what clients get.
func TestViewsFetchNothing(t *testing.T) {
	g, o := fetchModules(t, "1.1.0", "1.0.0")
	vpc := address.Address{Hostname: originHost, Namespace: "acme", Name: "vpc", System: "aws"}
	visit := func(version string) (got string, err error) {
		err = g.Visit(httptest.NewRequest(http.MethodGet, home+"/", nil), func(v *handlers.View) error {
			if !v.Fetches(vpc) || v.Fetches(vpc.WithHostname("")) || v.Fetches(address.Address{Hostname: originHost, Namespace: "other", Name: "vpc", System: "aws"}) {
				t.Error("it does not tell what clients get")
			}
			_, found, err := v.ModuleVersion(vpc, version)
			if err == nil {
				got = found.Version
			}
			_, _, providerErr := v.ProviderRelease(address.Address{Hostname: originHost, Namespace: "acme", Name: "demo"}, version)
			if status, _ := handlers.Status(providerErr); status != http.StatusNotFound {
				t.Errorf("a provider: %v", providerErr)
			}
			return err
		})
		return got, err
	}
	for _, version := range []string{"1.0.0", "1.1.0", ""} {
		if got, err := visit(version); got != "" || err == nil {
			t.Errorf("%q, which is not in the tree: got %q, %v", version, got, err)
		}
	}
	if len(o.filled) > 0 {
		t.Errorf("visits have fetched %q", o.filled)
	}
	ask(g, ownHost, originStandIn+"/modules/acme/vpc/aws/1.0.0/download")
	for version, want := range map[string]string{"1.0.0": "1.0.0", "": "1.0.0"} {
		if got, err := visit(version); got != want || err != nil {
			t.Errorf("%q, after a client: got %q, %v", version, got, err)
		}
	}
	if got, err := visit("1.1.0"); err == nil {
		t.Errorf("a version that no client asked for: %q", got)
	}
}

// A client gets the location of the package before the package is there, if fetching
// takes longer than the client waits for an answer (checklist 25).
func TestModulesThatComeInSlowly(t *testing.T) {
	g, o := fetchModules(t, "1.0.0") // whose key is not of synctest's time
	o.slow = true
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		w := ask(g, ownHost, originStandIn+"/modules/acme/vpc/aws/1.0.0/download")
		if got, want := w.Header().Get("X-Terraform-Get"), "/v1/modules/"+originHost+"/acme/vpc/aws/1.0.0/archive.tar.gz//modules/sub"; w.Code != http.StatusNoContent || got != want {
			t.Errorf("got %d %s %s, want %s", w.Code, got, w.Body, want)
		}
		if took := time.Since(began); took != handlers.Patience {
			t.Errorf("it took %v", took)
		}
		if w := ask(g, ownHost, originStandIn+"/modules/acme/vpc/aws/1.0.0"); w.Code != http.StatusServiceUnavailable {
			t.Errorf("its detail is %d %s", w.Code, w.Body)
		}
	})
}

// Users see the error of a download: one true line, with a status whose text clients
// show (checklist 27, 86).
func TestModulesThatCannotBeFetched(t *testing.T) {
	host := func(kind error, detail string) error {
		return &upstream.Failure{Host: "git.example.com", Kind: kind, Detail: detail}
	}
	for _, test := range []struct {
		rule   string
		fails  error
		status int
		says   string
	}{
		{"no such version", upstream.ErrNotFound, http.StatusNotFound, "this registry has no " + originHost + "/acme/vpc/aws 1.0.0, and neither has its origin"},
		{"withdrawn since the last scan", pull.ErrWithdrawn, http.StatusGone, "the version is withdrawn"},
		{"moved", fmt.Errorf("%w: the tag has moved", pull.ErrConflict), http.StatusUnprocessableEntity, "the tag has moved"},
		{"not to be read at the moment", fmt.Errorf("%w: %w", pull.ErrUnread, tree.ErrNotWritable), http.StatusServiceUnavailable, "the mirror cannot read its files at the moment: try again in a moment"},
		{"written to at the moment", tree.ErrChanged, http.StatusServiceUnavailable, "the file is being replaced: try again in a moment"},
		{"unsafe", host(upstream.ErrUnsafe, "it is in a private network"), http.StatusUnprocessableEntity, "git.example.com: it is not safe to go there: it is in a private network"},
		{"too large", host(upstream.ErrTooLarge, ""), http.StatusUnprocessableEntity, "git.example.com: its answer is too large"},
		{"not available, which clients try again", host(upstream.ErrUnavailable, ""), http.StatusBadGateway, "git.example.com: it is not available"},
		{"too slow, which clients try again", host(upstream.ErrTimeout, ""), http.StatusGatewayTimeout, "git.example.com: it takes too long"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			g, o := fetchModules(t, "1.0.0")
			o.fails = test.fails
			for _, path := range []string{originStandIn + "/modules/acme/vpc/aws/1.0.0/download", "/v1/modules/" + originHost + "/acme/vpc/aws/1.0.0/archive.tar.gz"} {
				w := ask(g, ownHost, path)
				if w.Code != test.status || !strings.Contains(w.Body.String(), test.says) {
					t.Errorf("%s: got %d %s", path, w.Code, w.Body)
				}
				checkError(t, w.Header(), w.Body.String())
			}
		})
	}
}

// Packages in the tree are served even if the origin is down.
func TestModulesOfAnOriginThatIsDown(t *testing.T) {
	g, o := fetchModules(t)
	o.tree.Write("modules/"+originHost+"/acme/vpc/aws/1.0.0/main.tf", "# kept")
	g.Changed()
	o.fails = upstream.ErrUnavailable
	s := serve(t, g)
	s.original = originHost
	if got := s.moduleVersions("acme/vpc/aws"); !slices.Equal(got, []string{"1.0.0"}) {
		t.Errorf("the versions are %v", got)
	}
	s.unpack(s.moduleLocation("acme/vpc/aws/1.0.0"))
	if a := s.get(originStandIn + "/modules/acme/vpc/aws/download"); a.StatusCode != http.StatusFound {
		t.Errorf("the newest is %d %s", a.StatusCode, a.body)
	}
	mustRefuse(t, s.get(originStandIn+"/modules/acme/dns/aws/versions"), http.StatusBadGateway)
	mustRefuse(t, s.get(originStandIn+"/modules/acme/dns/aws/download"), http.StatusBadGateway)
}

// A client unpacks the package of a real origin, and the package stays when the origin
// is gone.
func TestStandInFetchesModulesOfARegistry(t *testing.T) {
	origin, _ := signedTree(t)
	origin.Write("modules/acme/vpc/aws/1.0.0/main.tf", "# a module")
	origin.Write("modules/acme/vpc/aws/1.0.0/modules/sub/main.tf", "# a submodule")
	p := pullThrough(t, origin, pull.Policy{Modules: true}, nil)
	p.site.original = originHost
	for _, down := range []bool{false, true} {
		p.down.Store(down)
		if got := p.moduleVersions("acme/vpc/aws"); !slices.Equal(got, []string{"1.0.0"}) {
			t.Errorf("down: %v, the versions are %v", down, got)
		}
		if files := p.unpack(p.moduleLocation("acme/vpc/aws/1.0.0")); files["main.tf"] != "# a module" || files["modules/sub/main.tf"] != "# a submodule" {
			t.Errorf("down: %v, it has %v", down, files)
		}
	}
	if got := p.askedFor("archive.tar.gz"); got != 1 {
		t.Errorf("the origin was asked %d times for the package", got)
	}
}

package handlers_test

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
)

// starting makes the mirror one that has just started without a memo. It cannot read zips with the text
// path in their path before a request waits for what is read.
func (p *pulling) starting(path string) {
	p.t.Helper()
	x, open := startReading(p.t, options(p.t, p.tree), p.tree, path)
	p.registry.Snapshot, p.registry.Changed = x.Snapshot, x.Refresh
	p.registry.Next = func(ctx context.Context, after *index.Snapshot, wanted ...index.Selection) *index.Snapshot {
		open()
		return x.Next(ctx, after, wanted...)
	}
}

// A package in the tree is listed while the tree is being read, whatever may be fetched.
func TestArchivesWaitForTheTree(t *testing.T) {
	origin, publisher := signedTree(t)
	const demo = originHost + "/acme/demo"
	p := pullThrough(t, origin, pull.Policy{Platforms: []address.Platform{{OS: "linux", Arch: "amd64"}}}, func(files *indextest.Tree) {
		files.Keys(originHost+"/acme", publisher)
		files.Provider(demo, "1.0.0", "linux_amd64").Signed(publisher)
	})
	platforms := func(version string) (list []string) {
		for platform := range p.hashes(originPath + "demo/" + version + ".json") {
			list = append(list, platform)
		}
		slices.Sort(list)
		return list
	}
	if got := platforms("1.1.0"); !slices.Equal(got, []string{"linux_amd64"}) {
		t.Fatalf("before the tree has it: %v", got)
	}
	p.tree.Provider(demo, "1.1.0", "darwin_arm64", "linux_amd64").Signed(publisher)
	p.starting("_darwin_")
	for range 2 { // also once it has been read
		if got := platforms("1.1.0"); !slices.Equal(got, []string{"darwin_arm64", "linux_amd64"}) {
			t.Errorf("the tree has further platforms: %v", got)
		}
	}
}

// A module's package in the tree is served under the name that download has told, before the index knows it.
func TestPackagesOfModulesThatAreNotReadYet(t *testing.T) {
	const path = "modules/" + originHost + "/acme/vpc/aws/1.0.0.zip"
	zip := indextest.Zip("main.tf", "# here")
	for rule, test := range map[string]struct {
		before func(*indextest.Tree)
		after  func(*pulling)
	}{
		"after a start": {
			func(files *indextest.Tree) { files.Write(path, zip) },
			func(p *pulling) { p.starting(".zip") },
		},
		"written by another instance": {
			func(*indextest.Tree) {},
			func(p *pulling) {
				p.registry.Changed = nil
				p.tree.Write(path, zip)
			},
		},
	} {
		t.Run(rule, func(t *testing.T) {
			origin, _ := signedTree(t)
			for _, asked := range []string{"first", "at the instance that was asked for the location"} {
				p := pullThrough(t, origin, pull.Policy{Modules: true}, test.before)
				test.after(p)
				location := "/v1/modules/" + originHost + "/acme/vpc/aws/1.0.0/archive.zip"
				if asked != "first" {
					location = p.get(originStandIn + "/modules/acme/vpc/aws/1.0.0/download").Header.Get("X-Terraform-Get")
				}
				if a := p.get(location); a.StatusCode != http.StatusOK || a.body != zip {
					t.Errorf("%s: got %d %.100s", asked, a.StatusCode, a.body)
				}
				mustRefuse(t, p.get("/v1/modules/"+originHost+"/acme/vpc/aws/1.0.0/archive.tar.gz"), http.StatusNotFound)
			}
		})
	}
}

// The location of a package that takes long to be read is not told: only what is fetched has a known name.
func TestLocationOfAModuleThatIsReadSlowly(t *testing.T) {
	g, o := fetchModules(t, "1.0.0")
	o.slow = true
	o.tree.Write("modules/"+originHost+"/acme/vpc/aws/1.0.0.zip", indextest.Zip("main.tf", "# here"))
	options := options(t, o.tree)
	synctest.Test(t, func(t *testing.T) {
		x, _ := startReading(t, options, o.tree, "")
		g.Snapshot, g.Next = x.Snapshot, x.Next
		w := ask(g, ownHost, originStandIn+"/modules/acme/vpc/aws/1.0.0/download")
		if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != "1" {
			t.Errorf("got %d %v %s", w.Code, w.Header(), w.Body)
		}
	})
}

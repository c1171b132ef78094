package publish_test

import (
	"crypto/sha256"
	"fmt"
	"io"
	"path"
	"strings"
	"testing"
	"time"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/publish"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// builtZip returns the name of the package of a build of acme/demo.
func builtZip(version string) string {
	return address.PackageName("demo", version, address.Platform{OS: "linux", Arch: "amd64"})
}

// newBuild makes a release of acme/demo with one package.
func newBuild(version string) dist {
	d := dist{builtZip(version): indextest.Zip("terraform-provider-demo_v"+version, "#!"+version)}
	list := wire.Checksums{builtZip(version): sha256.Sum256([]byte(d[builtZip(version)]))}
	d[address.ChecksumsName("demo", version)] = string(list.Encode())
	return d
}

// copyBuild copies files of acme/demo into a folder of the tree.
func (r *registry) copyBuild(dir string, d dist) {
	for name, content := range d {
		r.Write(path.Join(dir, name), content)
	}
}

func stageOf(version string) string {
	return "providers/" + tree.StagingName + "/acme@demo@" + version + "/release/acme/demo/" + version
}

// putBuild uploads the file of a version of acme/demo.
func (r *registry) putBuild(version, name string, u publish.Upload) (publish.Result, error) {
	f, err := publish.ParseReleaseFile(demo, version, name)
	if err != nil {
		return publish.Result{}, err
	}
	return r.Put(r.t.Context(), f, u)
}

// A sameVersion is the state before a version is published.
type sameVersion struct {
	rule   string
	before func(r *registry)
	put    string // the version
	is     string // the other version, which makes the upload refused
}

func (s sameVersion) check(t *testing.T, err error, address string) {
	t.Helper()
	if s.is == "" {
		if err != nil {
			t.Error(err)
		}
		return
	}
	saying(t, err, publish.ErrConflict, fmt.Sprintf("version %s of %s is there, and %s differs from it in build metadata only: clients take both for the same, publish a new version", s.is, address, s.put))
}

func (r *registry) rescan() {
	r.t.Helper()
	if _, err := r.index.Rescan(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
}

var ownHostname = func(o *publish.Options) { o.Hostnames = []svchost.Hostname{"registry.example.com"} }

// A release that is the same as another to clients is refused with its first file.
func TestReleasesOfTheSameVersion(t *testing.T) { eachTree(t, testReleasesOfTheSameVersion) }

func testReleasesOfTheSameVersion(t *testing.T, on treeKind) {
	copied := func(dir, version string) func(*registry) {
		return func(r *registry) { r.copyBuild(path.Join("providers", dir), newBuild(version)) }
	}
	for _, test := range []sameVersion{
		{"a build of a version", copied("acme/demo/1.0.0", "1.0.0"), "1.0.0+x", "1.0.0"},
		{"a build of a version in the provider's own folder", copied("acme/demo", "1.0.0"), "1.0.0+x", "1.0.0"},
		{"a build of a version under the registry's name", copied("registry.example.com/acme/demo", "1.0.0"), "1.0.0+x", "1.0.0"},
		{"a build of a version in another spelling", copied("ACME/demo/1.0.0", "1.0.0"), "1.0.0+x", "1.0.0"},
		{"the version of a build", copied("acme/demo/1.0.0+x", "1.0.0+x"), "1.0.0", "1.0.0+x"},
		{"another build", copied("acme/demo", "1.0.0+x"), "1.0.0+y", "1.0.0+x"},
		{"a build of a prerelease", copied("acme/demo", "1.0.0-rc.1"), "1.0.0-rc.1+x", "1.0.0-rc.1"},
		{"a build of a version that is withheld", func(r *registry) { r.Write("providers/acme/demo/"+builtZip("1.0.0"), "no zip") }, "1.0.0+x", "1.0.0"},
		{"a build of a version that is not packed", func(r *registry) {
			r.Write("providers/acme/demo/1.0.0/linux_amd64/terraform-provider-demo_v1.0.0", "#!")
		}, "1.0.0+x", "1.0.0"},
		{"a build of a version that is withdrawn", func(r *registry) {
			copied("acme/demo", "1.0.0")(r)
			r.Write("providers/acme/demo/registry.hcl", `withdrawn "1.0.0" {}`+"\n")
		}, "1.0.0+x", "1.0.0"},
		{"the version of a build that is withdrawn", func(r *registry) {
			copied("acme/demo", "1.0.0+x")(r)
			r.Write("providers/acme/demo/registry.hcl", `withdrawn "1.0.0+x" {}`+"\n")
		}, "1.0.0", "1.0.0+x"},
		{"a build of a version that is staged and complete", func(r *registry) { r.copyBuild(stageOf("1.0.0"), newBuild("1.0.0")) }, "1.0.0+x", "1.0.0"},

		{"a build of a version that is not complete", func(r *registry) {
			name := address.ChecksumsName("demo", "1.0.0")
			r.Write(stageOf("1.0.0")+"/"+name, newBuild("1.0.0")[name])
		}, "1.0.0+x", ""},
		{"a build of a version without a package", func(r *registry) { r.Write("providers/acme/demo/1.0.0/docs/index.md", "#") }, "1.0.0+x", ""},
		{"a build of another version", copied("acme/demo", "1.0.0"), "1.0.1+x", ""},
		{"a build of another provider's version", copied("acme/other/1.0.0", "1.0.0"), "1.0.0+x", ""},
		{"a build where there is no version", func(*registry) {}, "1.0.0+x", ""},
		{"a build that lies beside its version", func(r *registry) {
			copied("acme/demo", "1.0.0")(r)
			copied("acme/demo", "1.0.0+x")(r)
		}, "1.0.0+x", ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			r := on.newRegistry(t, ownHostname)
			test.before(r)
			r.rescan()
			before := len(r.files())
			_, err := r.putBuild(test.put, builtZip(test.put), upload(newBuild(test.put)[builtZip(test.put)]))
			test.check(t, err, "acme/demo")
			if test.is != "" && len(r.files()) != before {
				t.Errorf("the tree has %v", r.files())
			}
		})
	}
}

func TestModulesOfTheSameVersion(t *testing.T) { eachTree(t, testModulesOfTheSameVersion) }

func testModulesOfTheSameVersion(t *testing.T, on treeKind) {
	content := indextest.TarGz("main.tf", `output "a" { value = 1 }`)
	copied := func(names ...string) func(*registry) {
		return func(r *registry) {
			for _, name := range names {
				r.Write("modules/"+name, content)
			}
		}
	}
	for _, test := range []sameVersion{
		{"a build of a version", copied("acme/vpc/aws/1.0.0.tar.gz"), "1.0.0+x", "1.0.0"},
		{"a build of a version in another format", copied("acme/vpc/aws/v1.0.0.zip"), "1.0.0+x", "1.0.0"},
		{"a build of a version with parts left out", copied("acme/vpc/aws/1.tgz"), "1.0.0+x", "1.0.0"},
		{"a build of a version that is a folder", copied("acme/vpc/aws/v1.0.0/main.tf"), "1.0.0+x", "1.0.0"},
		{"a build of a version under the registry's name", copied("registry.example.com/acme/vpc/aws/1.0.0.tar.gz"), "1.0.0+x", "1.0.0"},
		{"the version of a build", copied("acme/vpc/aws/1.0.0+x.tar.gz"), "1.0.0", "1.0.0+x"},
		{"another build", copied("acme/vpc/aws/1.0.0+x.tar.gz"), "1.0.0+y", "1.0.0+x"},
		{"a build of a version that is withdrawn", func(r *registry) {
			copied("acme/vpc/aws/1.0.0.tar.gz")(r)
			r.Write("modules/acme/vpc/aws/registry.hcl", `withdrawn "1.0.0" {}`+"\n")
		}, "1.0.0+x", "1.0.0"},

		{"a build of another version", copied("acme/vpc/aws/1.0.0.tar.gz"), "1.0.1+x", ""},
		{"a build where there is no version", copied(), "1.0.0+x", ""},
		{"a build that lies beside its version", copied("acme/vpc/aws/1.0.0.tar.gz", "acme/vpc/aws/1.0.0+x.tar.gz"), "1.0.0+x", ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			r := on.newRegistry(t, ownHostname)
			test.before(r)
			r.rescan()
			before := len(r.files())
			_, err := r.putModule(test.put+".tar.gz", content)
			test.check(t, err, "acme/vpc/aws")
			if test.is != "" && len(r.files()) != before {
				t.Errorf("the tree has %v", r.files())
			}
		})
	}
}

// copying is the body of an upload during which an operator copies into the tree.
type copying struct {
	io.Reader
	copy func()
}

func (c *copying) Read(b []byte) (int, error) {
	if c.copy != nil {
		c.copy()
		c.copy = nil
	}
	return c.Reader.Read(b)
}

// A version that an operator copies into the tree during an upload counts, too.
func TestTheSameVersionIsCopiedMeanwhile(t *testing.T) {
	eachTree(t, testTheSameVersionIsCopiedMeanwhile)
}

func testTheSameVersionIsCopiedMeanwhile(t *testing.T, on treeKind) {
	t.Run("of a module", func(t *testing.T) {
		r, content := on.newRegistry(t), indextest.TarGz("main.tf", "# one")
		f := moduleFile(t, "1.0.0+x.tar.gz")
		copies := func() { r.Write("modules/acme/vpc/aws/1.0.0.tar.gz", content) }
		_, err := r.Put(t.Context(), f, publish.Upload{Body: &copying{strings.NewReader(content), copies}, Size: int64(len(content))})
		sameVersion{put: "1.0.0+x", is: "1.0.0"}.check(t, err, "acme/vpc/aws")
		r.holds("modules/acme/vpc/aws/1.0.0.tar.gz")
	})
	t.Run("of a provider", func(t *testing.T) {
		r, d := on.newRegistry(t), newBuild("1.0.0+x")
		sums, zip := address.ChecksumsName("demo", "1.0.0+x"), builtZip("1.0.0+x")
		if _, err := r.putBuild("1.0.0+x", sums, upload(d[sums])); err != nil {
			t.Fatal(err)
		}
		copies := func() { r.copyBuild("providers/acme/demo", newBuild("1.0.0")) }
		_, err := r.putBuild("1.0.0+x", zip, publish.Upload{Body: &copying{strings.NewReader(d[zip]), copies}, Size: int64(len(d[zip]))})
		sameVersion{put: "1.0.0+x", is: "1.0.0"}.check(t, err, "acme/demo")
		r.rescan()
		if r.index.Snapshot().Provider(index.PlaceOf(demo)).Release("1.0.0+x") != nil {
			t.Error("it is published")
		}
	})
	t.Run("of a provider's release that a killed process has left complete", func(t *testing.T) {
		r := on.newRegistry(t)
		r.copyBuild(stageOf("1.0.0+x"), newBuild("1.0.0+x"))
		r.copyBuild("providers/acme/demo", newBuild("1.0.0"))
		again := r.again(t, func(o *publish.Options) { o.Now = func() time.Time { return time.Now().Add(25 * time.Hour) } })
		defer again.run()()
		eventually(t, "it is dropped", func() bool { return len(again.files()) == len(newBuild("1.0.0")) })
		again.holds(filesIn("providers/acme/demo", newBuild("1.0.0").names()...)...)
	})
}

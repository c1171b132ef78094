package pull_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/upstreamtest"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// A connected is a tree with modules whose versions are the tags of a repository.
type connected struct {
	*mirroring
	repository *upstreamtest.Repository
	host       *upstreamtest.CodeHost
	url        string
}

const (
	hostedFolder  = "modules/acme/vpc/aws/"
	hostedPackage = hostedFolder + "1.0.0.tar.gz"
	hostedSource  = hostedFolder + ".1.0.0.source.json"
	hostedList    = hostedFolder + ".versions.json"
	hostedFile    = hostedFolder + "registry.hcl"
)

var hosted = vpc.WithHostname("")

// connect makes a tree on the disk whose module is in a repository, as block says in addition to its
// URL.
func connect(t *testing.T, block string) *connected {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir()) // nothing must be left there
	c := &connected{repository: upstreamtest.NewRepository(t), host: upstreamtest.NewCodeHost(t)}
	c.url = c.host.Serve("/acme/modules.git", c.repository)
	root := treeRoot{dir: t.TempDir()}
	c.mirroring = &mirroring{Tree: root.tree(t), root: root}
	c.Write(hostedFile, c.block(c.url, block))
	c.restart(t)
	return c
}

func (c *connected) block(url, more string) string {
	return fmt.Sprintf("git {\n  url = %q\n  %s\n}\n", url, more)
}

// git returns the repository that the registry.hcl names.
func (c *connected) git(t *testing.T) registryhcl.Git {
	t.Helper()
	m, problems := registryhcl.Parse([]byte(c.Read(hostedFile)))
	if m.Git == nil {
		t.Fatalf("it names none: %v", problems)
	}
	return *m.Git
}

// another returns another instance over the tree, which knows nothing yet.
func (c *connected) another(t *testing.T) *connected {
	t.Helper()
	other := *c
	other.mirroring = &mirroring{Tree: c.Tree, root: c.root}
	other.restart(t)
	return &other
}

// restart replaces the Filler by one that knows nothing yet.
func (c *connected) restart(t *testing.T) {
	t.Helper()
	c.start(t, nil, c.options(t))
}

func (c *connected) options(t *testing.T) pull.Options {
	t.Helper()
	sources := map[svchost.Hostname]pull.Source{"": {Client: c.host.Client(t), Policy: pull.Policy{Modules: true, VersionsTTL: time.Hour}}}
	return pull.Options{Sources: sources, Open: c.root.open}
}

// list returns the listed versions.
func (c *connected) list(t *testing.T) string {
	t.Helper()
	o, err := c.Versions(background(), hosted)
	if err != nil {
		t.Fatal(err)
	}
	return listedIn(o)
}

// fill fills a version, which must succeed, and returns the names in its package.
func (c *connected) fillVersion(t *testing.T, version string) []string {
	t.Helper()
	f, err := c.FillModule(background(), hosted, version, nil)
	if err != nil {
		t.Fatal(err)
	}
	return tarNames(t, c.content(t, &f.Filled))
}

// nothingLeft checks that no files are left in the folder for temporary files.
func nothingLeft(t *testing.T) {
	t.Helper()
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestTagsAreVersions(t *testing.T) {
	for _, test := range []struct {
		rule, block string
		tags        []string
		want        string
	}{
		{"tags with a v, the newest first", "", []string{"v1.0.0", "v1.10.0", "v1.2.0"}, "1.10.0 1.2.0 1.0.0"},
		{"prereleases and builds", "", []string{"v1.0.0-rc.1", "v1.0.0+a"}, "1.0.0+a 1.0.0-rc.1"},
		{"none that is moved with each release", "", []string{"v1", "v1.0", "v1.0.0"}, "1.0.0"},
		{"none that is no version", "", []string{"latest", "1.0.0", "v1.0.0.0", "va", "v01.0.0"}, ""},
		{"those of the module", `tags = "vpc/v{version}"`, []string{"vpc/v1.0.0", "subnet/v2.0.0", "v3.0.0", "vpc/sub/v4.0.0"}, "1.0.0"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			c := connect(t, test.block)
			c.repository.Commit(test.tags...)
			if got := c.list(t); got != test.want {
				t.Errorf("got %q", got)
			}
			nothingLeft(t)
		})
	}
}

// A repository with more versions than a registry may list is refused as a whole, as a registry is.
func TestTooManyTagsAreRefused(t *testing.T) {
	c := connect(t, "")
	commit := c.repository.Commit("v1.0.0")
	c.list(t)
	var refs strings.Builder
	for i := range wire.MaxVersions {
		fmt.Fprintf(&refs, "%s refs/tags/v2.0.%d\n", commit, i)
	}
	c.repository.Write(".git/packed-refs", refs.String())
	if err := c.Renew(background(), hosted, time.Now(), true); !errors.Is(err, upstream.ErrTooLarge) {
		t.Errorf("got %v", err)
	}
	if got := c.list(t); got != "1.0.0" {
		t.Errorf("the list is %.100q", got)
	}
}

// What is not connected has no origin, whatever clients ask for.
func TestOnlyModulesWithARepositoryHaveOne(t *testing.T) {
	c := connect(t, "")
	c.Write("modules/acme/subnet/aws/registry.hcl", "owner = \"a\"\n")
	c.Write("providers/acme/vpc/registry.hcl", c.block(c.url, ""))
	c.Write("modules/"+host+"/acme/vpc/aws/registry.hcl", c.block(c.url, ""))
	for _, test := range []struct {
		rule    string
		address address.Address
	}{
		{"a module without git", address.Address{Namespace: "acme", Name: "subnet", System: "aws"}},
		{"a module without a registry.hcl", address.Address{Namespace: "acme", Name: "none", System: "aws"}},
		{"a provider", address.Address{Namespace: "acme", Name: "vpc"}},
		{"a mirrored module", vpc},
	} {
		if _, err := c.Versions(background(), test.address); !errors.Is(err, pull.ErrNotMirrored) {
			t.Errorf("%s: got %v", test.rule, err)
		}
	}
	if n := c.host.Asked(); n > 0 {
		t.Errorf("the host was asked %d times", n)
	}
	if o := c.Origins(); len(o) > 0 {
		t.Errorf("registries are %v", o)
	}
}

// A version comes from the commit of its tag, with the folders that it calls, and without what is left
// out of each package.
func TestVersionsComeFromTheirCommit(t *testing.T) {
	c := connect(t, `folder = "vpc"`)
	c.repository.Write(
		"vpc/main.tf", "module \"a\" {\n  source = \"../subnet\"\n}\n", "vpc/.env", "A=1", "vpc/test/x.tf", "", "vpc/.terraformignore", "test/\n",
		"subnet/main.tf", "", "subnet/.terraform/x", "", "other/main.tf", "", "README.md", "")
	commit := c.repository.Commit("v1.0.0")
	c.repository.Write("vpc/new.tf", "")
	c.repository.Commit()
	want := []string{"subnet/main.tf", "vpc/.terraformignore", "vpc/main.tf"}
	if got := c.fillVersion(t, "1.0.0"); !slices.Equal(got, want) {
		t.Errorf("it has %q", got)
	}
	c.mustHave(t, hostedFile, hostedPackage, hostedSource, hostedList)
	for _, part := range []string{`"tag": "v1.0.0"`, `"commit": "` + commit + `"`, `"folder": "vpc"`, `"source": "git::` + c.url} {
		if !strings.Contains(c.Read(hostedSource), part) {
			t.Errorf("the record has no %s: %s", part, c.Read(hostedSource))
		}
	}
	v := c.scan(t).Module(index.PlaceOf(hosted)).Version("1.0.0")
	if v == nil || v.Folder != "vpc" {
		t.Errorf("the index has %+v", v)
	}
	nothingLeft(t)
}

// A tag that moves is not followed once its version was fetched, also if the package has gone.
func TestVersionsStayWhenTagsMove(t *testing.T) {
	c := connect(t, "")
	c.repository.Write("main.tf", "# 1\n")
	c.repository.Commit("v1.0.0")
	c.fillVersion(t, "1.0.0")
	before := c.Read(hostedPackage)
	c.repository.Write("main.tf", "# 2\n")
	c.repository.Commit()
	c.repository.Git("tag", "--force", "v1.0.0")
	c.restart(t)
	c.fillVersion(t, "1.0.0")
	if c.Read(hostedPackage) != before {
		t.Error("the package has changed")
	}
	c.Remove(hostedPackage)
	c.restart(t)
	if _, err := c.FillModule(background(), hosted, "1.0.0", nil); !errors.Is(err, pull.ErrConflict) {
		t.Errorf("without the package: got %v", err)
	}
}

// fetchedEarlier dates the record of a version back: tags are not compared with a version that was
// fetched in the second before they are listed.
func (c *connected) fetchedEarlier(t *testing.T, version string) {
	t.Helper()
	record := hostedFolder + "." + version + ".source.json"
	before := c.Read(record)
	earlier := `"fetched": "` + time.Now().Add(-time.Hour).UTC().Format(time.RFC3339) + `"`
	if c.Write(record, regexp.MustCompile(`"fetched": "[^"]*"`).ReplaceAllString(before, earlier)); c.Read(record) == before {
		t.Fatalf("the record has no date: %s", before)
	}
}

// Which tags are no longer where they were is on record, in the log and an event, and noted of the
// version.
func TestMovedTagsAreReported(t *testing.T) {
	c := connect(t, "")
	c.repository.Write("main.tf", "# 1\n")
	one := c.repository.Commit("v1.0.0")
	c.fillVersion(t, "1.0.0")
	c.fetchedEarlier(t, "1.0.0")
	c.repository.Write("main.tf", "# 2\n")
	two := c.repository.Commit()
	for i, test := range []struct {
		rule string
		git  []string
		note string
	}{
		{"moved", []string{"tag", "--force", "v1.0.0"}, "its tag v1.0.0 has been moved to commit " + two + ", and the version stays as it was, at commit " + one},
		{"deleted", []string{"tag", "--delete", "v1.0.0"}, "its tag v1.0.0 has been deleted, and the version stays as it was, at commit " + one},
		{"back", []string{"tag", "v1.0.0", one}, ""},
	} {
		c.repository.Git(test.git...)
		for range 2 {
			if err := c.Renew(background(), hosted, time.Now(), true); err != nil {
				t.Fatal(err)
			}
		}
		notes := c.scan(t).Report().Offered[0].Notes
		if got := strings.Join(notes, ", "); !strings.HasPrefix(got, test.note) || (got == "") != (test.note == "") {
			t.Errorf("%s: the notes are %q", test.rule, notes)
		}
		if n := len(c.log.observed(pull.TagMoved)); n != i+1 || c.log.count("was moved or deleted") != min(i+1, 2) {
			t.Errorf("%s: there were %d events", test.rule, n)
		}
		if c.fillVersion(t, "1.0.0"); c.scan(t).Module(index.PlaceOf(hosted)).Version("1.0.0").Tag.Commit != one {
			t.Errorf("%s: it is of another commit", test.rule)
		}
	}
}

// If the process was killed after it had written a package, and before it had completed the record, the tag is
// compared all the same, and counts when the package has gone.
func TestTagsOfPendingRecords(t *testing.T) {
	c := connect(t, "")
	c.repository.Write("main.tf", "# 1\n")
	one := c.repository.Commit("v1.0.0")
	c.fillVersion(t, "1.0.0")
	c.fetchedEarlier(t, "1.0.0")
	c.Write(hostedSource, strings.Replace(c.Read(hostedSource), "\n}", ",\n  \"pending\": true\n}", 1))
	c.restart(t)
	if _, err := c.FillModule(background(), hosted, "1.0.0", c.scan(t).Module(index.PlaceOf(hosted))); err != nil {
		t.Fatal(err)
	}
	c.repository.Write("main.tf", "# 2\n")
	c.repository.Commit()
	c.repository.Git("tag", "--force", "v1.0.0")
	if err := c.Renew(background(), hosted, time.Now(), true); err != nil {
		t.Fatal(err)
	}
	if n := len(c.log.observed(pull.TagMoved)); n != 1 {
		t.Errorf("there were %d events", n)
	}
	c.Remove(hostedPackage)
	c.restart(t)
	if _, err := c.FillModule(background(), hosted, "1.0.0", nil); !errors.Is(err, pull.ErrConflict) || !strings.Contains(err.Error(), one) {
		t.Errorf("got %v", err)
	}
}

// The tags of another repository say nothing about a version, also if its URL is where the other's begins.
func TestTagsOfAnotherRepositoryAreNoMove(t *testing.T) {
	for _, path := range []string{"/other.git", "/acme"} {
		c := connect(t, `folder = "vpc"`)
		c.repository.Write("vpc/main.tf", "")
		c.repository.Commit("v1.0.0")
		c.fillVersion(t, "1.0.0")
		c.fetchedEarlier(t, "1.0.0")
		other := upstreamtest.NewRepository(t)
		other.Write("vpc/main.tf", "# other")
		other.Commit("v1.0.0")
		c.Write(hostedFile, c.block(c.host.Serve(path, other), `folder = "vpc"`))
		if err := c.Renew(background(), hosted, time.Now(), true); err != nil {
			t.Fatal(err)
		}
		if n := len(c.log.observed(pull.TagMoved)); n > 0 {
			t.Errorf("%s: a tag is said to have moved", path)
		}
	}
}

// A module with faults that an upload would be refused for is not published, and not fetched again. Nor
// is a tag that is older than the folder of the module.
func TestFaultyVersionsAreNotPublished(t *testing.T) {
	key := "-----BEGIN OPENSSH PRIVATE KEY-----\n" + strings.Repeat("a", 64) + "\n-----END OPENSSH PRIVATE KEY-----\n"
	for _, test := range []struct {
		rule, block string
		files       []string
		says        string
	}{
		{"configuration that clients cannot parse", "", []string{"main.tf", "variable {"}, "main.tf:1"},
		{"a private key", "", []string{"main.tf", "", "deploy_key", key}, "deploy_key"},
		{"no configuration", "", []string{"README.md", ""}, "no .tf file"},
		{"no folder of the module", `folder = "vpc"`, []string{"main.tf", ""}, `there is no folder "vpc" at its tag v1.0.0`},
	} {
		t.Run(test.rule, func(t *testing.T) {
			c := connect(t, test.block)
			c.repository.Write(test.files...)
			c.repository.Commit("v1.0.0")
			for range 2 {
				_, err := c.FillModule(background(), hosted, "1.0.0", nil)
				if !errors.Is(err, upstream.ErrMalformed) || !strings.Contains(err.Error(), test.says) {
					t.Fatalf("got %v", err)
				}
				c.mustHave(t, hostedFile, hostedList)
			}
			asked := c.host.Asked()
			pull.ForgetFailure(c.Filler, hosted, "1.0.0")
			if _, err := c.FillModule(background(), hosted, "1.0.0", nil); err == nil || c.host.Asked() != asked {
				t.Errorf("later: got %v, and the host was asked %d times", err, c.host.Asked()-asked)
			}
			c.repository.Write("main.tf", "# good\n", "deploy_key", "", "README.md", "", "vpc/main.tf", "")
			c.repository.Commit("v1.0.1")
			if err := c.Renew(background(), hosted, time.Now(), true); err != nil {
				t.Fatal(err)
			}
			c.fillVersion(t, "1.0.1")
			if got := c.host.Asked() - asked; got != 2 {
				t.Errorf("the host was asked %d times for a list and a commit", got)
			}
			nothingLeft(t)
		})
	}
}

// The reason is about the version that was asked for, also if its commit has another one.
func TestReasonsNameTheVersion(t *testing.T) {
	c := connect(t, "")
	c.repository.Write("main.tf", "variable {")
	c.repository.Commit("v1.0.0", "v1.0.1")
	for _, version := range []string{"1.0.0", "1.0.1"} {
		if _, err := c.FillModule(background(), hosted, version, nil); err == nil || !strings.Contains(err.Error(), "version "+version) {
			t.Errorf("got %v", err)
		}
	}
}

// Forty modules in one repository list its tags once.
func TestModulesShareTheListOfTheirRepository(t *testing.T) {
	c := connect(t, "")
	c.repository.Commit("v1.0.0", "m7-1.1.0")
	for i := range 40 {
		c.Write(fmt.Sprintf("modules/acme/m%d/aws/registry.hcl", i), c.block(c.url, fmt.Sprintf("tags = \"m%d-{version}\"", i)))
	}
	found := 0
	for i := range 40 {
		o, err := c.Versions(background(), address.Address{Namespace: "acme", Name: fmt.Sprintf("m%d", i), System: "aws"})
		if err != nil {
			t.Fatal(err)
		}
		found += len(o.Versions)
	}
	if n := c.host.Asked(); n != 1 || found != 1 {
		t.Errorf("it was asked %d times, and %d versions were found", n, found)
	}
}

// A commit with a dozen modules is fetched once, with the tags of all of them on it.
func TestModulesShareTheirCommit(t *testing.T) {
	c := connect(t, `folder = "m0"`)
	modules := make([]address.Address, 12)
	for i := range modules {
		c.repository.Write(fmt.Sprintf("m%d/main.tf", i), fmt.Sprintf("# %d\nmodule \"a\" {\n  source = \"../shared\"\n}\n", i))
		modules[i] = address.Address{Namespace: "acme", Name: fmt.Sprintf("m%d", i), System: "aws"}
		c.Write(fmt.Sprintf("modules/acme/m%d/aws/registry.hcl", i), c.block(c.url, fmt.Sprintf("folder = \"m%d\"\n  tags = \"m%d/v{version}\"", i, i)))
	}
	c.repository.Git("config", "uploadpack.allowFilter", "true")
	c.repository.Git("config", "uploadpack.allowAnySHA1InWant", "true")
	c.repository.Write("shared/main.tf", "# shared\n", "m7/large.json", strings.Repeat("a", 2<<20))
	commit := c.repository.Commit()
	for i := range modules {
		c.repository.Git("tag", fmt.Sprintf("m%d/v1.0.0", i))
	}
	var all sync.WaitGroup
	for _, a := range modules {
		all.Go(func() {
			if o, err := c.Versions(background(), a); err != nil || listedIn(o) != "1.0.0" {
				t.Errorf("%s: %v, %v", a, o, err)
			}
		})
	}
	all.Wait()
	asked := c.host.Asked()
	for i, a := range modules {
		all.Go(func() {
			f, err := c.FillModule(background(), a, "1.0.0", nil)
			if err != nil {
				t.Errorf("%s: %v", a, err)
				return
			}
			want := []string{fmt.Sprintf("m%d/main.tf", i), "shared/main.tf"}
			if i == 7 {
				want = []string{"m7/large.json", "m7/main.tf", "shared/main.tf"}
			}
			if got := tarNames(t, c.content(t, &f.Filled)); !slices.Equal(got, want) || !strings.Contains(c.Read("modules/acme/"+a.Name+"/aws/.1.0.0.source.json"), commit) {
				t.Errorf("%s has %q", a, got)
			}
		})
	}
	all.Wait()
	if n := c.host.Asked() - asked; asked != 1 || n != 2 { // and once for the large file
		t.Errorf("it was asked %d times for tags, and %d times for files", asked, n)
	}
	c.Close()
	nothingLeft(t)
}

// A list is kept for a host that is away, and for a restart.
func TestListsAreKeptWhileTheHostIsAway(t *testing.T) {
	c := connect(t, "")
	c.repository.Commit("v1.0.0")
	c.list(t)
	c.host.Down(true)
	c.restart(t)
	if got := c.list(t); got != "1.0.0" {
		t.Errorf("got %q", got)
	}
	if err := c.Renew(background(), hosted, time.Now(), true); err == nil {
		t.Error("it was renewed")
	}
	if got := c.list(t); got != "1.0.0" {
		t.Errorf("after it could not be renewed: got %q", got)
	}
	if _, err := c.FillModule(background(), hosted, "1.0.0", nil); err == nil || errors.Is(err, upstream.ErrNotFound) {
		t.Errorf("its package: got %v", err)
	}
}

// A list that was kept while the clock was ahead gives way to one of now.
func TestListsFromTheFuture(t *testing.T) {
	c := connect(t, "")
	c.repository.Commit("v1.0.0")
	c.list(t)
	fetched := regexp.MustCompile(`"fetched":"[^"]*"`)
	ahead := `"fetched":"` + time.Now().Add(2*time.Hour).UTC().Format(time.RFC3339) + `"`
	fromTheFuture := fetched.ReplaceAllString(c.Read(hostedList), ahead)
	c.Write(hostedList, fromTheFuture)
	c.repository.Commit("v1.1.0")
	c.restart(t)
	if got := c.list(t); got != "1.1.0 1.0.0" {
		t.Fatalf("got %q", got)
	}
	if kept := c.Read(hostedList); strings.Contains(kept, ahead) {
		t.Errorf("what is kept is %s", kept)
	}
	c.host.Down(true)
	if err := c.Renew(background(), hosted, time.Now(), true); err == nil {
		t.Fatal("it was renewed")
	}
	c.Write(hostedList, fromTheFuture) // by an instance whose clock is ahead
	pull.CheckListNow(c.Filler, hosted)
	if got := c.list(t); got != "1.1.0 1.0.0" {
		t.Errorf("while the host is away: got %q", got)
	}
}

// A registry that starts while the host is away asks it before any client does. It serves the list that is
// kept nevertheless, and knows when that was asked for.
func TestListsAreKeptForAStartWhileTheHostIsAway(t *testing.T) {
	c := connect(t, "")
	c.repository.Commit("v1.0.0")
	c.list(t)
	c.host.Down(true)
	c.restart(t)
	if err := c.Renew(background(), hosted, time.Now(), false); err == nil {
		t.Fatal("it was renewed")
	}
	if last, err := c.Looked(hosted, c.git(t)); last.IsZero() || !errors.Is(err, upstream.ErrUnavailable) {
		t.Errorf("it was listed at %v, and fails with %v", last, err)
	}
	if o, err := c.Versions(background(), hosted); err != nil || listedIn(o) != "1.0.0" {
		t.Errorf("got %q, %v", listedIn(o), err)
	}
}

// Operators see when tags were last listed, and why that fails.
func TestWhenTagsWereListed(t *testing.T) {
	c := connect(t, "")
	if last, err := c.Looked(hosted, c.git(t)); !last.IsZero() || err != nil {
		t.Errorf("before: got %v, %v", last, err)
	}
	c.host.Down(true)
	if err := c.Renew(background(), hosted, time.Now(), true); err == nil {
		t.Fatal("it was listed")
	}
	if last, err := c.Looked(hosted, c.git(t)); !last.IsZero() || !errors.Is(err, upstream.ErrUnavailable) {
		t.Errorf("while the host is away: got %v, %v", last, err)
	}
	c.host.Down(false)
	c.repository.Commit("v1.0.0")
	if err := c.Renew(background(), hosted, time.Now(), true); err != nil {
		t.Fatal(err)
	}
	listed, err := c.Looked(hosted, c.git(t))
	if time.Since(listed) > time.Minute || err != nil {
		t.Errorf("afterwards: got %v, %v", listed, err)
	}
	c.host.Down(true)
	c.Renew(background(), hosted, time.Now(), true)
	if last, err := c.Looked(hosted, c.git(t)); !last.Equal(listed) || err == nil {
		t.Errorf("away again: got %v, %v", last, err)
	}
}

// The failure of a repository is seen until its tags have been listed, also if another repository's were
// before: the operator looks when it suits.
func TestFailuresOfRepositoriesAreSeenUntilTheyAreOver(t *testing.T) {
	c := connect(t, "")
	c.repository.Commit("v1.0.0")
	c.list(t)
	c.Write(hostedFile, c.block("https://"+upstreamtest.GitHost+"/acme/missing.git", ""))
	if err := c.Renew(background(), hosted, time.Now(), false); err == nil {
		t.Fatal("it was listed")
	}
	pull.ForgetUnlisted(c.Filler, hosted)
	if last, err := c.Looked(hosted, c.git(t)); !last.IsZero() || !errors.Is(err, upstream.ErrMalformed) {
		t.Errorf("a repository that is missing was listed at %v, and fails with %v", last, err)
	}
	c.Write(hostedFile, c.block(c.url, ""))
	if last, err := c.Looked(hosted, c.git(t)); last.IsZero() || err != nil {
		t.Errorf("the repository from before was listed at %v, and fails with %v", last, err)
	}
	if err := c.Renew(background(), hosted, time.Now(), false); err != nil {
		t.Fatal(err)
	}
	if last, err := c.Looked(hosted, c.git(t)); last.IsZero() || err != nil {
		t.Errorf("afterwards it was listed at %v, and fails with %v", last, err)
	}
}

// A list belongs to its repository and its tags.
func TestListsOfAnotherRepositoryDoNotCount(t *testing.T) {
	c := connect(t, "")
	c.repository.Commit("v1.0.0", "vpc-2.0.0")
	c.list(t)
	c.Write(hostedFile, c.block(c.url, `tags = "vpc-{version}"`))
	if got := c.list(t); got != "2.0.0" {
		t.Errorf("with other tags: got %q", got)
	}
	other := upstreamtest.NewRepository(t)
	other.Commit("vpc-3.0.0")
	c.Write(hostedFile, c.block(c.host.Serve("/acme/other.git", other), `tags = "vpc-{version}"`))
	c.restart(t)
	if got := c.list(t); got != "3.0.0" {
		t.Errorf("in another repository: got %q", got)
	}
}

// Why a repository could not be listed does not count for the one that the registry.hcl names since.
func TestACorrectedURLCountsAtOnce(t *testing.T) {
	c := connect(t, "")
	c.repository.Commit("v1.0.0")
	c.Write(hostedFile, c.block("https://"+upstreamtest.GitHost+"/acme/missing.git", ""))
	for range 2 {
		if _, err := c.Versions(background(), hosted); !errors.Is(err, upstream.ErrMalformed) {
			t.Errorf("got %v", err)
		}
	}
	if n := c.host.Asked(); n != 1 {
		t.Errorf("the host was asked %d times", n)
	}
	c.Write(hostedFile, c.block(c.url, ""))
	if got := c.list(t); got != "1.0.0" {
		t.Errorf("got %q", got)
	}
}

// When a repository has told of a change, its list is renewed whatever its age, and clients wait for it.
func TestListsAreRenewed(t *testing.T) {
	c := connect(t, "")
	c.repository.Commit("v1.0.0")
	c.list(t)
	c.repository.Commit("v1.1.0")
	if got := c.list(t); got != "1.0.0" {
		t.Errorf("before it was told: got %q", got)
	}
	asked := c.host.Asked()
	if err := c.Renew(background(), hosted, time.Now().Add(-time.Hour), false); err != nil || c.host.Asked() != asked {
		t.Errorf("a list that is young enough: %v, and the host was asked %d times", err, c.host.Asked()-asked)
	}
	if err := c.Renew(background(), hosted, time.Now(), true); err != nil {
		t.Fatal(err)
	}
	if got := c.list(t); got != "1.1.0 1.0.0" {
		t.Errorf("after it was told: got %q", got)
	}
}

// A held answer of a code host, the first for a path, has been made, and is not sent yet.
type held struct {
	http.Handler
	path    string
	reached chan struct{} // closed when the answer has been made
	send    chan struct{}
	begun   atomic.Bool
}

func (h *held) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := httptest.NewRecorder()
	h.Handler.ServeHTTP(answer, r)
	if strings.HasSuffix(r.URL.Path, h.path) && h.begun.CompareAndSwap(false, true) {
		close(h.reached)
		<-h.send
	}
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	w.Write(answer.Body.Bytes())
}

// beginListing has the tags of the repository listed, and returns when the code host has made its
// answer. end sends that, and waits for the list.
func (c *connected) beginListing(t *testing.T) (end func()) {
	t.Helper()
	const path = "/acme/held.git"
	held := &held{Handler: c.repository.Handler(path), path: "/git-upload-pack", reached: make(chan struct{}), send: make(chan struct{})}
	c.host.Handle(path+"/", held)
	c.Write(hostedFile, c.block("https://"+upstreamtest.GitHost+path, ""))
	listed := make(chan error, 1)
	go func() { listed <- c.Renew(background(), hosted, time.Now(), false) }()
	<-held.reached
	return func() {
		t.Helper()
		close(held.send)
		if err := <-listed; err != nil {
			t.Fatal(err)
		}
	}
}

// A tag that is pushed while the tags are listed, too late for that list, is in the next one, which its
// webhook causes.
func TestTagsThatArePushedDuringAListing(t *testing.T) {
	c := connect(t, "")
	c.repository.Commit("v1.0.0")
	end := c.beginListing(t)
	c.repository.Commit("v1.1.0")
	pushed := time.Now()
	end()
	if err := c.Renew(background(), hosted, pushed, true); err != nil {
		t.Fatal(err)
	}
	if got := c.list(t); got != "1.1.0 1.0.0" {
		t.Errorf("got %q", got)
	}
}

// A version that another instance has fetched while the tags were listed may be of a tag that the list
// lacks. Nothing is said of its tag.
func TestVersionsThatAreFetchedDuringAListing(t *testing.T) {
	c := connect(t, "")
	c.repository.Write("main.tf", "")
	c.repository.Commit("v1.0.0")
	end := c.beginListing(t)
	c.repository.Commit("v1.1.0")
	other := c.another(t)
	other.fillVersion(t, "1.1.0")
	source := hostedFolder + ".1.1.0.source.json"
	record := c.Read(source)
	end()
	if n := len(c.log.observed(pull.TagMoved)); n > 0 || c.Read(source) != record {
		t.Errorf("its tag is said to have moved: %s", c.Read(source))
	}
}

// While a list is renewed because its origin has told of a change, clients wait for it a moment. They do
// not wait for one that is renewed because of its age.
func TestClientsWaitForAListThatIsToldOf(t *testing.T) {
	for told, want := range map[bool]string{true: "1.1.0 1.0.0", false: "1.0.0"} {
		s := newAcme(t)
		s.Fault(versions, body(listedOne))
		mirrored(t, s, pull.Policy{}, func(t *testing.T, m *mirroring) {
			versionsOf(t, m)
			time.Sleep(time.Minute)
			s.Fault(versions, func(w http.ResponseWriter, r *http.Request) {
				time.Sleep(2 * time.Second)
				body(`{"versions":[{"version":"1.1.0"},{"version":"1.0.0"}]}`)(w, r)
			})
			go m.Renew(background(), demo, time.Now(), told)
			synctest.Wait()
			if got := versionsOf(t, m); got != want {
				t.Errorf("told %v: got %q", told, got)
			}
			time.Sleep(time.Minute)
			if got := versionsOf(t, m); got != "1.1.0 1.0.0" {
				t.Errorf("told %v: got %q in the end", told, got)
			}
		})
	}
}

// A webhook comes to one of the instances with a tree. The others have its list, and what it has fetched,
// and ask the host for nothing.
func TestInstancesShareWhatAWebhookHasBrought(t *testing.T) {
	c := connect(t, "")
	c.repository.Write("main.tf", "")
	c.repository.Commit("v1.0.0")
	c.list(t)
	told := c.another(t)
	told.list(t)
	asked := c.host.Asked()
	c.repository.Commit("v1.1.0")
	if err := told.Renew(background(), hosted, time.Now(), true); err != nil {
		t.Fatal(err)
	}
	told.fillVersion(t, "1.1.0")
	pull.CheckListNow(c.Filler, hosted)
	if got := c.list(t); got != "1.1.0 1.0.0" {
		t.Errorf("the other instance lists %q", got)
	}
	c.fillVersion(t, "1.1.0")
	if n := c.host.Asked() - asked; n != 2 {
		t.Errorf("the host was asked %d times for one list and one commit", n)
	}
}

// An instance that lists a version because another one was told of its tag fetches it, although the tags
// that it has listed itself a moment before lack it.
func TestInstancesFetchWhatOthersHaveListed(t *testing.T) {
	c := connect(t, "")
	c.repository.Write("main.tf", "")
	c.repository.Commit("v1.0.0")
	c.list(t)
	told := c.another(t)
	c.repository.Commit("v1.1.0")
	if err := told.Renew(background(), hosted, time.Now(), true); err != nil {
		t.Fatal(err)
	}
	pull.CheckListNow(c.Filler, hosted)
	if got := c.list(t); got != "1.1.0 1.0.0" {
		t.Fatalf("the other instance lists %q", got)
	}
	c.fillVersion(t, "1.1.0")
}

// A version that was asked for before its tag was there is fetched as soon as it is listed.
func TestVersionsAreNotMissedForLong(t *testing.T) {
	c := connect(t, "")
	c.repository.Write("main.tf", "")
	c.repository.Commit("v1.0.0")
	if _, err := c.FillModule(background(), hosted, "1.1.0", nil); !errors.Is(err, pull.ErrUnlisted) {
		t.Fatalf("got %v", err)
	}
	if _, err := c.ModuleFolder(background(), hosted, "1.1.0"); !errors.Is(err, pull.ErrUnlisted) {
		t.Fatalf("its folder: got %v", err)
	}
	c.repository.Commit("v1.1.0")
	if err := c.Renew(background(), hosted, time.Now(), true); err != nil {
		t.Fatal(err)
	}
	c.fillVersion(t, "1.1.0")
}

// A registry.hcl that cannot be read as a whole says nothing about its repository.
func TestABrokenFileDoesNotDisconnect(t *testing.T) {
	for _, test := range []struct{ rule, content string }{
		{"half a file", "git {\n  url = \"htt"},
		{"an argument that there is not", "git {\n  url = \"https://" + upstreamtest.GitHost + "/acme/modules.git\"\n  tag = \"v{version}\"\n}\n"},
		{"a value that is wrong", "git {\n  url = \"http://" + upstreamtest.GitHost + "/acme/modules.git\"\n}\n"},
		{"a block in the block", "git {\n  url = \"https://" + upstreamtest.GitHost + "/acme/modules.git\"\n  tags {}\n}\n"},
		{"an argument in place of the block", "git = \"https://" + upstreamtest.GitHost + "/acme/modules.git\"\n"},
		{"a label", "git \"vpc\" {\n}\n"},
		{"an empty file, as a copy begins", ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			c := connect(t, "")
			c.repository.Commit("v1.0.0")
			c.list(t)
			c.Write(hostedFile, test.content)
			now := time.Now() // a file that is empty for long is left over
			if err := os.Chtimes(filepath.Join(c.root.dir, hostedFile), now, now); err != nil {
				t.Fatal(err)
			}
			if got := c.list(t); got != "1.0.0" {
				t.Errorf("got %q", got)
			}
			c.restart(t)
			if _, err := c.Versions(background(), hosted); !errors.Is(err, pull.ErrUnread) {
				t.Errorf("after a restart: got %v", err)
			}
		})
	}
}

// What is in the folder counts before a tag of the same number, also if it comes while the tag is fetched.
func TestVersionsThatArePublishedWhileTheyAreFetched(t *testing.T) {
	zipped := indextest.Zip("published.tf", "")
	for _, rule := range []string{"while the code host answers", "while the lock is waited for that a PUT has"} {
		t.Run(rule, func(t *testing.T) {
			c := connect(t, "")
			c.repository.Write("main.tf", "")
			c.repository.Commit("v1.0.0")
			const path = "/acme/slow.git"
			var publish atomic.Bool
			c.host.Handle(path+"/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if publish.Load() {
					c.Write(hostedFolder+"1.0.0.zip", zipped)
				}
				c.repository.Handler(path).ServeHTTP(w, r)
			}))
			c.Write(hostedFile, c.block("https://"+upstreamtest.GitHost+path, ""))
			o := c.options(t)
			o.Lock = func(_ context.Context, name string) (func(), error) {
				if name == "terraform_registry/publish/acme/vpc/aws@1.0.0" && rule != "while the code host answers" {
					c.Write(hostedFolder+"1.0.0.zip", zipped)
				}
				return func() {}, nil
			}
			c.start(t, nil, o)
			c.list(t)
			publish.Store(rule == "while the code host answers")
			f, err := c.FillModule(background(), hosted, "1.0.0", nil)
			if err != nil || c.content(t, &f.Filled) != zipped {
				t.Errorf("got %v, %v", f, err)
			}
			if names := c.files(t); slices.Contains(names, hostedPackage) {
				t.Errorf("the tree has %q", names)
			}
		})
	}
}

// What goes wrong with git on this side is no fault of the repository. Operators read what git says, and
// clients do not.
func TestFailuresOfGit(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip(err)
	}
	for _, test := range []struct {
		rule, command, does string
		kind                error
		logs                string // of git
	}{
		{"the disk is full", "fetch", "echo 'fatal: write error: No space left on device' >&2; echo 'fatal: index-pack failed' >&2; exit 128", tree.ErrDiskFull, ""},
		{"the quota of the disk is used up", "fetch", "echo 'fatal: write error: Disk quota exceeded' >&2; exit 128", tree.ErrDiskFull, ""},
		{"git is killed", "fetch", "kill -9 $$", upstream.ErrUnavailable, ""},
		{"git is killed while it reads the submodules", "config", "kill -9 $$", upstream.ErrUnavailable, ""},
		{"a child of git is killed", "fetch", "echo 'error: index-pack died of signal 9' >&2; exit 128", upstream.ErrUnavailable, ""},
		{"the disk fails", "init", "echo 'fatal: cannot mkdir objects: Input/output error' >&2; exit 128", tree.ErrNotWritable, ""},
		{"the disk fails while objects are read", "ls-tree", "echo 'error: unable to read object: Input/output error' >&2; exit 128", tree.ErrNotWritable, ""},
		{"too many files are open", "fetch", "echo 'error: could not open pack: Too many open files' >&2; exit 128", tree.ErrNotWritable, ""},
		{"there is too little memory", "fetch", "echo 'fatal: Out of memory, malloc failed (tried to allocate 1048577 bytes)' >&2; exit 128", tree.ErrNotWritable, ""},
		{"git cannot begin", "init", "echo 'fatal: bad home' >&2; exit 128", tree.ErrNotWritable, ""},
		{"the disk of the code host is full", "fetch", "echo 'remote: fatal: No space left on device' >&2; exit 128", upstream.ErrMalformed, "remote: fatal: No space left on device"},
		{"the code host refuses it", "fetch", "echo 'fatal: remote error: No space left on device' >&2; exit 128", upstream.ErrMalformed, "fatal: remote error: No space left on device"},
		{"the disk of the code host fails", "fetch", "echo 'remote: fatal: Input/output error' >&2; exit 128", upstream.ErrMalformed, "remote: fatal: Input/output error"},
		{"anything else", "fetch", "echo 'fatal: bad object' >&2; exit 128", upstream.ErrMalformed, "fatal: bad object"},
		{"a folder that git cannot read", "ls-tree", "echo 'fatal: too-short tree object' >&2; exit 128", upstream.ErrMalformed, "fatal: too-short tree object"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			c := connect(t, "")
			c.repository.Write("main.tf", "", ".gitmodules", "")
			c.repository.Commit("v1.0.0")
			bin := t.TempDir()
			script := "#!/bin/sh\nfor a; do if [ \"$a\" = " + test.command + " ]; then " + test.does + "; fi; done\nexec " + git + " \"$@\"\n"
			if err := os.WriteFile(filepath.Join(bin, "git"), []byte(script), 0o755); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
			_, err := c.FillModule(background(), hosted, "1.0.0", nil)
			if !errors.Is(err, test.kind) {
				t.Fatalf("got %v", err)
			}
			if test.logs != "" && (strings.Contains(err.Error(), test.logs) || c.log.count(test.logs) != 1) {
				t.Errorf("the error is %v, and the log has git's message %d times", err, c.log.count(test.logs))
			}
			nothingLeft(t)
		})
	}
}

// A list that cannot be renewed because of this machine's disk is no fault of the repository, and the log says so.
func TestListsThatTheDiskKeepsFromBeingRenewed(t *testing.T) {
	for _, known := range []bool{false, true} {
		t.Run(fmt.Sprintf("there is a list: %v", known), func(t *testing.T) {
			c := connect(t, "")
			c.repository.Write("main.tf", "")
			c.repository.Commit("v1.0.0")
			if known {
				c.list(t)
			}
			t.Setenv("TMPDIR", filepath.Join(os.Getenv("TMPDIR"), "missing"))
			for range 2 {
				if err := c.Renew(background(), hosted, time.Now(), true); !errors.Is(err, tree.ErrNotWritable) {
					t.Fatalf("got %v", err)
				}
			}
			if c.log.count("level=WARN") != 1 || c.log.count("because of the disk or store of this registry") != 1 {
				t.Errorf("the log has %s", c.log.text.String())
			}
		})
	}
}

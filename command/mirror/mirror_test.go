package mirror

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/command/commandtest"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

const (
	demoDir   = "providers/" + originHost + "/acme/demo/"
	demoKeys  = "keys/" + originHost + "/acme.asc"
	demoLists = demoDir + ".versions.json"
)

// announced returns the record of what an origin that is a registry says of a release of
// acme/demo.
func announced(version string) string { return demoDir + "." + version + ".packages.json" }

// release returns the files of a mirrored release of acme/demo.
func release(version string, platforms ...string) []string {
	base := demoDir + "terraform-provider-demo_" + version
	files := []string{base + "_SHA256SUMS", base + "_SHA256SUMS.sig"}
	for _, p := range platforms {
		files = append(files, base+"_"+p+".zip")
	}
	return files
}

func TestMirror(t *testing.T) {
	o := newAcme(t)
	root := t.TempDir()
	out, errs, err := o.mirror(t, root, originHost+"/acme/demo", "--platform", "linux_amd64")
	if err != nil || errs != "" {
		t.Fatalf("got error %v and\n%s", err, errs)
	}
	wantFiles(t, root, append(release("1.1.0", "linux_amd64"), demoKeys, demoLists, announced("1.1.0"))...)
	for _, part := range []string{
		"ADDED                           VERSION  PLATFORM     SIZE\n",
		"registry.example.com/acme/demo  1.1.0    linux_amd64  ",
		"\n\nAdded to " + filepath.Join(root, "providers") + ": 1 package, ",
		". There already: 0. Failed: 0.\n",
	} {
		if !strings.Contains(out, part) {
			t.Errorf("it does not say %q:\n%s", part, out)
		}
	}

	// Packages in the tree are verified and not fetched again.
	o.downloads()
	out, _, err = o.mirror(t, root, originHost+"/acme/demo", originHost+"/acme/demo@<= 1.0", "--platform", "linux_amd64,darwin_arm64")
	if !errors.Is(err, cli.ErrProblem) || !strings.Contains(out, ": 2 packages, ") || !strings.Contains(out, "There already: 1. Failed: 1.") {
		t.Errorf("got error %v and\n%s", err, out)
	}
	if got := strings.Join(o.downloads(), " "); got != "terraform-provider-demo_1.0.0_darwin_arm64.zip terraform-provider-demo_1.0.0_linux_amd64.zip" {
		t.Errorf("it fetched %s", got)
	}
	r := reportOf(t, root, true)
	if len(r.Offered) != 2 || r.Offered[0].Address != r.Offered[1].Address || len(r.Withheld) > 0 {
		t.Errorf("the registry offers %v and withholds %v", r.Offered, r.Withheld)
	}
}

func TestMirrorFromALockFile(t *testing.T) {
	o := newAcme(t)
	sum := func(name string) string {
		return fmt.Sprintf("zh:%x", sha256.Sum256([]byte(o.tree.Read("providers/acme/demo/terraform-provider-demo_1.0.0_"+name+".zip"))))
	}
	wrong := fmt.Sprintf("zh:%064d", 0)
	tests := []struct {
		rule     string
		locked   string
		says     string // of what failed
		platform string
		mirrored bool
	}{
		{"its hashes", lock(originHost+"/acme/demo", "1.0.0", wrong, sum("linux_amd64")), "", "linux_amd64", true},
		{"no hashes", lock(originHost+"/acme/demo", "1.0.0"), "", "linux_amd64", true},
		{"a pre-release", lock(originHost+"/acme/demo", "2.0.0-beta1"), "", "linux_amd64", true},
		{"hashes of another release", lock(originHost+"/acme/demo", "1.0.0", wrong), "registry.example.com/acme/demo 1.0.0 linux_amd64: it is not the release that was locked at ", "linux_amd64", false},
		{"hashes of another platform", lock(originHost+"/acme/demo", "1.0.0", sum("darwin_arm64")), "providers lock -platform=linux_amd64", "linux_amd64", false},
		{"a platform without a package", lock(originHost+"/acme/demo", "1.0.0"), "the release has no package for plan9_arm, only for darwin_arm64, linux_amd64 (for ", "plan9_arm", false},
		{"a version that does not exist", lock(originHost+"/acme/demo", "9.0.0"), "version 9.0.0: its registry does not list the version", "linux_amd64", false},
		{"another hash of the files in it", lock(originHost+"/acme/demo", "1.0.0", "h1:"+strings.Repeat("A", 43)+"="), "It is in the tree now, as its publisher released it", "linux_amd64", true},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			root, dir := t.TempDir(), t.TempDir()
			commandtest.Write(t, dir, "main.tf", "terraform {\n required_version = \">= 1.0\"\n}")
			commandtest.Write(t, dir, ".terraform.lock.hcl", test.locked)
			_, errs, err := o.mirror(t, root, dir, "--platform", test.platform)
			if failed := test.says != ""; failed != errors.Is(err, cli.ErrProblem) || failed != (err != nil) || !strings.Contains(errs, test.says) {
				t.Errorf("got error %v and\n%s", err, errs)
			}
			mirrored := slices.ContainsFunc(commandtest.Files(t, root), func(name string) bool { return strings.HasSuffix(name, ".zip") })
			if mirrored != test.mirrored {
				t.Errorf("mirrored: %v", mirrored)
			}
		})
	}
}

func TestMirrorFromAConfiguration(t *testing.T) {
	o := newAcme(t)
	root, dir := t.TempDir(), t.TempDir()
	commandtest.Write(t, dir, "main.tf", `terraform {
  required_providers {
    demo = {
      source  = "registry.example.com/acme/demo"
      version = "~> 1.0.0"
    }
  }
}
module "local" { source = "./local" }
module "vpc" { source = "acme/vpc/aws" }
`)
	commandtest.Write(t, dir, "local/main.tf", "terraform {\n required_providers {\n  other = { source = \"registry.example.com/acme/other\" }\n }\n}")
	out, errs, err := o.mirror(t, root, dir)
	// Everything else was fetched.
	if !errors.Is(err, cli.ErrProblem) || !strings.Contains(out, "2 packages") || !strings.Contains(out, "acme/demo   1.0.0") || !strings.Contains(out, "acme/other  0.1.0") {
		t.Errorf("got error %v and\n%s", err, out)
	}
	if !strings.Contains(errs, "MAY NEED MORE\n"+filepath.Join(dir, "main.tf")+`:10: module "vpc": registry.terraform.io/acme/vpc/aws comes from a registry and was not looked into`) {
		t.Errorf("got\n%s", errs)
	}
}

func TestMirrorDryRun(t *testing.T) {
	o := newAcme(t)
	root := t.TempDir()
	if _, errs, err := o.mirror(t, root, originHost+"/acme/demo"); err != nil {
		t.Fatal(err, errs)
	}
	before := commandtest.Files(t, root)
	o.downloads()
	out, errs, err := o.mirror(t, root, originHost+"/acme/demo", originHost+"/acme/demo@1.0.0", originHost+"/acme/other", "--dry-run")
	if err != nil || errs != "" || len(o.downloads()) > 0 {
		t.Errorf("got error %v and\n%s", err, errs)
	}
	want := `WOULD BE ADDED                   VERSION  PLATFORM
registry.example.com/acme/demo   1.0.0    linux_amd64
registry.example.com/acme/other  0.1.0    linux_amd64

Would be added to ` + filepath.Join(root, "providers") + `: 2 packages. There already: 1. Failed: 0.
`
	if out != want {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
	wantFiles(t, root, before...)

	empty := t.TempDir()
	if _, _, err := o.mirror(t, empty, originHost+"/acme/demo", "--dry-run"); err != nil {
		t.Error(err)
	}
	if entries, _ := os.ReadDir(empty); len(entries) > 0 {
		t.Errorf("it made %v", entries)
	}
}

// A dry run takes a folder that is missing for an empty one, and that folder alone. A symlink
// to nothing is a mistake.
func TestMirrorDryRunWithoutAFolder(t *testing.T) {
	o := newAcme(t)
	there, providers := t.TempDir(), t.TempDir()
	for _, args := range [][]string{{}, {"--providers", providers}} {
		if _, errs, err := o.mirror(t, there, append(args, originHost+"/acme/demo")...); err != nil {
			t.Fatal(err, errs)
		}
	}
	missing, dangling := filepath.Join(t.TempDir(), "missing"), filepath.Join(t.TempDir(), "link")
	if err := os.Symlink("nothing", dangling); err != nil {
		t.Skip(err)
	}
	if err := os.Symlink("nothing", filepath.Join(there, "link")); err != nil {
		t.Fatal(err)
	}
	const none, one = "There already: 0. Failed: 0.", "There already: 1. Failed: 0."
	for _, row := range []struct {
		rule, root string
		args       []string
		says       string // or the error has it
	}{
		{"nothing is missing", there, nil, one},
		{"there are no modules", there, []string{"--modules"}, one},
		{"there are no keys elsewhere", there, []string{"--keys", missing}, one},
		{"there are no providers elsewhere", there, []string{"--providers", missing}, none},
		{"there is no root", missing, nil, none},
		{"there is no root, and there are providers elsewhere", missing, []string{"--providers", providers}, one},
		{"the root is a symlink to nothing", dangling, nil, "--root: "},
		{"the providers are a symlink to nothing", there, []string{"--providers", "link"}, "--providers: "},
		{"the keys are a symlink to nothing elsewhere", there, []string{"--keys", dangling}, "--keys: "},
	} {
		out, _, err := o.mirror(t, row.root, append(row.args, "--dry-run", originHost+"/acme/demo")...)
		if err != nil {
			out = err.Error()
		}
		if !strings.Contains(out, row.says) {
			t.Errorf("%s: %v, and it says\n%s", row.rule, err, out)
		}
	}
	if _, err := os.Lstat(missing); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it made a folder (%v)", err)
	}
}

// After a failure the other packages are fetched, and a corrupt one is not kept.
func TestMirrorGoesOnAfterAFailure(t *testing.T) {
	o := newAcme(t)
	o.fault("/v1/mirror/-/acme/demo/terraform-provider-demo_1.1.0_linux_amd64.zip", func(w http.ResponseWriter, _ *http.Request) {
		w.Write([]byte("something else"))
	})
	root := t.TempDir()
	out, errs, err := o.mirror(t, root, originHost+"/acme/demo", originHost+"/acme/none", originHost+"/acme/other", originHost+"/acme/other@> 1", "--parallel", "1")
	if !errors.Is(err, cli.ErrProblem) || !strings.Contains(out, "1 package, ") || !strings.Contains(out, "Failed: 3.") {
		t.Errorf("got error %v and\n%s", err, out)
	}
	for _, part := range []string{
		"FAILED\nregistry.example.com/acme/none: ",
		"no version of registry.example.com/acme/other is > 1, as registry.example.com/acme/other@> 1 asks for: the newest on offer is 0.1.0\n",
		"registry.example.com/acme/demo 1.1.0 linux_amd64: ",
		"the checksum does not match",
	} {
		if !strings.Contains(errs, part) {
			t.Errorf("it does not say %q:\n%s", part, errs)
		}
	}
	if slices.ContainsFunc(commandtest.Files(t, root), func(name string) bool {
		return strings.Contains(name, ".part") || strings.HasSuffix(name, "1.1.0_linux_amd64.zip")
	}) {
		t.Errorf("there are %q", commandtest.Files(t, root))
	}
	o.fault("/v1/mirror/-/acme/demo/terraform-provider-demo_1.1.0_linux_amd64.zip", nil)
	if out, errs, err := o.mirror(t, root, originHost+"/acme/demo", originHost+"/acme/other"); err != nil || !strings.Contains(out, "1 package, ") {
		t.Errorf("the second run: got error %v and\n%s%s", err, out, errs)
	}
}

// A list that an earlier run has left does not stand for what the registry offers now.
func TestMirrorFailsWithoutANewList(t *testing.T) {
	o := newAcme(t)
	root := t.TempDir()
	if out, errs, err := o.mirror(t, root, originHost+"/acme/demo"); err != nil {
		t.Fatal(err, out, errs)
	}
	name := filepath.Join(root, filepath.FromSlash(demoLists))
	kept, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	old := regexp.MustCompile(`"fetched":\s*"[^"]*"`).ReplaceAll(kept, []byte(`"fetched":"2026-01-02T03:04:05Z"`))
	if err := os.WriteFile(name, old, 0o644); err != nil || bytes.Equal(old, kept) {
		t.Fatal(err, string(kept))
	}
	o.fault("/v1/providers/acme/demo/versions", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	for _, args := range [][]string{nil, {"--dry-run"}} {
		out, errs, err := o.mirror(t, root, append(args, originHost+"/acme/demo")...)
		if !errors.Is(err, cli.ErrProblem) || !strings.Contains(errs, "401") {
			t.Errorf("%q: got error %v and\n%s%s", args, err, out, errs)
		}
	}
	o.fault("/v1/providers/acme/demo/versions", nil)
	if out, errs, err := o.mirror(t, root, originHost+"/acme/demo"); err != nil {
		t.Errorf("got error %v and\n%s%s", err, out, errs)
	}
}

func TestMirrorFromAMirror(t *testing.T) {
	o := newAcme(t)
	root := t.TempDir()
	mirror := o.URL + "/v1/mirror/"
	// A mirror cannot provide keys.
	_, errs, err := o.mirrorAs(t, root, "--upstream", mirror, originHost+"/acme/demo")
	if !errors.Is(err, cli.ErrProblem) || !strings.Contains(errs, "the release is not signed by a known key") {
		t.Errorf("got error %v and\n%s", err, errs)
	}
	if _, errs, err = o.mirrorAs(t, root, "--upstream", mirror, "--signatures", "prefer", originHost+"/acme/demo"); err != nil {
		t.Fatal(err, errs)
	}
	wantFiles(t, root, append(release("1.1.0", "linux_amd64"), demoLists)...)
	// A registry with an --upstream of its own is not fetched from the mirror.
	o.downloads()
	if _, errs, err = o.mirrorAs(t, t.TempDir(), "--upstream", "https://127.0.0.1:1/", "--upstream", originHost+"="+o.URL, originHost+"/acme/demo"); err != nil {
		t.Error(err, errs)
	}
}

// Without --upstream, requests go to the hostnames of the providers.
func TestMirrorFromAHostname(t *testing.T) {
	o := newAcme(t)
	root := t.TempDir()
	host := o.Listener.Addr().String()
	if _, errs, err := o.mirrorAs(t, root, host+"/acme/demo"); err != nil {
		t.Fatal(err, errs)
	}
	if _, err := os.Stat(filepath.Join(root, "providers", host, "acme/demo/terraform-provider-demo_1.1.0_linux_amd64.zip")); err != nil {
		t.Error(err)
	}
}

func TestMirrorElsewhere(t *testing.T) {
	o := newAcme(t)
	providers, keys := t.TempDir(), t.TempDir()
	if _, errs, err := o.mirror(t, t.TempDir(), "--providers", providers, "--keys", keys, originHost+"/acme/other"); err != nil {
		t.Fatal(err, errs)
	}
	wantFiles(t, keys, originHost+"/acme.asc")
	if len(commandtest.Files(t, providers)) != 5 {
		t.Errorf("there are %q", commandtest.Files(t, providers))
	}
}

// Lock files have the registry's own providers too, which are not mirrored.
func TestMirrorLeavesOutItsOwn(t *testing.T) {
	o := newAcme(t)
	dir := t.TempDir()
	file := commandtest.Write(t, dir, "copy.hcl", lock(originHost+"/acme/demo", "1.0.0")+lock("Own.example.com/acme/demo", "1.0.0"))
	out, errs, err := o.mirror(t, t.TempDir(), "--own", "own.example.com", file)
	if err != nil || !strings.Contains(out, "Left out as the registry's own: own.example.com/acme/demo.") {
		t.Errorf("got error %v and\n%s%s", err, out, errs)
	}
}

// A token is sent only to the host it is named after.
func TestMirrorSendsTokens(t *testing.T) {
	o := newAcme(t)
	t.Setenv("TF_TOKEN_registry_example_com", "secret")
	if _, errs, err := o.mirror(t, t.TempDir(), originHost+"/acme/demo"); err != nil {
		t.Fatal(err, errs)
	}
	ask := func() (sent int) {
		o.mutex.Lock()
		defer o.mutex.Unlock()
		for _, r := range o.asked {
			if r.Header.Get("Authorization") != "" {
				sent++
			}
		}
		o.asked = nil
		return sent
	}
	if n := ask(); n > 0 {
		t.Errorf("the token was sent to another host, %d times", n)
	}
	tokens := map[svchost.Hostname]string{"registry.example.com": "secret", "a-b.example.com": "as it is"}
	origins := origins{mirror: "https://mirror.example.com:443/v1/", urls: map[svchost.Hostname]string{"b.example.com": "https://cache.example.com"}, tokens: tokens}
	tokens["mirror.example.com"], tokens["cache.example.com"], tokens["b.example.com"] = "of the mirror", "of the cache", "of b"
	if token := origins.origin(fillerID{hostname: "registry.example.com"}).Token; token != "of the mirror" {
		t.Errorf("the mirror is sent %q", token)
	}
	if token := origins.origin(fillerID{hostname: "b.example.com"}).Token; token != "of the cache" {
		t.Errorf("the other address is sent %q", token)
	}
	// A network mirror has no modules. Repositories of other hosts may need their tokens.
	modules := origins.origin(fillerID{hostname: "registry.example.com", modules: true})
	if modules.Mirror != "" || modules.Token != "secret" || slices.ContainsFunc(modules.Hosts, func(h upstream.Host) bool { return h.Name == "registry.example.com" }) ||
		!slices.ContainsFunc(modules.Hosts, func(h upstream.Host) bool { return h.Name == "a-b.example.com" && h.Token == "as it is" }) {
		t.Errorf("modules come from %+v", modules)
	}
}

func TestMirrorRefuses(t *testing.T) {
	o := newAcme(t)
	root, dir, nothing := t.TempDir(), t.TempDir(), t.TempDir()
	broken := commandtest.Write(t, dir, "broken.hcl", "provider {")
	tf := commandtest.Write(t, dir, "main.tf", "")
	tests := []struct {
		rule string
		args []string
		want string
	}{
		{"nothing to mirror", nil, "say what to mirror"},
		{"a missing path", []string{"./missing"}, "there is no file or folder ./missing"},
		{"a word", []string{"missing"}, "there is no file or folder missing, and as a provider: "},
		{"a malformed provider", []string{"a/b/c/d"}, "is not the source of a provider"},
		{"malformed constraints", []string{"acme/demo@new"}, "is not a version constraint"},
		{"a broken lock file", []string{broken}, "broken.hcl"},
		{"a configuration file", []string{tf}, "give the folder it is in"},
		{"a folder with nothing in it", []string{t.TempDir()}, "there is no .tf file in it"},
		{"a folder of modules without an equals sign", []string{"--modules", nothing, "acme/demo"}, nothing + ": there is no .tf file in it; if it is the folder with the modules, write --modules=" + nothing},
		{"one that is still missing", []string{"--modules", "./missing", "acme/demo"}, "there is no file or folder ./missing; if it is the folder with the modules, write --modules=./missing"},
		{"a malformed platform", []string{"acme/demo", "--platform", "linux"}, "--platform: "},
		{"a variable for a platform that is empty", []string{"acme/demo", "--platform", ""}, "--platform: it is empty"},
		{"a variable for a mirror that is empty", []string{"acme/demo", "--upstream", ""}, "--upstream: it is empty"},
		{"a variable for modules that is empty", []string{"acme/demo", "--modules-url", ""}, "--modules-url: it is empty"},
		{"unknown signatures", []string{"acme/demo", "--signatures", "never"}, "--signatures: "},
		{"no workers", []string{"acme/demo", "--parallel", "0"}, "--parallel: "},
		{"a mirror without TLS", []string{"acme/demo", "--upstream", "http://mirror.example.com/"}, "must begin with https://"},
		{"two mirrors", []string{"acme/demo", "--upstream", "https://a.example.com/", "--upstream", "https://b.example.com/"}, "--upstream: two network mirrors"},
		{"two addresses", []string{"acme/demo", "--upstream", "a.example.com=https://b.example.com/", "--upstream", "A.example.com=https://c.example.com/"}, "--upstream: two addresses"},
		{"an address without URL", []string{"acme/demo", "--upstream", "a.example.com="}, "--upstream: there is no URL"},
		{"an upstream with a malformed hostname", []string{"acme/demo", "--upstream", "a..b=https://b.example.com/"}, "--upstream: "},
		{"a malformed --own", []string{"acme/demo", "--own", "a..b"}, "--own: "},
		{"a malformed private host", []string{"acme/demo", "--private", "a/b"}, "is not a host"},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			out, errs, err := o.mirrorAs(t, root, test.args...)
			if err == nil || errors.Is(err, cli.ErrProblem) || !strings.Contains(err.Error(), test.want) || out != "" || errs != "Error: "+err.Error()+"\n" {
				t.Errorf("got error %v, want one with %q, and\n%s%s", err, test.want, out, errs)
			}
		})
	}
	wantFiles(t, root)
}

// An argument is a path if it exists or can only be a path.
func TestMirrorArguments(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	commandtest.Write(t, dir, "hashicorp/null/main.tf", "terraform {\n required_providers {\n  random = { source = \"hashicorp/random\" }\n }\n}")
	commandtest.Write(t, dir, "copy", lock("registry.terraform.io/hashicorp/time", "1.0.0"))
	for _, test := range []struct {
		rule, arg string
		tofu      bool
		want      string
	}{
		{"a folder that exists", "hashicorp/null", false, "registry.terraform.io/hashicorp/random"},
		{"the same of OpenTofu", "hashicorp/null", true, "registry.opentofu.org/hashicorp/random"},
		{"a folder with a dot before it", "./hashicorp/null", false, "registry.terraform.io/hashicorp/random"},
		{"a file by any name", "copy", false, "registry.terraform.io/hashicorp/time@1.0.0"},
		{"a provider with a hostname", "registry.terraform.io/hashicorp/null", true, "registry.terraform.io/hashicorp/null"},
		{"a provider with constraints", "hashicorp/null@~> 3.0", false, "registry.terraform.io/hashicorp/null@~> 3.0"},
		{"a provider", "hashicorp/aws", false, "registry.terraform.io/hashicorp/aws"},
		{"a provider of OpenTofu", "hashicorp/aws", true, "registry.opentofu.org/hashicorp/aws"},
	} {
		q := mirrorRequest{tofu: test.tofu}
		err := q.readArguments([]string{test.arg}, false)
		if err != nil || len(q.requirements) != 1 || q.requirements[0].Requirement.String() != test.want {
			t.Errorf("%s: got %v, error %v, want %s", test.rule, q.requirements, err, test.want)
		}
	}
}

// A package in the tree that differs from the released one is a failure, and stays.
func TestMirrorKeepsWhatIsThere(t *testing.T) {
	o := newAcme(t)
	root := t.TempDir()
	indextest.OnDisk(t, root).Provider(originHost+"/acme/demo", "1.1.0", "linux_amd64")
	name := filepath.Join(root, demoDir, "terraform-provider-demo_1.1.0_linux_amd64.zip")
	if err := os.WriteFile(name, []byte(indextest.ProviderZip("demo", "1.1.0", "another")), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"--dry-run"}, nil} {
		_, errs, err := o.mirror(t, root, append(args, originHost+"/acme/demo")...)
		if !errors.Is(err, cli.ErrProblem) || !strings.Contains(errs, "remove the version from the tree") {
			t.Errorf("%v: got error %v and\n%s", args, err, errs)
		}
	}
	wantFiles(t, root, demoDir+"terraform-provider-demo_1.1.0_linux_amd64.zip", demoLists)
}

// An interrupted download leaves nothing behind, and is not reported as a failure.
func TestMirrorIsInterrupted(t *testing.T) {
	o := newAcme(t)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	o.fault("/v1/mirror/-/acme/demo/terraform-provider-demo_1.1.0_linux_amd64.zip", func(w http.ResponseWriter, r *http.Request) {
		w.Write([]byte("PK"))
		w.(http.Flusher).Flush()
		interrupt()
		<-r.Context().Done()
	})
	root := t.TempDir()
	out, errs, err := o.mirrorWithin(ctx, root, "--upstream", originHost+"="+o.URL, "--parallel", "1", originHost+"/acme/demo", originHost+"/acme/other")
	if !errors.Is(err, cli.ErrProblem) || !strings.Contains(errs, "Interrupted: ") || strings.Contains(errs, "FAILED") || !strings.Contains(out, ": 0 packages, ") {
		t.Errorf("got error %v and\n%s%s", err, out, errs)
	}
	wantFiles(t, root)
}

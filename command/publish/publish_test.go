package publish

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/command/commandtest"
	"github.com/caddy-terraform/caddy-terraform-registry/command/remote"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/upstreamtest"
)

func TestPublishProvider(t *testing.T) {
	r := newTarget(t)
	author := indextest.NewPublisher(t)
	r.Tree.Keys("acme", author)
	d := newDist("one").signed(author)
	dir := d.folder(t)
	out, errs, err := r.publish(r.To("acme/demo"), "--wait", dir)
	if err != nil || errs != "" {
		t.Fatalf("%v\n%s", err, errs)
	}
	if got := commandtest.Files(t, r.Root+"/"+"providers/acme/demo"); !slices.Equal(got, filesIn("1.2.0", d.names()...)) {
		t.Errorf("the tree has %q", got)
	}
	commandtest.Says(t, out, "FILE SIZE RESULT", "Published: acme/demo 1.2.0.")
	lists(t, out, demoName("linux_amd64.zip"), "published")
	if strings.Contains(out, "staged") {
		t.Errorf("files are staged:\n%s", out)
	}

	r.Sent()
	out, errs, err = r.publish(r.To("acme/demo"), dir)
	if err != nil || errs != "" {
		t.Fatalf("%v\n%s", err, errs)
	}
	lists(t, out, demoName("linux_amd64.zip"), "already there")
	commandtest.Says(t, out, "Published before, with the same bytes: acme/demo 1.2.0.")
	for name, n := range r.Sent() {
		if n > 0 && !strings.HasSuffix(name, ".sig") { // which may be another that is valid
			t.Errorf("%d bytes of %s are sent again", n, name)
		}
	}

	out, errs, err = r.publish(r.To("acme/demo"), newDist("two").folder(t))
	if commandtest.Status(err) != cli.ExitProblem {
		t.Errorf("another build: %v", err)
	}
	lists(t, out, demoName("SHA256SUMS"), "refused")
	lists(t, out, demoName("linux_amd64.zip"), "not sent")
	commandtest.Says(t, out, "Not published: acme/demo 1.2.0.")
	commandtest.Says(t, errs, "REFUSED BY 127.0.0.1:", demoName("SHA256SUMS")+" Version 1.2.0 of acme/demo is published with another")
}

// filesIn returns names in a folder.
func filesIn(dir string, names ...string) (paths []string) {
	for _, name := range names {
		paths = append(paths, dir+"/"+name)
	}
	return paths
}

func TestPublishContinues(t *testing.T) {
	r := newTarget(t)
	dir := newDist("one").folder(t)
	r.Fail(func(q *http.Request) int {
		if strings.HasSuffix(q.URL.Path, "darwin_arm64.zip") {
			return http.StatusInsufficientStorage
		}
		return 0
	})
	out, errs, err := r.publish(r.To("acme/demo"), dir)
	if commandtest.Status(err) != cli.ExitProblem {
		t.Fatalf("%v\n%s", err, errs)
	}
	lists(t, out, demoName("linux_amd64.zip"), "staged")
	lists(t, out, demoName("darwin_arm64.zip"), "refused")
	commandtest.Says(t, out, "Not published")
	r.Fail(nil)
	r.Sent()
	if out, errs, err = r.publish(r.To("acme/demo"), dir); err != nil {
		t.Fatalf("%v\n%s", err, errs)
	}
	commandtest.Says(t, out, "Published: acme/demo 1.2.0.")
	for name, n := range r.Sent() {
		if again := n > 0; again != (name == "PUT "+demoName("darwin_arm64.zip")) {
			t.Errorf("of %s, %d bytes are sent", name, n)
		}
	}
}

func TestPublishAnotherBuild(t *testing.T) {
	r := newTarget(t)
	first := newDist("one")
	dir := first.folder(t)
	r.Fail(func(q *http.Request) int {
		if strings.HasSuffix(q.URL.Path, ".zip") {
			return http.StatusInsufficientStorage
		}
		return 0
	})
	r.publish(r.To("acme/demo"), dir)
	r.Fail(nil)
	second := newDist("two")
	dir = second.folder(t)
	_, errs, err := r.publish(r.To("acme/demo"), dir)
	if commandtest.Status(err) != cli.ExitProblem {
		t.Errorf("%v", err)
	}
	commandtest.Says(t, errs, "Another build of this version has been sent", "--drop-staged")
	for range 2 { // the second time nothing is staged
		if out, errs, err := r.publish(r.To("acme/demo"), "--drop-staged", dir); err != nil {
			t.Errorf("%v\n%s\n%s", err, out, errs)
		}
	}
	if got := r.Tree.Read("providers/acme/demo/1.2.0/" + demoName("SHA256SUMS")); got != second[demoName("SHA256SUMS")] {
		t.Errorf("SHA256SUMS is\n%s", got)
	}
}

func TestPublishWithoutTheSignatureThatIsNeeded(t *testing.T) {
	r := newTarget(t)
	r.Tree.Keys("acme", indextest.NewPublisher(t))
	out, errs, err := r.publish(r.To("acme/demo"), newDist("").folder(t))
	if commandtest.Status(err) != cli.ExitProblem {
		t.Errorf("%v", err)
	}
	lists(t, out, demoName("linux_amd64.zip"), "staged")
	commandtest.Says(t, out, "Sent, and not complete: acme/demo 1.2.0.")
	commandtest.Says(t, errs, "acme/demo 1.2.0 It still needs: "+demoName("SHA256SUMS.sig")+".", "gpg --detach-sign")
}

// The answer of the registry is printed, and whether a token was found.
func TestPublishWithoutTheRight(t *testing.T) {
	r := newTarget(t)
	dir := newDist("").folder(t)
	_, errs, err := r.publishAs("tfr_other", r.To("acme/demo"), dir)
	if commandtest.Status(err) != cli.ExitProblem || strings.Contains(errs, "tfr_other") {
		t.Errorf("%v", err)
	}
	commandtest.Says(t, errs, "Your credentials do not allow you to publish acme/demo", "The token is that from ")
	for _, test := range []struct {
		variable, says string
	}{
		{"", "No token was found: log in with terraform login, or name a file by --token-file."},
		{"GITHUB_ACTIONS", "No token was found: the job needs the permission id-token: write"},
	} {
		if test.variable != "" {
			t.Setenv(test.variable, "true")
		}
		_, errs, err = commandtest.Run(t.Context(), Command(r.network()), r.To("acme/demo"), dir)
		if commandtest.Status(err) != cli.ExitProblem {
			t.Errorf("%v", err)
		}
		commandtest.Says(t, errs, "It requires credentials to publish acme/demo", test.says)
	}
	for name, n := range r.Sent() {
		if n > 0 {
			t.Errorf("%d bytes of %s are sent", n, name)
		}
	}
}

func TestPublishDocs(t *testing.T) {
	r := newTarget(t)
	docs := t.TempDir()
	commandtest.Write(t, docs, "index.md", "# Demo")
	commandtest.Write(t, docs, "resources/thing.md", "# Thing")
	commandtest.Write(t, docs, ".git/config", "")
	d := newDist("")
	out, errs, err := r.publish(r.To("acme/demo"), "--docs", docs, d.folder(t))
	if err != nil {
		t.Fatalf("%v\n%s", err, errs)
	}
	lists(t, out, "docs.zip", "published")
	want := append(filesIn("1.2.0", "docs/index.md", "docs/resources/thing.md"), filesIn("1.2.0", d.names()...)...)
	if got := commandtest.Files(t, r.Root+"/"+"providers/acme/demo"); !slices.Equal(got, want) {
		t.Errorf("the tree has %q", got)
	}
	commandtest.Write(t, docs, "index.md", "# New")
	if out, errs, err = r.publish(r.To("acme/demo"), "--docs", docs, d.folder(t)); err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, errs)
	}
	if got := r.Tree.Read("providers/acme/demo/1.2.0/docs/index.md"); got != "# New" {
		t.Errorf("the page says %q", got)
	}
}

func TestPublishModule(t *testing.T) {
	r := newTarget(t)
	dir := t.TempDir()
	commandtest.Write(t, dir, "main.tf", `output "a" { value = 1 }`)
	commandtest.Write(t, dir, "secret.txt", "not this")
	commandtest.Write(t, dir, ".terraformignore", "secret.txt\n")
	out, errs, err := r.publish(r.To("acme/vpc/aws"), "--version", "v1.2.0", "--wait", dir)
	if err != nil {
		t.Fatalf("%v\n%s", err, errs)
	}
	commandtest.Says(t, out, "1.2.0.tar.gz", "published", "Published: acme/vpc/aws 1.2.0.")
	commandtest.Says(t, errs, "Not in the package: ", "secret.txt")
	if got := commandtest.Files(t, r.Root+"/"+"modules/acme/vpc/aws"); !slices.Equal(got, []string{"1.2.0.tar.gz"}) {
		t.Errorf("the tree has %q", got)
	}
	out, errs, err = r.publish(r.To("acme/vpc/aws"), "--version", "1.2.0", dir)
	if err != nil {
		t.Fatalf("%v\n%s", err, errs)
	}
	commandtest.Says(t, out, "already there", "Published before")
	commandtest.Write(t, dir, "main.tf", `output "b" { value = 1 }`)
	_, errs, err = r.publish(r.To("acme/vpc/aws"), "--version", "1.2.0", dir)
	if commandtest.Status(err) != cli.ExitProblem {
		t.Errorf("%v", err)
	}
	commandtest.Says(t, errs, "a version never changes")
}

// A module with problems is not sent. The problems are printed as check does.
func TestPublishChecksFirst(t *testing.T) {
	for _, test := range []struct {
		rule, name, content, says string
	}{
		{"no module", "README.md", "# VPC", "acme/vpc/aws 1.0.0: no_configuration"},
		{"a private key", "key.pem", privateKey(t), "acme/vpc/aws 1.0.0: secret"},
		{"a module beside it", "main.tf", `module "a" { source = "../a" }`, "acme/vpc/aws 1.0.0: not_self_contained main.tf: the module"},
		{"a file that clients cannot parse", "main.tf", "locals {\n  a = 1 +\n}\n", "acme/vpc/aws 1.0.0: not_parsed correct main.tf:2, which clients cannot parse: Invalid expression"},
	} {
		r := newTarget(t)
		dir := t.TempDir()
		commandtest.Write(t, dir, test.name, test.content)
		if test.name == "key.pem" {
			commandtest.Write(t, dir, "main.tf", "")
		}
		out, errs, err := r.publish(r.To("acme/vpc/aws"), "--version", "1.0.0", dir)
		if commandtest.Status(err) != cli.ExitProblem || out != "Not published: acme/vpc/aws 1.0.0.\n" {
			t.Errorf("%s: %v\n%s", test.rule, err, out)
		}
		commandtest.Says(t, errs, "CANNOT BE PUBLISHED "+filepath.ToSlash(dir), test.says)
		if sent := r.Sent(); len(sent) > 0 {
			t.Errorf("%s: there are requests: %v", test.rule, sent)
		}
	}
}

// privateKey is a key for TLS.
func privateKey(t *testing.T) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

func TestPublishFromGit(t *testing.T) {
	s, commits := monorepo(t)
	r := newTarget(t)
	args := []string{r.To("acme/vpc/aws"), "--from-git", s.Dir, "--tag-pattern", "vpc/v{version}", "--path", "modules/vpc"}
	out, errs, err := r.publish(append(args, "--tag", "vpc/v1.0.0")...)
	if err != nil {
		t.Fatalf("%v\n%s", err, errs)
	}
	commandtest.Says(t, out, "TAG FILE SIZE RESULT", "vpc/v1.0.0 1.0.0.tar.gz", "Published: acme/vpc/aws 1.0.0.")
	out, errs, err = r.publish(append(args, "--all-tags", "--wait")...)
	if err != nil {
		t.Fatalf("%v\n%s", err, errs)
	}
	commandtest.Says(t, out, "Published: acme/vpc/aws 1.10.0-rc.1, 1.1.0.", "Published before, with the same bytes: acme/vpc/aws 1.0.0")
	s.Git("tag", "--force", "vpc/v1.0.0", commits[1])
	out, errs, err = r.publish(append(args, "--all-tags")...)
	if commandtest.Status(err) != cli.ExitProblem {
		t.Errorf("%v", err)
	}
	commandtest.Says(t, out, "vpc/v1.0.0 1.0.0.tar.gz", "Not published: acme/vpc/aws 1.0.0.", "Published before, with the same bytes: acme/vpc/aws 1.10.0-rc.1, 1.1.0")
	commandtest.Says(t, errs, "than the tag vpc/v1.0.0 has now, at commit "+commits[1][:12]+" of 2026-01-03.")
}

// An unfit tag can never be corrected, so it does not keep the other tags from being
// published.
func TestPublishFromGitPastAnUnfitTag(t *testing.T) {
	s := upstreamtest.NewRepository(t)
	s.Write("main.tf", `module "a" { source = "../a" }`)
	s.Commit("v1.0.0")
	s.Write("main.tf", "# alone\n")
	s.Commit("v1.1.0")
	r := newTarget(t)
	out, errs, err := r.publish(r.To("acme/vpc/aws"), "--from-git", s.Dir, "--all-tags")
	if commandtest.Status(err) != cli.ExitProblem {
		t.Errorf("%v", err)
	}
	commandtest.Says(t, out, "Published: acme/vpc/aws 1.1.0.", "Not published: acme/vpc/aws 1.0.0.")
	commandtest.Says(t, errs, "CANNOT BE PUBLISHED v1.0.0 acme/vpc/aws 1.0.0: not_self_contained")
	if out, _, err = r.publish(r.To("acme/vpc/aws"), "--from-git", s.Dir, "--tag", "v1.0.0"); commandtest.Status(err) != cli.ExitProblem {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestPublishDryRun(t *testing.T) {
	r := newTarget(t)
	out, errs, err := r.publish(r.To("acme/demo"), "--dry-run", newDist("").folder(t))
	if err != nil || errs != "" {
		t.Errorf("%v\n%s", err, errs)
	}
	lists(t, out, demoName("linux_amd64.zip"), "would be sent")
	commandtest.Says(t, out, "Can be published: acme/demo 1.2.0. This was a dry run: nothing has been sent.")
	if files := commandtest.Files(t, r.Root+"/"+""); len(files) > 0 {
		t.Errorf("the tree has %q", files)
	}
	for name, n := range r.Sent() {
		if n > 0 {
			t.Errorf("%d bytes are sent: %s", n, name)
		}
	}
}

// In a dry run the registry is asked what it would answer. No file is sent, and nothing
// changes.
func TestPublishDryRunAsksTheRegistry(t *testing.T) {
	author := indextest.NewPublisher(t)
	module := func(content string) string {
		dir := t.TempDir()
		commandtest.Write(t, dir, "main.tf", content)
		return dir
	}
	one, two := newDist("one").signed(author), newDist("two").signed(author)
	again := newDist("one").signed(indextest.NewPublisher(t))
	first, other := module(`output "a" { value = 1 }`), module(`output "a" { value = 2 }`)
	provider := func(dir string) []string { return []string{"acme/demo", dir} }
	vpc := func(dir string) []string { return []string{"acme/vpc/aws", "--version", "1.0.0", dir} }
	for _, test := range []struct {
		rule       string
		there      []string // published before
		token      string
		args       []string
		exit       int
		says, errs string
	}{
		{"it is new", nil, commandtest.GoodToken, provider(one.folder(t)), 0, "Can be published: acme/demo 1.2.0.", ""},
		{"the same bytes are there", provider(one.folder(t)), commandtest.GoodToken, provider(one.folder(t)), 0, "Published before, with the same bytes: acme/demo 1.2.0.", ""},
		{"other bytes are there", provider(one.folder(t)), commandtest.GoodToken, provider(two.folder(t)), cli.ExitProblem, "Not published: acme/demo 1.2.0.", "is published with another"},
		{"another signature may be as good", provider(one.folder(t)), commandtest.GoodToken, provider(again.folder(t)), 0, "Can be published: acme/demo 1.2.0.", ""},
		{"a module is new", nil, commandtest.GoodToken, vpc(first), 0, "Can be published: acme/vpc/aws 1.0.0.", ""},
		{"the same module is there", vpc(first), commandtest.GoodToken, vpc(first), 0, "Published before, with the same bytes: acme/vpc/aws 1.0.0.", ""},
		{"another module is there", vpc(first), commandtest.GoodToken, vpc(other), cli.ExitProblem, "Not published: acme/vpc/aws 1.0.0.", "is published with another"},
		{"it is not allowed", nil, "tfr_other", vpc(first), cli.ExitProblem, "Not published: acme/vpc/aws 1.0.0.", "do not allow you to publish acme/vpc/aws"},
		{"the token is unknown", nil, "tfr_unknown", vpc(first), cli.ExitProblem, "Not published: acme/vpc/aws 1.0.0.", "The token is that from"},
		{"there is no token", nil, "", vpc(first), 0, "Can be published: acme/vpc/aws 1.0.0. This was a dry run: nothing has been sent. The registry was not asked. No token was found:", ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			r := newTarget(t)
			address := func(args []string) []string { return append([]string{r.To(args[0])}, args[1:]...) }
			if test.there != nil {
				if _, errs, err := r.publish(address(test.there)...); err != nil {
					t.Fatalf("%v\n%s", err, errs)
				}
			}
			before := commandtest.Files(t, r.Root+"/"+"")
			r.Sent()
			args := append(address(test.args), "--dry-run")
			out, errs, err := commandtest.Run(t.Context(), Command(r.network()), args...)
			if test.token != "" {
				out, errs, err = r.publishAs(test.token, args...)
			}
			if commandtest.Status(err) != test.exit {
				t.Errorf("%v\n%s", err, errs)
			}
			commandtest.Says(t, out, test.says)
			commandtest.Says(t, errs, test.errs)
			if after := commandtest.Files(t, r.Root+"/"+""); !slices.Equal(before, after) {
				t.Errorf("the tree has %q, and had %q", after, before)
			}
			for name, n := range r.Sent() {
				if n > 0 {
					t.Errorf("%d bytes are sent: %s", n, name)
				}
			}
		})
	}
}

func TestPublishJSON(t *testing.T) {
	r := newTarget(t)
	for _, test := range []struct {
		rule   string
		args   []string
		exit   int
		status status
		file   status
	}{
		{"dry", []string{"--dry-run", newDist("one").folder(t)}, 0, wouldBeSent, wouldBeSent},
		{"new", []string{newDist("one").folder(t)}, 0, nowPublished, nowPublished},
		{"again", []string{newDist("one").folder(t)}, 0, alreadyThere, alreadyThere},
		{"other bytes", []string{newDist("two").folder(t)}, cli.ExitProblem, notTaken, notTaken},
	} {
		out, errs, err := r.publish(append([]string{r.To("acme/demo"), "--json"}, test.args...)...)
		var d document
		if bad := json.Unmarshal([]byte(out), &d); bad != nil || commandtest.Status(err) != test.exit || errs != "" {
			t.Fatalf("%s: %v, %v\n%s\n%s", test.rule, bad, err, out, errs)
		}
		if len(d.Versions) != 1 || d.Versions[0].Version != "1.2.0" || d.Versions[0].Status != test.status || len(d.Versions[0].Files) != 4 || d.Versions[0].Files[0].Status != test.file ||
			d.Complete != (test.exit == 0) || d.Address != "acme/demo" || strings.Contains(out, "null") {
			t.Errorf("%s: got %s", test.rule, out)
		}
		if refused := d.Versions[0].Files[0].Errors; (len(refused) > 0) != (test.exit != 0) {
			t.Errorf("%s: the errors are %q", test.rule, refused)
		}
	}
}

func TestPublishRefusesTheCommandLine(t *testing.T) {
	commandtest.NoClientConfiguration(t)
	dir, empty := newDist("").folder(t), t.TempDir()
	module := t.TempDir()
	commandtest.Write(t, module, "main.tf", "")
	for _, test := range []struct {
		args []string
		says string
	}{
		{[]string{dir}, "--to is required"},
		{[]string{"--to", "acme/demo", dir}, "does not begin with the hostname"},
		{[]string{"--to", "registry.example.com", dir}, "give HOST/NAMESPACE/TYPE of a provider"},
		{[]string{"--to", "registry.example.com/a/b/c/d", dir}, "give HOST/NAMESPACE/TYPE of a provider"},
		{[]string{"--to", "ftp://registry.example.com/acme/demo", dir}, "is not a registry"},
		{[]string{"--to", "registry..example.com/acme/demo", dir}, "is not a hostname"},
		{[]string{"--to", "registry.example.com/acme/de_mo", dir}, "--to: "},
		{[]string{"--to", "registry.example.com/acme/demo"}, "give one folder: GoReleaser's dist"},
		{[]string{"--to", "registry.example.com/acme/demo", dir, dir}, "give one folder"},
		{[]string{"--to", "registry.example.com/acme/demo", ""}, "give one folder: GoReleaser's dist"},
		{[]string{"--to", "registry.example.com/acme/demo", filepath.Join(dir, "none")}, "is not a folder"},
		{[]string{"--to", "registry.example.com/acme/demo", empty}, "has no release of acme/demo: its packages are named terraform-provider-demo_VERSION_OS_ARCH.zip"},
		{[]string{"--to", "registry.example.com/acme/other", dir}, "has no release of acme/other, but of demo: name it by --to"},
		{[]string{"--to", "registry.example.com/acme/demo", "--version", "1.3.0", dir}, "has no version 1.3.0 of acme/demo, only 1.2.0"},
		{[]string{"--to", "registry.example.com/acme/demo", "--version", "v1.3", dir}, "has no version 1.3.0 of acme/demo, only 1.2.0"},
		{[]string{"--to", "registry.example.com/acme/demo", "--version", "x", dir}, "--version: "},
		{[]string{"--to", "registry.example.com/acme/demo", "--docs", filepath.Join(dir, "none"), dir}, "--docs: "},
		{[]string{"--to", "registry.example.com/acme/demo", "--from-git", ".", "--tag", "v1.0.0"}, "--from-git is for modules"},
		{[]string{"--to", "registry.example.com/acme/demo", "--parallel", "0", dir}, "--parallel: "},
		{[]string{"--to", "registry.example.com/acme/demo", "--wait=-1s", dir}, "--wait: "},
		{[]string{"--to", "registry.example.com/acme/demo", "--wait", "60s", dir}, "--wait: write --wait=60s, with an equals sign"},
		{[]string{"--to", "registry.example.com/acme/vpc/aws", "--from-git", ".", "--tag", "v1.0.0", "--wait", "60s"}, "--wait: write --wait=60s, with an equals sign"},
		{[]string{"--to", "registry.example.com/acme/demo", "--wait", dir, dir}, "give one folder"},
		{[]string{"--to", "registry.example.com/acme/vpc/aws", module}, "--version is required for a module"},
		{[]string{"--to", "registry.example.com/acme/vpc/aws", "--version", "1", "--docs", dir, module}, "--docs is for providers"},
		{[]string{"--to", "registry.example.com/acme/vpc/aws", "--version", "1.0.0", "--tag", "v1", module}, "--tag belongs to --from-git"},
		{[]string{"--to", "registry.example.com/acme/vpc/aws", "--from-git", ".", "--version", "1.0.0"}, "--version does not go with --from-git"},
		{[]string{"--to", "registry.example.com/acme/vpc/aws", "--from-git", ".", "--tag", "v1", module}, "the folder of the module is given by --path"},
		{[]string{"--to", "registry.example.com/acme/vpc/aws", "--from-git", "."}, "--tag with one tag, or --all-tags"},
	} {
		out, errs, err := commandtest.Run(t.Context(), Command(remote.Network{}), append([]string{"--dry-run"}, test.args...)...)
		if commandtest.Status(err) != cli.ExitUsage || !strings.Contains(err.Error(), test.says) || out != "" || errs != "Error: "+err.Error()+"\n" {
			t.Errorf("%q: %v\n%s%s", test.args, err, out, errs)
		}
	}
}

func TestDestinations(t *testing.T) {
	for _, test := range []struct{ text, base, address string }{
		{"registry.example.com/acme/demo", "https://registry.example.com", "acme/demo"},
		{"https://registry.example.com/acme/demo/", "https://registry.example.com", "acme/demo"},
		{"Registry.Example.com:8443/Acme/Demo", "https://registry.example.com:8443", "acme/demo"},
		{"registry.example.com:443/acme/vpc/aws", "https://registry.example.com", "acme/vpc/aws"},
		{"bücher.example/acme/vpc/aws", "https://xn--bcher-kva.example", "acme/vpc/aws"},
		{"http://localhost:8080/acme/demo", "http://localhost:8080", "acme/demo"},
		{"localhost/acme/demo", "https://localhost", "acme/demo"},
	} {
		d, err := parseDestination(test.text)
		if err != nil || d.Base.String() != test.base || d.Address.String() != test.address {
			t.Errorf("%s: got %v and %v, %v", test.text, d.Base, d.Address, err)
		}
	}
}

// A typed destination never becomes another host or address.
func FuzzDestination(f *testing.F) {
	for _, text := range []string{"registry.example.com/acme/demo", "http://localhost:8080/acme/vpc/aws", "user@registry.example.com/a/b", "a.example?x/b/c", "a.example#x/b/c"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := parseDestination(text)
		if err != nil {
			return
		}
		if d.Base.Host != string(d.Hostname) || d.Base.User != nil || strings.ContainsAny(d.Base.Host, "/?#@ ") || d.Address.Hostname != "" {
			t.Errorf("%q: got %v and %v", text, d.Base, d.Address)
		}
		if again, err := parseDestination(d.Base.String() + "/" + d.Address.String()); err != nil || *again.Base != *d.Base || again.Address != d.Address {
			t.Errorf("%q: again it is %v and %v, %v", text, again.Base, again.Address, err)
		}
	})
}

func TestPackDocsIsDeterministic(t *testing.T) {
	pack := func(mode os.FileMode) []byte {
		dir := t.TempDir()
		for _, name := range []string{"index.md", "resources/a.md", "guides/b.md"} {
			if err := os.Chmod(commandtest.Write(t, dir, name, "# "+name), mode); err != nil {
				t.Fatal(err)
			}
		}
		packed, err := packDocs(dir)
		if err != nil {
			t.Fatal(err)
		}
		return packed
	}
	if !slices.Equal(pack(0o644), pack(0o600)) {
		t.Error("the same documentation is packed into other bytes")
	}
}

func TestPublishRefusesDocs(t *testing.T) {
	for _, test := range []struct {
		rule, says string
		write      func(dir string)
	}{
		{"no page", "bad_archive docs.zip has no page of documentation", func(dir string) { commandtest.Write(t, dir, "a.txt", "") }},
		{"two files that are one on some systems", "are one file on some systems", func(dir string) { commandtest.Write(t, dir, "a.md", ""); commandtest.Write(t, dir, "A.md", "") }},
		{"a link", "is not a regular file", func(dir string) {
			commandtest.Write(t, dir, "index.md", "")
			if err := os.Symlink("index.md", filepath.Join(dir, "b.md")); err != nil {
				t.Skip(err)
			}
		}},
	} {
		docs := t.TempDir()
		test.write(docs)
		commandtest.NoClientConfiguration(t)
		_, errs, err := commandtest.Run(t.Context(), Command(remote.Network{}), "--to", "registry.example.com/acme/demo", "--dry-run", "--docs", docs, newDist("").folder(t))
		if err == nil {
			t.Errorf("%s: no error", test.rule)
		}
		commandtest.Says(t, errs, test.says)
	}
}

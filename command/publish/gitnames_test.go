package publish

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/command/commandtest"
)

// With {name}, one run publishes all modules of a repository. What has tags like a module and
// no folder is passed over.
func TestPublishAllModulesOfAMonorepo(t *testing.T) {
	s, _ := monorepo(t)
	s.Git("tag", "docs/v1.0.0")
	s.Git("tag", "_vpc/v1.0.0")
	for _, repository := range []string{s.Dir, "file://" + filepath.ToSlash(s.Dir)} {
		r := newTarget(t)
		t.Setenv("TMPDIR", t.TempDir())
		args := []string{r.To("acme/{name}/aws"), "--from-git", repository, "--tag-pattern", "{name}/v{version}", "--path", "modules/{name}"}
		out, errs, err := r.publish(append(args, "--tag", "vpc/v1.0.0")...)
		if err != nil {
			t.Fatalf("%v\n%s", err, errs)
		}
		commandtest.Says(t, out, "vpc/v1.0.0 1.0.0.tar.gz", "Published: acme/vpc/aws 1.0.0.")
		out, errs, err = r.publish(append(args, "--all-tags", "--dry-run")...)
		if err != nil {
			t.Errorf("%v\n%s", err, errs)
		}
		commandtest.Says(t, out, "Published before, with the same bytes: acme/vpc/aws 1.0.0. Can be published: acme/subnet/aws 1.0.0; acme/vpc/aws 1.10.0-rc.1, 1.1.0.")
		out, errs, err = r.publish(append(args, "--all-tags", "--wait")...)
		if err != nil {
			t.Fatalf("%v\n%s", err, errs)
		}
		commandtest.Says(t, out, "Published: acme/subnet/aws 1.0.0; acme/vpc/aws 1.10.0-rc.1, 1.1.0.", "Published before, with the same bytes: acme/vpc/aws 1.0.0.")
		commandtest.Says(t, errs, "The module acme/docs/aws is skipped: no tag of", "The tags of _vpc are skipped", "The tag vpc/v1 is skipped")
		if got, want := commandtest.Files(t, r.Root+"/"+"modules/acme"), []string{"subnet/aws/1.0.0.tar.gz", "vpc/aws/1.0.0.tar.gz", "vpc/aws/1.1.0.tar.gz", "vpc/aws/1.10.0-rc.1.tar.gz"}; !slices.Equal(got, want) {
			t.Errorf("the tree has %q", got)
		}
		if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || slices.ContainsFunc(left, func(e os.DirEntry) bool { return filepath.Ext(e.Name()) != ".lock" && e.IsDir() }) {
			t.Errorf("left behind: %v, %v", left, err)
		}
	}
}

// Scripts can tell the versions of different modules apart.
func TestPublishAllModulesAsJSON(t *testing.T) {
	s, _ := monorepo(t)
	r := newTarget(t)
	out, _, err := r.publish(r.To("acme/{name}/aws"), "--from-git", s.Dir, "--tag-pattern", "{name}/v{version}", "--path", "modules/{name}", "--all-tags", "--json")
	var d document
	if bad := json.Unmarshal([]byte(out), &d); bad != nil || err != nil {
		t.Fatalf("%v, %v\n%s", bad, err, out)
	}
	var got []string
	for _, v := range d.Versions {
		got = append(got, v.Address+" "+v.Version)
	}
	if want := []string{"acme/subnet/aws 1.0.0", "acme/vpc/aws 1.10.0-rc.1", "acme/vpc/aws 1.1.0", "acme/vpc/aws 1.0.0"}; !slices.Equal(got, want) || d.Address != "acme/{name}/aws" {
		t.Errorf("got %q of %s", got, d.Address)
	}
}

func TestNamesThatAreLeftOpen(t *testing.T) {
	s, _ := monorepo(t)
	r := newTarget(t)
	git := []string{"--from-git", s.Dir}
	named := append(git, "--path", "modules/{name}", "--tag-pattern")
	for _, test := range []struct {
		to   string
		args []string
		says string
	}{
		{"acme/{name}/aws", append(git, "--all-tags", "--path", "modules/{name}"), "--to has {name}, and --tag-pattern has not"},
		{"acme/{name}/aws", append(git, "--all-tags", "--tag-pattern", "{name}/v{version}"), "--to has {name}, and --path has not"},
		{"acme/vpc/aws", append(git, "--all-tags", "--tag-pattern", "{name}/v{version}"), "--tag-pattern has {name}, and --to has not"},
		{"acme/vpc/aws", append(git, "--all-tags", "--path", "modules/{name}"), "--path has {name}, and --to has not"},
		{"acme/{name}/aws", append(named, "{name}/{name}/v{version}", "--all-tags"), "has {name} twice"},
		{"acme/{name}/aws", append(named, "{name}/v", "--all-tags"), "has no {version}"},
		{"acme/{name}/aws", append(named, "{name}-v{version}", "--all-tags"), "has no tag that matches {name}-v{version}"},
		{"acme/{name}/aws", append(named, "{name}/v{version}", "--tag", "v9.0.0"), "--tag: v9.0.0 does not match {name}/v{version}"},
		{"acme/{name}/aws", append(named, "{name}/v{version}", "--tag", "net/v9.0.0"), "has no tag net/v9.0.0"},
		{"acme/{name}/aws", append(named, "{name}/v{version}"), "--tag with one tag, or --all-tags"},
		{"acme/{name}/aws", []string{"--version", "1.0.0", s.Dir}, "belongs to --from-git"},
		{"acme/{other}/aws", append(named, "{name}/v{version}", "--all-tags"), "--to: "},
	} {
		_, errs, err := r.publish(append([]string{r.To(test.to)}, slices.Clone(test.args)...)...)
		if commandtest.Status(err) != cli.ExitUsage {
			t.Errorf("%q: %v", test.args, err)
		}
		commandtest.Says(t, errs, test.says)
	}
}

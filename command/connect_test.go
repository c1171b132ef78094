package command

import (
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

const connectedURL = "https://git.example.com/acme/modules.git"

// connectedRepository makes a repository that the git of this test finds at connectedURL.
func connectedRepository(t *testing.T, tags ...string) {
	t.Helper()
	r := upstreamtest.NewRepository(t)
	r.Write("main.tf", "")
	r.Commit(tags...)
	t.Setenv("GIT_CONFIG_COUNT", "1")
	t.Setenv("GIT_CONFIG_KEY_0", "url.file://"+filepath.ToSlash(r.Dir)+".insteadOf")
	t.Setenv("GIT_CONFIG_VALUE_0", connectedURL)
}

func TestConnect(t *testing.T) {
	const block = "git {\n  url = \"" + connectedURL + "\"\n}\n"
	for _, test := range []struct {
		rule   string
		tags   []string
		args   []string
		before string
		says   string
		after  string
		status int
	}{
		{"a module of which nothing is there yet", []string{"v1.0.0", "v1.10.0", "v1"}, nil, "",
			"acme/vpc/aws: its versions are the tags of " + connectedURL + ": 1.10.0, 1.0.0. No versions are v1 (it is not a whole version", block, 0},
		{"what the file has stays", []string{"v1.0.0"}, nil, "# ours\nowner=\"us\"\n", "1.0.0", "# ours\nowner=\"us\"\n\n" + block, 0},
		{"again, nothing changes", []string{"v1.0.0"}, nil, "git { url = \"" + connectedURL + "\" } # ours\n", "1.0.0", "git { url = \"" + connectedURL + "\" } # ours\n", 0},
		{"a folder, other tags, and all versions", []string{"vpc-1.0.0"}, []string{"--folder", "vpc", "--tags", "vpc-{version}", "--fetch-all"}, "", "1.0.0",
			"git {\n  url    = \"" + connectedURL + "\"\n  folder = \"vpc\"\n  tags   = \"vpc-{version}\"\n  fetch  = \"all\"\n}\n", 0},
		{"a dry run writes nothing", []string{"v1.0.0"}, []string{"--dry-run"}, "", "+ git {", "", 0},
		{"a repository without tags", nil, nil, "", "which has none yet", block, 0},
		{"no tag is a version", []string{"release-1"}, nil, "", "its last tag is release-1", "", cli.ExitUsage},
		{"a pattern that is none", []string{"v1.0.0"}, []string{"--tags", "v*"}, "", "has no {version}", "", cli.ExitUsage},
		{"a file that is broken", []string{"v1.0.0"}, nil, "owner = {", "fix the file first", "owner = {", cli.ExitUsage},
	} {
		t.Run(test.rule, func(t *testing.T) {
			connectedRepository(t, test.tags...)
			root := t.TempDir()
			files := indextest.OnDisk(t, root)
			const file = "modules/acme/vpc/aws/registry.hcl"
			files.Write("modules/acme/other/aws/1.0.0/main.tf", "")
			if test.before != "" {
				files.Write(file, test.before)
			}
			args := append([]string{"--root", root}, test.args...)
			out, errs, err := commandtest.Run(t.Context(), connectCommand(remote.Network{}), append(args, "acme/vpc/aws", connectedURL)...)
			if commandtest.Status(err) != test.status {
				t.Errorf("got %v", err)
			}
			commandtest.Says(t, strings.Join(strings.Fields(out+errs), " "), strings.Join(strings.Fields(test.says), " "))
			switch has := slices.Contains(commandtest.Files(t, root), file); {
			case has != (test.after != ""):
				t.Errorf("the file is there: %v", has)
			case has && files.Read(file) != test.after:
				t.Errorf("it has %q", files.Read(file))
			}
		})
	}
}

func TestConnectRefuses(t *testing.T) {
	for _, test := range []struct {
		rule string
		args []string
		says string
	}{
		{"no place", []string{connectedURL}, "--root"},
		{"no URL", []string{"--root", "x", "acme/vpc/aws"}, "give an address and a URL"},
		{"an address beside --to", []string{"--to", "registry.example.com/acme/vpc/aws", "acme/vpc/aws", connectedURL}, "give the URL and nothing else"},
		{"a folder beside --to", []string{"--to", "registry.example.com/acme/vpc/aws", "--root", "x", connectedURL}, "--to: it names a registry, and --root a folder: leave out one of them"},
		{"a token for a folder", []string{"--root", "x", "--token-file", "token", "acme/vpc/aws", connectedURL}, "--token-file: it belongs to --to"},
		{"a provider", []string{"--root", "x", "acme/vpc", connectedURL}, "only modules of the registry itself"},
		{"a module of another registry", []string{"--root", "x", "registry.terraform.io/acme/vpc/aws", connectedURL}, "only modules of the registry itself"},
		{"a URL with a password", []string{"--root", "x", "acme/vpc/aws", "https://u:p@git.example.com/x"}, "without a user, a password or a branch"},
		{"an SSH address", []string{"--root", "x", "acme/vpc/aws", "git@git.example.com:acme/x.git"}, "begin it with https://"},
	} {
		out, errs, err := commandtest.Run(t.Context(), connectCommand(remote.Network{}), test.args...)
		if commandtest.Status(err) != cli.ExitUsage || out != "" || !strings.Contains(strings.Join(strings.Fields(errs), " "), test.says) {
			t.Errorf("%s: got %v, %s%s", test.rule, err, out, errs)
		}
	}
}

package command

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/command/commandtest"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

func TestWriteReport(t *testing.T) {
	const want = `OFFERED
provider acme/demo
    2.0.0-beta1  registry 0123456789ABCDEF   linux_amd64
    1.2.0        publisher FEDCBA9876543210  darwin_arm64 linux_amd64
provider registry.terraform.io/hashicorp/null
    3.2.1  none  linux_amd64
module acme/vpc/aws
    1.0.0

NOTES
provider registry.terraform.io/hashicorp/null 3.2.1
    it is not signed: only the mirror offers it

WITHHELD
providers/acme/demo/terraform-provider-demo_1.3.0_linux_amd64.zip
    acme/demo 1.3.0: checksum_mismatch
    its sha256 is not the one SHA256SUMS lists: copy it again

IGNORED
README.md
    not_part_of_tree
    a file has no address here

Offered: 2 providers in 3 versions, 1 module in 1 version. Withheld: 1. Ignored:
1 file that has no place in the tree.
`
	var b strings.Builder
	if err := (checkResult{sampleReport(), nil}).WriteText(&b, nil); err != nil {
		t.Fatal(err)
	}
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestWriteReportKeepsItsColumns(t *testing.T) {
	var b strings.Builder
	r := &index.Report{Withheld: []index.Problem{
		{Path: "providers/a\tb\nc", Reason: tree.BadName, Detail: "rename it"},
	}}
	if err := (checkResult{r, nil}).WriteText(&b, nil); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "\n\"providers/a\\tb\\nc\"\n    bad_name\n    rename it\n") {
		t.Errorf("got\n%s", b.String())
	}
}

// A report fits a terminal of 80 columns, except for paths and for commands that
// are to be copied.
func TestWriteReportFitsATerminal(t *testing.T) {
	platforms := strings.Fields("darwin_amd64 darwin_arm64 freebsd_386 freebsd_amd64 freebsd_arm linux_386 linux_amd64 linux_arm linux_arm64 windows_386 windows_amd64")
	words := strings.Repeat("some words ", 30)
	r := &index.Report{
		Offered: []index.Offer{
			{Kind: "provider", Address: "registry.terraform.io/hashicorp/google-beta", Version: "3.2.1", Signature: "publisher FEDCBA9876543210", Platforms: platforms, Notes: []string{words}},
			{Kind: "provider", Address: "registry.terraform.io/hashicorp/google-beta", Version: "10.20.30-alpha20260101.12345678", Signature: "publisher FEDCBA9876543210", Platforms: platforms},
		},
		Withheld: []index.Problem{
			{Path: "keys/acme.gpg", Reason: tree.Misplaced, Detail: words + "`gpg --armor --export SOME-KEY > keys/registry.example.com/acme-corporation.asc` " + words},
		},
		Ignored:        []index.Problem{{Path: "providers/x", Address: "acme/demo", Version: "1.0.0", Reason: tree.Withdrawn, Detail: words}, {Path: "keys/notes", Reason: tree.NotPartOfTree, Detail: words}, {Path: "keys/x.tmp", Reason: tree.Temporary}},
		IgnoredTotal:   2000,
		TemporaryTotal: 500,
		Hint:           words,
	}
	var b strings.Builder
	if err := (checkResult{r, nil}).WriteText(&b, nil); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if len([]rune(line)) > 81 && !strings.HasPrefix(line, "    `") || strings.HasSuffix(line, " \n") {
			t.Errorf("%d columns: %s", len([]rune(line)), line)
		}
	}
	for _, part := range []string{
		"\n    `gpg --armor --export SOME-KEY > keys/registry.example.com/acme-corporation.asc`\n",
		"\n        darwin_amd64 darwin_arm64", "\nSKIPPED UNTIL RENAMED\nkeys/x.tmp\n", "\nWITHDRAWN\nacme/demo 1.0.0\n    some words", "… and 1997 more ignored files.", "\nSome words",
	} {
		if !strings.Contains(b.String(), part) {
			t.Errorf("%q is missing in\n%s", part, b.String())
		}
	}
}

func TestSummary(t *testing.T) {
	tests := []struct {
		rule   string
		report index.Report
		want   string
	}{
		{"empty", index.Report{}, "Nothing is offered. Withheld: 0."},
		{"ignored files", index.Report{IgnoredTotal: 2}, "Nothing is offered. Withheld: 0. Ignored: 2 files that have no place in the tree."},
		{"withdrawn versions", index.Report{IgnoredTotal: 3, WithdrawnTotal: 2}, "Nothing is offered. Withheld: 0. Withdrawn: 2 versions. Ignored: 1 file that has no place in the tree."},
		{"temporary names", index.Report{IgnoredTotal: 1, TemporaryTotal: 1}, "Nothing is offered. Withheld: 0. Skipped until renamed: 1 file."},
		{"a provider and a module of one name", index.Report{Offered: []index.Offer{
			{Kind: "provider", Address: "a/b", Version: "1.0.0"}, {Kind: "module", Address: "a/b/c", Version: "1.0.0"},
			{Kind: "module", Address: "a/b/c", Version: "0.9.0"}, {Kind: "module", Address: "a/d/c", Version: "0.9.0"},
		}}, "Offered: 1 provider in 1 version, 2 modules in 3 versions. Withheld: 0."},
	}
	for _, test := range tests {
		if got := summary(&test.report); got != test.want {
			t.Errorf("%s: got %q, want %q", test.rule, got, test.want)
		}
	}
}

// Errors of commands are sentences, with the exit status that scripts rely on: 1 for what a
// command has found, and 2 if it was called wrongly.
func TestCommandErrors(t *testing.T) {
	root, missing := sampleTree(t), filepath.Join(t.TempDir(), "tokens")
	beyond := filepath.Join(missing, "tokens")
	tokens, _, _ := tokensFile(t)
	for _, test := range []struct {
		args   []string
		want   string // of the error
		status int
	}{
		{[]string{"--root", "/nope"}, "--root: there is no folder /nope: make it, or name another", 2},
		{[]string{"--rot", "/nope"}, "unknown flag: --rot", 2},
		{[]string{"check"}, "--root is required: name the folder to serve", 2},
		{[]string{"check", "--root", "/nope"}, "--root: there is no folder /nope: make it, or name another", 2},
		{[]string{"check", "/srv"}, "unexpected argument: the folder is given by --root", 2},
		{[]string{"access", "read"}, "give a right and an address, such as: read acme/vpc/aws", 2},
		{[]string{"client-config", "x"}, "unexpected argument: name the registry by --config or --url", 2},
		{[]string{"token", "--bad"}, "unknown flag: --bad", 2},
		{[]string{"token", "new", "ci"}, "--file is required: name the tokens file", 2},
		{[]string{"token", "new", "ci", "--bad"}, "unknown flag: --bad", 2},
		{[]string{"token", "list", "ci"}, "unexpected argument: the file is given by --file", 2},
		{[]string{"token", "new", "ci", "--file", beyond}, "--file: there is no folder " + missing + ": make it", 2},
		{[]string{"token", "list", "--file", missing}, "--file: there is no file " + missing + ": `token new` makes it", 2},
		{[]string{"token", "revoke", "ci", "--file", missing}, "--file: there is no file " + missing + ": `token new` makes it", 2},
		{[]string{"token", "revoke", "jane", "--file", tokens}, "no token in the file has this name: ", 1},
		{[]string{"token", "revoke", "anonymous", "--file", tokens}, "the name must not be anonymous ", 2},
		{[]string{"keys", "remember"}, "unknown command: there is forget", 2},
		{[]string{"mirror"}, "say what to mirror: ", 2},
		{[]string{"prune", "--parallel", "2"}, "unknown flag: --parallel", 2},
		{[]string{"publish", "--parallel", "many"}, `invalid argument "many" for "-n, --parallel" flag: `, 2},
		{[]string{"version", "all"}, "unexpected argument: there is only --json", 2},
		{[]string{"withdraw", "acme/vpc/aws"}, "name the folder of a registry by --root, ", 2},
		{[]string{"restore", "--root", root, "acme/vpc/aws", "1.0.0"}, "modules/acme/vpc/aws/registry.hcl has no block for exactly 1.0.0: ", 1},
	} {
		out, errs, err := commandtest.Run(t.Context(), registryCommand(t), test.args...)
		if !strings.HasPrefix(errs, "Error: "+test.want) || out != "" {
			t.Errorf("%q prints %q and %q, want %q", test.args, errs, out, test.want)
		}
		if commandtest.Status(err) != test.status {
			t.Errorf("%q: the status is %d, want %d", test.args, commandtest.Status(err), test.status)
		}
	}
}

func TestCheck(t *testing.T) {
	root := sampleTree(t)
	out, _, err := commandtest.Run(t.Context(), checkCommand(), "--root", root)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out, "provider acme/demo\n    1.2.0  registry  darwin_arm64 linux_amd64\n") {
		t.Errorf("got\n%s", out)
	}
	again, _, _ := commandtest.Run(t.Context(), checkCommand(), "--root", root)
	if again != out {
		t.Errorf("got another report of the same tree:\n%s", again)
	}

	out, _, err = commandtest.Run(t.Context(), checkCommand(), "--root", root, "--signatures", "require")
	if !errors.Is(err, cli.ErrProblem) || !strings.Contains(out, string(tree.Unsigned)) {
		t.Errorf("with signatures required: got error %v and\n%s", err, out)
	}
}

func TestCheckDirectories(t *testing.T) {
	mirror := t.TempDir()
	indextest.OnDisk(t, mirror).ProviderIn("registry.terraform.io/hashicorp/null", "null", "3.2.1", "linux_amd64")
	out, _, err := commandtest.Run(t.Context(), checkCommand(), "--root", t.TempDir(), "--providers", mirror)
	if err != nil || !strings.Contains(out, "registry.terraform.io/hashicorp/null") {
		t.Errorf("got error %v and\n%s", err, out)
	}
}

func TestCheckJSON(t *testing.T) {
	root := sampleTree(t)
	files := indextest.OnDisk(t, root)
	files.Provider("acme/demo", "1.3.0", "linux_amd64").Checksums()
	files.Write("providers/acme/demo/terraform-provider-demo_1.3.0_linux_amd64.zip", indextest.ProviderZip("demo", "1.3.0", "another"))

	out, _, err := commandtest.Run(t.Context(), checkCommand(), "--root", root, "--json")
	if !errors.Is(err, cli.ErrProblem) {
		t.Errorf("got error %v", err)
	}
	var report index.Report
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatalf("%v in\n%s", err, out)
	}
	if len(report.Offered) != 2 || report.Offered[0].Signature != "registry" {
		t.Errorf("got offered %+v", report.Offered)
	}
	if len(report.Withheld) != 1 || report.Withheld[0].Reason != tree.ChecksumMismatch {
		t.Errorf("got withheld %+v", report.Withheld)
	}

	out, _, err = commandtest.Run(t.Context(), checkCommand(), "--root", t.TempDir(), "--json")
	if !errors.Is(err, cli.ErrProblem) || strings.Contains(out, "null") || !strings.Contains(out, `"hint": "nothing is in the root yet`) {
		t.Errorf("of an empty folder: got error %v and\n%s", err, out)
	}
}

func TestCheckRefuses(t *testing.T) {
	root := t.TempDir()
	commandtest.Write(t, root, "file", "")
	tests := []struct {
		rule string
		args []string
		want string
	}{
		{"a root that is a file", []string{"--root", filepath.Join(root, "file")}, "is not a folder"},
		{"missing providers", []string{"--root", root, "--providers", "missing"}, "--providers: "},
		{"unknown signatures", []string{"--root", root, "--signatures", "always"}, "--signatures: "},
		{"an adapter of no configuration", []string{"--root", root, "--adapter", "caddyfile"}, "--adapter: it can only be given with --config"},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			out, _, err := commandtest.Run(t.Context(), checkCommand(), test.args...)
			if err == nil || errors.Is(err, cli.ErrProblem) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one with %q", err, test.want)
			}
			if out != "" {
				t.Errorf("it printed\n%s", out)
			}
		})
	}
}

// A tree alone does not say whether the repositories that it names are followed.
func TestCheckListsRepositories(t *testing.T) {
	root := t.TempDir()
	files := indextest.OnDisk(t, root)
	files.Write("modules/acme/vpc/aws/registry.hcl", "git {\n  url  = \"https://git.example.com/acme/modules\"\n  tags = \"vpc-{version}\"\n}\n")
	files.Write("modules/acme/vpc/aws/1.0.0/main.tf", "")
	files.Write("modules/registry.terraform.io/acme/vpc/aws/registry.hcl", "git {\n  url = \"https://git.example.com/acme/other\"\n}\n")
	out, _, err := commandtest.Run(t.Context(), checkCommand(), "--root", root)
	if err != nil {
		t.Fatal(err, out)
	}
	commandtest.Says(t, strings.Join(strings.Fields(out), " "), "REPOSITORIES module acme/vpc/aws https://git.example.com/acme/modules vpc-{version} its tags are versions at a registry that has `git`",
		"registry.terraform.io/acme/vpc/aws https://git.example.com/acme/other v{version} it is not followed: `git` is for modules in a folder without HOSTNAME")
	out, _, err = commandtest.Run(t.Context(), checkCommand(), "--root", root, "--json")
	if err != nil {
		t.Fatal(err, out)
	}
	commandtest.Says(t, out, `"repositories"`, `"url": "https://git.example.com/acme/modules"`)
}

package command

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/certmagic"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/command/commandtest"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
)

// noticeTree has a module in three versions, and a provider in two spellings.
func noticeTree(t *testing.T) (root string, files *indextest.Tree) {
	root = t.TempDir()
	files = indextest.OnDisk(t, root)
	for _, v := range []string{"1.2.0", "1.3.0", "1.4.0"} {
		files.Write("modules/acme/vpc/aws/"+v+"/main.tf", "#")
	}
	files.Provider("a.example/Acme/demo", "1.0.0", "linux_amd64")
	return root, files
}

// The commands in the order in which they are given, with what they say and what is
// in registry.hcl after each.
func TestNoticeCommands(t *testing.T) {
	root, files := noticeTree(t)
	const module, provider = "modules/acme/vpc/aws/registry.hcl", "providers/a.example/Acme/demo/registry.hcl"
	files.Write(module, "# ours\nowner=\"us\"\n")
	for _, test := range []struct {
		rule  string
		args  string // separated by |
		says  string
		file  string
		after string
	}{
		{"a dry run writes nothing", `withdraw|acme/vpc/aws|1.3.0|--reason|CVE-2026-1|--dry-run`,
			"Would change modules/acme/vpc/aws/registry.hcl:\n+\n+ withdrawn \"1.3.0\" {\n+   reason = \"CVE-2026-1\"\n+ }\n\nacme/vpc/aws: withdrawn 1.3.0, which covers 1 version: 1.3.0\nThis was a dry run: nothing has been written.\n",
			module, "# ours\nowner=\"us\"\n"},
		{"withdraw", `withdraw|acme/vpc/aws|1.3.0|--reason|CVE-2026-1`, "acme/vpc/aws: withdrawn 1.3.0, which covers 1 version: 1.3.0\n",
			module, "# ours\nowner=\"us\"\n\nwithdrawn \"1.3.0\" {\n  reason = \"CVE-2026-1\"\n}\n"},
		{"again, as a tag has it", `withdraw|acme/vpc/aws|v1.3`, "acme/vpc/aws: already withdrawn 1.3.0, which covers 1 version: 1.3.0\n",
			module, "# ours\nowner=\"us\"\n\nwithdrawn \"1.3.0\" {\n  reason = \"CVE-2026-1\"\n}\n"},
		{"again, it is no other", `withdraw|acme/vpc/aws|=1.3.0`, "acme/vpc/aws: already withdrawn 1.3.0, which covers 1 version: 1.3.0\n",
			module, "# ours\nowner=\"us\"\n\nwithdrawn \"1.3.0\" {\n  reason = \"CVE-2026-1\"\n}\n"},
		{"with another reason, it is updated", `withdraw|acme/vpc/aws|1.3.0|--reason|CVE-2026-2|--link|https://example.com/`, "acme/vpc/aws: withdrawn 1.3.0, which covers 1 version: 1.3.0\n",
			module, "# ours\nowner=\"us\"\n\nwithdrawn \"1.3.0\" {\n  reason = \"CVE-2026-2\"\n  link   = \"https://example.com/\"\n}\n"},
		{"deprecate", `deprecate|Acme/vpc/aws|<1.4|--reason|use 1.4`, "acme/vpc/aws: deprecated < 1.4, which covers 2 versions: 1.2.0 and 1.3.0\n",
			module, "# ours\nowner=\"us\"\n\nwithdrawn \"1.3.0\" {\n  reason = \"CVE-2026-2\"\n  link   = \"https://example.com/\"\n}\n\ndeprecated \"< 1.4\" {\n  reason = \"use 1.4\"\n}\n"},
		{"restore, and say what still covers it", `restore|acme/vpc/aws|1.3.0`, "acme/vpc/aws: restored 1.3.0 (withdrawn), which covers 1 version: 1.3.0; still\ndeprecated \"< 1.4\"\n",
			module, "# ours\nowner=\"us\"\n\ndeprecated \"< 1.4\" {\n  reason = \"use 1.4\"\n}\n"},
		{"restore the last one", `restore|acme/vpc/aws|< 1.4`, "acme/vpc/aws: restored < 1.4 (deprecated), which covers 2 versions: 1.2.0 and\n1.3.0\n",
			module, "# ours\nowner=\"us\"\n"},
		{"in the folder as it is spelled", `withdraw|a.example/acme/demo|> 1`, "a.example/acme/demo: withdrawn > 1, which covers no version in the tree\n",
			provider, "withdrawn \"> 1\" {\n}\n"},
		{"a file without anything is removed", `restore|a.example/acme/demo|> 1`, "a.example/acme/demo: restored > 1 (withdrawn), which covers no version in the\ntree\n", provider, ""},
		{"before it is fetched", `withdraw|registry.terraform.io/hashicorp/aws|5.71.0`,
			"registry.terraform.io/hashicorp/aws: withdrawn 5.71.0, which covers no version\nin the tree\nNothing of it is in the tree yet: check that the address is right.\n",
			"providers/registry.terraform.io/hashicorp/aws/registry.hcl", "withdrawn \"5.71.0\" {\n}\n"},
	} {
		out, errs, err := commandtest.Run(t.Context(), registryCommand(t), append(strings.Split(test.args, "|"), "--root", root)...)
		if err != nil || errs != "" || out != test.says {
			t.Errorf("%s: it says %q (%v)", test.rule, out, err)
		}
		commandtest.Fits(t, out)
		content, err := os.ReadFile(filepath.Join(root, test.file))
		if string(content) != test.after || (err != nil) != (test.after == "") {
			t.Errorf("%s: the file is %q (%v)", test.rule, content, err)
		}
	}
}

// Commands that run at the same time lose no change, and leave nothing but the file.
func TestNoticeCommandsAtOnce(t *testing.T) {
	root, _ := noticeTree(t)
	before, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	var commands sync.WaitGroup
	for n := range 20 {
		commands.Go(func() {
			_, errs, err := commandtest.Run(t.Context(), registryCommand(t), "withdraw", "a.example/acme/demo", fmt.Sprintf("1.0.%d", n), "--root", root)
			if err != nil {
				t.Errorf("1.0.%d: %v %s", n, err, errs)
			}
		})
	}
	commands.Wait()
	content, err := os.ReadFile(filepath.Join(root, "providers/a.example/Acme/demo/registry.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	for n := range 20 {
		if !strings.Contains(string(content), fmt.Sprintf("withdrawn \"1.0.%d\" {", n)) {
			t.Errorf("1.0.%d is not withdrawn", n)
		}
	}
	after, err := os.ReadDir(root)
	if err != nil || runtime.GOOS != "windows" && len(after) != len(before) {
		t.Errorf("in the folder are %v, %v", after, err)
	}
}

// While a command changes a file, a server of the same user does not.
func TestNoticesKeepAServerWaiting(t *testing.T) {
	root, _ := noticeTree(t)
	files, err := source.Directories{Root: root}.Open()
	if err != nil {
		t.Fatal(err)
	}
	f := folderNotices{folder: files.Folder(address.Address{Namespace: "acme", Name: "vpc", System: "aws"})}
	locked := func() bool {
		return caddy.DefaultStorage.Exists(t.Context(), "locks/"+certmagic.StorageKeys.Safe("terraform_registry/publish/acme/vpc/aws")+".lock")
	}
	unlock, err := f.lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !locked() {
		t.Error("a server may write the file meanwhile")
	}
	unlock()
	if locked() {
		t.Error("a server has to wait for ever")
	}
}

// A version that there is not is a finding, unless others may come: it may be mistyped.
func TestNoticesOfVersionsThatAreNotThere(t *testing.T) {
	root, _ := noticeTree(t)
	for _, test := range []struct {
		rule, args string // separated by |
		says       string
		status     int
	}{
		{"withdraw", "withdraw|acme/vpc/aws|1.3.9", "acme/vpc/aws: withdrawn 1.3.9, which covers no version in the tree\n", 1},
		{"try to", "withdraw|acme/vpc/aws|1.3.9|--dry-run", "dry run", 1},
		{"deprecate", "deprecate|acme/vpc/aws|> 2", "acme/vpc/aws: deprecated > 2, which covers no version in the tree\n", 1},
		{"again", "deprecate|acme/vpc/aws|> 2", "acme/vpc/aws: already deprecated > 2, which covers no version in the tree\n", 1},
		{"undo it", "restore|acme/vpc/aws|> 2", "acme/vpc/aws: restored > 2 (deprecated), which covers no version in the tree\n", 0},
		{"undo what was not done", "restore|acme/vpc/aws|> 2", "Error: modules/acme/vpc/aws/registry.hcl has no block for exactly > 2, but it has ", 1},
		{"of another registry", "withdraw|a.example/acme/demo|9.0.0", "a.example/acme/demo: withdrawn 9.0.0, which covers no version in the tree\n", 0},
	} {
		args := append(strings.Split(test.args, "|"), "--root", root)
		out, errs, err := commandtest.Run(t.Context(), registryCommand(t), args...)
		if commandtest.Status(err) != test.status || !strings.Contains(out+errs, test.says) {
			t.Errorf("%s: it says %q, %q, with status %d", test.rule, out, errs, commandtest.Status(err))
		}
	}
}

// A notice about a version is about all its builds, and a notice about a build is about that
// build alone.
func TestNoticesOfBuilds(t *testing.T) {
	root, files := noticeTree(t)
	for _, v := range []string{"4.0.0", "4.0.0+a", "4.0.0+b"} {
		files.Write("modules/acme/vpc/aws/"+v+"/main.tf", "# "+v)
	}
	for _, test := range []struct{ rule, command, versions, says string }{
		{"a build alone", "withdraw", "4.0.0+a", "acme/vpc/aws: withdrawn 4.0.0+a, which covers 1 version: 4.0.0+a\n"},
		{"a version with all its builds", "withdraw", "4.0.0", "acme/vpc/aws: withdrawn 4.0.0, which covers 3 versions: 4.0.0+a to 4.0.0\n"},
		{"a build that its version still covers", "restore", "4.0.0+a",
			"acme/vpc/aws: restored 4.0.0+a (withdrawn), which covers 1 version: 4.0.0+a;\nstill withdrawn \"4.0.0\"\n"},
		{"another build alone", "deprecate", "4.0.0+b", "acme/vpc/aws: deprecated 4.0.0+b, which covers 1 version: 4.0.0+b\n"},
		{"a version of which a build stays deprecated", "restore", "4.0.0",
			"acme/vpc/aws: restored 4.0.0 (withdrawn), which covers 3 versions: 4.0.0+a to\n4.0.0; still deprecated \"4.0.0+b\"\n"},
	} {
		out, _, err := commandtest.Run(t.Context(), registryCommand(t), test.command, "acme/vpc/aws", test.versions, "--root", root)
		if err != nil || out != test.says {
			t.Errorf("%s: it says %q (%v)", test.rule, out, err)
		}
	}
}

func TestNoticeCommandErrors(t *testing.T) {
	for _, test := range []struct{ rule, args, says, file string }{
		{"no versions", "withdraw|acme/vpc/aws", `give an address and its versions, such as: acme/vpc/aws "< 1.2.0"`, ""},
		{"empty versions", "restore|acme/vpc/aws|", `name the versions: ">= 0" stands for all`, ""},
		{"no address", "withdraw|vpc|1.0.0", "vpc is not an address: give [HOSTNAME/]NAMESPACE/TYPE of a provider, or [HOSTNAME/]NAMESPACE/NAME/SYSTEM of a module", ""},
		{"another name", "withdraw|acme/vpn/aws|1.0.0", "there is no folder modules/acme/vpn/aws: did you mean acme/vpc/aws?", ""},
		{"a module without its system", "withdraw|acme/vpc|1.0.0", "there is no folder providers/acme/vpc: did you mean acme/vpc/aws?", ""},
		{"another hostname", "deprecate|b.example/acme/demo|1.0.0", "there is no folder providers/b.example/acme/demo: did you mean a.example/acme/demo?", ""},
		{"nothing like it", "withdraw|x/y|1.0.0", "there is no folder providers/x/y: give the address as it is in the tree", ""},
		{"a constraint that is none", "withdraw|acme/vpc/aws|new", `"new" is not a version constraint: write an operator and up to three numbers, like ~> 1.2, and a comma before the next one`, ""},
		{"a link that is none", "withdraw|acme/vpc/aws|1.3.0|--link|javascript:x", "the link javascript:x is not the URL of a web page: begin it with https://, without a user or password", ""},
		{"a file that is not HCL", "withdraw|acme/vpc/aws|1.3.0", "modules/acme/vpc/aws/registry.hcl: line 2: quoted strings may not be split over multiple lines: fix the file first", "# a\nowner = \"b\n"},
		{"a file without room", "withdraw|acme/vpc/aws|1.3.0", "modules/acme/vpc/aws/registry.hcl: it would be larger than 64 KiB: put several versions into one constraint", "# " + strings.Repeat("a", registryhcl.MaxSize-10) + "\n"},
		{"a part that may withdraw it", "restore|acme/vpc/aws|1.3.0", "modules/acme/vpc/aws/registry.hcl: line 2: there is no block maintainer: use deprecated, withdrawn or git: fix the file first", "withdrawn \"1.3.0\" {}\nmaintainer {}\n"},
		{"nothing to restore", "restore|acme/vpc/aws|1.3.0", "modules/acme/vpc/aws/registry.hcl has no block for exactly 1.3.0: nothing is deprecated or withdrawn there", ""},
		{"blocks for other versions only", "restore|acme/vpc/aws|1.3.0", `modules/acme/vpc/aws/registry.hcl has no block for exactly 1.3.0, but it has withdrawn "< 1.3", deprecated "> 2"`, "withdrawn \"< 1.3\" {}\ndeprecated \"> 2\" {}\n"},
		{"a wider one to restore", "restore|acme/vpc/aws|1.3.0", `modules/acme/vpc/aws/registry.hcl has no block for exactly 1.3.0: restore what covers it (withdrawn "< 2"), then add back what should stay`, "withdrawn \"< 2\" {}\ndeprecated \"> 2\" {}\n"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			root, files := noticeTree(t)
			if test.file != "" {
				files.Write("modules/acme/vpc/aws/registry.hcl", test.file)
			}
			out, errs, err := commandtest.Run(t.Context(), registryCommand(t), append(strings.Split(test.args, "|"), "--root", root)...)
			if err == nil || out != "" || errs != "Error: "+test.says+"\n" {
				t.Errorf("it says %q and %q (%v)", out, errs, err)
			}
			content, err := os.ReadFile(filepath.Join(root, "modules/acme/vpc/aws/registry.hcl"))
			if string(content) != test.file || (err == nil) != (test.file != "") {
				t.Errorf("the file has become %q", content)
			}
		})
	}
}

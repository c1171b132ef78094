package command

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/command/commandtest"
	"github.com/caddy-terraform/caddy-terraform-registry/command/publish"
	"github.com/caddy-terraform/caddy-terraform-registry/command/remote"
)

// A target is a registry whose notices the tests change.
type target struct{ *commandtest.Target }

func newTarget(t *testing.T) target { return target{commandtest.NewTarget(t)} }

func (r target) network() remote.Network {
	return remote.Network{Roots: commandtest.Roots(r.Server), Pause: time.Millisecond}
}

// notice runs one of the commands with a token, and arguments that are separated by |.
func (r target) notice(token, args string) (out, errs string, err error) {
	name, rest, _ := strings.Cut(args, "|")
	commands := map[string]func(remote.Network) *cobra.Command{"deprecate": deprecateCommand, "withdraw": withdrawCommand, "restore": restoreCommand}
	words := strings.Split(strings.ReplaceAll(rest, "HOST", r.Listener.Addr().String()), "|")
	return r.RunAs(token, commands[name](r.network()), words...)
}

// saying replaces the name of the registry, and undoes the wrapping of lines.
func (r target) saying(text string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(text, r.Listener.Addr().String(), "HOST")), " ")
}

// The commands in the order in which they are given, with what they say and what the
// registry has after each.
func TestNoticesAtARegistry(t *testing.T) {
	r := newTarget(t)
	for _, v := range []string{"1.2.0", "1.3.0"} {
		dir := t.TempDir()
		commandtest.Write(t, dir, "main.tf", "# "+v)
		if _, errs, err := r.RunAs(commandtest.GoodToken, publish.Command(r.network()), r.To("acme/vpc/aws"), "--version", v, "--wait", dir); err != nil {
			t.Fatal(err, errs)
		}
	}
	const module, mirrored = "modules/acme/vpc/aws/registry.hcl", "providers/registry.terraform.io/hashicorp/aws/registry.hcl"
	for _, test := range []struct {
		rule, args string
		says       string
		file       string
		after      string
	}{
		{"a dry run writes nothing", "withdraw|--to|HOST/acme/vpc/aws|1.3.0|--dry-run",
			`Would change registry.hcl of HOST/acme/vpc/aws: + withdrawn "1.3.0" { + } HOST/acme/vpc/aws: withdrawn 1.3.0, which covers 1 version: 1.3.0 This was a dry run: nothing has been written.`,
			module, ""},
		{"withdraw", "withdraw|--to|HOST/acme/vpc/aws|1.3.0|--reason|CVE-2026-1",
			"HOST/acme/vpc/aws: withdrawn 1.3.0, which covers 1 version: 1.3.0", module, "withdrawn \"1.3.0\" {\n  reason = \"CVE-2026-1\"\n}\n"},
		{"again, it is no other", "withdraw|--to|https://HOST/acme/vpc/aws/|=1.3.0",
			"HOST/acme/vpc/aws: already withdrawn 1.3.0, which covers no version that is offered there", module, "withdrawn \"1.3.0\" {\n  reason = \"CVE-2026-1\"\n}\n"},
		{"deprecate", "deprecate|--to|HOST/acme/vpc/aws|< 1.3",
			"HOST/acme/vpc/aws: deprecated < 1.3, which covers 1 version: 1.2.0", module, "withdrawn \"1.3.0\" {\n  reason = \"CVE-2026-1\"\n}\n\ndeprecated \"< 1.3\" {\n}\n"},
		{"restore", "restore|--to|HOST/acme/vpc/aws|1.3.0",
			"HOST/acme/vpc/aws: restored 1.3.0 (withdrawn), which covers 1 version: 1.3.0", module, "deprecated \"< 1.3\" {\n}\n"},
		{"restore the last one", "restore|--to|HOST/acme/vpc/aws|< 1.3",
			"HOST/acme/vpc/aws: restored < 1.3 (deprecated), which covers 1 version: 1.2.0", module, ""},
		{"of another registry, before it is fetched", "withdraw|--to|HOST/registry.terraform.io/hashicorp/aws|5.71.0",
			"HOST/registry.terraform.io/hashicorp/aws: withdrawn 5.71.0 Nothing of it is offered there, or the token may not read it: check that the address is right.",
			mirrored, "withdrawn \"5.71.0\" {\n}\n"},
		{"restore it", "restore|--to|HOST/registry.terraform.io/hashicorp/aws|5.71.0",
			"HOST/registry.terraform.io/hashicorp/aws: restored 5.71.0 (withdrawn) Nothing of it is offered there, or the token may not read it: check that the address is right.",
			mirrored, ""},
		{"a version that is not there", "withdraw|--to|HOST/acme/vpc/aws|9.0.0",
			"HOST/acme/vpc/aws: withdrawn 9.0.0, which covers no version that is offered there", module, "withdrawn \"9.0.0\" {\n}\n"},
	} {
		out, errs, err := r.notice(commandtest.ManagersToken, test.args)
		want := 0
		if test.rule == "a version that is not there" {
			want = cli.ExitProblem
		}
		if got := r.saying(out); commandtest.Status(err) != want || errs != "" || got != test.says {
			t.Errorf("%s: it says %q, %q (%v)", test.rule, got, errs, err)
		}
		commandtest.Fits(t, out)
		content, err := os.ReadFile(filepath.Join(r.Root, test.file))
		if string(content) != test.after || (err != nil) != (test.after == "") {
			t.Errorf("%s: the file is %q (%v)", test.rule, content, err)
		}
	}
}

// Changes that others make at the same time stay.
func TestNoticesThatOthersChange(t *testing.T) {
	const file, ours = "modules/acme/vpc/aws/registry.hcl", "withdrawn \"1.0.0\" {\n}\n"
	for _, test := range []struct {
		rule    string
		changes int32 // made by others, each before a PUT
		before  string
		says    string
		after   string
	}{
		{"nobody", 0, "", "HOST/acme/vpc/aws: withdrawn 1.0.0 ", ours},
		{"somebody creates it", 1, "", "HOST/acme/vpc/aws: withdrawn 1.0.0 ", "owner = \"1\"\n\n" + ours},
		{"somebody changes it, twice", 2, "owner = \"0\"\n", "HOST/acme/vpc/aws: withdrawn 1.0.0 ", "owner = \"2\"\n\n" + ours},
		{"somebody changes it all the time", 100, "owner = \"0\"\n", "Error: registry.hcl of HOST/acme/vpc/aws: it has changed meanwhile: run the command again", "owner = \"5\"\n"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			r := newTarget(t)
			if test.before != "" {
				r.Tree.Write(file, test.before)
			}
			var puts atomic.Int32
			r.Fail(func(q *http.Request) int {
				if q.Method == http.MethodPut {
					if n := puts.Add(1); n <= test.changes {
						r.Tree.Write(file, fmt.Sprintf("owner = \"%d\"\n", n))
					}
				}
				return 0
			})
			out, errs, err := r.notice(commandtest.ManagersToken, "withdraw|--to|HOST/acme/vpc/aws|1.0.0")
			if got := r.saying(out+errs) + " "; !strings.HasPrefix(got, test.says) || (err != nil) != (test.changes > changeAttempts) {
				t.Errorf("it says %q (%v)", got, err)
			}
			if got := r.Tree.Read(file); got != test.after {
				t.Errorf("the file is %q", got)
			}
		})
	}
	t.Run("the answer gets lost", func(t *testing.T) {
		r := newTarget(t)
		lost := false
		r.Lose(func(q *http.Request) bool {
			first := q.Method == http.MethodPut && !lost
			lost = lost || first
			return first
		})
		out, errs, err := r.notice(commandtest.ManagersToken, "withdraw|--to|HOST/acme/vpc/aws|1.0.0")
		if got := r.saying(out); err != nil || !lost || !strings.HasPrefix(got, "HOST/acme/vpc/aws: withdrawn 1.0.0 ") {
			t.Errorf("it says %q, %q (%v), and an answer was lost: %t", got, errs, err, lost)
		}
		if got := r.Tree.Read(file); got != ours {
			t.Errorf("the file is %q", got)
		}
	})
}

func TestNoticesAtARegistryErrors(t *testing.T) {
	const file = "modules/acme/vpc/aws/registry.hcl"
	for _, test := range []struct {
		rule, token, args string
		before            string
		fault             int // of GET
		says              string
	}{
		{"the right to publish is not enough", commandtest.GoodToken, "withdraw|--to|HOST/acme/vpc/aws|1.0.0", "", 0,
			"registry.hcl of HOST/acme/vpc/aws: your credentials do not allow you to manage acme/vpc/aws: ask the registry's operator for a rule with the right `manage`. The token is that from "},
		{"nor is a token that is unknown", "tfr_unknown", "restore|--to|HOST/acme/vpc/aws|1.0.0", "", 0,
			"registry.hcl of HOST/acme/vpc/aws: the credentials for acme/vpc/aws are unknown, expired or revoked"},
		{"the registry fails", commandtest.ManagersToken, "withdraw|--to|HOST/acme/vpc/aws|1.0.0", "", 507,
			"registry.hcl of HOST/acme/vpc/aws: HOST answered 507 Insufficient Storage"},
		{"a proxy has no such path", commandtest.ManagersToken, "restore|--to|HOST/acme/vpc/aws|1.0.0", "", 404,
			"registry.hcl of HOST/acme/vpc/aws: HOST answered 404 Not Found, which is not an answer of the registry itself"},
		{"something else answers", commandtest.ManagersToken, "withdraw|--to|HOST/acme/vpc/aws|1.0.0", "", 204,
			"registry.hcl of HOST/acme/vpc/aws: the answer has no ETag, so that it cannot be changed safely: "},
		{"a file that is not HCL", commandtest.ManagersToken, "withdraw|--to|HOST/acme/vpc/aws|1.0.0", "owner = \"b\n", 0,
			"registry.hcl of HOST/acme/vpc/aws: line 1: quoted strings may not be split over multiple lines: fix the file first"},
		{"a file of which the registry cannot use all", commandtest.ManagersToken, "withdraw|--to|HOST/acme/vpc/aws|1.0.0", "ovner = \"b\"\n", 0,
			"registry.hcl of HOST/acme/vpc/aws: registry.hcl: line 1: "},
		{"nothing to restore", commandtest.ManagersToken, "restore|--to|HOST/acme/vpc/aws|1.0.0", "", 0,
			"registry.hcl of HOST/acme/vpc/aws has no block for exactly 1.0.0: nothing is deprecated or withdrawn there"},
		{"a wider block to restore", commandtest.ManagersToken, "restore|--to|HOST/acme/vpc/aws|1.0.0", "withdrawn \"< 2\" {}\n", 0,
			`registry.hcl of HOST/acme/vpc/aws has no block for exactly 1.0.0: restore what covers it (withdrawn "< 2"), then add back what should stay`},
		{"a registry alone", commandtest.ManagersToken, "withdraw|--to|HOST|1.0.0", "", 0,
			`--to: "HOST" is a registry: name the address as well, as in HOST/acme/vpc/aws`},
		{"an address alone", commandtest.ManagersToken, "withdraw|--to|acme/vpc/aws|1.0.0", "", 0,
			`--to: "acme/vpc/aws" does not begin with the hostname of a registry: write registry.example.com/acme/vpc/aws`},
		{"a short address", commandtest.ManagersToken, "withdraw|--to|HOST/acme|1.0.0", "", 0, "--to: acme is not an address: "},
		{"the address twice", commandtest.ManagersToken, "withdraw|--to|HOST/acme/vpc/aws|acme/vpc/aws|1.0.0", "", 0,
			`--to: it names the address, so give the versions and nothing else, such as: "< 1.2.0"`},
		{"no versions", commandtest.ManagersToken, "withdraw|--to|HOST/acme/vpc/aws|", "", 0, `name the versions: ">= 0" stands for all`},
		{"a link that is none", commandtest.ManagersToken, "withdraw|--to|HOST/acme/vpc/aws|1.0.0|--link|javascript:x", "", 0, "the link javascript:x is not the URL of a web page"},
		{"a folder as well", commandtest.ManagersToken, "withdraw|--to|HOST/acme/vpc/aws|1.0.0|--root|.", "", 0,
			"--to: it names a registry, and --root a folder: leave out one of them"},
		{"a token for a folder", commandtest.ManagersToken, "withdraw|--root|.|acme/vpc/aws|1.0.0", "", 0, "--token-file: it belongs to --to"},
		{"neither", commandtest.ManagersToken, "withdraw|acme/vpc/aws|1.0.0", "", 0, "name the folder of a registry by --root, or a registry and the address by --to"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			r := newTarget(t)
			if test.before != "" {
				r.Tree.Write(file, test.before)
			}
			r.Fail(func(q *http.Request) int {
				if q.Method == http.MethodGet && strings.HasSuffix(q.URL.Path, "/registry.hcl") {
					return test.fault
				}
				return 0
			})
			out, errs, err := r.notice(test.token, test.args)
			want := cli.ExitUsage
			if strings.Contains(test.says, "has no block for exactly") {
				want = cli.ExitProblem
			}
			if got := r.saying(errs); commandtest.Status(err) != want || out != "" || !strings.HasPrefix(got, "Error: "+test.says) {
				t.Errorf("it says %q and %q (%v)", out, got, err)
			}
			if test.before != "" && r.Tree.Read(file) != test.before {
				t.Errorf("the file has become %q", r.Tree.Read(file))
			}
		})
	}
	t.Run("whether anything is offered is unknown if a proxy answers", func(t *testing.T) {
		r := newTarget(t)
		r.Fail(func(q *http.Request) int {
			if strings.HasSuffix(q.URL.Path, "/versions") {
				return http.StatusNotFound
			}
			return 0
		})
		out, errs, err := r.notice(commandtest.ManagersToken, "withdraw|--to|HOST/acme/vpc/aws|1.0.0")
		if got := r.saying(out); err != nil || got != "HOST/acme/vpc/aws: withdrawn 1.0.0" {
			t.Errorf("it says %q, %q (%v)", got, errs, err)
		}
	})
	t.Run("publishing is off", func(t *testing.T) {
		r := newTarget(t)
		r.Handle.Publisher = nil
		_, errs, err := r.notice(commandtest.ManagersToken, "withdraw|--to|HOST/acme/vpc/aws|1.0.0")
		if err == nil || !strings.Contains(errs, "It does not accept publications: its operator has to configure publish.") {
			t.Errorf("it says %q (%v)", errs, err)
		}
	})
}

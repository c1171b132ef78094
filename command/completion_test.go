package command

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"github.com/caddy-terraform/caddy-terraform-registry/command/commandtest"
)

// Values of flags are completed by what they are: shells get them, and then how to go on.
func TestFlagsAreCompleted(t *testing.T) {
	const dirs, files, nothing = ":16\n", ":0\n", ":4\n"
	for _, test := range []struct{ args, want string }{
		{"--root", dirs},
		{"--domain", nothing},
		{"check --root", dirs},
		{"check --signatures", "prefer\nrequire\n" + nothing},
		{"client-config --config", files},
		{"client-config --for", "registry\nmirror\nstand-in\n" + nothing},
		{"mirror --signatures", "require\nprefer\n" + nothing},
		{"mirror --platform", strings.Join(platforms, "\n") + "\n" + nothing},
		{"mirror --upstream", nothing},
		{"publish --docs", dirs},
		{"publish --token-file", files},
		{"token new --file", files},
		{"token new --expires", nothing},
		{"withdraw --reason", nothing},
	} {
		args := append([]string{cobra.ShellCompRequestCmd, "terraform-registry"}, strings.Fields(test.args)...)
		root := &cobra.Command{Use: "caddy"}
		root.AddCommand(registryCommand(t))
		out, _, err := commandtest.Run(t.Context(), root, append(args, "")...)
		if err != nil || out != test.want {
			t.Errorf("%s: %q (%v)", test.args, out, err)
		}
	}
}

// A program named after the registry completes its commands and Caddy's.
func TestCommandsAreCompleted(t *testing.T) {
	program := os.Args[0]
	t.Cleanup(func() { os.Args[0] = program })
	for _, test := range []struct{ rule, program, prefix, want string }{
		{"of both", "caddy-terraform-registry", "re", "reload\nrestore\n:4\n"},
		{"one that both have, once", "caddy-terraform-registry", "vers", "version\n:4\n"},
		{"of the registry alone", "caddy", "re", "restore\n:4\n"},
	} {
		os.Args[0] = test.program
		root := &cobra.Command{Use: "caddy"}
		root.AddCommand(registryCommand(t), &cobra.Command{Use: "reload", Run: func(*cobra.Command, []string) {}}, &cobra.Command{Use: "version", Run: func(*cobra.Command, []string) {}})
		out, _, err := commandtest.Run(t.Context(), root, cobra.ShellCompNoDescRequestCmd, "terraform-registry", test.prefix)
		lines := strings.SplitAfter(out, "\n")
		slices.Sort(lines[:max(0, len(lines)-2)])
		if got := strings.Join(lines, ""); err != nil || got != test.want {
			t.Errorf("%s: %q (%v)", test.rule, got, err)
		}
	}
}

// The name of each flag's value says what it is, in the help as in the manual page, and the
// manual page has the arguments of each command.
func TestValuesHaveNames(t *testing.T) {
	var all func(cmd *cobra.Command)
	all = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if name, _ := pflag.UnquoteUsage(f); name == "string" || name == "strings" || name == "stringArray" || name == "int" {
				t.Errorf("%s: the value of --%s has no name", cmd.CommandPath(), f.Name)
			}
		})
		var page bytes.Buffer
		if err := doc.GenMan(cmd, nil, &page); err != nil {
			t.Fatal(err)
		}
		flat := strings.Join(strings.Fields(strings.NewReplacer(`\&`, "", `\`, "").Replace(page.String())), " ")
		if use := strings.Join(strings.Fields(cmd.UseLine()), " "); !strings.Contains(flat, use) {
			t.Errorf("%s: its manual page has other arguments than %s", cmd.CommandPath(), use)
		}
		for _, sub := range cmd.Commands() {
			all(sub)
		}
	}
	all(registryCommand(t))
}

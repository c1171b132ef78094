package command

import (
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/command/commandtest"
	"github.com/caddy-terraform/caddy-terraform-registry/module"
)

// The help of commands fits a terminal of the usual width, but for examples, and says which
// exit statuses there are.
func TestHelpFitsATerminal(t *testing.T) {
	fits := func(name, text string) {
		for line := range strings.Lines(text) {
			line = strings.TrimRight(line, "\n")
			if strings.HasPrefix(line, "  caddy terraform-registry ") {
				continue // an example, which is copied whole
			}
			if utf8.RuneCountInString(line) > cli.Width {
				t.Errorf("%s: a line of its help is longer than %d: %s", name, cli.Width, line)
			}
		}
	}
	registry := registryCommand(t)
	var all func(cmd *cobra.Command)
	all = func(cmd *cobra.Command) {
		fits(cmd.CommandPath(), help(t, cmd))
		if !strings.Contains(help(t, cmd), manual) {
			t.Errorf("%s: its help does not name the manual", cmd.CommandPath())
		}
		if !cmd.HasParent() || !cmd.HasSubCommands() { // those between only have others
			if !strings.Contains(cmd.Long, "\nThe exit status is ") {
				t.Errorf("%s: its help does not say its exit statuses", cmd.CommandPath())
			}
		}
		for _, sub := range cmd.Commands() {
			all(sub)
		}
	}
	all(registry)
}

// registryCommand is the registry's own command, with its subcommands.
func registryCommand(t *testing.T) *cobra.Command {
	t.Helper()
	registered, found := caddycmd.Commands()["terraform-registry"]
	if !found {
		t.Fatal("there is no such command")
	}
	cmd := &cobra.Command{Use: registered.Name + " " + registered.Usage, Short: registered.Short, Long: registered.Long}
	registered.CobraFunc(cmd)
	return cmd
}

func help(t *testing.T, cmd *cobra.Command) string {
	t.Helper()
	var b strings.Builder
	cmd.SetOut(&b)
	defer cmd.SetOut(nil)
	if err := cmd.Help(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A subcommand that there is not is misuse, and the error names what may have been meant.
func TestUnknownSubcommand(t *testing.T) {
	for _, test := range []struct{ typed, says string }{
		{"chekc", `there is no subcommand "chekc": did you mean check?`},
		{"nothing", `there is no subcommand "nothing": see ` + "`terraform-registry --help`"},
	} {
		err := noSubcommand(registryCommand(t), []string{test.typed})
		if err == nil || err.Error() != test.says {
			t.Errorf("%s: %v", test.typed, err)
		}
	}
}

// A mistyped command of the program named after the registry is answered with similar ones of both,
// whatever flags follow.
func TestMistypedCommands(t *testing.T) {
	program := os.Args[0]
	t.Cleanup(func() { os.Args[0] = program })
	os.Args[0] = module.BinaryName
	for _, test := range []struct{ typed, says string }{
		{"relaod --config Caddyfile", `there is no subcommand "relaod": did you mean reload?`},
		{"chekc --root /srv --json", `there is no subcommand "chekc": did you mean check?`},
		{"chekc --help", `there is no subcommand "chekc": did you mean check?`},
	} {
		root := &cobra.Command{Use: "caddy"}
		root.AddCommand(registryCommand(t), &cobra.Command{Use: "reload", Run: func(*cobra.Command, []string) {}})
		args := withOwnCommand(append([]string{os.Args[0]}, strings.Fields(test.typed)...), subcommands())
		_, _, err := commandtest.Run(t.Context(), root, args[1:]...)
		if err == nil || err.Error() != test.says || commandtest.Status(err) != cli.ExitUsage {
			t.Errorf("%s: %v", test.typed, err)
		}
	}
}

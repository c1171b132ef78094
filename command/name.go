package command

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/caddy-terraform/caddy-terraform-registry/module"
)

// ownCommand is the registry's command in Caddy.
const ownCommand = "terraform-registry"

// withOwnCommand returns the arguments of a program, with the registry's own command before its
// flags and subcommands. A release is a binary that is called after the registry: its
// users need not say the name twice. `caddy-terraform-registry check` is
// `caddy terraform-registry check`, and `caddy-terraform-registry --root FOLDER` is
// `caddy terraform-registry --root FOLDER`. Completion by the shell names the subcommand,
// too. An unknown command is left to the registry's own, whose error names similar commands of
// both. Help without a command is the registry's, too, and lists both.
func withOwnCommand(args []string, subcommands []*cobra.Command) []string {
	if len(args) == 0 || !calledAfterRegistry(args[0]) {
		return args
	}
	if len(args) == 1 || len(args) == 2 && slices.Contains([]string{"help", "-h", "--help"}, args[1]) {
		return []string{args[0], ownCommand, "--help"}
	}
	at := 1
	if strings.HasPrefix(args[1], cobra.ShellCompRequestCmd) || args[1] == "help" {
		at = 2
	}
	isSubcommand := func(c *cobra.Command) bool { return len(args) > at && c.Name() == args[at] }
	if len(args) == 3 && strings.HasPrefix(args[1], cobra.ShellCompRequestCmd) {
		return slices.Insert(slices.Clone(args), at, ownCommand) // which completes the names of both
	}
	switch {
	case slices.ContainsFunc(subcommands, isSubcommand) || isFlagOfOwnCommand(args[1]):
		return slices.Insert(slices.Clone(args), at, ownCommand)
	case isCommandOfCaddy(args[1]):
		return args
	}
	return []string{args[0], ownCommand, args[1]} // without flags that the registry's own command may not have
}

// isCommandOfCaddy reports whether Caddy has the command, or cobra for all programs. A flag counts as one.
func isCommandOfCaddy(name string) bool {
	_, registered := caddycmd.Commands()[name]
	return registered || name == "help" || name == "completion" || strings.HasPrefix(name, "-") || strings.HasPrefix(name, cobra.ShellCompRequestCmd)
}

// calledAfterRegistry reports whether a program has the name of released binaries.
func calledAfterRegistry(program string) bool {
	return strings.TrimSuffix(filepath.Base(program), ".exe") == module.BinaryName
}

// isFlagOfOwnCommand reports whether an argument in the place of a command is a flag. Caddy
// has few flags of its own there.
func isFlagOfOwnCommand(arg string) bool {
	return strings.HasPrefix(arg, "-") && !slices.Contains([]string{"-h", "--help", "-v", "--version"}, arg)
}

// asCalled returns a text about commands with the names by which this program takes them.
func asCalled(text string) string { return asCalledBy(os.Args[0], text) }

func asCalledBy(program, text string) string {
	const twice, once, inCaddy = module.BinaryName + " " + ownCommand, module.BinaryName, "caddy " + ownCommand
	if calledAfterRegistry(program) {
		return strings.NewReplacer(twice, once, inCaddy, once).Replace(text)
	}
	return strings.NewReplacer(twice, inCaddy, once+" ", inCaddy+" ").Replace(text)
}

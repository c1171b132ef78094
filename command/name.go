package command

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/caddy-terraform/caddy-terraform-registry/module"
)

func init() { os.Args = named(os.Args, subcommands()) }

// named are the arguments of a program, in which a subcommand of the registry comes after
// the registry's own command. A release is a binary that is called after the registry: its
// users need not say the name twice. `caddy-terraform-registry check` is
// `caddy terraform-registry check`. Completion by the shell names the subcommand, too.
func named(args []string, subcommands []*cobra.Command) []string {
	if len(args) < 2 || strings.TrimSuffix(filepath.Base(args[0]), ".exe") != module.BinaryName {
		return args
	}
	at := 1
	if strings.HasPrefix(args[1], cobra.ShellCompRequestCmd) || args[1] == "help" {
		at = 2
	}
	isSubcommand := func(c *cobra.Command) bool { return len(args) > at && c.Name() == args[at] }
	if !slices.ContainsFunc(subcommands, isSubcommand) {
		return args
	}
	return slices.Insert(slices.Clone(args), at, "terraform-registry")
}

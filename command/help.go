package command

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
)

// manual is where the documentation of the commands is.
const manual = "https://github.com/caddy-terraform/caddy-terraform-registry/blob/main/docs"

// setHelp makes the help of a command and its subcommands fit a terminal and name the manual.
// Otherwise it would name Caddy's manual, which does not have these commands.
func setHelp(cmd *cobra.Command) {
	cmd.SetUsageTemplate(strings.NewReplacer(
		".FlagUsages", ".FlagUsagesWrapped "+strconv.Itoa(cli.Width),
		"{{.UseLine}}", "{{useLine (asCalled .UseLine)}}",
		"{{.CommandPath}}", "{{asCalled .CommandPath}}",
		"{{.Example}}", "{{asCalled .Example}}",
		" for more information about a command.", " for more.",
	).Replace(cmd.UsageTemplate()))
	cmd.SetHelpTemplate(strings.Replace(cmd.HelpTemplate(), "(or .Long .Short)", "(asCalled (or .Long .Short))", 1) + "\nThe manual is at\n" + manual + "\n")
}

func init() {
	cobra.AddTemplateFunc("useLine", useLine)
	cobra.AddTemplateFunc("asCalled", asCalled)
}

// useLine wraps a command and its arguments, which follow it on further lines.
func useLine(text string) string {
	return strings.TrimSpace(cli.Wrap(text, 2*cli.Indent))
}

// noSubcommand checks that the registry's own command has no arguments. An argument was meant
// as a subcommand.
func noSubcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
		return cli.UsageError(cmd, fmt.Errorf("there is no subcommand %q: did you mean %s?", args[0], strings.Join(similar, " or ")))
	}
	return cli.UsageError(cmd, fmt.Errorf("there is no subcommand %q: see `%s --help`", args[0], asCalled(cmd.CommandPath())))
}

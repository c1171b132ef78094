package command

import (
	"fmt"
	"os"
	"slices"
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
	cmd.SetHelpTemplate(strings.Replace(cmd.HelpTemplate(), "(or .Long .Short)", "(asCalled (or .Long .Short))", 1) + "{{commandsOfCaddy .}}\nThe manual is at\n" + manual + "\n")
}

func init() {
	cobra.AddTemplateFunc("useLine", useLine)
	cobra.AddTemplateFunc("asCalled", asCalled)
	cobra.AddTemplateFunc("commandsOfCaddy", commandsOfCaddy)
}

// commandsOfCaddy lists the commands of Caddy for the help of a program that takes them beside the
// registry's. Of two with one name, the program takes the registry's.
func commandsOfCaddy(cmd *cobra.Command) string {
	if cmd.Name() != ownCommand || !cmd.HasParent() || !calledAfterRegistry(os.Args[0]) {
		return ""
	}
	var b strings.Builder
	b.WriteString("\nCommands of Caddy:\n")
	for _, c := range caddyCommands(cmd) {
		fmt.Fprintf(&b, "  %-14s %s\n", c.Name(), c.Short)
	}
	return b.String()
}

// caddyCommands returns the commands of Caddy, except for names that the registry has a subcommand for.
func caddyCommands(own *cobra.Command) (others []*cobra.Command) {
	for _, c := range own.Parent().Commands() {
		hasName := func(sub *cobra.Command) bool { return sub.Name() == c.Name() }
		if c.IsAvailableCommand() && c != own && !slices.ContainsFunc(own.Commands(), hasName) {
			others = append(others, c)
		}
	}
	return others
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
	similar := cmd.SuggestionsFor(args[0])
	if cmd.HasParent() && calledAfterRegistry(os.Args[0]) {
		cmd.Parent().SuggestionsMinimumDistance = cmd.SuggestionsMinimumDistance
		similar = slices.Compact(slices.Sorted(slices.Values(append(similar, cmd.Parent().SuggestionsFor(args[0])...))))
	}
	if len(similar) > 0 {
		return cli.UsageError(cmd, fmt.Errorf("there is no subcommand %q: did you mean %s?", args[0], strings.Join(similar, " or ")))
	}
	return cli.UsageError(cmd, fmt.Errorf("there is no subcommand %q: see `%s --help`", args[0], asCalled(cmd.CommandPath())))
}

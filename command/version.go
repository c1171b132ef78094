package command

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/module"
)

func versionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version [--json]",
		Short: "Says which registry, Caddy and Go this program is made of",
		Long: `
Prints the versions of the registry, with its commit if that is known, of Caddy,
and of the Go that has built both. The log has the same at the start, and so has
the metric caddy_terraform_registry_build_info. Name them when you report a
problem.

The exit status is 0, or 2 if the command was called wrongly.`,
		Example: `  caddy-terraform-registry version
  caddy-terraform-registry version --json | jq -r .registry`,
		Args: cli.NoArguments("there is only --json"),
		RunE: cli.RunE(func(cmd *cobra.Command, _ []string) error {
			return cli.Finish(cmd, versionResult(module.BuildVersion()))
		}),
	}
	cmd.Flags().Bool("json", false, "Print the versions as JSON")
	return cmd
}

// A versionResult has the versions of the program and its parts.
type versionResult module.Version

func (r versionResult) Document() any { return module.Version(r) }

func (r versionResult) Status() int { return 0 }

func (r versionResult) WriteText(out, _ io.Writer) error {
	text := fmt.Sprintf("%s with Caddy %s and %s", r.Registry, r.Caddy, r.Go)
	if r.Commit != "" {
		text += ", commit " + r.Commit
	}
	if r.Modified {
		text += ", modified"
	}
	_, err := fmt.Fprintln(out, text)
	return err
}

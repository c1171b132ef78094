package command

import (
	"fmt"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/module"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
)

func tlogNewCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "new [--origin NAME] [--config FILE] [--root FOLDER]",
		Short: "Begins another log in place of one that is lost or has forked",
		Long: `
Begins another log, with another name and key, in place of one that is lost or
has forked. Its first entry is the newest checkpoint of the old log, from
Caddy's storage. Use it if no copy of the folder has all entries that were
signed: see restore.

The folder of the log must have no log: move what is left of it to another
place, and keep it. All who verify are told of another log, and accept it or
not: tell them why, and tell them the new key. The command can be repeated after
it was cut off. Restart the server afterwards.

The exit status is 0 if the log has been begun, 1 if it cannot be, and 2 if the
command was called wrongly or the configuration cannot be read.`,
		Example: `  caddy-terraform-registry tlog new --config /etc/caddy/Caddyfile`,
		Args:    cli.Arguments(0, "it has no arguments: the configuration says where the log lies"),
		RunE:    cli.RunE(runTlogNew),
	}
	cmd.Flags().String("origin", "", "The `name` of the new log (default: the old one with the next number)")
	addTlogFlags(cmd)
	return cmd
}

func runTlogNew(cmd *cobra.Command, _ []string) error {
	origin := caddycmd.Flags{FlagSet: cmd.Flags()}.String("origin")
	return chosenTlog(cmd, func(files module.TlogFiles) error {
		r, err := files.Renew(cmd.Context(), origin)
		if err != nil {
			return cli.Fail(cmd, cli.ExitProblem, fmt.Errorf("%s: %w", files.Folder, err))
		}
		l, err := new(tlog.Opening).Open(cmd.Context(), r.Options)
		if err != nil {
			return err
		}
		defer l.Close()
		if err := l.Refresh(cmd.Context()); err != nil {
			return err
		}
		text := cli.Wrap(fmt.Sprintf("Begun: %s, which continues %s after %s. Its key, for those who verify it:", r.Origin, r.Before.Origin, cli.Count(r.Before.Size, "entry")), 0) + "    " + r.Public[0].Line + "\n"
		if files.Named {
			text += cli.Wrap(fmt.Sprintf("The configuration calls the log %s: change origin to %s.", r.Before.Origin, r.Origin), 0)
		}
		_, err = fmt.Fprint(cmd.OutOrStdout(), text+"Restart the server.\n")
		return err
	})
}

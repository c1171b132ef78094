package command

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/module"
)

func tlogRotateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rotate [--config FILE] [--root FOLDER]",
		Short: "Has another key sign the log",
		Long: `
Has another key sign the log from now on. The key before signs for 400 days as
well, so that readers of the log can take over the new key: publish it, and say
that verify --update takes it over. The name of the log and its entries stay.
Servers that run sign with both within seconds.

The key is generated, and kept in Caddy's storage. If the option key names a
file, the key is the line there that does not sign yet: add it, see key --new,
and reload all servers before. If a private key has leaked, do not rotate:
readers go on to accept it. Begin another log, see new.

The exit status is 0 if the key signs, 1 if it cannot, and 2 if the command was
called wrongly or the configuration cannot be read.`,
		Example: `  caddy-terraform-registry tlog rotate --config /etc/caddy/Caddyfile`,
		Args:    cli.Arguments(0, "it has no arguments: the configuration says where the log lies"),
		RunE:    cli.RunE(runTlogRotate),
	}
	addTlogFlags(cmd)
	return cmd
}

func runTlogRotate(cmd *cobra.Command, _ []string) error {
	return chosenTlog(cmd, func(files module.TlogFiles) error {
		keys, err := files.Rotate(cmd.Context())
		if errors.Is(err, fs.ErrNotExist) {
			err = errors.New("there is no log yet: the server begins it")
		}
		if err != nil {
			return cli.Fail(cmd, cli.ExitProblem, fmt.Errorf("%s: %w", files.Folder, err))
		}
		out := cmd.OutOrStdout()
		fmt.Fprintf(out, "The log is signed by a new key. Tell it to those who verify the log:\n    %s\n", keys.Public[0].Line)
		for _, key := range keys.Public[1:] {
			fmt.Fprintf(out, "Until %s, it is signed by this key as well:\n    %s\n", key.Until.UTC().Format(time.DateOnly), key.Line)
		}
		return nil
	})
}

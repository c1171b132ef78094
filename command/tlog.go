package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/module"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
)

func tlogCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tlog COMMAND",
		Short: "Prints and rotates a log's key, checks and restores its files",
		Long: `
A registry with the option tlog has on record what it offers, in a transparency
log. These commands are about the log of a configuration, where it lies. The
server may run meanwhile. They must run as the user of the server, and with its
HOME and XDG_DATA_HOME: they read and write Caddy's storage, and a log without a
named folder is in Caddy's data directory.`,
		Args: cli.Arguments(0, "unknown command: there are key, rotate, fsck, restore and new"),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(tlogKeyCommand(), tlogRotateCommand(), tlogFsckCommand(), tlogRestoreCommand(), tlogNewCommand())
	return cmd
}

func tlogKeyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "key [--new] [--config FILE] [--root FOLDER]",
		Short: "Prints the public key of the log",
		Long: `
Prints the public key of the log, as a line that programs take which verify
checkpoints: ORIGIN+HASH+KEY. Publish it where those look who verify the log,
beside the registry and not only in it. After rotate, the newest key comes
first, and then the keys that still sign.

With --new, prints a new private key instead: a line for the file of the option
key. Keep it secret.

The exit status is 1 if there is no log yet or its folder lacks the key, and 2
if it cannot be read.`,
		Example: `  caddy-terraform-registry tlog key --config /etc/caddy/Caddyfile`,
		Args:    cli.Arguments(0, "it has no arguments"),
		RunE:    cli.RunE(runTlogKey),
	}
	cmd.Flags().Bool("new", false, "Print a new private key instead")
	addTlogFlags(cmd)
	return cmd
}

func tlogFsckCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "fsck [--config FILE] [--root FOLDER]",
		Short: "Reads all files of the log, and compares them",
		Long: `
Reads all files of the log and compares them: entries with tiles, tiles with the
tiles above, the root with the checkpoint, its signature, and the checkpoint
that is kept in Caddy's storage. Run it on a backup that was restored, before
the server uses it.

The exit status is 0 if everything agrees, 1 if something contradicts the log or
there is no log yet, and 2 if it cannot be read.`,
		Example: `  caddy-terraform-registry tlog fsck --config /etc/caddy/Caddyfile`,
		Args:    cli.Arguments(0, "it has no arguments: the configuration says where the log lies"),
		RunE:    cli.RunE(runTlogFsck),
	}
	addTlogFlags(cmd)
	return cmd
}

func addTlogFlags(cmd *cobra.Command) {
	addConfigFlags(cmd, "The configuration `file` (default: the Caddyfile in the current folder)")
	addRootFlag(cmd)
}

// chosenTlog calls do with the files of the log of a configuration, which may be missing.
func chosenTlog(cmd *cobra.Command, do func(module.TlogFiles) error) error {
	fl := caddycmd.Flags{FlagSet: cmd.Flags()}
	return withConfiguration(fl, func(app *module.App) error {
		files, err := chooseTlog(app.Tlogs(), fl.String("root"))
		if err != nil {
			return err
		}
		if lacksFolder(files) {
			signed, err := files.IsSigned(cmd.Context())
			if err != nil {
				return err
			}
			if signed {
				return failWithoutFolder(cmd, files)
			}
		}
		return do(files)
	})
}

// lacksFolder reports whether the folder that the server makes does not exist. No command makes
// it: HOME and XDG_DATA_HOME may name another place than for the server.
func lacksFolder(files module.TlogFiles) bool {
	if !files.Made {
		return false
	}
	_, err := os.Stat(files.Folder)
	return errors.Is(err, fs.ErrNotExist)
}

// failWithoutFolder fails because the folder of a log that was begun does not exist.
func failWithoutFolder(cmd *cobra.Command, files module.TlogFiles) error {
	return cli.Fail(cmd, cli.ExitProblem, fmt.Errorf("the folder %s of the log does not exist: run the command as the user of the server, and with its HOME and XDG_DATA_HOME; if the folder is lost, make it", files.Folder))
}

// withTlog calls do with the files of the log of a configuration.
func withTlog(cmd *cobra.Command, do func(module.TlogFiles, tlog.Options) error) error {
	return chosenTlog(cmd, func(files module.TlogFiles) error {
		options, err := files.Options(cmd.Context())
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return cli.Fail(cmd, cli.ExitProblem, fmt.Errorf("there is no log in %s yet: the server begins it", files.Folder))
		case errors.Is(err, tlog.ErrBehind):
			return cli.Fail(cmd, cli.ExitProblem, err)
		case err != nil:
			return err
		}
		return do(files, options)
	})
}

func chooseTlog(all []module.TlogFiles, root string) (chosen module.TlogFiles, err error) {
	found := 0
	for _, files := range all {
		if root == "" || hasRoot(files.Root, root) {
			chosen = files
			found++
		}
	}
	switch {
	case found == 0 && root != "":
		return chosen, fmt.Errorf("no registry with the root %s has a transparency log", root)
	case found == 0:
		return chosen, errors.New("the configuration has no transparency log: add tlog to terraform_registry")
	case found > 1:
		return chosen, errors.New("the configuration has several transparency logs: name the root of the registry with --root")
	}
	return chosen, nil
}

func runTlogKey(cmd *cobra.Command, _ []string) error {
	if (caddycmd.Flags{FlagSet: cmd.Flags()}).Bool("new") {
		return chosenTlog(cmd, func(files module.TlogFiles) error {
			name := files.Origin
			if o, err := files.Options(cmd.Context()); err == nil {
				name = o.Origin
			} else if !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			private, err := tlog.GenerateKey(name)
			if err == nil {
				_, err = fmt.Fprintln(cmd.OutOrStdout(), private)
			}
			return err
		})
	}
	return withTlog(cmd, func(_ module.TlogFiles, o tlog.Options) error {
		for _, key := range o.Public {
			if _, err := fmt.Fprintln(cmd.OutOrStdout(), key.Line); err != nil {
				return err
			}
		}
		return nil
	})
}

func runTlogFsck(cmd *cobra.Command, _ []string) error {
	return withTlog(cmd, func(_ module.TlogFiles, o tlog.Options) error {
		health, err := tlog.Fsck(cmd.Context(), o)
		if err != nil {
			return err
		}
		return writeHealth(cmd, o, health)
	})
}

func writeHealth(cmd *cobra.Command, o tlog.Options, health *tlog.Health) error {
	out := cli.Fitted(cmd.OutOrStdout())
	for _, fault := range health.Faults {
		fmt.Fprintf(out, "fault: %s\n", fault)
	}
	for _, note := range health.Notes {
		fmt.Fprintf(out, "note: %s\n", note)
	}
	if len(health.Faults) > 0 {
		return cli.Exit(cmd, cli.ExitProblem)
	}
	_, err := fmt.Fprintf(out, "%s has %s, and all files agree.\n", o.Origin, cli.Count(health.Signed, "entry"))
	return err
}

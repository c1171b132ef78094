package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/module"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
)

func tlogRestoreCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "restore FOLDER [--config FILE] [--root FOLDER]",
		Short: "Adds to the log what it lacks of a copy of its folder",
		Long: `
Adds to the folder of the log what it lacks of FOLDER: a newer copy, such as a
backup or the folder on another machine. It is the way out if the log has fewer
entries than were signed, or files are damaged or gone.

First it reads all of the copy, as fsck does. The copy must be whole, and
continue the newest checkpoint in Caddy's storage. No file is replaced but an
older checkpoint: if another one differs from the copy, nothing is copied. It
can be repeated after it was cut off, and a server that runs goes on by itself.

The exit status is 0 if the log is whole, 1 if nothing was copied because
something contradicts it, and 2 if something cannot be read or written.`,
		Example: `  caddy-terraform-registry tlog restore /backup/log --config /etc/caddy/Caddyfile`,
		Args:    cli.Arguments(1, "name the copy of the log's folder"),
		RunE:    cli.RunE(runTlogRestore),
	}
	addTlogFlags(cmd)
	return cmd
}

func runTlogRestore(cmd *cobra.Command, args []string) error {
	folder, err := filepath.Abs(args[0])
	if err != nil {
		return err
	}
	if err := checkCopy(folder); err != nil {
		return err
	}
	from := tlog.NewFolder(func() (tree.Part, error) { return source.Source{}.OpenFolder(folder) })
	return chosenTlog(cmd, func(files module.TlogFiles) error {
		if files.Folder == folder {
			return errors.New("it is the folder of the log itself: name a copy")
		}
		if lacksFolder(files) { // the copy shows that the log was begun
			return failWithoutFolder(cmd, files)
		}
		options, err := files.Restore(cmd.Context(), from)
		if err != nil {
			return cli.Fail(cmd, cli.ExitProblem, fmt.Errorf("%s: %w", args[0], err))
		}
		r, err := tlog.Restore(cmd.Context(), options, from)
		if err != nil {
			return err
		}
		out := cli.Fitted(cmd.OutOrStdout())
		for _, fault := range r.Faults {
			fmt.Fprintf(out, "fault: %s\n", fault)
		}
		if len(r.Faults) > 0 {
			fmt.Fprintln(out, "Nothing was copied.")
			return cli.Exit(cmd, cli.ExitProblem)
		}
		health, err := tlog.Fsck(cmd.Context(), options)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "Copied %s.\n", cli.Count(r.Copied, "file"))
		return writeHealth(cmd, options, health)
	})
}

// checkCopy returns an error if there is no such folder: a mistyped name contradicts nothing.
func checkCopy(folder string) error {
	info, err := os.Stat(folder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no folder %s: name a copy of the folder of the log", cli.Printable(folder))
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a folder: name a copy of the folder of the log", cli.Printable(folder))
	}
	return nil
}

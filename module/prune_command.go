package module

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/dustin/go-humanize"
	"github.com/spf13/afero"
	"github.com/spf13/cobra"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/fill"
)

// errLeft makes the process end with exit status 1. What could not be removed
// has been printed by then.
var errLeft = errors.New("something could not be removed")

func pruneCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "prune --root <folder> [--own <hostname>]... [--dry-run] <lock file>|<folder>...",
		Short: "Removes mirrored providers that no lock file names",
		Long: `
Removes from the folder of a registry the mirrored releases of providers that
none of the given lock files names. Of a folder, all lock files in it and below
count (.terraform.lock.hcl). Give those of everything that uses the registry,
all at once: what they do not name goes, for all platforms.

Symlinks are followed; one that leads nowhere is an error, since lock files
might be missing with it.

Try it with --dry-run first. It says what would be removed, and removes nothing.

The registry's own releases stay, since nothing could bring them back: those
that lie under no hostname, and those under the hostnames given by --own. So do
modules, keys, and whatever the registry withholds or does not know: "check"
lists that. What is reached by several names, through symlinks, stays if one of
them does.

If something would be removed of a hostname other than registry.terraform.io and
registry.opentofu.org, it might be the registry's own: --own must be given then,
for --dry-run too. If there is nothing of its own under a hostname, give
--own "".

It may run beside a server. A release is withdrawn before what vouches for it is
removed. If the server fills itself, clients that ask for a release bring it
back.

The exit status is 0 if all is well, 1 if something could not be removed, and 2
if it could not begin.`,
		Example: `  caddy terraform-registry prune --root /srv/terraform --own registry.example.com --dry-run ./infra
  caddy terraform-registry prune --root /srv/terraform --own registry.example.com ./infra`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError(cmd, errors.New("give the lock files of everything that uses the registry, or folders that have them"))
			}
			return nil
		},
		RunE: runPrune,
	}
	addProvidersFlags(cmd)
	cmd.Flags().StringSlice("own", nil, "A hostname of the registry itself, whose providers stay; can be repeated; \"\" for none")
	cmd.Flags().Bool("dry-run", false, "Say what would be removed, and remove nothing")
	cmd.Flags().Bool("json", false, "Print what was removed as JSON")
	cmd.SetFlagErrorFunc(usageError)
	return cmd
}

func runPrune(cmd *cobra.Command, args []string) error {
	fl := caddycmd.Flags{FlagSet: cmd.Flags()}
	directories, err := treeFlags(fl)
	if err != nil {
		return usageError(cmd, err)
	}
	var options fill.PruneOptions
	if options.Own, err = hostnamesFlag(fl, "own"); err != nil {
		return usageError(cmd, err)
	}
	locks, err := readLockFiles(args)
	if err != nil {
		return usageError(cmd, err)
	}
	bar := newProgressBar(os.Stderr)
	h, err := scanHoldings(cmd.Context(), directories, bar.show)
	bar.clear()
	if err != nil {
		return usageError(cmd, err)
	}
	plan, err := fill.PlanPruning(h.releases, locks, options)
	if err != nil {
		return usageError(cmd, err)
	}
	p := &pruning{
		holdings: h, plan: plan, files: len(locks), dry: fl.Bool("dry-run"),
		from: localDisk{}.under(directories.Root, directories.Providers),
	}
	p.keepShared()
	if err := p.knowsOwn(cmd.Flags().Changed("own")); err != nil {
		return usageError(cmd, err)
	}
	if !p.dry {
		p.remove()
	}
	write := p.write
	if fl.Bool("json") {
		write = p.writeJSON
	}
	if err := write(cmd.OutOrStdout(), cmd.ErrOrStderr()); err != nil {
		return usageError(cmd, err)
	}
	if len(p.failed) > 0 {
		cmd.SilenceErrors = true
		return errLeft
	}
	return nil
}

// readLockFiles reads those that are named and those in folders. One that cannot
// be read is an error: what it names would be removed.
func readLockFiles(args []string) (locks [][]upstream.Locked, err error) {
	for _, arg := range args {
		info, err := os.Stat(arg)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, noSuchPath(arg)
		case err != nil:
			return nil, err
		}
		files := []string{arg}
		if info.IsDir() {
			if files, err = lockFilesIn(arg); err != nil {
				return nil, err
			}
			if len(files) == 0 {
				return nil, fmt.Errorf("%s: there is no %s in it or below: let the client's `init` write it", arg, upstream.LockFileName)
			}
		}
		for _, file := range files {
			l, err := readLockFile(file)
			if err != nil {
				return nil, err
			}
			locks = append(locks, l)
		}
	}
	return locks, nil
}

// scanHoldings finds what a tree offers of providers.
func scanHoldings(ctx context.Context, directories index.Directories, progress func(index.Progress)) (*holdings, error) {
	var tree index.Tree
	snapshot, err := index.Scan(ctx, index.Options{
		Open: func() (t index.Tree, err error) {
			tree, err = directories.Open()
			t = tree
			t.Modules = index.Part{Fs: afero.NewMemMapFs(), Dir: "."} // they need not be read
			return t, err
		},
		Signer:   somebody{},
		Progress: progress,
	})
	if err != nil {
		return nil, err
	}
	return newHoldings(tree.Providers, snapshot), nil
}

// write prints the plan, what came of it, and what did not.
func (p *pruning) write(out, errs io.Writer) error {
	if len(p.plan.Remove) > 0 {
		heading := "REMOVED"
		if p.dry {
			heading = "WOULD BE REMOVED"
		}
		fmt.Fprintln(out, heading)
	}
	for _, h := range p.plan.Remove {
		fmt.Fprintf(out, "%s %s\n", h.Address, h.Version)
		for _, file := range h.Files {
			fmt.Fprintf(out, "  %s\n", printable(file))
		}
	}
	written := len(p.plan.Remove) > 0
	for _, kept := range []struct {
		heading string
		files   []string
	}{{"KEPT, SINCE IT IS REACHED BY ANOTHER NAME TOO", p.shared}, {"KEPT, SINCE IT IS UNPACKED: REMOVE THE FOLDER YOURSELF", p.unpacked}} {
		for i, file := range kept.files {
			if i == 0 {
				if written {
					fmt.Fprintln(out)
				}
				written = true
				fmt.Fprintln(out, kept.heading)
			}
			fmt.Fprintln(out, printable(file))
		}
	}
	for i, err := range p.failed {
		if i == 0 {
			fmt.Fprintln(errs, "\nCOULD NOT BE REMOVED")
		}
		fmt.Fprintln(errs, printable(err.Error()))
	}
	verb := "Removed from"
	if p.dry {
		verb = "Would be removed from"
	}
	summary := fmt.Sprintf("%s %s: %s, %s. Kept: %d, by %s.", verb, p.from, count(len(p.plan.Remove), "release"),
		humanize.Bytes(uint64(p.size())), p.plan.Kept, count(p.files, "lock file"))
	if p.withheld > 0 {
		summary += fmt.Sprintf(" Left alone, since the registry withholds it: %s (`check` says why).", count(p.withheld, "thing"))
	}
	if written {
		summary = "\n" + summary
	}
	_, err := fmt.Fprintln(out, summary)
	return err
}

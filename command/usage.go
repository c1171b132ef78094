package command

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/command/remote"
	"github.com/caddy-terraform/caddy-terraform-registry/usage"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

func usageCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "usage [--root FOLDER] [--address ADDRESS] [--json] [ADDRESS]...",
		Short: "Says how often which version was downloaded, and when last",
		Long: `
Says how often each version of the providers and modules was downloaded: in all
days that are kept, and in the last 30. Given addresses, it is about these
alone: [HOSTNAME/]NAMESPACE/TYPE or [HOSTNAME/]NAMESPACE/NAME/SYSTEM.

The running server is asked, by its admin API, and knows what all instances have
counted. It has to have the option usage.

--json also has the downloads of the last 30 days by platform, the days on which
downloads were counted, and, if the option usage has "by", who was told where
packages are.

The exit status is 0, or 2 if there is no answer.`,
		Example: `  caddy-terraform-registry usage
  caddy-terraform-registry usage --json registry.terraform.io/hashicorp/null`,
		RunE: cli.RunE(runUsage),
	}
	remote.AddAdminFlag(cmd)
	addRootFlag(cmd)
	cmd.Flags().Bool("json", false, "Print everything as JSON")
	return cmd
}

func runUsage(cmd *cobra.Command, args []string) error {
	fl := caddycmd.Flags{FlagSet: cmd.Flags()}
	var asked []string
	for _, arg := range args {
		a, err := address.Parse(arg)
		if err != nil {
			return err
		}
		asked = append(asked, a.String())
	}
	days := 0
	if fl.Bool("json") {
		days = usage.RecentDays
	}
	all, err := remote.Usage(fl, days)
	if err != nil {
		return err
	}
	if root := fl.String("root"); root != "" {
		maps.DeleteFunc(all, func(of string, _ *wire.TreeUsage) bool { return !hasRoot(of, root) })
		if len(all) == 0 {
			return fmt.Errorf("--root: the server counts no downloads from %s", root)
		}
	}
	for _, of := range all {
		if len(asked) > 0 {
			of.Addresses = slices.DeleteFunc(of.Addresses, func(u wire.Usage) bool { return !slices.Contains(asked, u.Address) })
		}
	}
	return cli.Finish(cmd, usageResult(all))
}

// A usageResult is the usage of trees by their root.
type usageResult map[string]*wire.TreeUsage

// Status implements cli.Result.
func (usageResult) Status() int { return 0 }

// Document implements cli.Result.
func (r usageResult) Document() any { return map[string]*wire.TreeUsage(r) }

// WriteText implements cli.Result.
func (r usageResult) WriteText(out, _ io.Writer) error {
	for _, root := range slices.Sorted(maps.Keys(r)) {
		of := r[root]
		since := "Nothing has been counted yet"
		if len(of.Counted) > 0 {
			since = fmt.Sprintf("Counted on %s since %s", cli.Count(len(of.Counted), "day"), of.Counted[0])
		}
		rows := [][]string{{"ADDRESS", "VERSION", "DOWNLOADS", "30 DAYS", "LAST USED"}}
		for _, u := range of.Addresses {
			for _, v := range u.Versions {
				rows = append(rows, []string{u.Address, v.Version, strconv.FormatUint(v.Downloads, 10), strconv.FormatUint(v.Recent, 10), v.LastUsed})
			}
		}
		if len(rows) > 1 {
			if err := cli.WriteTable(out, rows); err != nil {
				return err
			}
			fmt.Fprintln(out)
		}
		if _, err := fmt.Fprintf(out, "%s, in %s.\n", since, cli.Printable(root)); err != nil {
			return err
		}
	}
	return nil
}

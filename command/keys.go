package command

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/command/remote"
	"github.com/caddy-terraform/caddy-terraform-registry/index/keys"
)

func keysCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys COMMAND",
		Short: "Forgets the keys of a namespace that is no longer signed",
		Long: `
The keys of publishers are in the folder, in keys/[HOSTNAME/]NAMESPACE.asc. To
add or replace a key, change that file. The registry copies the file to Caddy's
storage, so that a namespace whose file is lost goes on requiring its keys.`,
		Args: cli.Arguments(0, "unknown command: there is forget"),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(keysForgetCommand())
	return cmd
}

func keysForgetCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "forget [--root FOLDER] [--address ADDRESS] NAMESPACE",
		Short: "Forgets the keys that a namespace had",
		Long: `
Forgets the keys that a namespace had, whose keys file is gone. The releases of
the namespace then need no signature of their publisher: they are offered with
the registry's own. The namespace is NAMESPACE, or HOSTNAME/NAMESPACE if it is
mirrored.

A registry keeps a copy of each keys file in Caddy's storage. If the file is
gone, the copy verifies what the file did, and new releases are withheld
(keys_missing). Put the file back if it was lost. Run this command if the
namespace is no longer signed, or if it is mirrored and the keys that its
registry sends now are to count.

The running server does it, by its admin API. While the keys file is there, or
cannot be read, it refuses.

The exit status is 0 if it is done, 1 if there is nothing to forget, and 2 if
the server refuses or cannot do it.`,
		Example: `  caddy-terraform-registry keys forget acme
  caddy-terraform-registry keys forget registry.terraform.io/hashicorp`,
		Args: cli.Arguments(1, "give one namespace, such as acme or registry.terraform.io/hashicorp"),
		RunE: cli.RunE(runKeysForget),
	}
	remote.AddAdminFlag(cmd)
	addRootFlag(cmd)
	return cmd
}

func runKeysForget(cmd *cobra.Command, args []string) error {
	fl := caddycmd.Flags{FlagSet: cmd.Flags()}
	query := url.Values{"namespace": {args[0]}}
	if root := fl.String("root"); root != "" {
		query.Set("root", root)
	}
	var roots []string
	_, err := remote.AskServer(fl, http.MethodPost, "keys/forget?"+query.Encode(), "the server with the admin API at %s has not done it", &roots)
	switch {
	case err == nil:
	case strings.Contains(err.Error(), keys.ErrNoCopy.Error()): // Caddy keeps the text of the answer alone
		return cli.Fail(cmd, cli.ExitProblem, fmt.Errorf("%s: %w", args[0], keys.ErrNoCopy))
	default:
		return err
	}
	_, err = fmt.Fprintf(cli.Fitted(cmd.OutOrStdout()), "The keys of %s are forgotten in %s.\n", args[0], strings.Join(roots, ", "))
	return err
}

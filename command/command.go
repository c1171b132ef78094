package command

import (
	"os"
	"slices"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/command/mirror"
	"github.com/caddy-terraform/caddy-terraform-registry/command/publish"
	"github.com/caddy-terraform/caddy-terraform-registry/command/remote"
	"github.com/caddy-terraform/caddy-terraform-registry/command/verify"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

func init() {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:  "terraform-registry",
		Usage: "--root FOLDER [--domain NAME] [--listen ADDR] [--internal-certs] [--access-log] [--debug]",
		Short: "Serves a folder as a Terraform and OpenTofu registry",
		Long: `
Serves a folder as a provider registry, a module registry and a network mirror
for Terraform and OpenTofu, with pages for people to search and read. It needs
no configuration file, and prints what the folder offers and how to configure
clients.

The folder has up to three others in it. --providers, --modules and --keys name
them if they are elsewhere, for example a mirror directory that exists already:

    providers/[HOSTNAME/]NAMESPACE/TYPE/
        terraform-provider-TYPE_VERSION_OS_ARCH.zip
    modules/[HOSTNAME/]NAMESPACE/NAME/SYSTEM/VERSION.tar.gz
    keys/[HOSTNAME/]NAMESPACE.asc

Clients require HTTPS. There are three ways to provide it:

  --domain names the site. It listens on the HTTPS port and gets a certificate
    from a public authority, like any site of Caddy. The DNS records of the name
    must point to this machine.
  --internal-certs issues the certificate by Caddy's own authority on this
    machine, for the name given by --domain or --listen. Clients have to trust
    that authority; the command prints how.
  Without either, the site is plain HTTP for a proxy in front of it.

--listen sets the address to listen on. The default is the HTTPS port with
--domain, localhost:443 with only --internal-certs, and the HTTP port otherwise.

Releases that their publisher did not sign are signed with a key that is
generated at the first start and kept in Caddy's data directory.

The exit status is 1 if the server could not start, and 2 if the command was
called wrongly.`,
		CobraFunc: func(cmd *cobra.Command) {
			// Before they are parsed, and when Caddy has all its commands.
			if args := withOwnCommand(os.Args, subcommands()); !slices.Equal(args, os.Args) {
				os.Args = args
			}
			cli.AddTreeFlags(cmd)
			cmd.Flags().StringP("domain", "d", "", "The domain `name` at which to serve the registry")
			cmd.Flags().StringP("listen", "l", "", "The `address` to which to bind the listener")
			cmd.Flags().BoolP("internal-certs", "i", false, "Use certificates of the internal CA")
			cmd.Flags().BoolP("access-log", "a", false, "Enable the access log")
			cmd.Flags().BoolP("debug", "v", false, "Log everything, at a terminal also how Caddy starts")
			cmd.Args = noSubcommand
			cmd.SetFlagErrorFunc(cli.UsageError) // also of the subcommands
			cmd.SuggestionsMinimumDistance = 2
			setHelp(cmd)
			cmd.RunE = func(cmd *cobra.Command, _ []string) error {
				status, err := runServe(caddycmd.Flags{FlagSet: cmd.Flags()})
				return cli.Fail(cmd, status, err)
			}
			cmd.AddCommand(subcommands()...)
			setCompletion(cmd)
			cmd.ValidArgsFunction = completeCommandsOfCaddy
		},
	})
}

func subcommands() []*cobra.Command {
	return []*cobra.Command{checkCommand(), accessCommand(), clientConfigCommand(remote.Network{}), tokenCommand(), mirror.Command(upstream.Network{}), mirror.PruneCommand(),
		publish.Command(remote.Network{}), deprecateCommand(remote.Network{}), withdrawCommand(remote.Network{}), restoreCommand(remote.Network{}), connectCommand(remote.Network{}), keysCommand(), usageCommand(), tlogCommand(), verify.Command(remote.Network{}), versionCommand()}
}

package command

import (
	"errors"
	"fmt"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/module"
)

func init() {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:  "terraform-registry",
		Usage: "--root <folder> [--domain <name>] [--listen <addr>] [--internal-certs] [--access-log] [--debug]",
		Short: "Serves a folder as a Terraform and OpenTofu registry",
		Long: `
Serves a folder as a provider registry, a module registry and a network mirror
for Terraform and OpenTofu. It needs no configuration file, and prints what the
folder has to offer and what clients need to be told.

The folder has up to three others in it, which --providers, --modules and --keys
point elsewhere, for example to a mirror directory that exists already:

    providers/[HOSTNAME/]NAMESPACE/TYPE/
        terraform-provider-TYPE_VERSION_OS_ARCH.zip
    modules/[HOSTNAME/]NAMESPACE/NAME/SYSTEM/VERSION.tar.gz
    keys/[HOSTNAME/]NAMESPACE.asc

Clients speak HTTPS only. There are three ways to give it to them:

  --domain names the site. It listens on the HTTPS port and gets a certificate
    from a public authority, as every site of Caddy's does. The name's DNS
    records have to lead to this machine.
  --internal-certs has the certificate issued by an authority of Caddy's own,
    on this machine, for the name given by --domain or --listen. Clients have to
    trust that authority; how is printed.
  Without either, the site is plain HTTP for a proxy in front of it.

The socket can be chosen with --listen. The default is the HTTPS port with
--domain, localhost:443 with just --internal-certs, and the HTTP port otherwise.

The key that signs what publishers did not sign is generated at the first start
and kept in Caddy's data directory.`,
		CobraFunc: func(cmd *cobra.Command) {
			addTreeFlags(cmd)
			cmd.Flags().StringP("domain", "d", "", "Domain name at which to serve the registry")
			cmd.Flags().StringP("listen", "l", "", "The address to which to bind the listener")
			cmd.Flags().BoolP("internal-certs", "i", false, "Use certificates of the internal CA")
			cmd.Flags().BoolP("access-log", "a", false, "Enable the access log")
			cmd.Flags().BoolP("debug", "v", false, "Enable verbose debug logs")
			cmd.Args = cobra.NoArgs
			cmd.RunE = func(cmd *cobra.Command, _ []string) error {
				status, err := cmdServe(caddycmd.Flags{FlagSet: cmd.Flags()})
				return failWith(cmd, status, err)
			}
			cmd.AddCommand(checkCommand(), accessCommand(), tokenCommand(), mirrorCommand(), pruneCommand())
		},
	})
}

func addTreeFlags(cmd *cobra.Command) {
	cmd.Flags().StringP("root", "r", "", "The folder to serve (required)")
	cmd.Flags().String("providers", "", "The folder with the providers, if it is not providers under the root")
	cmd.Flags().String("modules", "", "The folder with the modules, if it is not modules under the root")
	cmd.Flags().String("keys", "", "The folder with the publishers' keys, if it is not keys under the root")
}

// namedDirectories are the directories as a configuration has them, in which
// those that are only defaults, and may be missing, are not named.
func namedDirectories(fl caddycmd.Flags, root string) index.Directories {
	return index.Directories{Root: root, Providers: fl.String("providers"), Modules: fl.String("modules"), Keys: fl.String("keys")}
}

// treeFlags returns the directories that the flags name, which exist.
func treeFlags(fl caddycmd.Flags) (index.Directories, error) {
	directories := index.Directories{
		Root:      fl.String("root"),
		Providers: fl.String("providers"),
		Modules:   fl.String("modules"),
		Keys:      fl.String("keys"),
	}
	if directories.Root == "" {
		return directories, errors.New("--root is required: name the folder to serve")
	}
	located, err := module.Locate(nil, directories)
	if err != nil {
		return located, fmt.Errorf("--%w", err) // they begin with the option's name
	}
	return located, nil
}

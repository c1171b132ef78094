package command

import (
	"errors"
	"fmt"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
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
			addTreeFlags(cmd)
			cmd.Flags().StringP("domain", "d", "", "The domain `name` at which to serve the registry")
			cmd.Flags().StringP("listen", "l", "", "The `address` to which to bind the listener")
			cmd.Flags().BoolP("internal-certs", "i", false, "Use certificates of the internal CA")
			cmd.Flags().BoolP("access-log", "a", false, "Enable the access log")
			cmd.Flags().BoolP("debug", "v", false, "Log everything, at a terminal also how Caddy starts")
			cmd.Args = noSubcommand
			cmd.SetFlagErrorFunc(usageError) // also of the subcommands
			cmd.SuggestionsMinimumDistance = 2
			setHelp(cmd)
			cmd.RunE = func(cmd *cobra.Command, _ []string) error {
				status, err := runServe(caddycmd.Flags{FlagSet: cmd.Flags()})
				return failWith(cmd, status, err)
			}
			cmd.AddCommand(subcommands()...)
			setCompletion(cmd)
		},
	})
}

func subcommands() []*cobra.Command {
	return []*cobra.Command{checkCommand(), accessCommand(), clientConfigCommand(registryNetwork{}), tokenCommand(), mirrorCommand(upstream.Network{}), pruneCommand(),
		publishCommand(registryNetwork{}), deprecateCommand(registryNetwork{}), withdrawCommand(registryNetwork{}), restoreCommand(registryNetwork{}), keysCommand(), versionCommand()}
}

func addTreeFlags(cmd *cobra.Command) {
	cmd.Flags().StringP("root", "r", "", "The `folder` to serve (required)")
	cmd.Flags().String("providers", "", "The `folder` with the providers, if it is not providers under the root")
	cmd.Flags().String("modules", "", "The `folder` with the modules, if it is not modules under the root")
	cmd.Flags().String("keys", "", "The `folder` with the publishers' keys, if it is not keys under the root")
}

// addProvidersFlags adds the flags of a tree for a command that is only about
// providers.
func addProvidersFlags(cmd *cobra.Command) {
	addTreeFlags(cmd)
	cmd.Flags().Lookup("root").Usage = "The `folder` of the registry (required)"
	cmd.Flags().Lookup("modules").Hidden = true
}

// modulesFlag makes --modules of such a command an option that needs no value: it is about
// modules too then, which lie in the default folder.
func modulesFlag(cmd *cobra.Command, usage string) {
	flag := cmd.Flags().Lookup("modules")
	flag.Hidden, flag.Usage, flag.NoOptDefVal = false, usage, "modules"
}

// namedDirectories returns the directories as a configuration has them: defaults
// are not named, and may be missing.
func namedDirectories(fl caddycmd.Flags, root string) tree.Directories {
	return tree.Directories{Root: root, Providers: fl.String("providers"), Modules: fl.String("modules"), Keys: fl.String("keys")}
}

// treeFlags returns the directories of the flags. Those that are named exist.
func treeFlags(fl caddycmd.Flags) (tree.Directories, error) {
	directories := namedDirectories(fl, fl.String("root"))
	if directories.Root == "" {
		return directories, errors.New("--root is required: name the folder to serve")
	}
	located, err := directories.Locate(nil)
	if err != nil {
		return located, fmt.Errorf("--%w", err) // the error begins with the option's name
	}
	return located, nil
}

// hostnamesFlag reads the hostnames of a flag that can be repeated.
func hostnamesFlag(fl caddycmd.Flags, name string) (hostnames []svchost.Hostname, err error) {
	words, err := fl.GetStringSlice(name)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", name, err)
	}
	for _, word := range words {
		hostname, err := address.ParseHostname(word)
		if err != nil {
			return nil, fmt.Errorf("--%s: %q is not a hostname: %w", name, word, err)
		}
		hostnames = append(hostnames, hostname)
	}
	return hostnames, nil
}

// Exit statuses of the subcommands.
const (
	exitProblem = 1 // the command found something that is wrong or missing
	exitUsage   = 2 // it was called wrongly, or could not do its work
)

// errProblem ends a subcommand with exitProblem. The reasons have been printed.
var errProblem = errors.New("there are problems")

// problem returns errProblem, which is not printed.
func problem(cmd *cobra.Command) error {
	cmd.SilenceErrors = true
	return errProblem
}

// usageError ends the command with exitUsage.
func usageError(cmd *cobra.Command, err error) error {
	return failWith(cmd, exitUsage, err)
}

// noArguments is the check of the arguments of a command that takes none. The error does not
// repeat them: one may be a token.
func noArguments(hint string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return usageError(cmd, errors.New("unexpected argument: "+hint))
	}
}

// A commandError ends a command with a status. It is printed as cobra does, as "Error: "
// and a sentence: Caddy's own wrapper writes errors to the log, as JSON or between
// a time and a level.
type commandError struct {
	err    error
	status error // Caddy's own, which its main function looks for
}

func (e *commandError) Error() string { return e.err.Error() }

func (e *commandError) Unwrap() []error {
	if e.status == nil { // the status is 1, as of any error
		return []error{e.err}
	}
	return []error{e.err, e.status}
}

// failWith ends the command with a status and an error. Nil stays nil.
func failWith(cmd *cobra.Command, status int, err error) error {
	if err == nil {
		return nil
	}
	if out := cmd.ErrOrStderr(); isTerminal(out) && !cmd.SilenceErrors { // in a log, it stays one line
		cmd.SilenceErrors = true
		w, _ := fitted(out)
		fmt.Fprintln(w, cmd.ErrPrefix(), err)
	}
	exit := func(caddycmd.Flags) (int, error) { return status, nil }
	return &commandError{err, caddycmd.WrapCommandFuncForCobra(exit)(cmd, nil)}
}

package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/command/remote"
	"github.com/caddy-terraform/caddy-terraform-registry/registryhcl"
)

func deprecateCommand(network remote.Network) *cobra.Command {
	return noticeCommand(&cobra.Command{
		Use:   noticeUse("deprecate", " [--reason TEXT] [--link URL]"),
		Short: "Marks versions as deprecated",
		Long: `
Deprecates versions of a provider or module. They are still offered, and users
are warned: for a provider, clients print a warning at each "init", whichever
version they use, unless they use a network mirror. For a module no client does;
its pages and the API show the reason. Requests without a version get the newest
one that is not deprecated.
` + noticeArguments + noticeStatus,
		Example: `  caddy-terraform-registry deprecate --root /srv/terraform acme/vpc/aws "< 1.2.0" --reason "subnets overlap: use 1.2 or newer"
  caddy-terraform-registry deprecate --to registry.example.com/acme/vpc/aws "< 1.2.0"`,
	}, network, registryhcl.DeprecatedNotice)
}

func withdrawCommand(network remote.Network) *cobra.Command {
	return noticeCommand(&cobra.Command{
		Use:   noticeUse("withdraw", " [--reason TEXT] [--link URL]"),
		Short: "Stops offering versions and keeps their files",
		Long: `
Withdraws versions of a provider or module. They are no longer listed, and
requests for one are answered with the reason. Their files stay, so that restore
can offer them again. Versions of other registries can be withdrawn too, even
before they are fetched.

Where a lock file names a withdrawn version of a provider, "init" fails until
"init -upgrade" chooses another one. To warn users first, deprecate the version.
` + noticeArguments + noticeStatus,
		Example: `  caddy-terraform-registry withdraw --root /srv/terraform acme/vpc/aws 1.3.0 --reason CVE-2026-1234
  caddy-terraform-registry withdraw --to registry.example.com/acme/vpc/aws 1.3.0 --reason CVE-2026-1234
  caddy-terraform-registry withdraw --to registry.example.com/registry.terraform.io/hashicorp/aws 5.71.0`,
	}, network, registryhcl.WithdrawnNotice)
}

func restoreCommand(network remote.Network) *cobra.Command {
	cmd := &cobra.Command{
		Use:   noticeUse("restore", ""),
		Short: "Undoes deprecate and withdraw",
		Long: `
Removes what deprecate and withdraw have written: the blocks in the file
registry.hcl for exactly these versions. If only a block for more versions
covers them, the command names it and changes nothing.
` + noticeArguments + `
The exit status is 0 if it is done, 1 if there was nothing to restore, and 2 if
nothing could be changed.`,
		Example: `  caddy-terraform-registry restore --root /srv/terraform acme/vpc/aws 1.3.0
  caddy-terraform-registry restore --to registry.example.com/acme/vpc/aws 1.3.0`,
		RunE: cli.RunE(func(cmd *cobra.Command, args []string) error {
			return runNotice(cmd, args, network, false, func(_ *cobra.Command, n *noticeChange) (noticeEdit, error) {
				return n.restore, nil
			})
		}),
	}
	addNoticeFlags(cmd)
	return cmd
}

// noticeUse is the usage of a command with flags of its own.
func noticeUse(name, flags string) string {
	return name + " (--root FOLDER ADDRESS | --to HOST/ADDRESS)" + flags + " [--dry-run] VERSIONS"
}

// noticeArguments explains the arguments that the commands have in common.
const noticeArguments = `
This writes the file registry.hcl of the provider or module, in one of two
places. A server that has the file notices it at once.

--root FOLDER ADDRESS VERSIONS writes it in the folder of a registry. The
address is [HOSTNAME/]NAMESPACE/TYPE or [HOSTNAME/]NAMESPACE/NAME/SYSTEM, as in
the folder.

--to HOST/ADDRESS VERSIONS writes it at a registry that is configured with
"publish", where the token needs the right to manage the address. The address is
the same. For an address that HOST mirrors, there are thus two hostnames:
registry.example.com/registry.terraform.io/hashicorp/aws. If another user has
changed the file meanwhile, it is read and changed again. The token is found as
by publish.

The versions are a constraint as in a configuration, such as 1.3.0, "< 1.2.0" or
">= 1.0, < 1.4"; prereleases count like releases.
`

// noticeStatus explains the exit status of deprecate and withdraw.
const noticeStatus = `
The exit status is 0 if the file is as it should be, whether or not it had to be
changed; 1 if it is, and there is no such version, which is not so of another
registry's, as they may come; and 2 if it could not be changed.`

func noticeCommand(cmd *cobra.Command, network remote.Network, kind registryhcl.Kind) *cobra.Command {
	cmd.RunE = cli.RunE(func(cmd *cobra.Command, args []string) error {
		return runNotice(cmd, args, network, kind == registryhcl.WithdrawnNotice, func(cmd *cobra.Command, n *noticeChange) (noticeEdit, error) {
			e := registryhcl.Edit{Kind: kind, Versions: n.versions}
			for name, text := range map[string]**string{"reason": &e.Reason, "link": &e.Link} {
				if cmd.Flags().Changed(name) {
					value, _ := cmd.Flags().GetString(name)
					*text = &value
				}
			}
			return func(before []byte) (noticeResult, error) { return n.set(before, e) }, e.Check()
		})
	})
	addNoticeFlags(cmd)
	cmd.Flags().String("reason", "", "Why, in one `sentence` for users")
	cmd.Flags().String("link", "", "The `URL` of a page with more information")
	return cmd
}

func addNoticeFlags(cmd *cobra.Command) {
	cli.AddTreeFlags(cmd)
	cmd.Flags().Lookup("root").Usage = "The `folder` of the registry"
	cmd.Flags().Lookup("keys").Hidden = true
	cmd.Flags().StringP("to", "t", "", "The registry and the `address`: HOST/[HOSTNAME/]NAMESPACE/TYPE or HOST/[HOSTNAME/]NAMESPACE/NAME/SYSTEM")
	remote.AddTokenFlags(cmd)
	cmd.Flags().Bool("dry-run", false, "Print the change and write nothing")
}

// runNotice changes the registry.hcl that the command line names. With ahead, the folder of a
// mirrored address may be missing: its versions are withdrawn before they are fetched.
func runNotice(cmd *cobra.Command, args []string, network remote.Network, ahead bool, edit func(*cobra.Command, *noticeChange) (noticeEdit, error)) error {
	ctx, stop := cli.Interruptible(cmd)
	defer stop()
	n, err := newNoticeChange(ctx, cmd, args, network, ahead)
	if err != nil {
		return err
	}
	defer n.file.close()
	edited, err := edit(cmd, n)
	if err != nil {
		return err
	}
	dry, _ := cmd.Flags().GetBool("dry-run")
	text, absent, err := n.apply(ctx, edited, dry)
	if err == nil {
		_, err = fmt.Fprint(cmd.OutOrStdout(), text)
	}
	var nothing *notRestoredError
	switch {
	case errors.As(err, &nothing):
		return cli.Fail(cmd, cli.ExitProblem, err)
	case err != nil:
		return err
	case absent:
		return cli.Exit(cmd, cli.ExitProblem)
	}
	return nil
}

// newNoticeChange finds the file that the command line names.
func newNoticeChange(ctx context.Context, cmd *cobra.Command, args []string, network remote.Network, ahead bool) (*noticeChange, error) {
	fl := caddycmd.Flags{FlagSet: cmd.Flags()}
	to := fl.String("to")
	switch {
	case to == "" && fl.String("root") == "":
		return nil, errors.New("name the folder of a registry by --root, or a registry and the address by --to")
	case to == "" && len(args) != 2:
		return nil, errors.New(`give an address and its versions, such as: acme/vpc/aws "< 1.2.0"`)
	case to != "" && len(args) != 1:
		return nil, errors.New(`--to: it names the address, so give the versions and nothing else, such as: "< 1.2.0"`)
	}
	if err := checkPlace(fl, to); err != nil {
		return nil, err
	}
	n := new(noticeChange)
	var err error
	if n.versions, err = address.ParseConstraints(args[len(args)-1]); err != nil {
		return nil, err
	}
	if len(n.versions) == 0 {
		return nil, errors.New(`name the versions: ">= 0" stands for all`)
	}
	if to != "" {
		n.file, err = openRegistryNotices(ctx, network, fl, to)
	} else {
		n.file, err = openFolderNotices(ctx, fl, args[0], ahead)
	}
	return n, err
}

// checkPlace refuses flags that do not go with the place of the file: a registry, or a folder if to
// is empty.
func checkPlace(fl caddycmd.Flags, to string) error {
	for _, name := range []string{"root", "providers", "modules", "keys"} {
		if to != "" && fl.Changed(name) {
			return fmt.Errorf("--to: it names a registry, and --%s a folder: leave out one of them", name)
		}
	}
	for _, name := range []string{"token-file", "audience", "id-token-variable"} {
		if to == "" && fl.Changed(name) {
			return fmt.Errorf("--%s: it belongs to --to", name)
		}
	}
	return nil
}

// parseAddress parses the address of a provider or module. The first of its names
// is a hostname if it looks like one, as in a tree.
func parseAddress(text string) (address.Address, error) {
	names, hostname := strings.Split(text, "/"), ""
	if address.IsHostname(names[0]) {
		hostname, names = names[0], names[1:]
	}
	var a address.Address
	var err error
	switch len(names) {
	case 2:
		a, err = address.ParseProvider(hostname, names[0], names[1])
	case 3:
		a, err = address.ParseModule(hostname, names[0], names[1], names[2])
	default:
		err = errors.New("give [HOSTNAME/]NAMESPACE/TYPE of a provider, or [HOSTNAME/]NAMESPACE/NAME/SYSTEM of a module")
	}
	if err != nil {
		return a, fmt.Errorf("%s is not an address: %w", cli.Printable(text), err)
	}
	return a, nil
}

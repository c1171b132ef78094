package mirror

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/module"
	"github.com/caddy-terraform/caddy-terraform-registry/pull"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
)

// Command returns the command mirror. Tests pass a network that trusts their origins.
func Command(network upstream.Network) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mirror --root FOLDER [--platform OS_ARCH]... [--upstream [HOSTNAME=]URL]... [--modules] [--dry-run] LOCK_FILE|FOLDER|PROVIDER|MODULE...",
		Short: "Fetches providers and modules of registries into a folder",
		Long: `
Fetches providers, and with --modules also modules, into the folder of a
registry, which serves them to clients without internet access, or is copied to
a network without it. It needs no server, and may run beside one: a package
appears in the folder when it is complete and verified. Packages that are there
are not fetched again, so that a run that ended early can be continued.

The arguments name what to fetch. An argument that exists, or begins with ./,
../ or /, is a path. Any other is a provider or a module.

  A lock file (.terraform.lock.hcl): the versions that it locks. Packages with
    other hashes than the locked ones are refused.
  A folder with a lock file: the same; what its configuration needs beyond that
    is listed as missing. A folder without one: the newest versions that its
    configuration and the modules it calls allow.
  [HOSTNAME/]NAMESPACE/TYPE[@CONSTRAINTS], such as hashicorp/null@3.2.2 or
    "hashicorp/aws@~> 5.0": the newest version that the constraints allow.
  [HOSTNAME/]NAMESPACE/NAME/SYSTEM[//FOLDER][@CONSTRAINTS], such as
    "terraform-aws-modules/vpc/aws@~> 5.0": the same of a module, which needs
    --modules, with the modules it calls and the providers they all require.

With --modules, the modules of registries that the configuration in a folder
calls are fetched, and those that these call: in the versions that init has
installed (.terraform/modules/modules.json), otherwise the newest that each call
allows. Without --modules they are not looked into. Modules from elsewhere, such
as Git repositories, never are: no registry can serve them. Modules that are not
looked into are listed as what may need more. With --dry-run, modules are
downloaded into a temporary folder to see what they call.

Versions that are withdrawn in the folder are not fetched.

The default HOSTNAME is registry.terraform.io, or with --tofu
registry.opentofu.org.

Requests go to each registry at its own hostname. --upstream URL names a network
mirror to fetch providers from instead of all of them, and --upstream
HOSTNAME=URL another address of the registry of that hostname. Tokens are taken
from the environment as by clients, from variables such as TF_TOKEN_example_com,
and proxies from HTTPS_PROXY. With --modules, the token of a host is also sent
to Git repositories there that a registry names, as a password, but not to their
submodules.

The folder is created if it does not exist.

The exit status is 0 if everything is there, 1 if something is missing, which
does not keep the rest from being fetched, and 2 if it could not begin.`,
		Example: `  caddy-terraform-registry mirror --root /srv/terraform --platform linux_amd64 --platform darwin_arm64 infra/.terraform.lock.hcl
  caddy-terraform-registry mirror --root /srv/terraform --dry-run ./infra "hashicorp/aws@~> 5.0"
  caddy-terraform-registry mirror --root /srv/terraform --modules ./infra "terraform-aws-modules/vpc/aws@~> 5.0"
  caddy-terraform-registry mirror --root /srv/terraform --upstream https://mirror.example.com/v1/mirror/ --signatures prefer hashicorp/null`,
		Args: cli.SomeArguments("say what to mirror: a lock file, a folder with a configuration, a provider such as hashicorp/null, or a module"),
	}
	cmd.RunE = cli.RunE(func(cmd *cobra.Command, args []string) error { return runMirror(cmd, args, network) })
	addProvidersFlags(cmd)
	modulesFlag(cmd, "Fetch modules too, into `folder` (default: modules under the root)")
	cmd.Flags().StringSliceP("platform", "p", nil, "A platform to fetch packages for, as `os_arch` such as linux_amd64; can be repeated (default: the platform of this machine)")
	cmd.Flags().StringArrayP("upstream", "u", nil, "The `URL` of a network mirror for all providers, or HOSTNAME=URL for another address of one registry; can be repeated")
	cmd.Flags().StringArray("modules-url", nil, "`HOSTNAME=URL` for the module service of a registry, if it cannot be discovered; can be repeated")
	cmd.Flags().StringSlice("private", nil, "A `host` in a private network that registries may link to; can be repeated")
	cmd.Flags().StringSlice("own", nil, "A `hostname` of the registry itself, whose providers and modules are left out; can be repeated")
	cmd.Flags().String("signatures", module.RequireSignatures, "`require|prefer`: with prefer, releases without a known signature are accepted")
	cmd.Flags().Bool("tofu", false, "Read folders, and providers and modules without hostname, as OpenTofu does")
	cmd.Flags().IntP("parallel", "n", 4, "The `number` of packages to fetch at once")
	cmd.Flags().Bool("dry-run", false, "Say what would be fetched, and write nothing")
	cmd.Flags().Bool("json", false, "Print the result as JSON")
	return cmd
}

func runMirror(cmd *cobra.Command, args []string, network upstream.Network) error {
	m, err := newMirrorRun(cmd, args, network)
	if err != nil {
		return err
	}
	ctx, stop := cli.Interruptible(cmd)
	defer stop()
	context.AfterFunc(ctx, m.fillers.close) // an interrupted fill leaves nothing behind
	result := m.run(ctx)
	m.progress.Clear()
	m.fillers.close()
	return cli.Finish(cmd, result)
}

// newMirrorRun parses the command line. It fetches nothing yet.
func newMirrorRun(cmd *cobra.Command, args []string, network upstream.Network) (*mirrorRun, error) {
	fl := caddycmd.Flags{FlagSet: cmd.Flags()}
	m := &mirrorRun{dry: fl.Bool("dry-run"), parallel: fl.Int("parallel"), progress: cli.NewTransfer()}
	var err error
	if fl.String("root") == "" {
		return nil, errors.New("--root is required: name the folder to fill")
	}
	if m.parallel < 1 {
		return nil, errors.New("--parallel: give the number of packages to fetch at once")
	}
	if m.platforms, m.thisMachine, err = platformsFlag(fl); err != nil {
		return nil, fmt.Errorf("--platform: %w", err)
	}
	o, err := originFlags(fl)
	if err != nil {
		return nil, err
	}
	if m.own, err = cli.HostnamesFlag(fl, "own"); err != nil {
		return nil, err
	}
	m.tofu = fl.Bool("tofu")
	withModules := fl.String("modules") != ""
	if err := m.readArguments(args, withModules); err != nil {
		return nil, explainModules(fl, err)
	}
	m.leaveOut()
	if err := o.check(m.requirements, network); err != nil {
		return nil, err
	}
	directories, err := foldersToFill(fl, m.dry)
	if err != nil {
		return nil, err
	}
	m.into = directories.Paths()[1]
	if withModules {
		m.modulesInto = directories.Paths()[2]
	}
	m.fillers = fillers{origins: o, network: network, options: pull.Options{
		Open: directories.Open, Lock: cli.LockDefaultStorage, ReadOnly: m.dry,
		FreeSpace: directories.FreeSpace,
	}}
	fo := &m.fillers.options
	if m.dry {
		fo.Open, fo.Lock = directories.OpenReadOnly, nil
	}
	if m.tree, err = readTreeFolders(cmd.Context(), fo.Open, withModules); err != nil {
		return nil, err
	}
	return m, nil
}

// foldersToFill returns the directories of the flags, and creates missing ones. It is called
// when the rest of the command line is known to be right. A dry run creates nothing: to it, a
// missing directory is empty.
func foldersToFill(fl caddycmd.Flags, dry bool) (d source.Directories, err error) {
	root, err := filepath.Abs(fl.String("root"))
	if err != nil {
		return d, fmt.Errorf("--root: %w", err)
	}
	d = cli.NamedDirectories(fl, root)
	missing := false
	for i, flag := range []string{"root", "providers", "modules", "keys"} {
		dir := d.Paths()[i]
		if fl.String(flag) == "" {
			continue
		}
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if _, err := os.Lstat(dir); err == nil {
			return d, fmt.Errorf("--%s: %s is a symlink to nothing: mend it, or name another", flag, dir)
		}
		if missing = true; dry {
			continue
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return d, fmt.Errorf("--%s: %w", flag, err)
		}
	}
	if dry && missing {
		return d, nil
	}
	return cli.TreeFlags(fl)
}

// platformsFlag returns this machine's platform if none is given, as `terraform
// providers mirror` does.
func platformsFlag(fl caddycmd.Flags) (platforms []address.Platform, thisMachine bool, err error) {
	words, err := fl.GetStringSlice("platform")
	if err != nil {
		return nil, false, err
	}
	if len(words) == 0 && fl.Changed("platform") { // pflag drops a value that is empty
		return nil, false, errEmpty
	}
	if len(words) == 0 {
		return []address.Platform{{OS: runtime.GOOS, Arch: runtime.GOARCH}}, true, nil
	}
	platforms, err = address.ParsePlatforms(words)
	return platforms, false, err
}

// addProvidersFlags adds the flags of a tree for a command that is only about
// providers.
func addProvidersFlags(cmd *cobra.Command) {
	cli.AddTreeFlags(cmd)
	cmd.Flags().Lookup("root").Usage = "The `folder` of the registry (required)"
	cmd.Flags().Lookup("modules").Hidden = true
}

// modulesFlag makes --modules an option that needs no value. The command is then about the
// modules in the default folder, too.
func modulesFlag(cmd *cobra.Command, usage string) {
	flag := cmd.Flags().Lookup("modules")
	flag.Hidden, flag.Usage, flag.NoOptDefVal = false, usage, "modules"
}

// explainModules adds to the error of an argument that the argument is no value of --modules, if the
// flag was given without one.
func explainModules(fl caddycmd.Flags, err error) error {
	at, ok := errors.AsType[*pathError](err)
	if !ok || !cli.WithoutValue(fl, "modules") {
		return err
	}
	return fmt.Errorf("%w; if it is the folder with the modules, write --modules=%s", err, cli.Printable(at.path))
}

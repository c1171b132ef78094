package module

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/afero"
	"github.com/spf13/cobra"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/fill"
)

// errIncomplete makes the process end with exit status 1. What is missing has
// been printed by then.
var errIncomplete = errors.New("something was not mirrored")

// mirrorCommand makes the command. The options are for origins that are not
// trusted by the system.
func mirrorCommand(options ...upstream.Option) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mirror --root <folder> [--platform <os_arch>]... [--upstream [<hostname>=]<url>]... [--dry-run] <lock file>|<folder>|<provider>...",
		Short: "Fetches providers from other registries into a folder",
		Long: `
Fetches providers into the folder of a registry, which serves them to clients
without internet, or is carried to where there is none. It needs no server, and
may run beside one: a package is there once it is verified, as a whole or not at
all. What is there is verified and not fetched again, so that a run that ended
early goes on with the next one.

What to fetch is given by arguments. One that exists is a path, and so is one
that begins with ./, ../ or /. All else is a provider.

  A lock file (.terraform.lock.hcl): the versions that it locks. What does not
    have the hashes it locks is refused.
  A folder with a lock file: the same; what its configuration needs beyond that
    is listed as missing. A folder without one: the newest versions that its
    configuration and the modules it calls allow. Modules that do not lie in the
    folder have to be installed by the client ("terraform get").
  [HOSTNAME/]NAMESPACE/TYPE[@CONSTRAINTS], such as hashicorp/null@3.2.2 or
    "hashicorp/aws@~> 5.0": the newest version that the constraints allow.

Without HOSTNAME a provider is one of registry.terraform.io, or with --tofu of
registry.opentofu.org.

Each registry is asked at its own hostname. --upstream with a URL has a network
mirror asked in place of all of them; with HOSTNAME=URL, the registry of that
hostname at another address. A host that wants a token gets the one that clients
would take from the environment, in a variable such as TF_TOKEN_example_com.
Proxies are taken from HTTPS_PROXY.

A folder to fill that is not there yet is made.

The exit status is 0 if everything is there, 1 if something is not, which does
not keep the rest from being fetched, and 2 if it could not begin.`,
		Example: `  caddy terraform-registry mirror --root /srv/terraform --platform linux_amd64 --platform darwin_arm64 infra/.terraform.lock.hcl
  caddy terraform-registry mirror --root /srv/terraform --dry-run ./infra "hashicorp/aws@~> 5.0"
  caddy terraform-registry mirror --root /srv/terraform --upstream https://mirror.example.com/v1/mirror/ --signatures prefer hashicorp/null`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError(cmd, errors.New("say what to mirror: a lock file, a folder with a configuration, or a provider such as hashicorp/null"))
			}
			return nil
		},
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return runMirror(cmd, args, options) }
	addProvidersFlags(cmd)
	cmd.Flags().StringSliceP("platform", "p", nil, "A platform to fetch packages for, such as linux_amd64; can be repeated (default: that of this machine)")
	cmd.Flags().StringArrayP("upstream", "u", nil, "The URL of a network mirror for all providers, or HOSTNAME=URL for another address of one registry; can be repeated")
	cmd.Flags().StringSlice("private", nil, "A host in a private network that registries may link to; can be repeated")
	cmd.Flags().StringSlice("own", nil, "A hostname of the registry itself, whose providers are left out; can be repeated")
	cmd.Flags().String("signatures", RequireSignatures, "require, or prefer to take what nobody known has signed")
	cmd.Flags().Bool("tofu", false, "Read folders and providers without hostname as OpenTofu does")
	cmd.Flags().IntP("parallel", "n", 4, "How many packages to fetch at once")
	cmd.Flags().Bool("dry-run", false, "Say what would be fetched, and write nothing")
	cmd.Flags().Bool("json", false, "Print what was done as JSON")
	cmd.SetFlagErrorFunc(usageError)
	return cmd
}

// addProvidersFlags are those of a tree, for commands that are not about modules.
func addProvidersFlags(cmd *cobra.Command) {
	addTreeFlags(cmd)
	cmd.Flags().Lookup("root").Usage = "The folder of the registry (required)"
	cmd.Flags().Lookup("modules").Hidden = true
}

func runMirror(cmd *cobra.Command, args []string, options []upstream.Option) error {
	m, err := newMirroring(cmd, args, options)
	if err != nil {
		return usageError(cmd, err)
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// Fills that are cut off leave nothing behind, and a second signal waits for
	// nothing.
	context.AfterFunc(ctx, func() { stop(); m.filler.Close() })
	if !m.dry {
		m.filler.RemoveLeftovers(ctx)
	}
	done := m.run(ctx)
	m.bar.clear()
	m.filler.Close()
	write := done.write
	if m.json {
		write = done.writeJSON
	}
	if err := write(cmd.OutOrStdout(), cmd.ErrOrStderr()); err != nil {
		return usageError(cmd, err)
	}
	if !done.complete() {
		cmd.SilenceErrors = true
		return errIncomplete
	}
	return nil
}

// newMirroring makes of the command line what is to be done, or says what is
// wrong with it. Nothing is fetched yet.
func newMirroring(cmd *cobra.Command, args []string, options []upstream.Option) (*mirroring, error) {
	fl := caddycmd.Flags{FlagSet: cmd.Flags()}
	m := &mirroring{dry: fl.Bool("dry-run"), json: fl.Bool("json"), workers: fl.Int("parallel"), bar: newProgressBar(os.Stderr)}
	var err error
	if fl.String("root") == "" {
		return nil, errors.New("--root is required: name the folder to fill")
	}
	if m.workers < 1 {
		return nil, errors.New("--parallel: give the number of packages to fetch at once")
	}
	if m.platforms, m.thisMachine, err = platformsFlag(fl); err != nil {
		return nil, fmt.Errorf("--platform: %w", err)
	}
	o, err := originFlags(fl)
	if err != nil {
		return nil, err
	}
	own, err := hostnamesFlag(fl, "own")
	if err != nil {
		return nil, err
	}
	if m.wanted, err = readArguments(args, fl.Bool("tofu")); err != nil {
		return nil, err
	}
	m.wanted.leaveOut(own)
	sources, err := o.sources(m.wanted.hostnames(), options)
	if err != nil {
		return nil, err
	}
	directories, missing, err := foldersToFill(fl, m.dry)
	if err != nil {
		return nil, err
	}
	m.into = localDisk{}.under(directories.Root, directories.Providers)
	fo := fill.Options{
		Sources: sources, Open: directories.Open, Lock: lockDefaultStorage, ReadOnly: m.dry,
		Path:      func(name string) string { return filepath.Join(m.into, filepath.FromSlash(name)) },
		FreeSpace: func() (int64, error) { return freeSpace(m.into) },
	}
	switch {
	case missing:
		fo.Open, fo.Lock = noTree, nil
	case m.dry:
		fo.Open, fo.Lock = readOnly(directories), nil
	}
	m.filler, err = fill.New(fo)
	return m, err
}

// foldersToFill are those that the flags name. They are made if they are not there,
// once all else of the command line is right; a dry run makes nothing, and is told
// that they are missing.
func foldersToFill(fl caddycmd.Flags, dry bool) (d index.Directories, missing bool, err error) {
	if d.Root, err = filepath.Abs(fl.String("root")); err != nil {
		return d, false, fmt.Errorf("--root: %w", err)
	}
	for _, flag := range []string{"root", "providers", "keys"} {
		name := fl.String(flag)
		if name == "" {
			continue
		}
		dir := localDisk{}.under(d.Root, name)
		if flag == "root" {
			dir = d.Root
		}
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if dry {
			missing = true
			continue
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return d, false, fmt.Errorf("--%s: %w", flag, err)
		}
	}
	if missing {
		d.Providers = cmp.Or(fl.String("providers"), "providers")
		return d, true, nil
	}
	d, err = treeFlags(fl)
	return d, false, err
}

// noTree is one that nothing is in, nor can be written to.
func noTree() (t index.Tree, err error) {
	empty := index.Part{Fs: afero.NewReadOnlyFs(afero.NewMemMapFs()), Dir: "."}
	return index.Tree{Providers: empty, Modules: empty, Keys: empty}, nil
}

// readOnly opens a tree that nothing can be written to.
func readOnly(d index.Directories) func() (index.Tree, error) {
	return func() (index.Tree, error) {
		tree, err := d.Open()
		if err == nil {
			tree.Providers.Fs, tree.Keys.Fs = afero.NewReadOnlyFs(tree.Providers.Fs), afero.NewReadOnlyFs(tree.Keys.Fs)
		}
		return tree, err
	}
}

// lockDefaultStorage shares the locks of a server with the same storage, which
// it has if it is configured with none and runs as the same user. One fetches
// then what both want. With another server it may be fetched twice, which does
// no harm.
func lockDefaultStorage(ctx context.Context, name string) (unlock func(), err error) {
	if err := caddy.DefaultStorage.Lock(ctx, name); err != nil {
		return nil, err
	}
	return func() { caddy.DefaultStorage.Unlock(context.WithoutCancel(ctx), name) }, nil
}

// platformsFlag is this machine's platform if none is given, as with
// `terraform providers mirror`.
func platformsFlag(fl caddycmd.Flags) (platforms []address.Platform, thisMachine bool, err error) {
	words, err := fl.GetStringSlice("platform")
	if err != nil {
		return nil, false, err
	}
	if len(words) == 0 {
		return []address.Platform{{OS: runtime.GOOS, Arch: runtime.GOARCH}}, true, nil
	}
	platforms, err = upstream.ParsePlatforms(words)
	return platforms, false, err
}

package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	svchost "github.com/hashicorp/terraform-svchost"
	"github.com/spf13/afero"
	"github.com/spf13/cobra"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/module"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream"
	"github.com/caddy-terraform/caddy-terraform-registry/upstream/fill"
)

// mirrorCommand returns the command. Tests pass a network for their origins, which
// the system does not trust.
func mirrorCommand(network upstream.Network) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mirror --root <folder> [--platform <os_arch>]... [--upstream [<hostname>=]<url>]... [--dry-run] <lock file>|<folder>|<provider>...",
		Short: "Fetches providers from other registries into a folder",
		Long: `
Fetches providers into the folder of a registry, which serves them to clients
without internet access, or is copied to a network without it. It needs no
server, and may run beside one: a package appears in the folder when it is
complete and verified. Packages that are there are verified and not fetched
again, so that a run that ended early can be continued.

Arguments say what to fetch. One that exists is a path, and so is one that
begins with ./, ../ or /. Any other is a provider.

  A lock file (.terraform.lock.hcl): the versions that it locks. Packages with
    other hashes than the locked ones are refused.
  A folder with a lock file: the same; what its configuration needs beyond that
    is listed as missing. A folder without one: the newest versions that its
    configuration and the local modules it calls allow. Modules from elsewhere
    are not looked into, and are listed as what may need more.
  [HOSTNAME/]NAMESPACE/TYPE[@CONSTRAINTS], such as hashicorp/null@3.2.2 or
    "hashicorp/aws@~> 5.0": the newest version that the constraints allow.

The default HOSTNAME is registry.terraform.io, or with --tofu
registry.opentofu.org.

Requests go to each registry at its own hostname. --upstream URL names a network
mirror to use instead of all of them, and --upstream HOSTNAME=URL another
address of the registry of that hostname. Tokens are taken from the environment
as by clients, from variables such as TF_TOKEN_example_com, and proxies from
HTTPS_PROXY.

The folder is created if it does not exist.

The exit status is 0 if everything is there, 1 if something is missing, which
does not keep the rest from being fetched, and 2 if it could not begin.`,
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
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return runMirror(cmd, args, network) }
	addProvidersFlags(cmd)
	cmd.Flags().StringSliceP("platform", "p", nil, "A platform to fetch packages for, such as linux_amd64; can be repeated (default: that of this machine)")
	cmd.Flags().StringArrayP("upstream", "u", nil, "The URL of a network mirror for all providers, or HOSTNAME=URL for another address of one registry; can be repeated")
	cmd.Flags().StringSlice("private", nil, "A host in a private network that registries may link to; can be repeated")
	cmd.Flags().StringSlice("own", nil, "A hostname of the registry itself, whose providers are left out; can be repeated")
	cmd.Flags().String("signatures", module.RequireSignatures, "require, or prefer to accept releases without a known signature")
	cmd.Flags().Bool("tofu", false, "Read folders and providers without hostname as OpenTofu does")
	cmd.Flags().IntP("parallel", "n", 4, "How many packages to fetch at once")
	cmd.Flags().Bool("dry-run", false, "Say what would be fetched, and write nothing")
	cmd.Flags().Bool("json", false, "Print the result as JSON")
	cmd.SetFlagErrorFunc(usageError)
	return cmd
}

func runMirror(cmd *cobra.Command, args []string, network upstream.Network) error {
	m, err := newMirrorRun(cmd, args, network)
	if err != nil {
		return usageError(cmd, err)
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// An interrupted fill leaves nothing behind. A second signal ends the process.
	context.AfterFunc(ctx, func() { stop(); m.filler.Close() })
	if !m.dry {
		m.filler.RemoveLeftovers(ctx)
	}
	result := m.run(ctx)
	m.progress.bar.clear()
	m.filler.Close()
	if err := printResult(cmd, result); err != nil {
		return usageError(cmd, err)
	}
	if !result.complete() {
		return problem(cmd)
	}
	return nil
}

// newMirrorRun parses the command line. It fetches nothing yet.
func newMirrorRun(cmd *cobra.Command, args []string, network upstream.Network) (*mirrorRun, error) {
	fl := caddycmd.Flags{FlagSet: cmd.Flags()}
	m := &mirrorRun{dry: fl.Bool("dry-run"), parallel: fl.Int("parallel"), progress: mirrorProgress{bar: newProgressBar(os.Stderr)}}
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
	own, err := hostnamesFlag(fl, "own")
	if err != nil {
		return nil, err
	}
	if m.mirrorRequest, err = readArguments(args, fl.Bool("tofu")); err != nil {
		return nil, err
	}
	m.leaveOut(own)
	sources, err := o.sources(m.hostnames(), network)
	if err != nil {
		return nil, err
	}
	directories, missing, err := foldersToFill(fl, m.dry)
	if err != nil {
		return nil, err
	}
	m.into = directories.Paths()[1]
	fo := fill.Options{
		Sources: sources, Open: directories.Open, Lock: lockDefaultStorage, ReadOnly: m.dry,
		Path:      func(name string) string { return filepath.Join(m.into, filepath.FromSlash(name)) },
		FreeSpace: func() (int64, error) { return fill.FreeSpace(m.into) },
	}
	switch {
	case missing:
		fo.Open, fo.Lock = emptyTree, nil
	case m.dry:
		fo.Open, fo.Lock = readOnly(directories), nil
	}
	m.filler, err = fill.New(fo)
	return m, err
}

// foldersToFill returns the directories of the flags, and creates those that are
// missing. It is called when the rest of the command line is known to be right. A
// dry run creates nothing, and gets the information that one is missing.
func foldersToFill(fl caddycmd.Flags, dry bool) (d index.Directories, missing bool, err error) {
	root, err := filepath.Abs(fl.String("root"))
	if err != nil {
		return d, false, fmt.Errorf("--root: %w", err)
	}
	d = namedDirectories(fl, root)
	for i, flag := range []string{"root", "providers", "modules", "keys"} {
		dir := d.Paths()[i]
		if flag == "modules" || fl.String(flag) == "" {
			continue
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
		return d, true, nil
	}
	d, err = treeFlags(fl)
	return d, false, err
}

// emptyTree opens an empty tree that cannot be written to.
func emptyTree() (t index.Tree, err error) {
	empty := index.Part{Fs: afero.NewReadOnlyFs(afero.NewMemMapFs()), Dir: "."}
	return index.Tree{Providers: empty, Modules: empty, Keys: empty}, nil
}

// readOnly opens a tree such that it cannot be written to.
func readOnly(d index.Directories) func() (index.Tree, error) {
	return func() (index.Tree, error) {
		tree, err := d.Open()
		if err == nil {
			tree.Providers.Fs, tree.Keys.Fs = afero.NewReadOnlyFs(tree.Providers.Fs), afero.NewReadOnlyFs(tree.Keys.Fs)
		}
		return tree, err
	}
}

// lockDefaultStorage uses the locks of a server that has the default storage and runs
// as the same user, so that only one of them fetches a package. With any other server,
// a package may be fetched twice, which does no harm.
func lockDefaultStorage(ctx context.Context, name string) (unlock func(), err error) {
	if err := caddy.DefaultStorage.Lock(ctx, name); err != nil {
		return nil, err
	}
	return func() { caddy.DefaultStorage.Unlock(context.WithoutCancel(ctx), name) }, nil
}

// platformsFlag returns this machine's platform if none is given, as `terraform
// providers mirror` does.
func platformsFlag(fl caddycmd.Flags) (platforms []address.Platform, thisMachine bool, err error) {
	words, err := fl.GetStringSlice("platform")
	if err != nil {
		return nil, false, err
	}
	if len(words) == 0 {
		return []address.Platform{{OS: runtime.GOOS, Arch: runtime.GOARCH}}, true, nil
	}
	platforms, err = address.ParsePlatforms(words)
	return platforms, false, err
}

// origins are the registries and mirrors that the mirror command fetches from.
type origins struct {
	mirror     string                      // the network mirror for all hostnames not in urls
	urls       map[svchost.Hostname]string // other addresses of registries
	private    []string
	signatures fill.Signatures
	tokens     map[svchost.Hostname]string // by the host that gets the request
}

// versionsTTL is how old a list of versions may be that another run, or a server,
// has left. It is short: users run the command to get what is new.
const versionsTTL = 30 * time.Second

func originFlags(fl caddycmd.Flags) (o origins, err error) {
	words, err := fl.GetStringArray("upstream")
	if err != nil {
		return o, fmt.Errorf("--upstream: %w", err)
	}
	o.urls = make(map[svchost.Hostname]string)
	for _, word := range words {
		if err := o.add(word); err != nil {
			return o, fmt.Errorf("--upstream: %w", err)
		}
	}
	if o.private, err = fl.GetStringSlice("private"); err != nil {
		return o, fmt.Errorf("--private: %w", err)
	}
	if o.signatures, err = fill.ParseSignatures(fl.String("signatures")); err != nil {
		return o, fmt.Errorf("--signatures: %w", err)
	}
	o.tokens = environmentTokens(os.Environ())
	return o, nil
}

// add parses an --upstream. A URL may contain a =, but not before its ://.
func (o *origins) add(word string) error {
	name, location, named := strings.Cut(word, "=")
	if !named || strings.Contains(name, "://") {
		if o.mirror != "" {
			return errors.New("two network mirrors are given for all providers: leave out one of them")
		}
		if o.mirror = word; word == "" {
			return errors.New("it is empty: give a URL, or HOSTNAME=URL")
		}
		return nil
	}
	hostname, err := address.ParseHostname(name)
	switch {
	case err != nil:
		return fmt.Errorf("%q is not a hostname: %w", name, err)
	case location == "":
		return fmt.Errorf("there is no URL behind %s=", name)
	case o.urls[hostname] != "":
		return fmt.Errorf("two addresses are given for %s: leave out one of them", name)
	}
	o.urls[hostname] = location
	return nil
}

// sources returns the sources of the providers of hostnames.
func (o *origins) sources(hostnames []svchost.Hostname, network upstream.Network) (map[svchost.Hostname]fill.Source, error) {
	policy := fill.Policy{VersionsTTL: versionsTTL, Signatures: o.signatures}
	sources := make(map[svchost.Hostname]fill.Source)
	for _, hostname := range hostnames {
		client, err := upstream.NewClient(o.origin(hostname), network)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", hostname.ForDisplay(), err)
		}
		sources[hostname] = fill.Source{Client: client, Policy: policy}
	}
	return sources, nil
}

func (o *origins) origin(hostname svchost.Hostname) upstream.Origin {
	origin := upstream.Origin{Hostname: hostname, URL: o.urls[hostname], Private: o.private}
	host := hostname // that gets the request
	if origin.URL == "" {
		origin.Mirror = o.mirror
	}
	for _, text := range []string{origin.URL, origin.Mirror} {
		if u, err := url.Parse(text); err == nil && u.Host != "" {
			host, _ = address.ParseHostname(u.Host)
		}
	}
	origin.Token = o.tokens[host]
	return origin
}

// environmentTokens returns the tokens that clients would take from variables such
// as TF_TOKEN_example_com: an underscore stands for a dot, two for a dash.
func environmentTokens(environ []string) map[svchost.Hostname]string {
	tokens := make(map[svchost.Hostname]string)
	for _, variable := range environ {
		name, token, _ := strings.Cut(variable, "=")
		name, ours := strings.CutPrefix(name, "TF_TOKEN_")
		if !ours || token == "" {
			continue
		}
		name = strings.ReplaceAll(strings.ReplaceAll(name, "__", "-"), "_", ".")
		if hostname, err := address.ParseHostname(name); err == nil {
			tokens[hostname] = token
		}
	}
	return tokens
}

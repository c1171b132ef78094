package publish

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/command/remote"
)

// Command returns the command publish. Tests pass a network that trusts their registries.
func Command(network remote.Network) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "publish --to HOST/ADDRESS [--version VERSION] [--docs FOLDER] [--dry-run] [--wait] FOLDER",
		Short: "Publishes a provider or module to a registry",
		Long: `
Publishes a provider or module to a registry that is configured with "publish".
It needs neither a server nor a configuration here.

--to HOST/NAMESPACE/TYPE publishes a provider. The folder is GoReleaser's dist,
or any other with the files of a release. If it has no SHA256SUMS, one is made,
and the registry signs the release. --docs adds a folder with documentation as
terraform-plugin-docs writes it.

--to HOST/NAMESPACE/NAME/SYSTEM publishes a module. The folder is packed as the
registry would, into the same bytes each time, without what its .terraformignore
names. With --from-git it is taken from the tags of a git repository, exactly as
it is there, and --path names the folder:

  caddy-terraform-registry publish --to registry.example.com/acme/vpc/aws \
      --from-git . --tag-pattern 'vpc/v{version}' --path modules/vpc --all-tags

Where a repository has several modules, {name} stands for the name of each:

  caddy-terraform-registry publish --to 'registry.example.com/acme/{name}/aws' \
      --from-git . --tag-pattern '{name}/v{version}' --path 'modules/{name}' \
      --all-tags

Everything is checked before anything is sent. With --dry-run no file is sent:
the registry is only asked, if there is a token, for its answer. Files that the
registry already has are not sent again, so that a run that ended early can be
continued. Clients are offered a version when it is complete and verified. A
version never changes again.

The token is the first of these: --token-file, an environment variable such as
TF_TOKEN_registry_example_com, the credentials that "terraform login" or "tofu
login" has stored or that are in the CLI configuration, its credentials helper,
and the token of the CI job: that which GitHub Actions and Forgejo issue, or a
variable of GitLab.

The exit status is 0 if everything is published, now or before, 1 if something
cannot be published or was refused, and 2 if the command could not do its work.
A version that is in the registry and not offered yet, as while its log lags, is
published: the output says so, and --wait waits until it is listed.`,
		Example: `  caddy-terraform-registry publish --to registry.example.com/acme/demo --docs docs dist
  caddy-terraform-registry publish --to registry.example.com/acme/vpc/aws --version 1.2.0 modules/vpc
  caddy-terraform-registry publish --to registry.example.com/acme/vpc/aws --from-git . --tag v1.2.0`,
	}
	cmd.RunE = cli.RunE(func(cmd *cobra.Command, args []string) error { return runPublish(cmd, args, network) })
	cmd.Flags().StringP("to", "t", "", "The registry and the `address`: HOST/NAMESPACE/TYPE or HOST/NAMESPACE/NAME/SYSTEM (required)")
	addSourceFlags(cmd)
	remote.AddTokenFlags(cmd)
	cmd.Flags().Bool("drop-staged", false, "Discard what is staged of the provider's version first")
	cmd.Flags().Duration("wait", 0, "Wait until the registry lists the version, as long as given or 30s")
	cmd.Flags().Lookup("wait").NoOptDefVal = "30s"
	cmd.Flags().IntP("parallel", "n", 4, "The `number` of files to send at once")
	cmd.Flags().Bool("dry-run", false, "Check everything, ask the registry what it would take, and send no files")
	cmd.Flags().Bool("json", false, "Print the result as JSON")
	return cmd
}

func runPublish(cmd *cobra.Command, args []string, network remote.Network) error {
	run, err := newRun(cmd, args, network)
	if err != nil {
		return err
	}
	ctx, stop := cli.Interruptible(cmd)
	defer stop()
	result, err := run.run(ctx)
	run.progress.Clear()
	if err != nil {
		return err
	}
	return cli.Finish(cmd, result)
}

// parseDestination parses HOST[:PORT]/NAMESPACE/TYPE or HOST[:PORT]/NAMESPACE/NAME/SYSTEM.
func parseDestination(text string) (d remote.Destination, err error) {
	d, names, err := remote.ParseRegistry(text)
	if err != nil {
		return d, err
	}
	switch len(names) {
	case 2:
		d.Address, err = address.ParseProvider("", names[0], names[1])
	case 3:
		// The address is checked with any name in the place of namePlace.
		if d.Address, err = address.ParseModule("", names[0], withName(names[1], "x"), names[2]); err == nil && strings.Contains(names[1], namePlace) {
			d.Address.Name = names[1]
		}
	default:
		err = errors.New("give HOST/NAMESPACE/TYPE of a provider, or HOST/NAMESPACE/NAME/SYSTEM of a module")
	}
	if err != nil {
		return d, fmt.Errorf("%q: %w", text, err)
	}
	return d, nil
}

// A run is a run of the command.
type run struct {
	to        remote.Destination
	from      source
	tokens    remote.TokenFinder
	network   remote.Network
	progress  *cli.Transfer
	parallel  int
	wait      time.Duration // zero: not at all
	dropFirst bool          // discard staged files
	dry       bool
}

// newRun parses the command line. It reads nothing yet.
func newRun(cmd *cobra.Command, args []string, network remote.Network) (*run, error) {
	fl := caddycmd.Flags{FlagSet: cmd.Flags()}
	r := &run{
		network: network, progress: cli.NewTransfer(),
		parallel: fl.Int("parallel"), wait: fl.Duration("wait"), dropFirst: fl.Bool("drop-staged"), dry: fl.Bool("dry-run"),
	}
	if fl.String("to") == "" {
		return nil, errors.New("--to is required: name the registry and the address, as in registry.example.com/acme/demo")
	}
	var err error
	if r.to, err = parseDestination(fl.String("to")); err != nil {
		return nil, fmt.Errorf("--to: %w", err)
	}
	switch {
	case r.parallel < 1:
		return nil, errors.New("--parallel: give the number of files to send at once")
	case r.wait < 0:
		return nil, errors.New("--wait: give a duration such as 30s")
	}
	if r.from, err = sourceFlags(fl, args, r.to.Address); err != nil {
		return nil, err
	}
	r.tokens = remote.TokenFlags(fl, r.to.Hostname)
	return r, nil
}

// run checks everything, and sends it. An error means that nothing was sent.
func (r *run) run(ctx context.Context) (*result, error) {
	batch, err := r.from.read(ctx, r.to.Address)
	if batch != nil {
		defer batch.close()
	}
	if err != nil {
		return nil, err
	}
	result := &result{to: r.to, dry: r.dry, skipped: batch.skipped}
	if r.dry || batch.blocked() {
		for _, p := range batch.releases {
			result.outcomes = append(result.outcomes, p.unsent(r.dry))
		}
		if r.dry {
			err = r.ask(ctx, result)
		}
		return result, err
	}
	client, err := remote.Connect(ctx, r.network, r.tokens, r.to)
	if err != nil {
		return nil, err
	}
	s := &sender{client, r}
	defer s.Close()
	result.outcomes = s.sendAll(ctx, batch.releases)
	if r.wait > 0 {
		s.awaitAll(ctx, result.outcomes, r.wait)
	}
	result.interrupted = ctx.Err() != nil
	return result, nil
}

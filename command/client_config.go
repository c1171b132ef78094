package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	svchost "github.com/hashicorp/terraform-svchost"
	"github.com/spf13/cobra"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/clientconfig"
	"github.com/caddy-terraform/caddy-terraform-registry/command/cli"
	"github.com/caddy-terraform/caddy-terraform-registry/command/remote"
	"github.com/caddy-terraform/caddy-terraform-registry/module"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// clientConfigCommand returns the command. Tests pass a network for their registries.
func clientConfigCommand(network remote.Network) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "client-config --config FILE | --url URL [--for mirror|stand-in|registry] [--tofu] [--token]",
		Short: "Prints the configuration of clients",
		Long: `
Prints the CLI configuration that makes Terraform or OpenTofu use a registry, to
be put into ~/.terraformrc or ~/.tofurc.

--for says what they use it as:

  registry: for the providers and modules that it hosts. Clients find it by its
    name, so they need at most a token. This is the default.
  mirror: for the providers of all other registries, by the protocol of network
    mirrors.
  stand-in: in place of the registries that it mirrors, or of those that
    --hostname names. Unlike with a mirror, clients verify the publishers'
    signatures themselves, lock files get the hashes of all platforms, and
    modules come from it too.

--config takes the registry from a configuration file, which need not be in use.
It is set up as by Caddy's "validate", so the files that it names have to be
there and readable. If there are several registries, --site says by its hostname
which one is meant.

--url takes the registry from a server, by its hostname or a URL. A server does
not say what it mirrors: to stand in for others than registry.terraform.io, or
registry.opentofu.org with --tofu, name them with --hostname.

--token adds the blocks for tokens, with … where the token goes. Without it, the
output says where one is needed, as far as that is known.

The exit status is 0, or 2 if the command could not do its work.`,
		Example: `  caddy-terraform-registry client-config --config /etc/caddy/Caddyfile --for mirror
  caddy-terraform-registry client-config --url registry.example.com --for stand-in --tofu > ~/.tofurc`,
		Args: cli.NoArguments("name the registry by --config or --url"),
	}
	cmd.RunE = cli.RunE(func(cmd *cobra.Command, _ []string) error {
		fl := caddycmd.Flags{FlagSet: cmd.Flags()}
		file, err := newClientFile(cmd.Context(), fl, network)
		if err != nil {
			return err
		}
		for _, note := range file.notes {
			fmt.Fprint(cmd.ErrOrStderr(), cli.Wrap(note, 0))
		}
		_, err = io.WriteString(cmd.OutOrStdout(), file.text())
		return err
	})
	cmd.Flags().String("for", string(forRegistry), "What clients use it as: `registry|mirror|stand-in`")
	addConfigFlags(cmd, "The configuration `file` that has the registry")
	cmd.Flags().String("site", "", "The `hostname` of the registry that is meant, if the configuration has several")
	cmd.Flags().String("url", "", "The hostname or `URL` of a running registry")
	cmd.Flags().StringSlice("hostname", nil, "The `hostname` of a registry to stand in for; can be repeated")
	cmd.Flags().Bool("tofu", false, "Print it for OpenTofu")
	cmd.Flags().Bool("token", false, "Add the blocks for tokens, to be filled in")
	return cmd
}

// A purpose says how clients use a registry.
type purpose string

const (
	forRegistry purpose = "registry"
	forMirror   purpose = "mirror"
	forStandIn  purpose = "stand-in"
)

// newClientFile makes the file that the flags describe.
func newClientFile(ctx context.Context, fl caddycmd.Flags, network remote.Network) (f clientFile, err error) {
	f.purpose, f.tofu, f.tokens = purpose(fl.String("for")), fl.Bool("tofu"), fl.Bool("token")
	if !slices.Contains([]purpose{forRegistry, forMirror, forStandIn}, f.purpose) {
		return f, fmt.Errorf("--for: %q is none of registry, mirror and stand-in", string(f.purpose))
	}
	hostnames, err := cli.HostnamesFlag(fl, "hostname")
	if err != nil {
		return f, err
	}
	if len(hostnames) > 0 && f.purpose != forStandIn {
		return f, errors.New("--hostname: it names registries to stand in for: add --for stand-in")
	}
	switch config, server := fl.String("config"), fl.String("url"); {
	case config == "" && server == "" || config != "" && server != "":
		return f, errors.New("name the registry by --config or by --url")
	case config != "":
		err = f.fromConfiguration(ctx, fl)
	case fl.String("adapter") != "" || fl.String("site") != "":
		return f, errors.New("--adapter, --site: they can only be given with --config")
	default:
		err = f.fromServer(ctx, server, network)
	}
	if err != nil || f.purpose != forStandIn {
		return f, err
	}
	return f, f.chooseOrigins(hostnames)
}

// fromConfiguration takes the registry from a configuration.
func (f *clientFile) fromConfiguration(ctx context.Context, fl caddycmd.Flags) error {
	var sites []module.ClientSite
	err := withConfiguration(fl, func(app *module.App) (err error) {
		if sites, err = app.ClientSites(ctx); err == nil && len(sites) == 0 {
			err = errNoRegistry
		}
		return err
	})
	if err != nil {
		return err
	}
	s, err := chooseSite(sites, fl.String("site"))
	if err != nil {
		return err
	}
	f.registry = s.Registry
	name := f.registry.Hostnames[0]
	if u, err := url.Parse(s.URL); err == nil {
		host, _ := address.ParseHostname(u.Host)
		f.elsewhere = !slices.Contains(s.Hostnames, address.DisplayHostname(host))
	}
	if s.Proxied {
		f.notes = append(f.notes, cli.Sentence(fmt.Sprintf("the site has no TLS, which clients require: this is for a proxy in front of it that has, at %s", name)))
	}
	if s.HTTPSPort != 0 {
		f.notes = append(f.notes, fmt.Sprintf("Clients reach the registry at port %d, which https_port sets. If port 443 is forwarded there, add the option hostname with the name alone.", s.HTTPSPort))
	}
	return nil
}

// chooseSite returns the registry that the user means. If the user gave a hostname, it comes
// first among the hostnames of the registry.
func chooseSite(sites []module.ClientSite, name string) (module.ClientSite, error) {
	var names []string
	for _, s := range sites {
		names = append(names, s.Hostnames...)
	}
	if name != "" {
		hostname, err := address.ParseHostname(name)
		if err != nil {
			return module.ClientSite{}, fmt.Errorf("--site: %q is not a hostname: %w", name, err)
		}
		display := address.DisplayHostname(hostname)
		sites = slices.DeleteFunc(slices.Clone(sites), func(s module.ClientSite) bool { return !slices.Contains(s.Hostnames, display) })
		switch {
		case len(sites) == 0:
			return module.ClientSite{}, fmt.Errorf("--site: no registry of the configuration has the hostname %s, these are: %s", display, strings.Join(names, ", "))
		case len(sites) > 1:
			return module.ClientSite{}, fmt.Errorf("--site: several registries have the hostname %s: name the one that is meant by --url", display)
		}
		s := sites[0]
		rest := slices.DeleteFunc(slices.Clone(s.Hostnames), func(other string) bool { return other == display })
		s.Hostnames = append([]string{display}, rest...)
		return s, nil
	}
	switch {
	case len(sites) > 1:
		return module.ClientSite{}, fmt.Errorf("the configuration has several registries: choose one by its hostname with --site: %s", strings.Join(names, ", "))
	case len(sites[0].Hostnames) == 0:
		return module.ClientSite{}, errors.New("the configuration does not say by which name clients reach the registry: add the option hostname to it, or name the running server by --url")
	}
	return sites[0], nil
}

// fromServer takes the registry from a running server.
func (f *clientFile) fromServer(ctx context.Context, text string, network remote.Network) error {
	if !strings.Contains(text, "://") {
		text = "https://" + text
	}
	given, err := url.Parse(text)
	switch {
	case err != nil || given.Host == "" || given.User != nil || given.RawQuery != "" || given.Fragment != "":
		return fmt.Errorf("--url: %q is not the URL of a registry: write https://registry.example.com", text)
	case given.Scheme != "https":
		return errors.New("--url: it must begin with https://, which clients require")
	}
	hostname, err := address.ParseHostname(given.Host)
	if err != nil {
		return fmt.Errorf("--url: %q is not a hostname that clients can use: %w", given.Host, err)
	}
	name := address.DisplayHostname(hostname)
	f.registry.Hostnames = []string{name}
	path := strings.TrimSuffix(given.Path, "/")
	d, err := network.Discover(ctx, &url.URL{Scheme: "https", Host: string(hostname)})
	var missing remote.NoDiscoveryError
	switch {
	case errors.As(err, &missing) && path != "":
		f.elsewhere = true
		f.registry.URL = "https://" + string(hostname) + (&url.URL{Path: path}).EscapedPath()
		f.notes = append(f.notes, cli.Sentence(fmt.Sprintf("there is no discovery document at %s, so the registry is taken to be at %s", name, f.registry.URL)))
	case err != nil:
		return fmt.Errorf("--url: %s: %w", name, err)
	default:
		service, err := d.Service(wire.ProvidersService)
		if err != nil {
			return fmt.Errorf("--url: %s: %w", name, err)
		}
		base, found := strings.CutSuffix(service.String(), "/providers/")
		if !found && f.purpose != forRegistry {
			return fmt.Errorf("--url: %s: it is another kind of registry, of which it is not known where its mirror is", name)
		}
		f.registry.URL = base
		var login struct {
			Login *wire.Login `json:"login.v1"`
		}
		f.registry.Login = json.Unmarshal(d.Body, &login) == nil && login.Login != nil
	}
	f.registry.HostsProviders = true // if it does not, excluding them does no harm
	// A private registry does not reveal its names: its answer is the same for names that do
	// not exist.
	private := func(path string) bool { return network.Refuses(ctx, f.registry.URL+path) }
	f.registry.Private = private("/providers/hashicorp/null/versions") ||
		f.purpose == forMirror && private("/mirror/registry.terraform.io/hashicorp/null/index.json")
	f.private = func(o svchost.Hostname) bool {
		return private("/registries/" + string(o) + "/providers/hashicorp/null/versions")
	}
	return nil
}

// chooseOrigins keeps only the registries to stand in for.
func (f *clientFile) chooseOrigins(hostnames []svchost.Hostname) error {
	if f.private == nil && len(hostnames) == 0 {
		if len(f.registry.Origins) == 0 {
			return errors.New("the registry has nothing of another one, and no upstream: name what it shall stand in for by --hostname")
		}
		return nil
	}
	if len(hostnames) == 0 {
		hostnames = []svchost.Hostname{address.TerraformHost}
		if f.tofu {
			hostnames = []svchost.Hostname{address.OpenTofuHost}
		}
	}
	known := f.registry.Origins
	f.registry.Origins = nil
	for _, hostname := range hostnames {
		i := slices.IndexFunc(known, func(o clientconfig.Origin) bool { return o.Hostname == hostname })
		if i >= 0 {
			f.registry.Origins = append(f.registry.Origins, known[i])
			continue
		}
		o := clientconfig.Origin{Hostname: hostname, Providers: true, Modules: true, Private: f.registry.Private}
		if f.private != nil {
			o.Private = f.private(hostname)
		}
		f.registry.Origins = append(f.registry.Origins, o)
		f.notes = append(f.notes, cli.Sentence(fmt.Sprintf("the registry is taken to have providers and modules of %s: clients get none of them from anywhere else", address.DisplayHostname(hostname))))
	}
	return nil
}

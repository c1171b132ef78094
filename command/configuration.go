package command

import (
	"errors"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/caddy-terraform/caddy-terraform-registry/module"
)

// errNoRegistry: the configuration has no registry.
var errNoRegistry = errors.New("the configuration has no terraform_registry: name another one with --config")

// addConfigFlags adds the flags for a configuration file.
func addConfigFlags(cmd *cobra.Command, usage string) {
	cmd.Flags().StringP("config", "c", "", usage)
	cmd.Flags().StringP("adapter", "a", "", "The name of the config `adapter` to apply")
}

// addRootFlag adds the flag that chooses one of several registries.
func addRootFlag(cmd *cobra.Command) {
	cmd.Flags().StringP("root", "r", "", "The root `folder` of the registry that is meant, if there are several")
}

// withConfiguration calls ask with the registries, if any, of the configuration that --config
// and --adapter name. It provisions the HTTP app and its dependencies, and starts nothing. The
// configuration's own logs are left out, because opening them would create files.
func withConfiguration(fl caddycmd.Flags, ask func(*module.App) error) error {
	raw, _, _, err := caddycmd.LoadConfig(fl.String("config"), fl.String("adapter"))
	if err != nil {
		return err
	}
	var config caddy.Config
	if err := caddy.StrictUnmarshalJSON(caddy.RemoveMetaFields(raw), &config); err != nil {
		return err
	}
	config.Logging = &caddy.Logging{Logs: map[string]*caddy.CustomLog{
		caddy.DefaultLoggerName: {BaseLog: caddy.BaseLog{Level: "ERROR"}},
	}}
	apps := config.AppsRaw
	config.AppsRaw = nil
	base, err := caddy.ProvisionContext(&config)
	if err != nil {
		return err
	}
	config.AppsRaw = apps
	ctx, cancel := caddy.NewContext(base)
	defer cancel()
	if _, err := ctx.AppIfConfigured("http"); err != nil && !errors.Is(err, caddy.ErrNotConfigured) {
		return err
	}
	app, err := module.ConfiguredApp(ctx)
	if errors.Is(err, caddy.ErrNotConfigured) {
		return errNoRegistry
	}
	if err != nil {
		return err
	}
	return ask(app)
}

package cli

import (
	"errors"
	"fmt"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	svchost "github.com/hashicorp/terraform-svchost"
	"github.com/spf13/cobra"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
)

// AddTreeFlags adds the flags for the folders of a tree.
func AddTreeFlags(cmd *cobra.Command) {
	cmd.Flags().StringP("root", "r", "", "The `folder` to serve (required)")
	cmd.Flags().String("providers", "", "The `folder` with the providers, if it is not providers under the root")
	cmd.Flags().String("modules", "", "The `folder` with the modules, if it is not modules under the root")
	cmd.Flags().String("keys", "", "The `folder` with the publishers' keys, if it is not keys under the root")
}

// NamedDirectories returns the directories as a configuration has them: default directories
// are not named, and may be missing.
func NamedDirectories(fl caddycmd.Flags, root string) source.Directories {
	return source.Directories{Root: root, Providers: fl.String("providers"), Modules: fl.String("modules"), Keys: fl.String("keys")}
}

// TreeFlags returns the directories of the flags. Directories that the user names must exist.
func TreeFlags(fl caddycmd.Flags) (source.Directories, error) {
	directories := NamedDirectories(fl, fl.String("root"))
	if directories.Root == "" {
		return directories, errors.New("--root is required: name the folder to serve")
	}
	located, err := directories.Locate(nil)
	if err != nil {
		return located, fmt.Errorf("--%w", err) // the error begins with the option's name
	}
	return located, nil
}

// HostnamesFlag returns the hostnames of a flag that can be repeated.
func HostnamesFlag(fl caddycmd.Flags, name string) (hostnames []svchost.Hostname, err error) {
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

// WithoutValue reports whether a flag that needs no value was given without one. The argument after
// such a flag is no value of it: a value follows an equals sign.
func WithoutValue(fl caddycmd.Flags, name string) bool {
	flag := fl.Lookup(name)
	return flag.Changed && flag.Value.String() == flag.NoOptDefVal
}

package lockfile

import (
	"fmt"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// A ModuleCall is a call of a module from a registry.
type ModuleCall struct {
	Address address.Address // with its hostname
	Folder  string          // of the called module in the package; empty for the root
	From    []string        // callers as FILE:LINE, or the argument

	// Installed are the versions that a client has installed for the configuration and
	// that the constraints allow.
	Installed []string

	what        string
	constraints address.ModuleConstraints
	argument    bool
}

// String returns the call in the form that ParseModuleCall reads.
func (c ModuleCall) String() string {
	text := c.Address.String()
	if c.Folder != "" {
		text += "//" + c.Folder
	}
	if c.constraints.String() != "" {
		text += "@" + c.constraints.String()
	}
	return text
}

// IsModuleArgument reports whether an argument can only be meant as a module: a
// provider has one part less.
func IsModuleArgument(argument string) bool {
	source, _, _ := strings.Cut(argument, "@")
	_, _, err := address.ParseModuleSource(source)
	return err == nil
}

// ParseModuleCall parses an argument
// [HOSTNAME/]NAMESPACE/NAME/SYSTEM[//FOLDER][@CONSTRAINTS], such as
// "terraform-aws-modules/vpc/aws@~> 5.0". The default hostname is
// address.TerraformHost, or address.OpenTofuHost with tofu.
func ParseModuleCall(argument string, tofu bool) (ModuleCall, error) {
	source, text, constrained := strings.Cut(argument, "@") // no address contains one
	c := ModuleCall{From: []string{argument}, argument: true}
	var err error
	if c.Address, c.Folder, err = parseModuleSource(source, tofu); err != nil {
		return ModuleCall{}, fmt.Errorf("%q is not a module: %w", source, err)
	}
	if constrained && strings.TrimSpace(text) == "" {
		return ModuleCall{}, fmt.Errorf("%q ends in @: add a version, like %s@1.2.3, or leave out the @", argument, source)
	}
	c.constraints, err = address.ParseModuleConstraints(text)
	return c, err
}

func parseModuleSource(source string, tofu bool) (a address.Address, folder string, err error) {
	a, folder, err = address.ParseModuleSource(source)
	if err == nil && a.Hostname == "" {
		a = a.WithHostname(defaultHost(tofu))
	}
	return a, folder, err
}

// Select returns the newest of the offered versions that the call allows. It ignores
// versions that clients do not accept.
func (c ModuleCall) Select(offered []string) (string, error) {
	return selectVersion(c.Address, offered, address.ParseModuleVersion, c.constraints, c.From)
}

// Allow reports whether the call allows a version.
func (c ModuleCall) Allow(text string) bool {
	v, err := address.ParseModuleVersion(text)
	return err == nil && c.constraints.Allow(v)
}

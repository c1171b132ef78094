package lockfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	version "github.com/hashicorp/go-version"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// A ModuleCall is the need for a module of a registry.
type ModuleCall struct {
	Address address.Address // with its hostname
	Folder  string          // of the module in which the called one lies; empty for the module itself
	From    []string        // what calls it: FILE:LINE, or the argument

	// Installed are the versions that a client has installed for the configuration, of
	// those that the constraints allow.
	Installed []string

	what        string
	constraints moduleConstraints
	argument    bool
}

// String is the call as ParseModuleCall reads it.
func (c ModuleCall) String() string {
	text := c.Address.String()
	if c.Folder != "" {
		text += "//" + c.Folder
	}
	if c.constraints.text != "" {
		text += "@" + c.constraints.text
	}
	return text
}

// IsModuleArgument reports whether an argument can only be meant as a module: a
// provider has a part less.
func IsModuleArgument(argument string) bool {
	source, _, _ := strings.Cut(argument, "@")
	_, _, err := address.ParseModuleSource(source)
	return err == nil
}

// ParseModuleCall parses an argument [HOSTNAME/]NAMESPACE/NAME/SYSTEM[//FOLDER][@CONSTRAINTS],
// like "terraform-aws-modules/vpc/aws@~> 5.0". Without a hostname it is a module of
// TerraformHost, or with tofu of OpenTofuHost.
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
	c.constraints, err = parseModuleConstraints(text)
	return c, err
}

func parseModuleSource(source string, tofu bool) (a address.Address, folder string, err error) {
	a, folder, err = address.ParseModuleSource(source)
	if err == nil && a.Hostname == "" {
		a = a.At(defaultHost(tofu))
	}
	return a, folder, err
}

// Select returns the newest of the offered versions that the call allows. What clients
// do not accept as a version is ignored.
func (c ModuleCall) Select(offered []string) (string, error) {
	var versions []*version.Version
	for _, text := range offered {
		if v, err := address.ParseModuleVersion(text); err == nil {
			versions = append(versions, v)
		}
	}
	if len(versions) == 0 {
		return "", fmt.Errorf("no version of %s is on offer", c.Address)
	}
	address.SortNewestFirst(versions, func(v *version.Version) *version.Version { return v })
	if i := slices.IndexFunc(versions, c.constraints.allow); i >= 0 {
		return versions[i].String(), nil
	}
	required := c.constraints.text
	if required == "" { // all are pre-releases
		required = "any release"
	}
	return "", fmt.Errorf("no version of %s is %s, as %s asks for: the newest on offer is %s", c.Address, required, strings.Join(c.From, " and "), versions[0])
}

// Allow reports whether the call allows a version.
func (c ModuleCall) Allow(text string) bool {
	v, err := address.ParseModuleVersion(text)
	return err == nil && c.constraints.allow(v)
}

// moduleConstraints are those of a module call. Clients read them with go-version, unlike
// those of providers: there ~> 1 allows 2.0. The zero value allows any release.
type moduleConstraints struct {
	text string
	all  version.Constraints
}

// maxConstraints bounds the text of constraints, in bytes.
const maxConstraints = 1024

func parseModuleConstraints(text string) (c moduleConstraints, err error) {
	c.text = strings.TrimSpace(text)
	switch {
	case c.text == "":
		return c, nil
	case len(c.text) > maxConstraints:
		return c, errors.New("the version constraints are too long")
	}
	if c.all, err = version.NewConstraint(c.text); err != nil {
		return c, fmt.Errorf("%q is not a version constraint: write an operator and a version, like ~> 1.2, and a comma before the next one", c.text)
	}
	return c, nil
}

// allow reports whether clients take a version. A pre-release they take only where
// exactly that one is named, which they find out as for providers.
func (c moduleConstraints) allow(v *version.Version) bool {
	if v.Prerelease() != "" {
		as, err := address.ParseConstraints(c.text)
		if err != nil || !as.Allow(v) {
			return false
		}
	}
	return c.all.Check(v)
}

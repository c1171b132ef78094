package lockfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	version "github.com/hashicorp/go-version"

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
	constraints moduleConstraints
	argument    bool
}

// String returns the call in the form that ParseModuleCall reads.
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
// provider has one part less.
func IsModuleArgument(argument string) bool {
	source, _, _ := strings.Cut(argument, "@")
	_, _, err := address.ParseModuleSource(source)
	return err == nil
}

// ParseModuleCall parses an argument
// [HOSTNAME/]NAMESPACE/NAME/SYSTEM[//FOLDER][@CONSTRAINTS], such as
// "terraform-aws-modules/vpc/aws@~> 5.0". The default hostname is TerraformHost, or
// OpenTofuHost with tofu.
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

// Select returns the newest of the offered versions that the call allows. It ignores
// versions that clients do not accept.
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
	if required == "" { // all versions are pre-releases
		required = "any release"
	}
	return "", fmt.Errorf("no version of %s is %s, as %s asks for: the newest on offer is %s", c.Address, required, strings.Join(c.From, " and "), versions[0])
}

// Allow reports whether the call allows a version.
func (c ModuleCall) Allow(text string) bool {
	v, err := address.ParseModuleVersion(text)
	return err == nil && c.constraints.allow(v)
}

// moduleConstraints are the constraints of a module call. Clients read them with
// go-version, unlike the constraints of providers: there ~> 1 allows 2.0. The zero
// value allows any release.
type moduleConstraints struct {
	text string
	all  version.Constraints
}

// maxConstraints limits the text of constraints, in bytes.
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

// allow reports whether clients select a version. They select a pre-release only if
// exactly that version is named, which they determine as for providers.
func (c moduleConstraints) allow(v *version.Version) bool {
	if v.Prerelease() != "" {
		as, err := address.ParseConstraints(c.text)
		if err != nil || !as.Allow(v) {
			return false
		}
	}
	return c.all.Check(v)
}

package lockfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	version "github.com/hashicorp/go-version"
	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// defaultHost returns a client's registry for providers without a hostname.
func defaultHost(tofu bool) svchost.Hostname {
	if tofu {
		return address.OpenTofuHost
	}
	return address.TerraformHost
}

// A Requirement is a provider that is needed in a version within constraints.
type Requirement struct {
	Address address.Address // with its hostname
	From    []string        // where it is required: FILE:LINE, or the argument

	constraints address.Constraints
}

// String returns the requirement in the form that ParseRequirement reads.
func (r Requirement) String() string {
	if text := r.constraints.String(); text != "" {
		return r.Address.String() + "@" + text
	}
	return r.Address.String()
}

// ParseRequirement parses an argument [HOSTNAME/]NAMESPACE/TYPE[@CONSTRAINTS], such as
// hashicorp/null@3.2.2 or "hashicorp/aws@~> 5.0". The default hostname is
// address.TerraformHost, or address.OpenTofuHost with tofu.
func ParseRequirement(argument string, tofu bool) (Requirement, error) {
	source, text, constrained := strings.Cut(argument, "@") // no address contains one
	if !strings.Contains(source, "/") {
		return Requirement{}, fmt.Errorf("%q is not a provider: write [HOSTNAME/]NAMESPACE/TYPE, like hashicorp/null", source)
	}
	if first, _, _ := strings.Cut(source, "/"); strings.Count(source, "/") == 2 && !address.IsHostname(first) { // perhaps a module
		return Requirement{}, fmt.Errorf("%q is not a provider: write [HOSTNAME/]NAMESPACE/TYPE, where HOSTNAME has a dot or a port", source)
	}
	r := Requirement{From: []string{argument}}
	var err error
	if r.Address, err = parseSource(source, defaultHost(tofu)); err != nil {
		return Requirement{}, err
	}
	if isBuiltIn(r.Address) {
		return Requirement{}, fmt.Errorf("%q is part of the client itself: leave it out", source)
	}
	if constrained && strings.TrimSpace(text) == "" {
		return Requirement{}, fmt.Errorf("%q ends in @: add a version, like %s@1.2.3, or leave out the @", argument, source)
	}
	if r.constraints, err = address.ParseConstraints(text); err != nil {
		return Requirement{}, err
	}
	return r, nil
}

// maxSource is longer than any hostname, namespace and type together.
const maxSource = 512

// parseSource parses a provider's source as it is written in configurations:
// [[HOSTNAME/]NAMESPACE/]TYPE. The first of three parts is a hostname even without a dot.
// Providers that are installed from a folder only may have one like that.
func parseSource(source string, host svchost.Hostname) (address.Address, error) {
	if len(source) > maxSource {
		return address.Address{}, fmt.Errorf("the source of a provider is at most %d characters long", maxSource)
	}
	parts := strings.Split(source, "/")
	switch {
	case len(parts) == 1:
		parts = []string{"", "hashicorp", source}
	case len(parts) == 2:
		parts = []string{"", parts[0], parts[1]}
	case len(parts) > 3 || parts[0] == "":
		return address.Address{}, fmt.Errorf("%q is not the source of a provider: write [HOSTNAME/]NAMESPACE/TYPE", source)
	}
	a, err := address.ParseProvider(parts[0], parts[1], parts[2])
	if err != nil {
		return address.Address{}, err
	}
	return a.WithHostname(cmp.Or(a.Hostname, host)), nil
}

// isBuiltIn reports whether a provider is part of clients. No registry has it.
func isBuiltIn(a address.Address) bool {
	return a.Hostname == "terraform.io" && a.Namespace == "builtin"
}

// Select returns the newest of the offered versions that meets the constraints. It
// ignores versions that clients do not accept.
func (r Requirement) Select(offered []string) (string, error) {
	return selectVersion(r.Address, offered, address.ParseProviderVersion, r.constraints, r.From)
}

// constraints of a provider or of a module.
type constraints interface {
	fmt.Stringer
	Allow(*version.Version) bool
}

// selectVersion selects a version of a provider or module, as those at from ask for it.
func selectVersion(a address.Address, offered []string, parse func(string) (*version.Version, error), required constraints, from []string) (string, error) {
	var versions []*version.Version
	for _, text := range offered {
		if v, err := parse(text); err == nil {
			versions = append(versions, v)
		}
	}
	if len(versions) == 0 {
		return "", fmt.Errorf("no version of %s is on offer", a)
	}
	address.SortNewestFirst(versions, func(v *version.Version) *version.Version { return v })
	if i := slices.IndexFunc(versions, required.Allow); i >= 0 {
		return versions[i].String(), nil
	}
	asked := cmp.Or(required.String(), "any release") // all versions are pre-releases
	return "", fmt.Errorf("no version of %s is %s, as %s asks for: the newest on offer is %s", a, asked, strings.Join(from, " and "), versions[0])
}

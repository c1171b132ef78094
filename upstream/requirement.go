package upstream

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	version "github.com/hashicorp/go-version"
	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// The registries that clients mean by a provider without a hostname.
const (
	TerraformHost svchost.Hostname = "registry.terraform.io"
	OpenTofuHost  svchost.Hostname = "registry.opentofu.org"
)

// A Requirement is a provider that somebody needs, in a version that meets
// Constraints.
type Requirement struct {
	Address     address.Address // with its hostname
	Constraints Constraints
	From        []string // who says so: FILE:LINE, or the argument
}

// String is the requirement as ParseRequirement reads it.
func (r Requirement) String() string {
	if text := r.Constraints.String(); text != "" {
		return r.Address.String() + "@" + text
	}
	return r.Address.String()
}

// ParseRequirement parses an argument [HOSTNAME/]NAMESPACE/TYPE[@CONSTRAINTS],
// like hashicorp/null@3.2.2 or "hashicorp/aws@~> 5.0". Without a hostname it is
// defaultHost, and without that TerraformHost.
func ParseRequirement(argument string, defaultHost svchost.Hostname) (Requirement, error) {
	address, text, constrained := strings.Cut(argument, "@") // no address has one
	if !strings.Contains(address, "/") {
		return Requirement{}, fmt.Errorf("%q is not a provider: write [HOSTNAME/]NAMESPACE/TYPE, like hashicorp/null", address)
	}
	r := Requirement{From: []string{argument}}
	var err error
	if r.Address, err = parseSource(address, defaultHost); err != nil {
		return Requirement{}, err
	}
	if builtIn(r.Address) {
		return Requirement{}, fmt.Errorf("%q is part of the client itself: leave it out", address)
	}
	if constrained && strings.TrimSpace(text) == "" {
		return Requirement{}, fmt.Errorf("%q ends in @: write a version behind it, like %s@1.2.3, or leave it out", argument, address)
	}
	if r.Constraints, err = ParseConstraints(text); err != nil {
		return Requirement{}, err
	}
	return r, nil
}

// maxSource is more than a hostname, a namespace and a type can have together.
const maxSource = 512

// parseSource parses a provider's source as it is written in configurations.
func parseSource(source string, defaultHost svchost.Hostname) (address.Address, error) {
	if len(source) > maxSource {
		return address.Address{}, fmt.Errorf("the source of a provider is at most %d characters long", maxSource)
	}
	parts := strings.Split(source, "/")
	switch len(parts) {
	case 1:
		parts = []string{"hashicorp", parts[0]}
		fallthrough
	case 2:
		if defaultHost == "" {
			defaultHost = TerraformHost
		}
		a, err := address.ParseProvider("", parts[0], parts[1])
		a.Hostname = defaultHost
		return a, err
	case 3:
		a, err := address.ParseProvider(parts[0], parts[1], parts[2])
		if err == nil && a.Hostname != "localhost" && !strings.ContainsAny(string(a.Hostname), ".:") {
			// In a tree such a folder would be taken for a namespace.
			err = fmt.Errorf("%q is not a hostname: it has no dot", parts[0])
		}
		return a, err
	}
	return address.Address{}, fmt.Errorf("%q is not the source of a provider: write [HOSTNAME/]NAMESPACE/TYPE", source)
}

// builtIn tells the providers that clients bring along. No registry has them.
func builtIn(a address.Address) bool {
	return a.Hostname == "terraform.io" && a.Namespace == "builtin"
}

// Select returns the newest of the offered versions that meets the constraints.
// What no client would take for a version is passed over.
func (r Requirement) Select(offered []string) (string, error) {
	var best, newest *version.Version
	for _, text := range offered {
		v, err := address.ParseProviderVersion(text)
		if err != nil {
			continue
		}
		if newest == nil || newerVersion(v, newest) {
			newest = v
		}
		if r.Constraints.Allows(v) && (best == nil || newerVersion(v, best)) {
			best = v
		}
	}
	if best != nil {
		return best.String(), nil
	}
	if newest == nil {
		return "", fmt.Errorf("no version of %s is on offer", r.Address)
	}
	asked := r.Constraints.String()
	if asked == "" {
		asked = "any release" // all there is are pre-releases
	}
	return "", fmt.Errorf("no version of %s is %s, as %s asks for: the newest on offer is %s", r.Address, asked, strings.Join(r.From, " and "), newest)
}

// newerVersion orders as the index does: by precedence, then by text.
func newerVersion(a, b *version.Version) bool {
	if order := a.Compare(b); order != 0 {
		return order > 0
	}
	return a.String() > b.String()
}

// ParsePlatform parses a platform as clients write it, like linux_amd64.
func ParsePlatform(s string) (address.Platform, error) {
	os, arch, ok := strings.Cut(s, "_")
	if !ok {
		return address.Platform{}, fmt.Errorf("%q is not a platform: write OS_ARCH, like linux_amd64", s)
	}
	return address.ParsePlatform(os, arch)
}

// ParsePlatforms parses platforms and returns each once, in order.
func ParsePlatforms(words []string) ([]address.Platform, error) {
	var platforms []address.Platform
	var bad []error
	for _, word := range words {
		p, err := ParsePlatform(word)
		if err != nil {
			bad = append(bad, err)
			continue
		}
		platforms = append(platforms, p)
	}
	if err := errors.Join(bad...); err != nil {
		return nil, err
	}
	slices.SortFunc(platforms, func(a, b address.Platform) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(platforms), nil
}

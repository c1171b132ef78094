package pull

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// DefaultVersionsTTL is how long an origin's list of versions is used: new versions
// are found within it, and an origin is asked for a provider's list once in it,
// however many clients request it.
const DefaultVersionsTTL = 10 * time.Minute

// A Policy says what is mirrored from an origin. The zero Policy mirrors every
// release that its publisher has signed.
type Policy struct {
	// Allow and Deny are providers and modules of the origin. With an Allow, only those
	// are mirrored. Deny takes precedence.
	Allow, Deny []address.Pattern

	// Platforms whose packages are mirrored. Empty: all.
	Platforms []address.Platform

	// VersionsTTL is how long the list of a provider's versions is used before it is
	// renewed. Zero: DefaultVersionsTTL.
	VersionsTTL time.Duration

	// MinAge is the minimum release age: how long ago a version must have been
	// published. Bad releases tend to be noticed in their first days.
	MinAge time.Duration

	// Modules reports whether modules are mirrored, and not only providers. Allow and
	// Deny are about both.
	Modules bool

	// Signatures says what to do with releases without a signature by a known key.
	Signatures Signatures
}

// Signatures is a choice about releases without a signature by a known key. A
// signature that is wrong is never taken.
type Signatures int

const (
	// RequireSignatures does not mirror them.
	RequireSignatures Signatures = iota

	// PreferSignatures mirrors them, with such hashes as the origin gives.
	PreferSignatures
)

// ParseSignatures reads the word of a configuration.
func ParseSignatures(s string) (Signatures, error) {
	switch s {
	case "require":
		return RequireSignatures, nil
	case "prefer":
		return PreferSignatures, nil
	}
	return 0, fmt.Errorf("%q is not a choice about signatures: write require or prefer", s)
}

func (s Signatures) String() string {
	if s == PreferSignatures {
		return "prefer"
	}
	return "require"
}

// withDefaults fills in what was left out. The error is for what makes no sense.
func (p Policy) withDefaults() (Policy, error) {
	if p.VersionsTTL < 0 || p.MinAge < 0 {
		return p, errors.New("the lifetime of a list of versions and the minimum release age must not be negative")
	}
	if p.VersionsTTL == 0 {
		p.VersionsTTL = DefaultVersionsTTL
	}
	return p, nil
}

// includes reports whether a provider or module is mirrored, if those are.
func (p *Policy) includes(a address.Address) bool {
	covers := func(pattern address.Pattern) bool { return pattern.Covers(a) }
	return !slices.ContainsFunc(p.Deny, covers) && (len(p.Allow) == 0 || slices.ContainsFunc(p.Allow, covers))
}

// includesPlatform reports whether packages of a platform are mirrored.
func (p *Policy) includesPlatform(platform address.Platform) bool {
	return len(p.Platforms) == 0 || slices.Contains(p.Platforms, platform)
}

// including returns those of the platforms whose packages are mirrored.
func (p *Policy) including(all []address.Platform) []address.Platform {
	if len(p.Platforms) == 0 {
		return all
	}
	var included []address.Platform
	for _, platform := range all {
		if p.includesPlatform(platform) {
			included = append(included, platform)
		}
	}
	return included
}

const maxPattern = 512

// ParsePattern reads a pattern of providers and modules of an origin: NAMESPACE,
// NAMESPACE/NAME, or NAMESPACE/NAME/SYSTEM for modules alone. Names are folded like the
// names in addresses.
func ParsePattern(s string) (address.Pattern, error) {
	if len(s) > maxPattern { // before parsing
		return address.Pattern{}, fmt.Errorf("a pattern of addresses is at most %d bytes long", maxPattern)
	}
	words := strings.Split(strings.ToLower(s), "/")
	if len(words) > 3 || slices.Contains(words, "") {
		return address.Pattern{}, fmt.Errorf("%q is not a pattern of addresses: write NAMESPACE, NAMESPACE/NAME or, for modules, NAMESPACE/NAME/SYSTEM, like hashicorp/aws or hashicorp/*", s)
	}
	var parts []address.Wildcard
	for i, word := range words {
		if strings.ContainsAny(word, ".:") {
			return address.Pattern{}, fmt.Errorf("%q is not a pattern of addresses: leave out the hostname, which is always the origin's", s)
		}
		if !isNamePattern(word, i == 2) {
			return address.Pattern{}, fmt.Errorf("%q is not a pattern of addresses: %q has characters that names cannot have", s, word)
		}
		parts = append(parts, address.Wildcard(word))
	}
	return address.NewPattern(parts...), nil
}

// isNamePattern reports whether a part of a pattern is the name of a provider or module
// once each star stands for something.
func isNamePattern(part string, system bool) bool {
	name := strings.ReplaceAll(part, "*", "x")
	if system {
		_, err := address.ParseModule("", "x", "x", name)
		return err == nil
	}
	_, provider := address.ParseProvider("", name, "x")
	_, module := address.ParseModule("", name, "x", "x")
	return provider == nil || module == nil
}

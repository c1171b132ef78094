package fill

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
	// Allow and Deny are providers of the origin. With an Allow, only those are
	// mirrored. Deny takes precedence.
	Allow, Deny []Pattern

	// Platforms whose packages are mirrored. Empty: all.
	Platforms []address.Platform

	// VersionsTTL is how long the list of a provider's versions is used before it is
	// renewed. Zero: DefaultVersionsTTL.
	VersionsTTL time.Duration

	// MinAge is the minimum release age: how long ago a version must have been
	// published. Bad releases tend to be noticed in their first days.
	MinAge time.Duration

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

// includes reports whether a provider is mirrored.
func (p *Policy) includes(a address.Address) bool {
	covers := func(pattern Pattern) bool { return pattern.covers(a) }
	return !slices.ContainsFunc(p.Deny, covers) && (len(p.Allow) == 0 || slices.ContainsFunc(p.Allow, covers))
}

// includesPlatform reports whether packages of a platform are mirrored.
func (p *Policy) includesPlatform(platform address.Platform) bool {
	return len(p.Platforms) == 0 || slices.Contains(p.Platforms, platform)
}

// A Pattern covers providers of one origin: NAMESPACE or NAMESPACE/TYPE, where *
// stands for any characters. A namespace alone covers all its providers.
type Pattern struct{ namespace, typ address.Wildcard }

const maxPattern = 512

// ParsePattern reads a pattern. Names are folded as those of addresses are.
func ParsePattern(s string) (Pattern, error) {
	namespace, typ, ok := strings.Cut(s, "/")
	if !ok {
		typ = "*"
	}
	if len(s) > maxPattern { // before parsing
		return Pattern{}, fmt.Errorf("a pattern of providers is at most %d bytes long", maxPattern)
	}
	p := Pattern{address.Wildcard(strings.ToLower(namespace)), address.Wildcard(strings.ToLower(typ))}
	for _, part := range []string{string(p.namespace), string(p.typ)} {
		switch {
		case part == "" || strings.Contains(part, "/"):
			return Pattern{}, fmt.Errorf("%q is not a pattern of providers: write NAMESPACE/TYPE, like hashicorp/aws or hashicorp/*", s)
		case strings.ContainsAny(part, ".:"):
			return Pattern{}, fmt.Errorf("%q is not a pattern of providers: leave out the hostname, it is that of the origin", s)
		}
		// It has to be a name once each star stands for something.
		if _, err := address.ParseProvider("", strings.ReplaceAll(part, "*", "x"), "x"); err != nil {
			return Pattern{}, fmt.Errorf("%q is not a pattern of providers: %q has characters that names cannot have", s, part)
		}
	}
	return p, nil
}

func (p Pattern) String() string { return string(p.namespace + "/" + p.typ) }

func (p Pattern) covers(a address.Address) bool {
	return p.namespace.Matches(a.Namespace) && p.typ.Matches(a.Name)
}

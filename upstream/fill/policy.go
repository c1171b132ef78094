package fill

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// DefaultVersionsTTL is how long an origin's list of versions is good where a
// Policy says nothing: new versions are found within it, and an origin is asked
// about a provider once in it, however many clients ask.
const DefaultVersionsTTL = 10 * time.Minute

// A Policy is what a tree takes from an origin. The zero Policy takes all that
// its publisher has signed.
type Policy struct {
	// Allow and Deny are providers of the origin. What is denied stays out; with
	// something allowed, all else stays out as well.
	Allow, Deny []Pattern

	// Platforms to take packages of. Empty: all.
	Platforms []address.Platform

	// VersionsTTL is how long the list of a provider's versions is good.
	VersionsTTL time.Duration

	// MinAge is how long a version has to be published before it is taken: bad
	// releases tend to be noticed in their first days.
	MinAge time.Duration

	// Signatures says what becomes of releases that nobody known has signed.
	Signatures Signatures
}

// Signatures is a choice about releases without a signature by a known key. A
// signature that is wrong is never taken.
type Signatures int

const (
	// RequireSignatures leaves them with the origin.
	RequireSignatures Signatures = iota

	// PreferSignatures takes them, with such hashes as the origin gives.
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
	return 0, fmt.Errorf("%q is not what signatures can be: write require or prefer", s)
}

func (s Signatures) String() string {
	if s == PreferSignatures {
		return "prefer"
	}
	return "require"
}

// withDefaults fills in what was left out, or says what cannot be meant.
func (p Policy) withDefaults() (Policy, error) {
	if p.VersionsTTL < 0 || p.MinAge < 0 {
		return p, errors.New("the life of a list of versions and the least age of a version must not be negative")
	}
	if p.VersionsTTL == 0 {
		p.VersionsTTL = DefaultVersionsTTL
	}
	return p, nil
}

// takes tells whether a provider may come in.
func (p *Policy) takes(a address.Address) bool {
	covers := func(pattern Pattern) bool { return pattern.covers(a) }
	return !slices.ContainsFunc(p.Deny, covers) && (len(p.Allow) == 0 || slices.ContainsFunc(p.Allow, covers))
}

// takesPlatform tells whether packages of a platform may come in.
func (p *Policy) takesPlatform(platform address.Platform) bool {
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
	if len(s) > maxPattern { // do not feed the parser more
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
		// What stands for itself has to be a name, with something for each star.
		if _, err := address.ParseProvider("", strings.ReplaceAll(part, "*", "x"), "x"); err != nil {
			return Pattern{}, fmt.Errorf("%q is not a pattern of providers: %q has characters that no name has", s, part)
		}
	}
	return p, nil
}

func (p Pattern) String() string { return string(p.namespace + "/" + p.typ) }

func (p Pattern) covers(a address.Address) bool {
	return p.namespace.Matches(a.Namespace) && p.typ.Matches(a.Name)
}

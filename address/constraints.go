package address

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	version "github.com/hashicorp/go-version"
)

// Constraints are conditions that a version must all meet. They are ordered by
// boundary, without duplicates. Empty Constraints allow any release.
//
// The constraints of go-version are not used, since they differ from what clients do:
// there ~> 1 allows 2.0, and >= 1.0.0-beta allows 1.0.0-rc. Clients interpret
// constraints of providers as follows.
//   - ~> with one or two numbers keeps the major version, with three the minor.
//   - A pre-release is only selected by naming exactly that one.
//   - Builds of one version differ to = and !=, and are equal to all else.
//
// A v before the numbers is dropped. Clients refuse it, but only for providers.
type Constraints []constraint

type constraint struct {
	operator string // "=" if none is written
	boundary *version.Version
	parts    int // how many of the three numbers are written
}

// Exactly returns constraints that only v meets.
func Exactly(v *version.Version) Constraints {
	return Constraints{{operator: "=", boundary: v, parts: 3}}
}

var operators = []string{"=", "!=", ">", ">=", "<", "<=", "~>"}

// ParseConstraints parses constraints as they are written in configurations,
// separated by commas.
func ParseConstraints(s string) (Constraints, error) {
	if strings.TrimSpace(s) == "" {
		return nil, nil
	}
	var all Constraints
	for part := range strings.SplitSeq(s, ",") {
		one, err := parseConstraint(strings.TrimSpace(part))
		if err != nil {
			return nil, fmt.Errorf("%q is not a version constraint: %w", s, err)
		}
		all = append(all, one)
	}
	return all.And(nil), nil
}

func parseConstraint(s string) (constraint, error) {
	text := strings.TrimLeft(s, "<>=!~")
	c := constraint{operator: cmp.Or(s[:len(s)-len(text)], "=")}
	if !slices.Contains(operators, c.operator) {
		return c, fmt.Errorf("there is no operator %q: use one of %s", c.operator, strings.Join(operators, " "))
	}
	numbers, extra := splitNumbers(strings.TrimPrefix(strings.TrimSpace(text), "v"))
	parts := strings.Split(numbers, ".")
	c.parts = len(parts)
	if c.parts > 3 {
		return c, errNotBoundary
	}
	for i, part := range parts {
		// Versions have no leading zeros, but clients accept them here.
		n, err := strconv.ParseUint(part, 10, 63)
		if err != nil {
			return c, errNotBoundary
		}
		parts[i] = strconv.FormatUint(n, 10)
	}
	for len(parts) < 3 {
		parts = append(parts, "0")
	}
	var err error
	if c.boundary, err = ParseProviderVersion(strings.Join(parts, ".") + extra); err != nil {
		return c, errNotBoundary
	}
	return c, nil
}

var errNotBoundary = errors.New("write an operator and up to three numbers, like ~> 1.2, and a comma before the next one")

// And returns constraints that require both c and other.
func (c Constraints) And(other Constraints) Constraints {
	all := slices.Concat(c, other)
	slices.SortStableFunc(all, func(a, b constraint) int {
		return cmp.Or(a.boundary.Compare(b.boundary), strings.Compare(a.String(), b.String()))
	})
	return slices.CompactFunc(all, func(a, b constraint) bool { return a.String() == b.String() })
}

// Allow reports whether a client with these constraints may select v.
func (c Constraints) Allow(v *version.Version) bool {
	selectable := v.Prerelease() == ""
	for _, one := range c {
		if !one.allows(v) {
			return false
		}
		selectable = selectable || one.operator == "="
	}
	return selectable
}

// Cover reports whether a statement about the versions that meet all constraints
// applies to v. Unlike Allow, it covers
//   - prereleases like any other version: < 2.0 covers 1.0.0-rc.1 too;
//   - all builds of a version that is written without build metadata: 4.0.0 covers
//     4.0.0+x, which clients take for the same version, and != 4.0.0 does not. With
//     build metadata, only that build is meant: 4.0.0+x covers neither 4.0.0 nor
//     4.0.0+y, and != 4.0.0+x covers both.
//
// All other operators compare the numbers, as clients do.
func (c Constraints) Cover(v *version.Version) bool {
	for _, one := range c {
		if !one.covers(v) {
			return false
		}
	}
	return true
}

func (c constraint) covers(v *version.Version) bool {
	if c.boundary.Metadata() == "" {
		switch c.operator {
		case "=":
			return v.Equal(c.boundary)
		case "!=":
			return !v.Equal(c.boundary)
		}
	}
	return c.allows(v)
}

func (c constraint) allows(v *version.Version) bool {
	order := v.Compare(c.boundary)
	switch c.operator {
	case "=":
		return order == 0 && v.Metadata() == c.boundary.Metadata()
	case "!=":
		return order != 0 || v.Metadata() != c.boundary.Metadata()
	case ">":
		return order > 0
	case ">=":
		return order >= 0
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	}
	kept := 1 // numbers that ~> does not let change
	if c.parts == 3 {
		kept = 2
	}
	return order >= 0 && slices.Equal(v.Segments64()[:kept], c.boundary.Segments64()[:kept])
}

// String returns the constraints as clients write them into lock files.
func (c Constraints) String() string {
	words := make([]string, len(c))
	for i, one := range c {
		words[i] = one.String()
	}
	return strings.Join(words, ", ")
}

func (c constraint) String() string {
	text := c.boundary.String()
	if c.operator == "=" {
		return text
	}
	numbers, extra := splitNumbers(text)
	return c.operator + " " + strings.Join(strings.Split(numbers, ".")[:c.parts], ".") + extra
}

// splitNumbers splits a version before its pre-release or build metadata.
func splitNumbers(text string) (numbers, extra string) {
	if i := strings.IndexAny(text, "-+"); i >= 0 {
		return text[:i], text[i:]
	}
	return text, ""
}

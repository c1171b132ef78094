package upstream

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	version "github.com/hashicorp/go-version"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// Constraints are what a provider's version must meet, all of them. The zero
// value asks for any release.
//
// They are compared here and not by go-version's own constraints, which mean
// something else than the clients do: there ~> 1 allows 2.0, and >= 1.0.0-beta
// allows 1.0.0-rc. Clients take constraints of providers as follows.
//   - ~> with one or two numbers keeps the major version, with three the minor.
//   - A pre-release is only ever chosen by naming exactly that one.
//   - A build is another version to = and !=, and the same to all else.
type Constraints struct {
	all []constraint // by boundary, each once
}

type constraint struct {
	operator string // "=" also where none was written
	boundary *version.Version
	parts    int // of its three numbers, those that were written
}

// maxConstraints bounds the text that is parsed. Lock files have those of all
// modules in one.
const maxConstraints = 4096

var operators = []string{"=", "!=", ">", ">=", "<", "<=", "~>"}

// ParseConstraints parses constraints as they are written in configurations,
// with commas between them. Nothing asks for any release.
func ParseConstraints(s string) (Constraints, error) {
	if len(s) > maxConstraints {
		return Constraints{}, fmt.Errorf("version constraints are at most %d characters long", maxConstraints)
	}
	if strings.TrimSpace(s) == "" {
		return Constraints{}, nil
	}
	var all []constraint
	for part := range strings.SplitSeq(s, ",") {
		one, err := parseConstraint(strings.TrimSpace(part))
		if err != nil {
			return Constraints{}, fmt.Errorf("%q is not a version constraint: %w", s, err)
		}
		all = append(all, one)
	}
	return Constraints{}.And(Constraints{all}), nil
}

func parseConstraint(s string) (constraint, error) {
	text := strings.TrimLeft(s, "<>=!~")
	c := constraint{operator: cmp.Or(s[:len(s)-len(text)], "=")}
	if !slices.Contains(operators, c.operator) {
		return c, fmt.Errorf("there is no operator %q: use one of %s", c.operator, strings.Join(operators, " "))
	}
	text = strings.TrimSpace(text)
	numbers, extra := text, ""
	if i := strings.IndexAny(text, "-+"); i >= 0 {
		numbers, extra = text[:i], text[i:]
	}
	parts := strings.Split(numbers, ".")
	c.parts = len(parts)
	if c.parts > 3 {
		return c, errNotBoundary
	}
	for i, part := range parts {
		// Leading zeros are no version's, but clients forgive them here.
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
	if c.boundary, err = address.ParseProviderVersion(strings.Join(parts, ".") + extra); err != nil {
		return c, errNotBoundary
	}
	return c, nil
}

var errNotBoundary = errors.New("write an operator and up to three numbers, like ~> 1.2, and a comma before the next one")

// exactly is met by one version alone, pre-release or not.
func exactly(v *version.Version) Constraints {
	return Constraints{[]constraint{{operator: "=", boundary: v, parts: 3}}}
}

// And returns the constraints of both.
func (c Constraints) And(other Constraints) Constraints {
	all := slices.Concat(c.all, other.all)
	slices.SortStableFunc(all, func(a, b constraint) int {
		return cmp.Or(a.boundary.Compare(b.boundary), strings.Compare(a.String(), b.String()))
	})
	return Constraints{slices.CompactFunc(all, func(a, b constraint) bool { return a.String() == b.String() })}
}

// Allows tells whether a version meets all constraints.
func (c Constraints) Allows(v *version.Version) bool {
	named := v.Prerelease() == ""
	for _, one := range c.all {
		if !one.allows(v) {
			return false
		}
		named = named || one.operator == "="
	}
	return named
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
	kept := 1 // of ~>
	if c.parts == 3 {
		kept = 2
	}
	return order >= 0 && slices.Equal(v.Segments64()[:kept], c.boundary.Segments64()[:kept])
}

// String is the constraints as clients write them into lock files.
func (c Constraints) String() string {
	words := make([]string, len(c.all))
	for i, one := range c.all {
		words[i] = one.String()
	}
	return strings.Join(words, ", ")
}

func (c constraint) String() string {
	if c.operator == "=" {
		return c.boundary.String()
	}
	text := c.boundary.String()
	if i := strings.IndexAny(text, "-+"); i < 0 {
		text = strings.Join(strings.Split(text, ".")[:c.parts], ".")
	} else {
		text = strings.Join(strings.Split(text[:i], ".")[:c.parts], ".") + text[i:]
	}
	return c.operator + " " + text
}

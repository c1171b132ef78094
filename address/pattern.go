package address

import (
	"slices"
	"strings"
)

// A Pattern covers providers and modules, whatever their hostname: NAMESPACE,
// NAMESPACE/NAME, or NAMESPACE/NAME/SYSTEM for modules alone. It covers everything below
// its parts; a Pattern without parts covers all addresses. Patterns can be compared with ==.
type Pattern struct {
	parts [3]Wildcard
	depth int
}

// NewPattern returns the Pattern with up to three parts, in lower case.
func NewPattern(parts ...Wildcard) Pattern {
	p := Pattern{depth: len(parts)}
	copy(p.parts[:], parts)
	return p
}

// Covers reports whether the Pattern covers an address, regardless of its case.
func (p Pattern) Covers(a Address) bool {
	if p.depth > 2 && !a.IsModule() {
		return false
	}
	names := [...]string{a.Namespace, a.Name, a.System}
	for i := range p.depth {
		if !p.parts[i].MatchesFolded(names[i]) {
			return false
		}
	}
	return true
}

// CoversAll reports whether the Pattern covers every provider and every module.
func (p Pattern) CoversAll() bool {
	if p.depth > 2 {
		return false
	}
	return !slices.ContainsFunc(p.parts[:p.depth], func(part Wildcard) bool { return strings.Trim(string(part), "*") != "" })
}

// String returns the parts with slashes between them.
func (p Pattern) String() string {
	var words []string
	for _, part := range p.parts[:p.depth] {
		words = append(words, string(part))
	}
	return strings.Join(words, "/")
}

package access

import (
	"iter"
	"slices"

	svchost "github.com/hashicorp/terraform-svchost"
)

// Rules are rules in order. They do not change. Without any, and nil, they allow
// nobody anything.
type Rules struct {
	rules []Rule
}

// NewRules puts rules in order.
func NewRules(rules ...Rule) *Rules {
	return &Rules{slices.Clone(rules)}
}

// WithHostnames returns the rules of a registry that answers as these names. A
// pattern whose HOSTNAME is one of them, or covers one, is about what is the
// registry's own, by whichever of its names that is asked for.
func (r *Rules) WithHostnames(names []svchost.Hostname) *Rules {
	if r == nil || len(names) == 0 {
		return r
	}
	named := &Rules{slices.Clone(r.rules)}
	for i := range named.rules {
		patterns := slices.Clone(named.rules[i].patterns)
		for j := range patterns {
			p := &patterns[j]
			p.hosted = p.hostname != "" && slices.ContainsFunc(names, func(name svchost.Hostname) bool {
				return p.hostname.MatchesFolded(string(name))
			})
		}
		named.rules[i].patterns = patterns
	}
	return named
}

// Hostnames yields each pattern that names one HOSTNAME, as it is printed, and
// that hostname.
func (r *Rule) Hostnames() iter.Seq2[string, svchost.Hostname] {
	return func(yield func(string, svchost.Hostname) bool) {
		for i := range r.patterns {
			if name, ok := r.patterns[i].literalHostname(); ok && !yield(r.patterns[i].text, name) {
				return
			}
		}
	}
}

// All are the rules in their order, each under the address that a Decision gives
// for it.
func (r *Rules) All() iter.Seq[*Rule] {
	return func(yield func(*Rule) bool) {
		if r == nil {
			return
		}
		for i := range r.rules {
			if !yield(&r.rules[i]) {
				return
			}
		}
	}
}

// A Decision is what the rules say, and which of them says so.
type Decision struct {
	Allowed bool
	Rule    *Rule // nil: there is none, so it is denied
}

// Decide tells whether s has the right to the address.
func (r *Rules) Decide(s Subject, right Right, a Resource) Decision {
	// What anonymous may, everybody may, even if a rule before that one denies it
	// to this subject: without credentials it would be allowed.
	d := r.first(&Subject{}, right, &a)
	if d.Allowed || s.Anonymous() {
		return d
	}
	return r.first(&s, right, &a)
}

// Public tells whether everybody may read what is at the address, so that nobody
// has to be asked who they are.
func (r *Rules) Public(a Resource) bool {
	return r.first(&Subject{}, Read, &a).Allowed
}

// first is the decision of the first rule that is about all three.
func (r *Rules) first(s *Subject, right Right, a *Resource) Decision {
	if r == nil {
		return Decision{}
	}
	for i := range r.rules {
		if rule := &r.rules[i]; rule.about(s, right, a) {
			return Decision{rule.allow, rule}
		}
	}
	return Decision{}
}

package access

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// A Rule allows or denies subjects a right to resources. The zero Rule applies to
// nothing.
type Rule struct {
	text     string
	allow    bool
	who      principal
	right    Right
	patterns []pattern
}

// String returns the line of the rule, normalised and quoted as in a Caddyfile.
func (r Rule) String() string { return r.text }

// ParseRule reads a rule from the words of its line, which the documentation of
// the package describes:
//
//	allow|deny WHO RIGHT PATTERN…
//
// The error is a sentence that quotes the word that is wrong.
func ParseRule(words ...string) (Rule, error) {
	var r Rule
	switch {
	case len(words) == 0:
		return Rule{}, errors.New("a rule has four parts, allow or deny, a subject, a right, and one or more patterns: write all four")
	case words[0] != "allow" && words[0] != "deny":
		return Rule{}, fmt.Errorf("a rule begins with allow or deny, not with %q", words[0])
	case len(words) == 1 || lacksPrincipal(words[1:]):
		return Rule{}, fmt.Errorf("after %q there must be a subject: write anonymous, authenticated, group:NAME or an ID", words[0])
	}
	r.allow = words[0] == "allow"
	var err error
	if r.who, err = parsePrincipal(words[1]); err != nil {
		return Rule{}, err
	}
	if len(words) == 2 {
		return Rule{}, fmt.Errorf("after %q there must be a right: write %s", words[1], rightsInWords())
	}
	if r.right, err = ParseRight(words[2]); err != nil {
		return Rule{}, err
	}
	if len(words) == 3 {
		return Rule{}, fmt.Errorf("after %q there must be a pattern of addresses: write one such as acme/demo, or * for everything", words[2])
	}
	normal := []string{words[0], quoteWord(words[1]), words[2]}
	for _, word := range words[3:] {
		p, err := parsePattern(word)
		if err != nil {
			return Rule{}, err
		}
		r.patterns = append(r.patterns, p)
		normal = append(normal, p.text)
	}
	r.text = strings.Join(normal, " ")
	return r, nil
}

// lacksPrincipal reports whether the right follows allow or deny immediately, and
// would be read as an ID.
func lacksPrincipal(words []string) bool {
	if _, err := ParseRight(words[0]); err != nil || len(words) == 1 {
		return err == nil
	}
	_, err := ParseRight(words[1])
	return err != nil
}

// isAbout reports whether the rule decides about a right. A rule that allows a right also
// allows the rights that it includes, and a rule that denies a right also denies the rights
// that include it.
func (r *Rule) isAbout(right Right) bool {
	if r.allow {
		return r.right.includes(right)
	}
	return right.includes(r.right)
}

// applies reports whether the rule decides.
func (r *Rule) applies(s *Subject, right Right, a *Resource) bool {
	if !r.isAbout(right) || !r.who.includes(s, r.allow) {
		return false
	}
	for i := range r.patterns {
		if r.patterns[i].covers(a) {
			return true
		}
	}
	return false
}

// About reports whether the rule is about s, so that it decides for the resources that
// it covers unless an earlier rule does.
func (r *Rule) About(s Subject) bool { return r.who.includes(&s, r.allow) }

// Hostnames yields each pattern with a HOSTNAME that is not a wildcard, in its
// normal form, and that hostname.
func (r *Rule) Hostnames() iter.Seq2[string, svchost.Hostname] {
	return func(yield func(string, svchost.Hostname) bool) {
		for i := range r.patterns {
			if name, ok := r.patterns[i].literalHostname(); ok && !yield(r.patterns[i].text, name) {
				return
			}
		}
	}
}

// Rules are rules in order. They are immutable. No rules, and nil, allow nothing.
type Rules struct {
	rules []Rule
}

// NewRules returns the rules in that order.
func NewRules(rules ...Rule) *Rules {
	return &Rules{slices.Clone(rules)}
}

// WithHostnames returns the rules of a registry with these names. A pattern whose
// HOSTNAME is or matches one of them covers hosted resources, whichever of the names
// they are requested under.
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

// All yields the rules in order, with the same pointers that Decisions have.
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

// A Decision is the result of the rules for a request, and the rule that decided.
type Decision struct {
	Allowed bool
	Rule    *Rule // nil: no rule applies, so the request is denied
}

// Decide reports whether s has the right to the resource.
func (r *Rules) Decide(s Subject, right Right, a Resource) Decision {
	// Everyone may do what anonymous may do, even if an earlier rule denies it to
	// this subject: the same request without credentials would be allowed.
	d := r.first(&Subject{}, right, &a)
	if d.Allowed || s.Anonymous() {
		return d
	}
	return r.first(&s, right, &a)
}

// Groups returns the names of groups in the rules, in which a * stands for any characters.
func (r *Rules) Groups() []string {
	var names []string
	for rule := range r.All() {
		if who := rule.who; who.kind == principalGroup && !slices.Contains(names, string(who.name)) {
			names = append(names, string(who.name))
		}
	}
	return names
}

// NamedGroups returns a subset of groups for which the rules decide as for all of them:
// for each name in a rule, the first group that matches.
func (r *Rules) NamedGroups(groups []string) []string {
	var named []string
	for _, name := range r.Groups() {
		i := slices.IndexFunc(groups, address.Wildcard(name).Matches)
		if i >= 0 && !slices.Contains(named, groups[i]) {
			named = append(named, groups[i])
		}
	}
	return named
}

// AllNamedGroups returns each of the groups that a rule names.
func (r *Rules) AllNamedGroups(groups []string) []string {
	var named []string
	names := r.Groups()
	for _, group := range groups {
		matches := func(name string) bool { return address.Wildcard(name).Matches(group) }
		if slices.ContainsFunc(names, matches) && !slices.Contains(named, group) {
			named = append(named, group)
		}
	}
	return named
}

// AllowsAll reports whether s has the right to everything, even to resources that are
// added later: a rule for everything allows it, and no rule before it denies s a part.
func (r *Rules) AllowsAll(s Subject, right Right) bool {
	return r.allows(&Subject{}, right, isEverything, anyPattern) || r.allows(&s, right, isEverything, anyPattern) // as in Decide
}

// AllowsAny reports whether a rule allows s the right to something, and no rule before it
// denies s everything. There need be nothing like that.
func (r *Rules) AllowsAny(s Subject, right Right) bool {
	return r.allows(&Subject{}, right, anyPattern, isEverything) || r.allows(&s, right, anyPattern, isEverything)
}

func isEverything(p pattern) bool { return p.everything }

func anyPattern(pattern) bool { return true }

// AllowsHostname reports whether s has the right to everything that is mirrored from
// the hostname, or to everything hosted if hostname is empty. This includes resources
// that are added later.
func (r *Rules) AllowsHostname(s Subject, right Right, hostname svchost.Hostname) bool {
	whole := func(p pattern) bool { return p.coversHostname(hostname) && p.names.CoversAll() }
	some := func(p pattern) bool { return p.coversHostname(hostname) }
	return r.allows(&Subject{}, right, whole, some) || r.allows(&s, right, whole, some)
}

// allows reports whether a rule with an allowed pattern allows s the right, and no rule
// before it denies s the right with a denied pattern.
func (r *Rules) allows(s *Subject, right Right, allowed, denied func(pattern) bool) bool {
	for rule := range r.All() {
		switch {
		case !rule.isAbout(right) || !rule.who.includes(s, rule.allow):
		case !rule.allow && slices.ContainsFunc(rule.patterns, denied):
			return false
		case rule.allow && slices.ContainsFunc(rule.patterns, allowed):
			return true
		}
	}
	return false
}

// Audience returns a key that is the same for all subjects with the same right to every
// resource as s. It says which rules are about s. There are few audiences, and a
// decision for one subject of an audience holds for all.
func (r *Rules) Audience(s Subject, right Right) string {
	var key []byte
	for rule := range r.All() {
		if !rule.isAbout(right) {
			continue
		}
		if rule.who.includes(&s, rule.allow) {
			key = append(key, '1')
		} else {
			key = append(key, '0')
		}
	}
	return string(key)
}

// Public reports whether everyone may read the resource, so that requests for it
// need not be authenticated.
func (r *Rules) Public(a Resource) bool {
	return r.first(&Subject{}, Read, &a).Allowed
}

// first returns the decision of the first rule that applies.
func (r *Rules) first(s *Subject, right Right, a *Resource) Decision {
	for rule := range r.All() {
		if rule.applies(s, right, a) {
			return Decision{rule.allow, rule}
		}
	}
	return Decision{}
}

package access

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// What a Verifier reads a subject from, unless told otherwise.
const (
	DefaultSubjectClaim = "sub"
	DefaultGroupsClaim  = "groups"
)

// claimMapping says what the claims of a token make its bearer.
type claimMapping struct {
	subject string
	groups  []string
	require []requiredClaim // in the order of their names
}

// A requiredClaim must have one of the values, in which `*` matches any run of
// characters.
type requiredClaim struct {
	claim  string
	values []string
}

func newClaimMapping(subject string, groups []string, require map[string][]string) (claimMapping, error) {
	m := claimMapping{subject: subject, groups: groups}
	if m.subject == "" {
		m.subject = DefaultSubjectClaim
	}
	if len(m.groups) == 0 {
		m.groups = []string{DefaultGroupsClaim}
	}
	if slices.Contains(m.groups, "") {
		return m, errors.New("groups: a claim has no name")
	}
	for _, claim := range slices.Sorted(maps.Keys(require)) {
		values := require[claim]
		switch {
		case claim == "":
			return m, errors.New("require: a claim has no name")
		case len(values) == 0:
			return m, fmt.Errorf("require: the claim %q has no values: name those it may have, or * for any", claim)
		case slices.Contains(values, ""):
			return m, fmt.Errorf("require: a value of the claim %q is empty", claim)
		}
		m.require = append(m.require, requiredClaim{claim, values})
	}
	return m, nil
}

// apply returns who the claims are of. Only texts count, a claim that is a
// number or true is as good as none: how it would be written is anybody's guess.
func (m claimMapping) apply(claims map[string]any) (Subject, error) {
	for _, r := range m.require {
		if !slices.ContainsFunc(claimTexts(claims, r.claim), r.allows) {
			return Subject{}, fmt.Errorf("its claim %q does not have one of the required values", r.claim)
		}
	}
	id, _ := findClaim(claims, m.subject).(string)
	if strings.TrimSpace(id) == "" {
		return Subject{}, fmt.Errorf("its claim %q, which is to name the subject, is missing, empty or not a text", m.subject)
	}
	s := Subject{ID: id}
	for _, claim := range m.groups {
		for _, group := range claimTexts(claims, claim) {
			if separable(group) && !slices.Contains(s.Groups, group) {
				s.Groups = append(s.Groups, group)
			}
		}
	}
	return s, nil
}

func (r requiredClaim) allows(value string) bool {
	return slices.ContainsFunc(r.values, func(pattern string) bool { return address.Wildcard(pattern).Matches(value) })
}

// separable tells whether a group is the same once it has been in a list that
// is separated by commas, which is what Caddy's placeholders hold. Whoever may
// name a group "a,admins" or " admins" must not become one of the admins.
func separable(group string) bool {
	return group != "" && !strings.Contains(group, ",") && strings.TrimSpace(group) == group
}

// claimTexts returns the text of a claim, or the texts in its list.
func claimTexts(claims map[string]any, name string) []string {
	switch v := findClaim(claims, name).(type) {
	case string:
		return []string{v}
	case []any:
		var texts []string
		for _, e := range v {
			if s, ok := e.(string); ok {
				texts = append(texts, s)
			}
		}
		return texts
	}
	return nil
}

// findClaim returns the claim, nil without. A dot leads into a claim that has
// claims, unless there is a claim of the whole name: some are URLs.
func findClaim(claims map[string]any, name string) any {
	if v, ok := claims[name]; ok {
		return v
	}
	for i := range len(name) {
		if name[i] != '.' {
			continue
		}
		if inner, ok := claims[name[:i]].(map[string]any); ok {
			if v := findClaim(inner, name[i+1:]); v != nil {
				return v
			}
		}
	}
	return nil
}

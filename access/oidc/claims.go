package oidc

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// A claimMapping maps the claims of a token to a subject.
type claimMapping struct {
	subject string
	groups  []string
	require []requiredClaim // in the order of their names
}

// A requiredClaim must match one of the values, in which `*` stands for any run
// of characters.
type requiredClaim struct {
	claim  string
	values []string
}

func newClaimMapping(subject string, groups []string, require map[string][]string) (claimMapping, error) {
	m := claimMapping{subject: subject, groups: groups}
	if m.subject == "" {
		m.subject = "sub"
	}
	if len(m.groups) == 0 {
		m.groups = []string{"groups"}
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

// apply returns the subject of the claims. Only strings count: a number or true
// is ignored, as there are several ways to write it.
func (m claimMapping) apply(claims map[string]any) (access.Subject, error) {
	for _, r := range m.require {
		if !slices.ContainsFunc(claimStrings(claims, r.claim), r.allows) {
			return access.Subject{}, fmt.Errorf("its claim %q does not have one of the required values", r.claim)
		}
	}
	id, _ := findClaim(claims, m.subject).(string)
	if strings.TrimSpace(id) == "" {
		return access.Subject{}, fmt.Errorf("its claim %q, which is to name the subject, is missing, empty or not a string", m.subject)
	}
	s := access.Subject{ID: id}
	for _, claim := range m.groups {
		for _, group := range claimStrings(claims, claim) {
			if listable(group) && !slices.Contains(s.Groups, group) {
				s.Groups = append(s.Groups, group)
			}
		}
	}
	return s, nil
}

func (r requiredClaim) allows(value string) bool {
	return slices.ContainsFunc(r.values, func(pattern string) bool { return address.Wildcard(pattern).Matches(value) })
}

// listable reports whether a group can be an element of a list separated by commas, as
// in Caddy's placeholders. A user who can create a group "a,admins" or " admins" must
// not become a member of admins.
func listable(group string) bool {
	return group != "" && !strings.Contains(group, ",") && strings.TrimSpace(group) == group
}

// claimStrings returns a claim that is a string, or the strings in a claim that
// is a list.
func claimStrings(claims map[string]any, name string) []string {
	switch v := findClaim(claims, name).(type) {
	case string:
		return []string{v}
	case []any:
		var list []string
		for _, e := range v {
			if s, ok := e.(string); ok {
				list = append(list, s)
			}
		}
		return list
	}
	return nil
}

// findClaim returns a claim; nil if there is none. A dot leads into a claim that
// is an object, unless a claim has the whole name: some names are URLs.
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

package access

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// A Subject is the sender of a request, as far as the sender is authenticated.
type Subject struct {
	ID     string   // empty: anonymous
	Groups []string // ignored without an ID
}

// Anonymous reports whether the subject is not authenticated.
func (s Subject) Anonymous() bool { return s.ID == "" }

// ParseGroups reads groups from the value of a placeholder: a list of strings, a list
// of values, or a string with commas between the groups. Only strings in a list count.
// Only a string is split: a group in a list may have a comma in its name. Spaces around
// a name are removed, and empty names left out.
func ParseGroups(v any) []string {
	var groups []string
	switch v := v.(type) {
	case string:
		groups = strings.Split(v, ",")
	case []string:
		groups = slices.Clone(v)
	case []any:
		for _, e := range v {
			if group, ok := e.(string); ok {
				groups = append(groups, group)
			}
		}
	}
	for i, group := range groups {
		groups[i] = strings.TrimSpace(group)
	}
	groups = slices.DeleteFunc(groups, func(group string) bool { return group == "" })
	if len(groups) == 0 {
		return nil
	}
	return groups
}

// A principal is the WHO of a rule. The zero principal includes no subject.
type principal struct {
	kind principalKind
	name address.Wildcard // of a group, or an ID
}

type principalKind int

const (
	_ principalKind = iota // no subject
	principalAnonymous
	principalAuthenticated
	principalGroup
	principalID
)

// includes reports whether s is included in the WHO of an allow rule or a deny rule.
func (p *principal) includes(s *Subject, allow bool) bool {
	if p.kind == principalAnonymous {
		return allow || s.Anonymous()
	}
	if s.Anonymous() {
		return false
	}
	switch p.kind {
	case principalAuthenticated:
		return true
	case principalID:
		return p.name.Matches(s.ID)
	case principalGroup:
		return slices.ContainsFunc(s.Groups, p.name.Matches)
	}
	return false
}

const groupPrefix = "group:"

func parsePrincipal(word string) (principal, error) {
	switch word {
	case "anonymous":
		return principal{kind: principalAnonymous}, nil
	case "authenticated":
		return principal{kind: principalAuthenticated}, nil
	case "":
		return principal{}, errors.New(`"" is not a subject: write anonymous, authenticated, group:NAME or an ID`)
	}
	if !utf8.ValidString(word) || strings.ContainsFunc(word, unquotable) {
		return principal{}, fmt.Errorf("%q contains an unprintable character or a backquote: write * in its place", word)
	}
	if corrected := correctKeyword(word); corrected != word {
		return principal{}, fmt.Errorf("%q has the wrong case: write %q", word, corrected)
	}
	if prefix, group, ok := strings.Cut(word, ":"); ok && strings.EqualFold(prefix, "groups") {
		return principal{}, fmt.Errorf("%q is not a group: write %q", word, groupPrefix+group)
	}
	if strings.Trim(word, "*") == "" {
		return principal{}, fmt.Errorf("%q does not say who is meant: write anonymous for everyone, or authenticated for everyone with credentials", word)
	}
	group, isGroup := strings.CutPrefix(word, groupPrefix)
	switch {
	case !isGroup:
		return principal{principalID, address.Wildcard(word)}, nil
	case group == "":
		return principal{}, fmt.Errorf("%q has no name: write the name of the group after it", word)
	case strings.TrimSpace(group) != group:
		return principal{}, fmt.Errorf("%q has a space before or after the name of the group: leave it out", word)
	}
	return principal{principalGroup, address.Wildcard(group)}, nil
}

// correctKeyword corrects the case of a keyword. As an ID, a word such as Authenticated
// would make a rule that applies to no subject at all.
func correctKeyword(word string) string {
	for _, keyword := range []string{"anonymous", "authenticated"} {
		if strings.EqualFold(word, keyword) {
			return keyword
		}
	}
	if before, group, ok := strings.Cut(word, ":"); ok && strings.EqualFold(before+":", groupPrefix) {
		return groupPrefix + group
	}
	return word
}

// unquotable reports characters that cannot be part of a line, because they are
// invisible there or would end the backquotes of quoteWord.
func unquotable(r rune) bool { return !unicode.IsPrint(r) || r == '`' }

// quoteWord writes a word as in a Caddyfile.
func quoteWord(word string) string {
	switch {
	case strings.ContainsAny(word, "\"\\"):
		return "`" + word + "`" // in double quotes, a backslash might be taken for an escape
	case strings.ContainsAny(word, " {}"), strings.HasPrefix(word, "#"), strings.HasPrefix(word, "<<"):
		return `"` + word + `"`
	}
	return word
}

package access

import (
	"slices"
	"strings"
)

// A Subject is whoever asks for something, as far as it is known.
type Subject struct {
	ID     string // empty: anonymous, whatever the groups
	Groups []string
}

// Anonymous tells whether nobody is known to ask.
func (s Subject) Anonymous() bool { return s.ID == "" }

// ParseGroups reads groups from whatever a placeholder has for them: a list of
// strings, a list of values of which the strings count, or a string with commas
// between the groups. Only the latter is divided: a group in a list may have a
// comma in its name. Spaces around a name do not count, and empty names are left
// out.
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

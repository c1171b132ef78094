package access

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// A Rule allows or denies somebody a right to some addresses. The zero Rule is
// about nobody and nothing.
type Rule struct {
	text     string
	allow    bool
	who      holder
	right    Right
	patterns []addressPattern
}

// String is the line of the rule, in its normal form and quoted as in a
// Caddyfile.
func (r Rule) String() string { return r.text }

// ParseRule reads a rule from the words of its line:
//
//	allow|deny WHO read|publish PATTERN…
//
// What they mean is in the comment of the package.
func ParseRule(words ...string) (Rule, error) {
	var r Rule
	switch {
	case len(words) == 0:
		return Rule{}, errors.New("a rule is allow or deny, who, read or publish, and one pattern or more: write all four")
	case words[0] != "allow" && words[0] != "deny":
		return Rule{}, fmt.Errorf("a rule begins with allow or deny, not with %q", words[0])
	case len(words) == 1 || lacksHolder(words[1:]):
		return Rule{}, fmt.Errorf("behind %q has to be who: write anonymous, authenticated, group:NAME or an ID", words[0])
	}
	r.allow = words[0] == "allow"
	var err error
	if r.who, err = parseHolder(words[1]); err != nil {
		return Rule{}, err
	}
	if len(words) == 2 {
		return Rule{}, fmt.Errorf("behind %q has to be a right: write read or publish", words[1])
	}
	if r.right, err = ParseRight(words[2]); err != nil {
		return Rule{}, err
	}
	if len(words) == 3 {
		return Rule{}, fmt.Errorf("behind %q has to be a pattern of addresses: write one such as acme/demo, or * for everything", words[2])
	}
	printed := []string{words[0], quoteRuleWord(words[1]), words[2]}
	for _, word := range words[3:] {
		p, err := parseAddressPattern(word)
		if err != nil {
			return Rule{}, err
		}
		r.patterns = append(r.patterns, p)
		printed = append(printed, p.text)
	}
	r.text = strings.Join(printed, " ")
	return r, nil
}

// lacksHolder tells whether the words behind allow or deny go on with the right,
// which would be taken for an ID.
func lacksHolder(words []string) bool {
	if _, err := ParseRight(words[0]); err != nil || len(words) == 1 {
		return err == nil
	}
	_, err := ParseRight(words[1])
	return err != nil
}

// about tells whether the rule decides.
func (r *Rule) about(s *Subject, right Right, a *Resource) bool {
	if r.right != right || !r.who.includes(s, r.allow) {
		return false
	}
	for i := range r.patterns {
		if r.patterns[i].covers(a) {
			return true
		}
	}
	return false
}

// A holder is whom a rule gives a right, or denies it.
type holder struct {
	kind holderKind
	name address.Wildcard // of a group or of a subject
}

type holderKind int

const (
	holderNone holderKind = iota
	holderAnonymous
	holderAuthenticated
	holderGroup
	holderID
)

// includes tells whether a rule that allows, or denies, is about s.
func (h *holder) includes(s *Subject, allow bool) bool {
	if h.kind == holderAnonymous {
		return allow || s.Anonymous()
	}
	if s.Anonymous() {
		return false // so its groups do not count
	}
	switch h.kind {
	case holderAuthenticated:
		return true
	case holderID:
		return h.name.Matches(s.ID)
	case holderGroup:
		for _, group := range s.Groups {
			if h.name.Matches(group) {
				return true
			}
		}
	}
	return false
}

const groupPrefix = "group:"

func parseHolder(word string) (holder, error) {
	switch word {
	case "anonymous":
		return holder{kind: holderAnonymous}, nil
	case "authenticated":
		return holder{kind: holderAuthenticated}, nil
	case "":
		return holder{}, errors.New(`"" is nobody: write anonymous, authenticated, group:NAME or an ID`)
	}
	if !utf8.ValidString(word) || strings.ContainsFunc(word, unquotable) {
		return holder{}, fmt.Errorf("%q has a character that is not to be seen or a backquote in it: write * in its place", word)
	}
	if meant := inKeywordCase(word); meant != word {
		return holder{}, fmt.Errorf("%q has the wrong case: write %q", word, meant)
	}
	if prefix, group, ok := strings.Cut(word, ":"); ok && strings.EqualFold(prefix, "groups") {
		return holder{}, fmt.Errorf("%q is not a group: write %q", word, groupPrefix+group)
	}
	if strings.Trim(word, "*") == "" {
		return holder{}, fmt.Errorf("%q may be anybody: write anonymous for everybody, with credentials or without, or authenticated for those with", word)
	}
	group, isGroup := strings.CutPrefix(word, groupPrefix)
	switch {
	case !isGroup:
		return holder{holderID, address.Wildcard(word)}, nil
	case group == "":
		return holder{}, fmt.Errorf("%q has no name: write the group's behind it", word)
	case strings.TrimSpace(group) != group:
		return holder{}, fmt.Errorf("%q has a space around the name, and no group has: leave it out", word)
	}
	return holder{holderGroup, address.Wildcard(group)}, nil
}

// inKeywordCase returns what is likely to be meant by a word that is a keyword but
// for its case. A rule that looks as if it were about many, and is about one who
// does not exist, would be as good as none.
func inKeywordCase(word string) string {
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

// unquotable characters have no place in a line: they cannot be seen there, or
// end what quoteRuleWord has begun.
func unquotable(r rune) bool { return !unicode.IsPrint(r) || r == '`' }

// quoteRuleWord writes a word as it stands in a Caddyfile.
func quoteRuleWord(word string) string {
	switch {
	case strings.ContainsAny(word, "\"\\"):
		return "`" + word + "`" // between double quotes a backslash could be one too many
	case strings.ContainsAny(word, " {}"), strings.HasPrefix(word, "#"), strings.HasPrefix(word, "<<"):
		return `"` + word + `"`
	}
	return word
}

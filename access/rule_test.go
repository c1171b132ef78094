package access_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
)

func TestParseRule(t *testing.T) {
	for _, test := range []struct {
		rule  string
		words []string
		want  string
	}{
		{"the shortest", []string{"allow", "anonymous", "read", "*"}, "allow anonymous read *"},
		{"it may deny", []string{"deny", "authenticated", "read", "acme"}, "deny authenticated read acme"},
		{"it may be about publishing", []string{"allow", "ci", "publish", "acme"}, "allow ci publish acme"},
		{"it has several patterns", []string{"allow", "ci", "read", "acme/*", "registry.terraform.io/hashicorp/*"}, "allow ci read acme/* registry.terraform.io/hashicorp/*"},
		{"in their normal form", []string{"allow", "ci", "read", "ACME", "A.example:443"}, "allow ci read acme a.example"},
		{"an ID and a group keep their case", []string{"allow", "group:The-Devs", "read", "acme"}, "allow group:The-Devs read acme"},
		{"the ID of a CI job", []string{"allow", "repo:acme/*:ref:refs/heads/main", "publish", "acme"}, "allow repo:acme/*:ref:refs/heads/main publish acme"},
		{"an e-mail address", []string{"allow", "ann@example.com", "read", "acme"}, "allow ann@example.com read acme"},
		{"a certificate's subject", []string{"allow", "CN=ci,OU=x", "read", "acme"}, "allow CN=ci,OU=x read acme"},
		{"with spaces it is quoted", []string{"allow", "CN=ci, OU=The Devs", "read", "acme"}, `allow "CN=ci, OU=The Devs" read acme`},
		{"with a backslash in backquotes", []string{"allow", `CORP\ann`, "read", "acme"}, "allow `CORP\\ann` read acme"},
		{"and with double quotes", []string{"allow", `a"b`, "read", "acme"}, "allow `a\"b` read acme"},
		{"and where a comment would begin", []string{"allow", "#1", "read", "acme"}, `allow "#1" read acme`},
		{"and a heredoc", []string{"allow", "<<EOF", "read", "acme"}, `allow "<<EOF" read acme`},
		{"and a block", []string{"allow", "{", "read", "acme"}, `allow "{" read acme`},
		{"Unicode is an ID", []string{"allow", "Jürgen", "read", "acme"}, "allow Jürgen read acme"},
		{"a right is an ID where one is due", []string{"allow", "read", "read", "acme"}, "allow read read acme"},
		{"so is what a rule begins with", []string{"allow", "deny", "read", "acme"}, "allow deny read acme"},
		{"and what begins like anonymous", []string{"allow", "Anonymous2", "read", "acme"}, "allow Anonymous2 read acme"},
		{"any group is one", []string{"allow", "group:*", "read", "acme"}, "allow group:* read acme"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			rule, err := access.ParseRule(test.words...)
			if err != nil || rule.String() != test.want {
				t.Fatalf("%q is %q, %v", test.words, rule, err)
			}
			again, err := access.ParseRule(splitRule(rule.String())...)
			if err != nil || again.String() != test.want {
				t.Errorf("that read again is %q, %v", again, err)
			}
		})
	}
}

func TestParseRuleRefuses(t *testing.T) {
	for _, test := range []struct {
		rule  string
		words []string
		why   string
	}{
		{"nothing", nil, "write all four"},
		{"no effect", []string{"anonymous", "read", "*"}, `begins with allow or deny, not with "anonymous"`},
		{"an effect of another case", []string{"Allow", "ci", "read", "*"}, `not with "Allow"`},
		{"an effect alone", []string{"allow"}, `behind "allow" has to be who`},
		{"nobody", []string{"allow", "read", "*"}, `behind "allow" has to be who`},
		{"nobody, and no pattern", []string{"deny", "read"}, `behind "deny" has to be who`},
		{"no right", []string{"allow", "ci"}, `behind "ci" has to be a right`},
		{"no right but a pattern", []string{"allow", "ci", "acme/*"}, `"acme/*" is not a right`},
		{"another right", []string{"allow", "ci", "pull", "acme/*"}, `"pull" is not a right`},
		{"two IDs", []string{"allow", "ann", "bob", "read", "acme"}, `"bob" is not a right`},
		{"no pattern", []string{"allow", "ci", "read"}, `behind "read" has to be a pattern`},
		{"a bad pattern", []string{"allow", "ci", "read", "acme", "a//b"}, `"a//b" is not a pattern`},
		{"an empty ID", []string{"allow", "", "read", "*"}, `"" is nobody`},
		{"a star as ID", []string{"allow", "*", "read", "acme"}, "write anonymous for everybody"},
		{"stars as ID", []string{"allow", "***", "read", "acme"}, "or authenticated for those with"},
		{"anonymous in another case", []string{"deny", "Anonymous", "read", "*"}, `write "anonymous"`},
		{"authenticated in another case", []string{"deny", "AUTHENTICATED", "read", "*"}, `write "authenticated"`},
		{"group: in another case", []string{"deny", "Group:Devs", "read", "*"}, `write "group:Devs"`},
		{"groups: for group:", []string{"deny", "groups:devs", "read", "*"}, `"groups:devs" is not a group: write "group:devs"`},
		{"groups: in another case", []string{"deny", "Groups:Devs", "read", "*"}, `write "group:Devs"`},
		{"a group without a name", []string{"allow", "group:", "read", "*"}, `"group:" has no name`},
		{"a group with a space in front", []string{"allow", "group: devs", "read", "*"}, "has a space around the name"},
		{"a backquote", []string{"allow", "a`b", "read", "*"}, "write * in its place"},
		{"a line feed", []string{"allow", "a\nallow b", "read", "*"}, "write * in its place"},
		{"a NUL", []string{"allow", "group:a\x00", "read", "*"}, "write * in its place"},
		{"a NUL behind another mistake", []string{"allow", "Group:\x00", "read", "*"}, "write * in its place"},
		{"a space that is none", []string{"allow", "ci\u00a0", "read", "*"}, "write * in its place"},
		{"what is not to be seen", []string{"allow", "ci\u200b", "read", "*"}, "write * in its place"},
		{"invalid UTF-8", []string{"allow", "ci\xff", "read", "*"}, "write * in its place"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			rule, err := access.ParseRule(test.words...)
			if err == nil {
				t.Fatalf("%q is taken for %q", test.words, rule)
			}
			if rule.String() != "" || !strings.Contains(err.Error(), test.why) || strings.Contains(err.Error(), "\n") {
				t.Errorf("it is %q and refused with %q, not because of %q", rule, err, test.why)
			}
		})
	}
}

func TestRuleIsAbout(t *testing.T) {
	var (
		nobody = access.Subject{Groups: []string{"devs"}}
		ann    = access.Subject{ID: "ann", Groups: []string{"ops", "devs"}}
		job    = access.Subject{ID: "repo:acme/infra:ref:refs/heads/main"}
	)
	for _, test := range []struct {
		rule, who string
		subject   access.Subject
		want      bool
	}{
		{"anonymous is nobody", "anonymous", nobody, true},
		{"and everybody", "anonymous", ann, true},
		{"authenticated is somebody", "authenticated", ann, true},
		{"and not nobody", "authenticated", nobody, false},
		{"a group is of its members", "group:devs", ann, true},
		{"and of no others", "group:devs", job, false},
		{"nobody has none", "group:devs", nobody, false},
		{"a group has a case", "group:Devs", ann, false},
		{"a star stands for part of its name", "group:d*s", ann, true},
		{"or all of it, if there is any group", "group:*", ann, true},
		{"and is not for who has none", "group:*", job, false},
		{"a group is no ID", "group:ann", ann, false},
		{"an ID is one", "ann", ann, true},
		{"not another one", "ann", job, false},
		{"nor part of one", "an", ann, false},
		{"nor a group", "devs", ann, false},
		{"an ID has a case", "Ann", ann, false},
		{"an ID may have anything in it", "repo:acme/infra:ref:refs/heads/main", job, true},
		{"a star stands for part of it", "repo:acme/*:ref:refs/heads/main", job, true},
		{"for slashes and colons too", "repo:*main", job, true},
		{"and not for what is not there", "repo:acme/*:ref:refs/heads/v*", job, false},
		{"what is named anonymous is as good as any", "anonymous", access.Subject{ID: "anonymous"}, true},
		{"what is named like a group is not in it", "group:devs", access.Subject{ID: "group:devs"}, false},
	} {
		t.Run(test.rule, func(t *testing.T) {
			rules := rulesOf(t, "allow "+test.who+" read *")
			if got := rules.Decide(test.subject, access.Read, provider).Allowed; got != test.want {
				t.Errorf("%q is %+v: %t", test.who, test.subject, got)
			}
		})
	}
}

func TestZeroRuleIsAboutNothing(t *testing.T) {
	rules := access.NewRules(access.Rule{})
	if d := rules.Decide(access.Subject{ID: "ci"}, access.Read, provider); d != (access.Decision{}) {
		t.Errorf("the decision is %+v", d)
	}
	if got := slices.Collect(rules.All()); len(got) != 1 || got[0].String() != "" {
		t.Errorf("the rules are %v", got)
	}
}

package access_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
)

func TestSubjectAnonymous(t *testing.T) {
	for _, test := range []struct {
		rule    string
		subject access.Subject
		want    bool
	}{
		{"no ID is anonymous", access.Subject{}, true},
		{"even with groups", access.Subject{Groups: []string{"admins"}}, true},
		{"an ID is not", access.Subject{ID: "ci"}, false},
		{"even if the ID is anonymous", access.Subject{ID: "anonymous"}, false},
	} {
		t.Run(test.rule, func(t *testing.T) {
			if got := test.subject.Anonymous(); got != test.want {
				t.Errorf("%+v: %t", test.subject, got)
			}
		})
	}
}

func TestParseGroups(t *testing.T) {
	for _, test := range []struct {
		rule  string
		given any
		want  []string
	}{
		{"a string is split at commas", "dev,ops", []string{"dev", "ops"}},
		{"spaces around a name are removed", " dev ,\tops\n", []string{"dev", "ops"}},
		{"spaces within a name stay", "the devs,ops", []string{"the devs", "ops"}},
		{"empty names are left out", ",dev,, ,", []string{"dev"}},
		{"a single group", "dev", []string{"dev"}},
		{"the case is kept", "Dev,dev", []string{"Dev", "dev"}},
		{"an empty string", "", nil},
		{"commas alone", " , ,", nil},
		{"a list of strings", []string{"dev", " ops ", ""}, []string{"dev", "ops"}},
		{"of a list of values, strings count", []any{"dev", 7, nil, true, []string{"x"}, " ops"}, []string{"dev", "ops"}},
		{"a list is not split", []string{"dev,ops"}, []string{"dev,ops"}},
		{"nor is a list of values", []any{"dev,ops"}, []string{"dev,ops"}},
		{"an empty list", []string{}, nil},
		{"no value", nil, nil},
		{"a number", 7, nil},
		{"an object", map[string]any{"dev": true}, nil},
	} {
		t.Run(test.rule, func(t *testing.T) {
			if got := access.ParseGroups(test.given); !slices.Equal(got, test.want) || (got == nil) != (test.want == nil) {
				t.Errorf("%#v has the groups %q, not %q", test.given, got, test.want)
			}
		})
	}
}

func TestParseGroupsDoesNotChangeTheList(t *testing.T) {
	list := []string{" dev ", "", "ops"}
	access.ParseGroups(list)[0] = "admins"
	if !slices.Equal(list, []string{" dev ", "", "ops"}) {
		t.Errorf("the list became %q", list)
	}
}

func TestRuleAppliesTo(t *testing.T) {
	var (
		anonymous = access.Subject{Groups: []string{"devs"}}
		ann       = access.Subject{ID: "ann", Groups: []string{"ops", "devs"}}
		job       = access.Subject{ID: "repo:acme/infra:ref:refs/heads/main"}
	)
	for _, test := range []struct {
		rule, who string
		subject   access.Subject
		want      bool
	}{
		{"anonymous includes subjects without an ID", "anonymous", anonymous, true},
		{"and everyone else", "anonymous", ann, true},
		{"authenticated includes any ID", "authenticated", ann, true},
		{"but not anonymous subjects", "authenticated", anonymous, false},
		{"a group includes its members", "group:devs", ann, true},
		{"and no others", "group:devs", job, false},
		{"without an ID there are no groups", "group:devs", anonymous, false},
		{"a group is case-sensitive", "group:Devs", ann, false},
		{"a wildcard stands for part of its name", "group:d*s", ann, true},
		{"or all of it, for members of any group", "group:*", ann, true},
		{"but not for subjects without groups", "group:*", job, false},
		{"a group is not an ID", "group:ann", ann, false},
		{"an ID is one subject", "ann", ann, true},
		{"not another ID", "ann", job, false},
		{"nor part of the ID", "an", ann, false},
		{"nor a group of that name", "devs", ann, false},
		{"an ID is case-sensitive", "Ann", ann, false},
		{"an ID may contain any characters", "repo:acme/infra:ref:refs/heads/main", job, true},
		{"a wildcard stands for part of it", "repo:acme/*:ref:refs/heads/main", job, true},
		{"including slashes and colons", "repo:*main", job, true},
		{"but the rest must match", "repo:acme/*:ref:refs/heads/v*", job, false},
		{"an ID named anonymous is like any other", "anonymous", access.Subject{ID: "anonymous"}, true},
		{"an ID named like a group is not in it", "group:devs", access.Subject{ID: "group:devs"}, false},
	} {
		t.Run(test.rule, func(t *testing.T) {
			rules := rulesOf(t, "allow "+test.who+" read *")
			if got := rules.Decide(test.subject, access.Read, provider).Allowed; got != test.want {
				t.Errorf("%q is %+v: %t", test.who, test.subject, got)
			}
		})
	}
}

func FuzzParseGroups(f *testing.F) {
	f.Add("dev, ops,,")
	f.Add(" \u00a0,")
	f.Fuzz(func(t *testing.T, s string) {
		groups := access.ParseGroups(s)
		for _, group := range groups {
			if group == "" || strings.TrimSpace(group) != group || strings.Contains(group, ",") {
				t.Fatalf("%q has the group %q", s, group)
			}
		}
		if again := access.ParseGroups(strings.Join(groups, ",")); !slices.Equal(again, groups) {
			t.Fatalf("%q parsed again is %q", groups, again)
		}
		if again := access.ParseGroups(groups); !slices.Equal(again, groups) {
			t.Fatalf("%q as a list is %q", groups, again)
		}
	})
}

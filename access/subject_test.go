package access_test

import (
	"slices"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
)

func TestSubjectAnonymous(t *testing.T) {
	for _, test := range []struct {
		rule    string
		subject access.Subject
		want    bool
	}{
		{"nobody is anonymous", access.Subject{}, true},
		{"groups make nobody somebody", access.Subject{Groups: []string{"admins"}}, true},
		{"an ID does", access.Subject{ID: "ci"}, false},
		{"even one that says it is not", access.Subject{ID: "anonymous"}, false},
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
		{"a string is divided at commas", "dev,ops", []string{"dev", "ops"}},
		{"spaces around a name do not count", " dev ,\tops\n", []string{"dev", "ops"}},
		{"those within do", "the devs,ops", []string{"the devs", "ops"}},
		{"empty names are left out", ",dev,, ,", []string{"dev"}},
		{"one is enough", "dev", []string{"dev"}},
		{"a case is kept", "Dev,dev", []string{"Dev", "dev"}},
		{"an empty string has none", "", nil},
		{"commas alone have none", " , ,", nil},
		{"a list is one of strings", []string{"dev", " ops ", ""}, []string{"dev", "ops"}},
		{"or of anything, and strings count", []any{"dev", 7, nil, true, []string{"x"}, " ops"}, []string{"dev", "ops"}},
		{"a list is not divided", []string{"dev,ops"}, []string{"dev,ops"}},
		{"nor one of anything", []any{"dev,ops"}, []string{"dev,ops"}},
		{"an empty list has none", []string{}, nil},
		{"nothing has none", nil, nil},
		{"a number has none", 7, nil},
		{"an object has none", map[string]any{"dev": true}, nil},
	} {
		t.Run(test.rule, func(t *testing.T) {
			if got := access.ParseGroups(test.given); !slices.Equal(got, test.want) || (got == nil) != (test.want == nil) {
				t.Errorf("%#v has the groups %q, not %q", test.given, got, test.want)
			}
		})
	}
}

func TestParseGroupsLeavesTheListAlone(t *testing.T) {
	list := []string{" dev ", "", "ops"}
	access.ParseGroups(list)[0] = "admins"
	if !slices.Equal(list, []string{" dev ", "", "ops"}) {
		t.Errorf("the list became %q", list)
	}
}

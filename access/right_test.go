package access_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
)

// Which rights a rule is about follows from the rights that a right includes.
func TestWhichRightsARuleIsAbout(t *testing.T) {
	if got := access.RightWords(); !slices.Equal(got, []string{"read", "publish", "manage"}) {
		t.Fatalf("the rights are %q", got)
	}
	for _, test := range []struct{ effect, right, about string }{
		{"allow", "read", "read"}, {"deny", "read", "read"},
		{"allow", "publish", "publish"}, {"deny", "publish", "publish manage"},
		{"allow", "manage", "publish manage"}, {"deny", "manage", "manage"},
	} {
		rule, err := access.ParseRule(test.effect, "ann", test.right, "acme")
		if err != nil {
			t.Fatal(err)
		}
		rules := access.NewRules(rule)
		var about []string
		for _, word := range access.RightWords() {
			right, err := access.ParseRight(word)
			if err != nil {
				t.Fatal(err)
			}
			if rules.Audience(access.Subject{ID: "ann"}, right) != "" {
				about = append(about, word)
			}
		}
		if got := strings.Join(about, " "); got != test.about {
			t.Errorf("%s %s is about %q", test.effect, test.right, got)
		}
	}
	if got := fmt.Sprint(access.Right(-1), access.Right(3)); got != "Right(-1) Right(3)" {
		t.Errorf("other rights are %s", got)
	}
}

package publish

import "testing"

func TestPatternsAreSuggested(t *testing.T) {
	for _, test := range []struct {
		rule string
		tags []string
		want string
	}{
		{"none", []string{"latest", "v1"}, ""},
		{"that of most tags comes first", []string{"a-1.0.0", "vpc/v1.0.0", "vpc/v1.1.0-rc.1"}, "'vpc/v{version}', 'a-{version}'"},
		{"only some", []string{"a1.0.0", "b1.0.0", "c1.0.0", "d1.0.0", "e1.0.0"}, "'a{version}', 'b{version}', 'c{version}', others"},
		{"tags that change the look of a terminal are left out", []string{"\u202ev1.0.0"}, ""},
	} {
		if got := suggestPatterns(test.tags); got != test.want {
			t.Errorf("%s: got %s", test.rule, got)
		}
	}
}

package address

import (
	"strings"
	"testing"
)

var constraintTexts = []struct{ rule, given, want, says string }{
	{"none", "", "", ""},
	{"blank", " \t", "", ""},
	{"a bare version is exact", "3.2.2", "3.2.2", ""},
	{"= is exact", "= 3.2.2", "3.2.2", ""},
	{"a short exact version is written out", "3", "3.0.0", ""},
	{"no space is needed", ">=1.0,<2", ">= 1.0, < 2", ""},
	{"spaces are free", "  ~>   1.2 ", "~> 1.2", ""},
	{"the lower boundary comes first", "< 5.0, >= 4.0", ">= 4.0, < 5.0", ""},
	{"duplicates are removed", ">= 1.0, >= 1.0", ">= 1.0", ""},
	{"a pre-release", ">= 1.0.0-beta.1", ">= 1.0.0-beta.1", ""},
	{"a short pre-release", "~> 3.0-beta1", "~> 3.0-beta1", ""},
	{"a build", "1.0.0+build.5", "1.0.0+build.5", ""},
	{"a v", "v1.2.3", "1.2.3", ""},
	{"a v after an operator", "~> v1.2", "~> 1.2", ""},
	{"leading zeros are accepted", "~> 2.09", "~> 2.9", ""},
	{"all operators", "!= 1.1, > 1, <= 3, ~> 1.0.4", "> 1, ~> 1.0.4, != 1.1, <= 3", ""},

	{"a comma at the end", ">= 1.0,", "", "three numbers"},
	{"no comma", ">= 1.0 < 2.0", "", "three numbers"},
	{"four numbers", "1.2.3.4", "", "three numbers"},
	{"a v alone", "v", "", "three numbers"},
	{"two v", "vv1.2.3", "", "three numbers"},
	{"a wildcard", "1.x", "", "three numbers"},
	{"a caret", "^1.2", "", "three numbers"},
	{"an operator alone", ">=", "", "three numbers"},
	{"=>", "=> 1.0", "", `operator "=>"`},
	{"~", "~1.0", "", `operator "~"`},
	{"two operators", ">= >= 1", "", "three numbers"},
	{"an empty part", "1..2", "", "three numbers"},
	{"a bad pre-release", "1.0.0-", "", "three numbers"},
	{"a number beyond 64 bits", "99999999999999999999", "", "three numbers"},
	{"an expression", "var.version", "", "three numbers"},
}

func TestParseConstraints(t *testing.T) {
	for _, test := range constraintTexts {
		t.Run(test.rule, func(t *testing.T) {
			c, err := ParseConstraints(test.given)
			if test.says != "" {
				if err == nil || !strings.Contains(err.Error(), test.says) {
					t.Fatalf("%q is %q, %v", test.given, c, err)
				}
				return
			}
			if err != nil || c.String() != test.want {
				t.Fatalf("%q is %q, %v", test.given, c, err)
			}
			if again, err := ParseConstraints(c.String()); err != nil || again.String() != test.want {
				t.Fatalf("%q is %q, %v", c, again, err)
			}
		})
	}
}

// The expected answers come from the clients' own library. go-version differs in some
// rows.
func TestConstraintsAllow(t *testing.T) {
	for _, test := range []struct{ rule, constraints, allowed, refused string }{
		{"no constraint allows releases", "", "0.0.0 1.2.3 1.2.3+build.5", "1.0.0-rc.1"},
		{"~> with one number keeps the major version", "~> 1", "1.0.0 1.9.9", "0.9.0 2.0.0"},
		{"~> with two does too", "~> 1.2", "1.2.0 1.9.9", "1.1.9 2.0.0 2.2.0"},
		{"~> with three keeps the minor", "~> 1.2.3", "1.2.3 1.2.99", "1.2.2 1.3.0 2.2.3"},
		{"~> of a pre-release allows releases", "~> 1.2.0-rc.1", "1.2.0 1.2.1", "1.2.0-rc.1 1.3.0"},
		{"a pre-release is exact", "1.0.0-rc.1", "1.0.0-rc.1", "1.0.0 1.0.0-rc.2"},
		{"a boundary does not select pre-releases", ">= 1.0.0-rc.1", "1.0.0 2.0.0", "1.0.0-rc.1 1.0.0-rc.2"},
		{"an exact one must meet the others", "1.0.0-rc.1, >= 1.0.0", "", "1.0.0-rc.1 1.0.0"},
		{"an exact one that meets the others", "1.0.0-rc.2, > 1.0.0-rc.1", "1.0.0-rc.2", "1.0.0"},
		{"!= selects no pre-releases", "!= 1.0.0", "1.0.1", "1.0.0 1.0.1-rc.1"},
		{"a build is another version to =", "1.0.0", "1.0.0", "1.0.0+build.5"},
		{"a build is exact", "1.0.0+build.5", "1.0.0+build.5", "1.0.0 1.0.0+build.6"},
		{"a build is the same to all else", ">= 1.0.0, <= 1.0.0", "1.0.0 1.0.0+build.5", "1.0.1"},
		{"numbers are compared as numbers", "> 1.9", "1.10.0", "1.8.0 1.9.0"},
		{"short ones are filled with zeros", "= 1.2", "1.2.0", "1.2.1"},
		{"a range", ">= 4.0, < 5.0, != 4.5.0", "4.0.0 4.99.0", "3.9.0 4.5.0 5.0.0"},
		{"contradictory ones", "> 2, < 1", "", "1.0.0 1.5.0 3.0.0"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			c, err := ParseConstraints(test.constraints)
			if err != nil {
				t.Fatal(err)
			}
			for versions, want := range map[string]bool{test.allowed: true, test.refused: false} {
				for _, text := range strings.Fields(versions) {
					v, err := ParseProviderVersion(text)
					if err != nil {
						t.Fatal(err)
					}
					if c.Allow(v) != want {
						t.Errorf("%q allows %s: %v", c, v, !want)
					}
				}
			}
		})
	}
}

func TestConstraintsAnd(t *testing.T) {
	a, _ := ParseConstraints("~> 5.0")
	b, _ := ParseConstraints(">= 5.2, ~> 5.0")
	if got := a.And(b).String(); got != "~> 5.0, >= 5.2" {
		t.Errorf("got %q", got)
	}
	if a.String() != "~> 5.0" || b.String() != "~> 5.0, >= 5.2" {
		t.Errorf("they have changed: %q and %q", a, b)
	}
}

func TestConstraintsCover(t *testing.T) {
	for _, test := range []struct{ rule, constraints, covered, others string }{
		{"prereleases are covered like releases", "< 1.2.0", "1.1.9 1.1.0-rc.1 1.2.0-rc.1", "1.2.0 1.2.1-rc.1"},
		{"a range", ">= 1.0, < 2.0", "1.0.0 1.9.9 1.5.0-beta", "1.0.0-rc.1 2.0.0"},
		{"an exact one, with all its builds", "1.3.0", "1.3.0 1.3.0+build.5 1.3.0+b", "1.3.0-rc.1 1.3.0-rc.1+b 1.3.1 1.3.1+b"},
		{"an exact one that is short", "= 1.3", "1.3.0 1.3.0+b", "1.3.1"},
		{"an exact prerelease, with all its builds", "1.3.0-rc.1", "1.3.0-rc.1 1.3.0-rc.1+b", "1.3.0 1.3.0+b 1.3.0-rc.2"},
		{"an exact build alone", "1.3.0+b", "1.3.0+b", "1.3.0 1.3.0+c 1.3.0-rc.1+b"},
		{"all but an exact one and its builds", "!= 1.3.0", "1.3.1 1.3.1+b 1.3.0-rc.1", "1.3.0 1.3.0+b"},
		{"all but an exact build", "!= 1.3.0+b", "1.3.0 1.3.0+c 1.3.1+b", "1.3.0+b"},
		{"a range goes by the number", "< 1.3.0", "1.2.9 1.2.9+b", "1.3.0 1.3.0+b"},
		{"a range with its end goes by the number", "<= 1.3.0, >= 1.3.0", "1.3.0 1.3.0+b", "1.2.9+b 1.3.1+b"},
		{"a range up to a build goes by the number", "<= 1.3.0+b", "1.3.0 1.3.0+b 1.3.0+c", "1.3.1"},
		{"~> goes by the number", "~> 1.3", "1.3.0 1.3.0+b 1.9.0+b", "1.2.9+b 2.0.0+b"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			c, err := ParseConstraints(test.constraints)
			if err != nil {
				t.Fatal(err)
			}
			for versions, want := range map[string]bool{test.covered: true, test.others: false} {
				for _, text := range strings.Fields(versions) {
					v, err := ParseProviderVersion(text)
					if err != nil {
						t.Fatal(err)
					}
					if c.Cover(v) != want {
						t.Errorf("%q covers %s: %v", c, v, !want)
					}
				}
			}
		})
	}
}

// Constraints that are written out and parsed again are the same.
func FuzzParseConstraints(f *testing.F) {
	for _, test := range constraintTexts {
		f.Add(test.given)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseConstraints(text)
		if err != nil {
			return
		}
		if again, err := ParseConstraints(c.String()); err != nil || again.String() != c.String() {
			t.Fatalf("%q is %q, and that is %q, %v", text, c, again, err)
		}
	})
}

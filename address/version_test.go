package address

import (
	"slices"
	"strings"
	"testing"

	version "github.com/hashicorp/go-version"
)

var providerVersions = []struct {
	rule, given string
	ok          bool
	says        string
}{
	{"three numbers", "1.2.3", true, ""},
	{"a pre-release", "1.0.0-rc.1", true, ""},
	{"a build", "1.0.0+build.5", true, ""},
	{"both", "1.0.0-beta.2+exp.sha-5114f85", true, ""},
	{"a dash in a pre-release", "1.0.0-x-y-z.4", true, ""},
	{"nothing but zeros", "0.0.0", true, ""},
	{"a v", "v1.2.3", false, `rename it to "1.2.3"`},
	{"one number", "1", false, `rename it to "1.0.0"`},
	{"two numbers", "1.2", false, `rename it to "1.2.0"`},
	{"four numbers", "1.2.3.4", false, "MAJOR.MINOR.PATCH"},
	{"a leading zero", "1.02.3", false, "MAJOR.MINOR.PATCH"},
	{"a leading zero in a pre-release", "1.0.0-01", false, "MAJOR.MINOR.PATCH"},
	{"an empty pre-release", "1.0.0-", false, "MAJOR.MINOR.PATCH"},
	{"an empty build", "1.0.0+", false, "MAJOR.MINOR.PATCH"},
	{"a pre-release without its dash", "1.0.0rc1", false, "MAJOR.MINOR.PATCH"},
	{"a name", "latest", false, "MAJOR.MINOR.PATCH"},
	{"a constraint", "~> 1.0", false, "MAJOR.MINOR.PATCH"},
	{"a space", " 1.0.0", false, "MAJOR.MINOR.PATCH"},
	{"a number that is none to a computer", "1.0.99999999999999999999", false, "MAJOR.MINOR.PATCH"},
	{"a negative number", "-1.0.0", false, "MAJOR.MINOR.PATCH"},
	{"a path", "1.0.0/..", false, "MAJOR.MINOR.PATCH"},
	{"nothing", "", false, "MAJOR.MINOR.PATCH"},
	{"a very long one", "1.0.0-" + strings.Repeat("x", 200), false, "at most 128"},
}

func TestProviderVersionsAreStrict(t *testing.T) {
	for _, test := range providerVersions {
		t.Run(test.rule, func(t *testing.T) {
			v, err := ParseProviderVersion(test.given)
			if test.ok && (err != nil || v.String() != test.given) {
				t.Fatalf("%q is %v, %v", test.given, v, err)
			}
			if !test.ok && (err == nil || !strings.Contains(err.Error(), test.says)) {
				t.Fatalf("%q is %v, %v", test.given, v, err)
			}
		})
	}
}

func TestModuleVersionsAreWrittenOut(t *testing.T) {
	for _, test := range []struct{ rule, given, want string }{
		{"as they are", "1.2.3", "1.2.3"},
		{"without the v", "v1.2.3", "1.2.3"},
		{"with two numbers", "1.2", "1.2.0"},
		{"with one number", "v1", "1.0.0"},
		{"with a pre-release and a build", "v1.0.0-rc.1+5", "1.0.0-rc.1+5"},
		{"with numbers as large as a computer has", "v1.0.9223372036854775807", "1.0.9223372036854775807"},
		{"not with a larger number", "1.0.9223372036854775808", ""},
		{"not with a leading zero", "1.02.3", ""},
		{"not with an empty pre-release", "1.0.0-", ""},
		{"not with a space", "1.0.0 ", ""},
		{"not with two v", "vv1.0.0", ""},
		{"not with a V", "V1.0.0", ""},
		{"not with four numbers", "1.2.3.4", ""},
		{"not as a name", "main", ""},
		{"not as a v", "v", ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			v, err := ParseModuleVersion(test.given)
			if checked := CheckModuleVersion(test.given); (checked == nil) != (err == nil) {
				t.Errorf("%q is checked with %v, and parsed with %v", test.given, checked, err)
			}
			if test.want == "" {
				if err == nil {
					t.Fatalf("%q is %v", test.given, v)
				}
				return
			}
			if err != nil || v.String() != test.want {
				t.Fatalf("%q is %v, %v", test.given, v, err)
			}
		})
	}
}

// The order is the order of go-version, newest first. It is semantic versioning except
// for a name in the place of a number. go-version does not distinguish builds: here the
// version without build metadata comes first, and the others are ordered by their text.
func TestNewestFirst(t *testing.T) {
	want := []string{
		"10.0.0", "2.0.0", "1.10.0", "1.9.0",
		"1.0.0", "1.0.0+b", "1.0.0+a", "1.0.0+1",
		"1.0.0-rc.10", "1.0.0-rc.10+a", "1.0.0-rc.9", "1.0.0-rc.1", "1.0.0-beta.11", "1.0.0-beta.2", "1.0.0-beta",
		"1.0.0-alpha.1", "1.0.0-alpha", "1.0.0-0", "0.0.0",
	}
	for shift := range want {
		got := append(slices.Clone(want[shift:]), want[:shift]...)
		slices.Reverse(got)
		SortNewestFirst(got, func(s string) *version.Version { return version.Must(ParseProviderVersion(s)) })
		if !slices.Equal(got, want) {
			t.Fatalf("the order is %q", got)
		}
	}
}

func TestSameToClients(t *testing.T) {
	for _, test := range []struct {
		rule, a, b string
		want       bool
	}{
		{"with and without build metadata", "1.0.0", "1.0.0+a", true},
		{"two builds", "1.0.0+b", "1.0.0+a", true},
		{"builds of a prerelease", "1.0.0-rc.1+b", "1.0.0-rc.1", true},
		{"a version is not another one", "1.0.0+a", "1.0.0+a", false},
		{"a prerelease is another version", "1.0.0-rc.1+a", "1.0.0+a", false},
		{"another number is another version", "1.0.1+a", "1.0.0", false},
	} {
		t.Run(test.rule, func(t *testing.T) {
			a, b := version.Must(ParseProviderVersion(test.a)), version.Must(ParseProviderVersion(test.b))
			if SameToClients(a, b) != test.want || SameToClients(b, a) != test.want {
				t.Errorf("of %s and %s it is not %v", a, b, test.want)
			}
		})
	}
}

// An accepted version is its own normal form, since clients request the normal form.
func FuzzParseProviderVersion(f *testing.F) {
	for _, test := range providerVersions {
		f.Add(test.given)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if v, err := ParseModuleVersion(s); err == nil {
			if again, err := ParseProviderVersion(v.String()); err != nil || !again.Equal(v) {
				t.Fatalf("of a module %q is %q, and that is %v, %v", s, v, again, err)
			}
		}
		v, err := ParseProviderVersion(s)
		if err == nil && (v.String() != s || strings.ContainsAny(s, "_/\\% \x00\n")) {
			t.Fatalf("%q is accepted as %q", s, v)
		}
	})
}

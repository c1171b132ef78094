package access

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

const tokenHex = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" // of abc

var tokenFiles = []struct {
	rule, file string
	want       []TokenEntry
	errs       []string // a part of each
}{
	{"nothing", "", nil, nil},
	{"comments and empty lines", "# tokens\n\n   # more\n\t\n", nil, nil},
	{"a token", "ci sha256:" + tokenHex + "\n", []TokenEntry{{Name: "ci"}}, nil},
	{"the last line need not end", "ci sha256:" + tokenHex, []TokenEntry{{Name: "ci"}}, nil},
	{"a hash in upper case", "ci sha256:" + strings.ToUpper(tokenHex), []TokenEntry{{Name: "ci"}}, nil},
	{"lines end in CRLF", "# x\r\nci sha256:" + tokenHex + " groups=dev\r\n", []TokenEntry{{Name: "ci", Groups: []string{"dev"}}}, nil},
	{"a byte order mark", "\ufeffci sha256:" + tokenHex + "\n", []TokenEntry{{Name: "ci"}}, nil},
	{"a comment behind", "ci sha256:" + tokenHex + " # of the build #1\n", []TokenEntry{{Name: "ci"}}, nil},
	{"tabs between words", "\tci\tsha256:" + tokenHex + "\tgroups=dev\n", []TokenEntry{{Name: "ci", Groups: []string{"dev"}}}, nil},
	{
		"options in any order", "ci sha256:" + tokenHex + " expires=2027-01-01T01:00:00+01:00 groups=dev,ops\n",
		[]TokenEntry{{Name: "ci", Groups: []string{"dev", "ops"}, Expires: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)}}, nil,
	},
	{
		"a bad line spoils no other", "a sha256:00\n" + tokenLineOf("b", "b") + "c\n" + tokenLineOf("d", "d"),
		[]TokenEntry{{Name: "b"}, {Name: "d"}}, []string{"line 1: a: a hash has 64 digits", "line 3: a line is NAME sha256:HEX"},
	},
	{
		"a name twice", tokenLineOf("ci", "a") + "\n" + tokenLineOf("ci", "b"),
		[]TokenEntry{{Name: "ci"}}, []string{"line 3: ci is the name on line 1 already"},
	},
	{
		"a token twice", tokenLineOf("a", "x") + tokenLineOf("b", "x", "groups=admin"),
		[]TokenEntry{{Name: "a"}}, []string{"line 2: b has the token of line 1"},
	},
	{
		"the name of a bad line is free", "ci sha256:00\n" + tokenLineOf("ci", "b"),
		[]TokenEntry{{Name: "ci"}}, []string{"line 1: ci: "},
	},
	{"a hash of another kind", "ci sha512:" + tokenHex, nil, []string{"line 1: a line is NAME sha256:HEX"}},
	{"a hash with a digit too few", "ci sha256:" + tokenHex[1:], nil, []string{"a hash has 64 digits"}},
	{"a hash with two digits more", "ci sha256:" + tokenHex + "00", nil, []string{"a hash has 64 digits"}},
	{"a hash of other letters", "ci sha256:" + strings.Repeat("g", 64), nil, []string{"no hexadecimal digit"}},
	{"the hash of nothing", tokenLineOf("ci", ""), nil, []string{"the hash of an empty token"}},
	{"no name", "sha256:" + tokenHex, nil, []string{"the name is missing"}},
	{"a name that a rule takes for nobody", tokenLineOf("anonymous", "a"), nil, []string{"the name must not be anonymous"}},
	{"an empty list of groups", tokenLineOf("ci", "a", "groups="), nil, []string{"ci: the name of a group is empty"}},
	{"an empty group", tokenLineOf("ci", "a", "groups=dev,,ops"), nil, []string{"ci: the name of a group is empty"}},
	{"groups twice", tokenLineOf("ci", "a", "groups=a", "groups=b"), nil, []string{"ci: groups= is there twice"}},
	{"groups with spaces", tokenLineOf("ci", "a", "groups=a, b"), nil, []string{"ci: the name of a group is empty"}},
	{"two times", tokenLineOf("ci", "a", "expires=2027-01-01T00:00:00Z", "expires=2027-01-01T00:00:00Z"), nil, []string{"ci: expires= is there twice"}},
	{"a day is no time", tokenLineOf("ci", "a", "expires=2027-01-01"), nil, []string{"ci: expires= needs a time"}},
	{"a year of five digits", tokenLineOf("ci", "a", "expires=9999-12-31T23:59:59-01:00"), nil, []string{"four digits"}},
	{"an option nobody knows", tokenLineOf("ci", "a", "group=dev"), nil, []string{"ci: behind the hash"}},
	{"an option in other letters", tokenLineOf("ci", "a", "Expires=2027-01-01T00:00:00Z"), nil, []string{"ci: behind the hash"}},
	{"more than a file may have", strings.Repeat("#", maxTokensFile) + "\n" + tokenLineOf("ci", "a"), nil, []string{"larger than 1024 KiB"}},
}

func TestParseTokens(t *testing.T) {
	for _, test := range tokenFiles {
		t.Run(test.rule, func(t *testing.T) {
			tokens, errs := ParseTokens([]byte(test.file))
			if got := tokens.Entries(); len(got)+len(test.want) > 0 && !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			if len(errs) != len(test.errs) {
				t.Fatalf("got errors %v, want %q", errs, test.errs)
			}
			for i, err := range errs {
				if !strings.Contains(err.Error(), test.errs[i]) {
					t.Errorf("got error %v, want one with %q", err, test.errs[i])
				}
			}
		})
	}
}

// A file in which things are in the wrong place has secrets in it, and its
// errors are logged.
func TestParseTokensRepeatsNoSecret(t *testing.T) {
	const secret = "correct-horse"
	for _, line := range []string{
		secret,
		"ci " + secret,
		secret + " " + secret,
		secret + " ci",
		"tfr_" + secret + " sha256:" + tokenHex,
		"ci sha256:" + secret,
		"ci sha256:" + tokenHex + secret,
		"ci sha256:" + tokenHex + " " + secret,
		"ci sha256:" + tokenHex + " groups=" + secret + "*",
		"ci sha256:" + tokenHex + " expires=" + secret,
		"sha256:" + secret + " ci",
	} {
		_, errs := ParseTokens([]byte(line))
		if len(errs) != 1 {
			t.Errorf("%q: got errors %v", line, errs)
		}
		for _, err := range errs {
			if text := err.Error(); strings.Contains(text, secret) || strings.Contains(text, tokenHex) {
				t.Errorf("%q: the error repeats it: %v", line, err)
			}
		}
	}
}

func TestJoinTokenErrorsIsShort(t *testing.T) {
	_, errs := ParseTokens([]byte(strings.Repeat("bad\n", 1000)))
	text := joinTokenErrors(errs).Error()
	if strings.Count(text, "\n") != 10 || !strings.HasSuffix(text, "and 990 more") {
		t.Errorf("got\n%s", text)
	}
	if len(errs) != 1000 || errs[10] == nil || errors.Is(errs[10], errs[0]) {
		t.Error("the errors were changed")
	}
}

package tokenfile

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

const someHash = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" // of abc

var sampleFiles = []struct {
	rule, file string
	want       []Entry
	errs       []string // part of each
}{
	{"nothing", "", nil, nil},
	{"comments and empty lines", "# tokens\n\n   # more\n\t\n", nil, nil},
	{"a token", "ci sha256:" + someHash + "\n", []Entry{{Name: "ci"}}, nil},
	{"the last line needs no line end", "ci sha256:" + someHash, []Entry{{Name: "ci"}}, nil},
	{"a hash in upper case", "ci sha256:" + strings.ToUpper(someHash), []Entry{{Name: "ci"}}, nil},
	{"lines end in CRLF", "# x\r\nci sha256:" + someHash + " groups=dev\r\n", []Entry{{Name: "ci", Groups: []string{"dev"}}}, nil},
	{"a byte order mark", "\ufeffci sha256:" + someHash + "\n", []Entry{{Name: "ci"}}, nil},
	{"a trailing comment", "ci sha256:" + someHash + " # of the build #1\n", []Entry{{Name: "ci"}}, nil},
	{"tabs between words", "\tci\tsha256:" + someHash + "\tgroups=dev\n", []Entry{{Name: "ci", Groups: []string{"dev"}}}, nil},
	{
		"options in any order", "ci sha256:" + someHash + " expires=2027-01-01T01:00:00+01:00 groups=dev,ops\n",
		[]Entry{{Name: "ci", Groups: []string{"dev", "ops"}, Expires: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)}}, nil,
	},
	{
		"an invalid line affects no other", "a sha256:00\n" + lineOf("b", "b") + "c\n" + lineOf("d", "d"),
		[]Entry{{Name: "b"}, {Name: "d"}}, []string{"line 1: a: a hash has 64 digits", "line 3: a line is NAME sha256:HEX"},
	},
	{
		"a name twice", lineOf("ci", "a") + "\n" + lineOf("ci", "b"),
		[]Entry{{Name: "ci"}}, []string{"line 3: ci is the name on line 1 already"},
	},
	{
		"a token twice", lineOf("a", "x") + lineOf("b", "x", "groups=admin"),
		[]Entry{{Name: "a"}}, []string{"line 2: b has the token of line 1"},
	},
	{
		"the name of an invalid line is free", "ci sha256:00\n" + lineOf("ci", "b"),
		[]Entry{{Name: "ci"}}, []string{"line 1: ci: "},
	},
	{"another hash algorithm", "ci sha512:" + someHash, nil, []string{"line 1: a line is NAME sha256:HEX"}},
	{"a hash with a digit too few", "ci sha256:" + someHash[1:], nil, []string{"a hash has 64 digits"}},
	{"a hash with two digits more", "ci sha256:" + someHash + "00", nil, []string{"a hash has 64 digits"}},
	{"a hash that is not hexadecimal", "ci sha256:" + strings.Repeat("g", 64), nil, []string{"not a hexadecimal digit"}},
	{"the hash of an empty token", lineOf("ci", ""), nil, []string{"the hash of an empty token"}},
	{"no name", "sha256:" + someHash, nil, []string{"the name is missing"}},
	{"a name with a meaning in rules", lineOf("anonymous", "a"), nil, []string{"the name must not be anonymous"}},
	{"an empty list of groups", lineOf("ci", "a", "groups="), nil, []string{"ci: the name of a group is empty"}},
	{"an empty group", lineOf("ci", "a", "groups=dev,,ops"), nil, []string{"ci: the name of a group is empty"}},
	{"groups twice", lineOf("ci", "a", "groups=a", "groups=b"), nil, []string{"ci: groups= is there twice"}},
	{"groups with spaces", lineOf("ci", "a", "groups=a, b"), nil, []string{"ci: the name of a group is empty"}},
	{"an expiry twice", lineOf("ci", "a", "expires=2027-01-01T00:00:00Z", "expires=2027-01-01T00:00:00Z"), nil, []string{"ci: expires= is there twice"}},
	{"a date without a time", lineOf("ci", "a", "expires=2027-01-01"), nil, []string{"ci: expires= needs a time"}},
	{"a year of five digits", lineOf("ci", "a", "expires=9999-12-31T23:59:59-01:00"), nil, []string{"four digits"}},
	{"an unknown option", lineOf("ci", "a", "group=dev"), nil, []string{"ci: after the hash"}},
	{"an option in another case", lineOf("ci", "a", "Expires=2027-01-01T00:00:00Z"), nil, []string{"ci: after the hash"}},
	{"a file that is too large", strings.Repeat("#", maxFile) + "\n" + lineOf("ci", "a"), nil, []string{"larger than 1024 KiB"}},
}

func TestParse(t *testing.T) {
	for _, test := range sampleFiles {
		t.Run(test.rule, func(t *testing.T) {
			tokens, errs := Parse([]byte(test.file))
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

// A file with words in the wrong place may contain secrets, and its errors are
// logged.
func TestParseErrorsQuoteNoSecret(t *testing.T) {
	const secret = "correct-horse"
	for _, line := range []string{
		secret,
		"ci " + secret,
		secret + " " + secret,
		secret + " ci",
		"tfr_" + secret + " sha256:" + someHash,
		"ci sha256:" + secret,
		"ci sha256:" + someHash + secret,
		"ci sha256:" + someHash + " " + secret,
		"ci sha256:" + someHash + " groups=" + secret + "*",
		"ci sha256:" + someHash + " expires=" + secret,
		"sha256:" + secret + " ci",
	} {
		_, errs := Parse([]byte(line))
		if len(errs) != 1 {
			t.Errorf("%q: got errors %v", line, errs)
		}
		for _, err := range errs {
			if text := err.Error(); strings.Contains(text, secret) || strings.Contains(text, someHash) {
				t.Errorf("%q: the error quotes it: %v", line, err)
			}
		}
	}
}

func TestJoinedErrorsAreShort(t *testing.T) {
	_, errs := Parse([]byte(strings.Repeat("bad\n", 1000)))
	text := joinErrors(errs).Error()
	if strings.Count(text, "\n") != 10 || !strings.HasSuffix(text, "and 990 more") {
		t.Errorf("got\n%s", text)
	}
	if len(errs) != 1000 || errs[10] == nil || errors.Is(errs[10], errs[0]) {
		t.Error("the errors were changed")
	}
}

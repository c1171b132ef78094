package tokenfile

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestGenerate(t *testing.T) {
	form := regexp.MustCompile(`^tfr_[A-Za-z0-9]{26,}$`)
	a, b := Generate(), Generate()
	if !form.MatchString(a) {
		t.Errorf("got %q, which is not %s", a, form)
	}
	if a == b {
		t.Error("two tokens are the same")
	}
}

func TestValidateEntry(t *testing.T) {
	tests := []struct {
		rule  string
		entry Entry
		want  string // empty: it is valid
	}{
		{"a name", Entry{Name: "ci"}, ""},
		{"an e-mail address", Entry{Name: "jane.doe+ci@example.com"}, ""},
		{"a name in Unicode", Entry{Name: "jürgen"}, ""},
		{"groups", Entry{Name: "ci", Groups: []string{"dev", "ops"}}, ""},
		{"no name", Entry{}, "is empty"},
		{"a long name", Entry{Name: strings.Repeat("a", 256)}, "is longer than 255 bytes"},
		{"a space", Entry{Name: "a b"}, "a space"},
		{"a comma", Entry{Name: "a,b"}, "a comma"},
		{"a comment character", Entry{Name: "a#b"}, "a #"},
		{"a wildcard", Entry{Name: "ci-*"}, "a *"},
		{"a line feed", Entry{Name: "a\nb"}, "cannot be printed"},
		{"a no-break space", Entry{Name: "a\u00a0b"}, "cannot be printed"},
		{"not UTF-8", Entry{Name: "a\xff"}, "not in UTF-8"},
		{"anonymous", Entry{Name: "anonymous"}, "have another meaning in a rule"},
		{"anonymous in another case", Entry{Name: "Anonymous"}, "have another meaning in a rule"},
		{"authenticated", Entry{Name: "authenticated"}, "have another meaning in a rule"},
		{"a group as a name", Entry{Name: "group:dev"}, "means a group in a rule"},
		{"a token as a name", Entry{Name: Generate()}, "a token or a hash in its place"},
		{"a hash as a name", Entry{Name: "sha256:00"}, "a token or a hash in its place"},
		{"an empty group", Entry{Name: "ci", Groups: []string{""}}, "is empty"},
		{"two groups in one", Entry{Name: "ci", Groups: []string{"a,b"}}, "a comma"},
		{"a group as in a rule", Entry{Name: "ci", Groups: []string{"group:dev"}}, "without group:"},
		{"a group twice", Entry{Name: "ci", Groups: []string{"dev", "dev"}}, "listed twice"},
		{"a year of five digits", Entry{Name: "ci", Expires: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}, "four digits"},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			err := test.entry.validate()
			if test.want == "" {
				if err != nil {
					t.Errorf("got error %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got error %v, want one with %q", err, test.want)
			}
			if strings.HasPrefix(test.entry.Name, tokenPrefix) && strings.Contains(err.Error(), test.entry.Name) {
				t.Errorf("the error has the token in it: %v", err)
			}
		})
	}
}

// testTime is the time of the tests.
var testTime = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// lineOf returns the line of a token.
func lineOf(name, secret string, options ...string) string {
	t := token{Entry: Entry{Name: name}, digest: digestOf(secret)}
	return strings.Join(append([]string{string(t.appendTo(nil))}, options...), " ") + "\n"
}

func TestTokensFind(t *testing.T) {
	tokens, errs := Parse([]byte(
		lineOf("ci", "tfr_ci", "groups=dev,ops") +
			lineOf("old", "tfr_old", "expires=2026-11-20T12:00:00Z") +
			lineOf("new", "tfr_new", "expires=2026-11-20T13:00:01+01:00")))
	if errs != nil {
		t.Fatal(errs)
	}
	tests := []struct {
		rule, secret string
		want         string
		err          error
	}{
		{"a token", "tfr_ci", "ci", nil},
		{"one that expires in a second", "tfr_new", "new", nil},
		{"one that expires now", "tfr_old", "", errExpired},
		{"an unknown one", "tfr_cj", "", errUnknown},
		{"another case", "TFR_CI", "", errUnknown},
		{"none", "", "", errUnknown},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			s, err := tokens.Find(test.secret, testTime)
			if s.ID != test.want || !errors.Is(err, test.err) {
				t.Errorf("got %+v and error %v, want %q and %v", s, err, test.want, test.err)
			}
			if err != nil && test.secret != "" && strings.Contains(err.Error(), test.secret) {
				t.Errorf("the error has the token in it: %v", err)
			}
			if s.Anonymous() && len(s.Groups) > 0 {
				t.Errorf("a refused token has groups: %v", s.Groups)
			}
		})
	}
	if s, _ := tokens.Find("tfr_ci", testTime); strings.Join(s.Groups, " ") != "dev ops" {
		t.Errorf("got groups %v", s.Groups)
	}
}

func BenchmarkTokensFind(b *testing.B) {
	var file strings.Builder
	for i := range 1000 {
		file.WriteString(lineOf("ci-"+strings.Repeat("x", i%50)+string(rune('a'+i%26))+time.Duration(i).String(), Generate()))
	}
	secret := Generate()
	file.WriteString(lineOf("me", secret))
	tokens, errs := Parse([]byte(file.String()))
	if errs != nil {
		b.Fatal(errs)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tokens.Find(secret, testTime); err != nil {
			b.Fatal(err)
		}
	}
}

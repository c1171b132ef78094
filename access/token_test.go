package access

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestNewToken(t *testing.T) {
	form := regexp.MustCompile(`^tfr_[A-Za-z0-9]{26,}$`)
	a, b := NewToken(), NewToken()
	if !form.MatchString(a) {
		t.Errorf("got %q, which is not %s", a, form)
	}
	if a == b {
		t.Error("two tokens are the same")
	}
}

func TestValidateTokenEntry(t *testing.T) {
	tests := []struct {
		rule  string
		entry TokenEntry
		want  string // empty: it is good
	}{
		{"a name", TokenEntry{Name: "ci"}, ""},
		{"an address of mail", TokenEntry{Name: "jane.doe+ci@example.com"}, ""},
		{"a name of other letters", TokenEntry{Name: "jürgen"}, ""},
		{"groups", TokenEntry{Name: "ci", Groups: []string{"dev", "ops"}}, ""},
		{"no name", TokenEntry{}, "is empty"},
		{"a long name", TokenEntry{Name: strings.Repeat("a", 256)}, "is longer than 255 bytes"},
		{"a space", TokenEntry{Name: "a b"}, "a space"},
		{"a comma", TokenEntry{Name: "a,b"}, "a comma"},
		{"what begins a comment", TokenEntry{Name: "a#b"}, "a #"},
		{"a pattern", TokenEntry{Name: "ci-*"}, "a *"},
		{"the end of a line", TokenEntry{Name: "a\nb"}, "cannot be printed"},
		{"a space of another kind", TokenEntry{Name: "a\u00a0b"}, "cannot be printed"},
		{"not UTF-8", TokenEntry{Name: "a\xff"}, "not in UTF-8"},
		{"nobody", TokenEntry{Name: "anonymous"}, "mean others in a rule"},
		{"nobody, in other letters", TokenEntry{Name: "Anonymous"}, "mean others in a rule"},
		{"everybody", TokenEntry{Name: "authenticated"}, "mean others in a rule"},
		{"a group as a name", TokenEntry{Name: "group:dev"}, "means a group in a rule"},
		{"a token as a name", TokenEntry{Name: NewToken()}, "a token or a hash in its place"},
		{"a hash as a name", TokenEntry{Name: "sha256:00"}, "a token or a hash in its place"},
		{"an empty group", TokenEntry{Name: "ci", Groups: []string{""}}, "is empty"},
		{"two groups in one", TokenEntry{Name: "ci", Groups: []string{"a,b"}}, "a comma"},
		{"a group as in a rule", TokenEntry{Name: "ci", Groups: []string{"group:dev"}}, "without group:"},
		{"a group twice", TokenEntry{Name: "ci", Groups: []string{"dev", "dev"}}, "listed twice"},
		{"a year that does not fit", TokenEntry{Name: "ci", Expires: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}, "four digits"},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			err := test.entry.Validate()
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

// tokenTime is the time in the tests of tokens.
var tokenTime = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// tokenLineOf is the line of a token.
func tokenLineOf(name, secret string, options ...string) string {
	t := token{TokenEntry: TokenEntry{Name: name}, digest: digestToken(secret)}
	return strings.Join(append([]string{string(t.appendTo(nil))}, options...), " ") + "\n"
}

func TestTokensFind(t *testing.T) {
	tokens, errs := ParseTokens([]byte(
		tokenLineOf("ci", "tfr_ci", "groups=dev,ops") +
			tokenLineOf("old", "tfr_old", "expires=2026-11-20T12:00:00Z") +
			tokenLineOf("new", "tfr_new", "expires=2026-11-20T13:00:01+01:00")))
	if errs != nil {
		t.Fatal(errs)
	}
	tests := []struct {
		rule, secret string
		want         string
		err          error
	}{
		{"a token", "tfr_ci", "ci", nil},
		{"one that is good for another second", "tfr_new", "new", nil},
		{"one that expires now", "tfr_old", "", ErrTokenExpired},
		{"one that nobody has", "tfr_cj", "", ErrTokenUnknown},
		{"letters of another case", "TFR_CI", "", ErrTokenUnknown},
		{"none", "", "", ErrTokenUnknown},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			s, err := tokens.Find(test.secret, tokenTime)
			if s.ID != test.want || !errors.Is(err, test.err) {
				t.Errorf("got %+v and error %v, want %q and %v", s, err, test.want, test.err)
			}
			if err != nil && test.secret != "" && strings.Contains(err.Error(), test.secret) {
				t.Errorf("the error has the token in it: %v", err)
			}
			if s.Anonymous() && len(s.Groups) > 0 {
				t.Errorf("nobody has groups: %v", s.Groups)
			}
		})
	}
	if s, _ := tokens.Find("tfr_ci", tokenTime); strings.Join(s.Groups, " ") != "dev ops" {
		t.Errorf("got groups %v", s.Groups)
	}
}

// Two digests that begin alike are still two tokens.
func TestTokensFindComparesWholeDigests(t *testing.T) {
	a := digestToken("a")
	b := a
	b[len(b)-1] ^= 1
	tokens := newTokens([]token{
		{TokenEntry: TokenEntry{Name: "other"}, digest: b},
		{TokenEntry: TokenEntry{Name: "a"}, digest: a},
		{TokenEntry: TokenEntry{Name: "another"}, digest: b},
	})
	if s, err := tokens.Find("a", tokenTime); err != nil || s.ID != "a" {
		t.Errorf("got %+v and error %v", s, err)
	}
}

func BenchmarkTokensFind(b *testing.B) {
	var file strings.Builder
	for i := range 1000 {
		file.WriteString(tokenLineOf("ci-"+strings.Repeat("x", i%50)+string(rune('a'+i%26))+time.Duration(i).String(), NewToken()))
	}
	secret := NewToken()
	file.WriteString(tokenLineOf("me", secret))
	tokens, errs := ParseTokens([]byte(file.String()))
	if errs != nil {
		b.Fatal(errs)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tokens.Find(secret, tokenTime); err != nil {
			b.Fatal(err)
		}
	}
}

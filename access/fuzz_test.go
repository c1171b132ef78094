package access_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	svchost "github.com/hashicorp/terraform-svchost"

	"github.com/caddy-terraform/caddy-terraform-registry/access"
	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

// splitRule divides a line as Caddyfiles are divided: at spaces, unless between
// double quotes or backquotes.
func splitRule(line string) (words []string) {
	for line = strings.TrimLeft(line, " "); line != ""; line = strings.TrimLeft(line, " ") {
		end := " "
		if line[0] == '"' || line[0] == '`' {
			end, line = line[:1], line[1:]
		}
		var word string
		word, line, _ = strings.Cut(line, end)
		words = append(words, word)
	}
	return words
}

// A rule that is read prints as one that decides the same, on one line that can
// be shown to anybody.
func FuzzParseRule(f *testing.F) {
	for _, line := range append(tenLines, "allow anonymous read *", "deny authenticated publish a.b:443/x internal:443", `allow "CN=a, O=b" read acme`) {
		words := splitRule(line)
		f.Add(words[0], words[1], words[2], words[3], words[len(words)-1], "acme", "acme/demo")
	}
	for _, line := range []string{"allow * read **", "deny group: publish /", "Allow Group:x Read a//b", "allow `\xff read \xff", "deny \n\" read .:*"} {
		words := strings.Split(line, " ")
		f.Add(words[0], words[1], words[2], words[3], "ｌｏｃａｌｈｏｓｔ", "ci", "registry.terraform.io/hashicorp/null")
	}
	f.Add("allow", "ci", "read", "p\u0385", "a／b", "ci", "acme/demo")
	f.Fuzz(func(t *testing.T, effect, who, right, pattern, another, id, address string) {
		rule, err := access.ParseRule(effect, who, right, pattern, another)
		if err != nil {
			checkSentence(t, err)
			return
		}
		line := rule.String()
		words := splitRule(line)
		if len(words) != 5 || words[1] != who || strings.ContainsFunc(line, unicode.IsControl) {
			t.Fatalf("%q has the words %q", line, words)
		}
		again, err := access.ParseRule(words...)
		if err != nil || again.String() != line {
			t.Fatalf("%q read again is %q, %v", line, again, err)
		}
		one, other := access.NewRules(rule), access.NewRules(again)
		for _, a := range variants(address) {
			for _, s := range []access.Subject{{}, {ID: id}, {ID: who}, {ID: "x", Groups: []string{id, strings.TrimPrefix(who, "group:")}}} {
				for _, r := range []access.Right{access.Read, access.Publish} {
					d, e := one.Decide(s, r, a), other.Decide(s, r, a)
					if d.Allowed != e.Allowed || (d.Rule == nil) != (e.Rule == nil) {
						t.Fatalf("%q decides %+v, read again %+v", line, d, e)
					}
					if d.Allowed && effect != "allow" || d.Rule != nil && r.String() != right {
						t.Fatalf("%q decides %+v about %v", line, d, r)
					}
				}
			}
		}
	})
}

// A pattern covers what a regular expression of the same meaning does.
func FuzzPattern(f *testing.F) {
	for _, address := range []string{"acme/demo", "acme/vpc/aws", "registry.terraform.io/hashicorp/null", "internal:443/acme/demo", "bücher.example:8443/münchen/straße"} {
		for _, pattern := range []string{address, "*", "acme", "*/*", "*c*/d*o", "*.*", "r*.io/h*p/*", "internal:443", "*:*/*/*", "*.example:8443/münchen", "localhost"} {
			f.Add(pattern, address)
		}
	}
	f.Fuzz(func(t *testing.T, pattern, address string) {
		rule, err := access.ParseRule("allow", "anonymous", "read", pattern)
		if err != nil {
			checkSentence(t, err)
			return
		}
		a, err := access.ParseResource(address)
		if err != nil {
			return
		}
		text := strings.TrimPrefix(rule.String(), "allow anonymous read ")
		if text != "*" && strings.ContainsFunc(text+a.String(), func(r rune) bool { return r > unicode.MaxASCII }) {
			return // the hostname may be printed otherwise than it is compared
		}
		patterns, parts, own := strings.Split(text, "/"), []string{a.Namespace, a.Name}, true
		if a.System != "" {
			parts = append(parts, a.System)
		}
		if first := patterns[0]; strings.ContainsAny(first, ".:") || first == "localhost" {
			// The port is left out of what is compared.
			patterns[0], parts, own = strings.TrimSuffix(first, ":443"), append([]string{string(a.Hostname)}, parts...), false
		}
		want := own == a.Hosted && len(patterns) <= len(parts)
		for i := range min(len(patterns), len(parts)) {
			expression := strings.ReplaceAll(regexp.QuoteMeta(patterns[i]), `\*`, ".*")
			want = want && regexp.MustCompile("^"+expression+"$").MatchString(parts[i])
		}
		if got := access.NewRules(rule).Public(a); got != (want || text == "*") {
			t.Fatalf("%q covers %+v: %t", text, a, got)
		}
	})
}

// An address that is read prints as one that is the same, and is nobody's
// unless a rule says so.
func FuzzParseAddress(f *testing.F) {
	f.Add("｛ｏｃ﹁･ｈｏｓｔ/demo", "ci")
	for _, test := range parsedAddresses {
		f.Add(test.given, "ci")
	}
	for _, test := range refusedAddresses {
		f.Add(test.given, "")
	}
	everything := rulesOf(f, "allow anonymous read *")
	f.Fuzz(func(t *testing.T, s, id string) {
		a, err := access.ParseResource(s)
		if err != nil {
			checkSentence(t, err)
			return
		}
		if again, err := access.ParseResource(a.String()); err != nil || again != a {
			t.Fatalf("%+v printed as %q is %+v, %v", a, a, again, err)
		}
		if a.Hosted != (a.Hostname == "") || a.Namespace == "" || a.Name == "" {
			t.Fatalf("%q is %+v", s, a)
		}
		for _, right := range []access.Right{access.Read, access.Publish} {
			if d := access.NewRules().Decide(access.Subject{ID: id, Groups: []string{id}}, right, a); d != (access.Decision{}) {
				t.Fatalf("without rules it is %+v", d)
			}
		}
		if access.NewRules().Public(a) || !everything.Public(a) {
			t.Fatalf("%v is public without rules, or not with one for everything", a)
		}
		// What an address prints as is a pattern that covers it, and what is above it.
		itself := a.String()
		for above := itself; ; above = above[:strings.LastIndex(above, "/")] {
			if !rulesOf(t, "allow anonymous read "+above).Public(a) {
				t.Fatalf("%q does not cover %+v", above, a)
			}
			if !strings.Contains(above, "/") {
				return
			}
		}
	})
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
			t.Fatalf("%q read again is %q", groups, again)
		}
		if again := access.ParseGroups(groups); !slices.Equal(again, groups) {
			t.Fatalf("%q as a list is %q", groups, again)
		}
	})
}

// variants are the address as it is read, as if the registry answered as its
// hostname, and whatever s may be as its parts.
func variants(s string) []access.Resource {
	list := []access.Resource{
		{Address: address.Address{Namespace: s}, Hosted: true},
		{Address: address.Address{Hostname: svchost.Hostname(s), Namespace: s, Name: s, System: s}},
	}
	if a, err := access.ParseResource(s); err == nil {
		own := a
		own.Hosted = true
		list = append(list, a, own)
	}
	return list
}

// checkSentence tells whether an error can be shown on a line.
func checkSentence(t *testing.T, err error) {
	t.Helper()
	if s := err.Error(); s == "" || strings.ContainsAny(s, "\n\r\x00") {
		t.Fatalf("the error is %q", s)
	}
}

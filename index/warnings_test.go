package index_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
)

func TestDeprecationWarnings(t *testing.T) {
	var many []string
	for i := range 15 {
		many = append(many, fmt.Sprintf("1.%d.0", i))
	}
	for _, test := range []struct {
		rule     string
		versions []string
		notices  string
		warnings []string
	}{
		{"no notice", []string{"1.0.0"}, "", nil},
		{"a notice for no version", []string{"1.0.0"}, `deprecated "2.0.0" {}`, nil},
		{"one version", []string{"1.0.0", "1.1.0"}, `deprecated "1.0.0" {}`, []string{"version 1.0.0 is deprecated"}},
		{"two versions", []string{"1.0.0", "1.1.0", "1.2.0"}, `deprecated "< 1.2" {}`, []string{"versions 1.0.0 and 1.1.0 are deprecated"}},
		{"a range has no other version in it", []string{"1.0.0", "1.1.0", "1.1.4", "1.2.0", "2.0.0"}, `deprecated "!= 1.2.0" {}`,
			[]string{"versions 1.0.0 to 1.1.4 and 2.0.0 are deprecated"}},
		{"a reason and a link", []string{"1.0.0", "1.1.0"}, "deprecated \"1.0.0\" {\n  reason = \"use 1.1\"\n  link = \"https://example.com/\"\n}",
			[]string{"version 1.0.0 is deprecated: use 1.1 (https://example.com/)"}},
		{"one line for each notice, and each version in one of them", []string{"1.0.0", "1.1.0", "1.2.0"},
			"deprecated \"1.0.0\" { reason = \"a\" }\ndeprecated \"< 1.2\" { reason = \"b\" }\ndeprecated \"< 1.1\" {}\n",
			[]string{"version 1.1.0 is deprecated: b", "version 1.0.0 is deprecated: a"}},
		{"the first of many", many, `deprecated "!= 1.1.0, != 1.3.0, != 1.5.0, != 1.7.0, != 1.9.0, != 1.11.0, != 1.13.0" {}`,
			[]string{"versions 1.0.0, 1.2.0, 1.4.0, 1.6.0, 1.8.0, 1.10.0, 1.12.0 and 1.14.0 are deprecated"}},
		{"names that are long", []string{"1.0.0-alpha20260101.12345678901234567890", "1.0.0-alpha20260102", "1.0.0-alpha20260103.12345678901234567890", "1.0.0-alpha20260104", "1.0.0-alpha20260105.12345678901234567890", "2.0.0"},
			`deprecated "!= 1.0.0-alpha20260102, != 1.0.0-alpha20260104, != 2.0.0" {}`,
			[]string{"versions 1.0.0-alpha20260101.12345678901234567890 and 2 more are deprecated"}},
		{"a version that is withdrawn", []string{"1.0.0", "1.1.0"}, "withdrawn \"1.0.0\" {\n  reason = \"a leaked key\"\n}",
			[]string{"withdrawn, use other versions than 1.0.0 (a leaked key)"}},
		{"all that are withdrawn in one line, the newest first, before what is deprecated", []string{"1.0.0", "1.1.0", "1.2.0", "2.0.0"},
			"withdrawn \"1.0.0\" { reason = \"a\" }\nwithdrawn \"1.1.0\" {}\nwithdrawn \"1.2.0\" { reason = \"b\" }\ndeprecated \"2.0.0\" {}\n",
			[]string{"withdrawn, use other versions than 1.2.0 (b), 1.1.0, 1.0.0 (a)", "version 2.0.0 is deprecated"}},
		{"the newest of many that are withdrawn for one reason", many, `withdrawn "< 1.13" { reason = "a" }`,
			[]string{"withdrawn, use other versions than 1.12.0, 1.11.0, 1.10.0, 1.9.0, 9 more (a)"}},
		{"a line of 200 characters at most", []string{"1.0.0", "1.1.0"}, fmt.Sprintf("withdrawn \"1.0.0\" { reason = %q }", strings.Repeat("ä", 400)),
			[]string{"withdrawn, use other versions than 1.0.0 (" + strings.Repeat("ä", 157) + "…"}},
		{"a version that is withdrawn and not there", []string{"1.0.0"}, `withdrawn "3.0.0" {}`, nil},
		{"a long reason is cut, a link is not", []string{"1.0.0"}, fmt.Sprintf("deprecated \"1.0.0\" {\n reason = %q\n link = \"https://example.com/\"\n}", strings.Repeat("ä", 400)),
			[]string{"version 1.0.0 is deprecated: " + strings.Repeat("ä", 170) + "… (https://example.com/)"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			files := aVersionedTree(t, test.versions...)
			files.Write("providers/acme/demo/registry.hcl", test.notices+"\n")
			s := scan(t, files)
			nothingWithheld(t, s)
			var list struct{ Warnings []string }
			if err := json.Unmarshal(s.Provider(index.PlaceOf(ownDemo)).Versions().Head, &list); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(list.Warnings, test.warnings) {
				t.Errorf("they are %q", list.Warnings)
			}
			for _, w := range list.Warnings {
				if text, _, _ := strings.Cut(w, " ("); utf8.RuneCountInString(text) > 200 {
					t.Errorf("%q is too long", w)
				}
			}
		})
	}
}

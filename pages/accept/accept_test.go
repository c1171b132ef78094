package accept

import (
	"strings"
	"testing"
)

func TestWhichFormIsPreferred(t *testing.T) {
	const markdown, page = "text/markdown; charset=utf-8; variant=GFM", "text/html; charset=utf-8"
	for _, test := range []struct {
		rule, header string
		want         bool
	}{
		{"nothing is asked for", "", false},
		{"Markdown alone", "text/markdown", true},
		{"the greater weight", "text/html;q=0.5, text/markdown;q=0.6", true},
		{"no weight is one", "text/markdown, text/html;q=0.9, */*", true},
		{"no weight is one, of the other", "text/html, text/markdown;q=0.9", false},
		{"HTML if both are the same", "text/markdown, text/html", false},
		{"nothing weighs nothing", "text/markdown;q=0", false},
		{"not even HTML", "text/html;q=0, text/markdown;q=0", false},
		{"all but HTML", "*/*, text/html;q=0", true},
		{"all but Markdown", "*/*, text/markdown;q=0.000", false},
		{"the closest range counts", "text/*;q=0.9, */*;q=1, text/html;q=0.2", true},
		{"whatever comes first", "text/html;q=0.2, text/*;q=0.9", true},
		{"a range with both", "text/*, */*", false},
		{"of a browser", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", false},
		{"a parameter is closer", "text/markdown;q=0.1, text/markdown;charset=UTF-8, text/html;q=0.5", true},
		{"another charset is another type", "text/markdown;charset=latin1, text/html;q=0.1", false},
		{"the dialect of the pages", "text/markdown; variant=gfm", true},
		{"case does not matter", "TEXT/Markdown;Q=0.5", true},
		{"no number is no weight", "text/markdown;q=x", false},
		{"nor is more than one", "text/markdown;q=2", false},
		{"nor is this number", "text/markdown;q=NaN, text/html;q=0.1", false},
		{"other types do not matter", "application/json, text/markdown;q=0.2", true},
		{"what cannot be read is skipped", "text/;;, text/markdown", true},
		{"ranges without end are not read", strings.Repeat("a/b,", 1000) + "text/markdown", false},
	} {
		if got := Prefers(test.header, markdown, page); got != test.want {
			t.Errorf("%s: %q prefers it: %t", test.rule, test.header, got)
		}
	}
}

func TestGzip(t *testing.T) {
	for header, want := range map[string]bool{
		"": false, "gzip": true, "gzip, deflate, br": true, "br;q=1.0, gzip;q=0.8": true, "gzip;q=0": false, "gzip;q=0.000, *": false,
		"gzip; q=0.001": true, "deflate": false, "x-gzip": false, "*": false, "identity": false,
	} {
		if got := Gzip(header); got != want {
			t.Errorf("%q allows it: %t", header, got)
		}
	}
}

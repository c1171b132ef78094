package pages

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// Several lines of a header count as one list.
func TestAllLinesOfAcceptCount(t *testing.T) {
	for _, lines := range [][]string{{"text/html;q=0.5", "text/markdown"}, {"text/markdown", "text/html;q=0.5"}, {"text/markdown;variant=GFM"}} {
		if !prefersMarkdown(http.Header{"Accept": lines}) {
			t.Errorf("%q do not prefer Markdown", lines)
		}
	}
}

// Redirects keep the format, and caches learn from Vary why.
func TestRedirectsKeepTheFormat(t *testing.T) {
	s := siteOf(t, snapshotOf(t, siteTree(t)))
	const m = "/modules/acme/vpc/aws"
	for _, test := range []struct{ path, accept, want string }{
		{m + "?tab=readme&format=md", "", m + "?format=md"},
		{m + "?tab=readme", "text/markdown", m + "?format=md"},
		{m + "?tab=readme", "", m},
		{"/providers/acme/demo?tab=overview&format=md", "", "/providers/acme/demo?format=md"},
		{m + "/1.4.0/examples?format=md", "", m + "/1.4.0?tab=examples&format=md"},
		{m + "/1.4.0/examples", "", m + "/1.4.0?tab=examples"},
		{"/modules/ACME/vpc/aws?format=md", "", m + "?format=md"},
		{"/modules?format=md", "", "/browse/modules?format=md"},
	} {
		w := s.get(test.path, "", "Accept", test.accept)
		if to := w.Header().Get("Location"); w.Code != http.StatusPermanentRedirect || to != test.want || !slices.Contains(w.Header().Values("Vary"), "Accept") {
			t.Errorf("%s, accepting %q: %d to %q, %v", test.path, test.accept, w.Code, to, w.Header())
		}
	}
}

func TestPagesAsMarkdown(t *testing.T) {
	s := siteOf(t, snapshotOf(t, siteTree(t)))
	for path, want := range map[string][]string{
		"/": {"# ", "acme/vpc/aws", "](/modules/acme/vpc/aws?format=md)", "](/browse/modules?format=md)"},
		"/modules/acme/vpc/aws": {
			"# acme/vpc/aws", "```terraform\n", "version = \"~> 1.4\"", "[subnets](/modules/acme/vpc/aws/latest/submodules/subnets?format=md)",
			"![a drawing](/modules/acme/vpc/aws/latest/files/images/net.svg)", "[Inputs (2)](/modules/acme/vpc/aws?tab=inputs&format=md)",
		},
		"/modules/acme/vpc/aws?tab=inputs":          {"### `zones`", "- Default: `[]`"},
		"/modules/acme/vpc/aws/1.2.0":               {"Subnets overlap."},
		"/modules/acme/vpc/aws/latest/code/main.tf": {"```tf\n"},
		"/modules/acme/vpc/aws/1.1.0":               {"Its key is public."},
		"/modules/acme/vpc/aws/9.9.9":               {"9.9.9"},
		"/providers/acme/demo":                      {"# acme/demo"},
		"/browse/modules?namespace=acme":            {"[acme/labels/null](/modules/acme/labels/null?format=md)"},
		"/search?q=vpc":                             {"[acme/vpc/aws](/modules/acme/vpc/aws?format=md)"},
	} {
		separator := "?"
		if strings.Contains(path, "?") {
			separator = "&"
		}
		page, by, asked := s.get(path, ""), s.get(path+separator+"format=md", ""), s.get(path, "", "Accept", "text/markdown")
		if by.Body.String() != asked.Body.String() || by.Code != page.Code || asked.Code != page.Code {
			t.Errorf("%s: %d by its query, %d by its header, %d as HTML", path, by.Code, asked.Code, page.Code)
		}
		if kind := by.Header().Get("Content-Type"); kind != "text/markdown; charset=utf-8" {
			t.Errorf("%s is %s", path, kind)
		}
		for _, w := range []http.Header{page.Header(), by.Header(), asked.Header()} {
			if !slices.Contains(w.Values("Vary"), "Accept") {
				t.Errorf("%s varies by %q", path, w.Values("Vary"))
			}
		}
		if tag := by.Header().Get("ETag"); tag != "" && tag == page.Header().Get("ETag") {
			t.Errorf("%s has one validator for both formats", path)
		}
		checkText(t, path, by.Body.String(), want, []string{"<", "Skip to content", "Colours"})
	}
	// Files of packages, assets and feeds have one form.
	for _, path := range []string{"/modules/acme/vpc/aws/latest/files/README.md", "/feed.atom", "/llms.txt"} {
		if w := s.get(path, "", "Accept", "text/markdown"); w.Header().Get("Content-Type") == markdownType || slices.Contains(w.Header().Values("Vary"), "Accept") {
			t.Errorf("%s: %v", path, w.Header())
		}
	}
	if kind := s.get("/?format=html", "", "Accept", "text/markdown").Header().Get("Content-Type"); kind != htmlType {
		t.Errorf("what is asked for as HTML is %s", kind)
	}
}

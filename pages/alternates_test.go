package pages

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Several lines of a header count as one list.
func TestAllLinesOfAcceptCount(t *testing.T) {
	for _, lines := range [][]string{{"text/html;q=0.5", "text/markdown"}, {"text/markdown", "text/html;q=0.5"}, {"text/markdown;variant=GFM"}} {
		if !prefersMarkdown(http.Header{"Accept": lines}) {
			t.Errorf("%q do not prefer Markdown", lines)
		}
	}
}

// Whoever asks for Markdown gets it also where the page is somewhere else. Caches
// learn from Vary why.
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
		for _, part := range want {
			if !strings.Contains(by.Body.String(), part) {
				t.Errorf("%s lacks %q:\n%s", path, part, by.Body)
			}
		}
		for _, part := range []string{"<", "Skip to content", "Colours"} {
			if strings.Contains(by.Body.String(), part) {
				t.Errorf("%s has %q:\n%s", path, part, by.Body)
			}
		}
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

func TestListForAgents(t *testing.T) {
	s := siteOf(t, snapshotOf(t, siteTree(t)))
	w := s.get("/llms.txt", "")
	for _, want := range []string{
		"# registry.example.com\n", "\n## Modules\n", "- [acme/vpc/aws](/modules/acme/vpc/aws?format=md): A network.", "\n## Providers\n",
		"- [registry.terraform.io/hashicorp/null](/registries/registry.terraform.io/providers/hashicorp/null?format=md)",
	} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("it lacks %q:\n%s", want, w.Body)
		}
	}
	private := siteOf(t, snapshotOf(t, privateTree(t)), "allow alice read *")
	if w := private.get("/llms.txt", ""); w.Code != http.StatusUnauthorized {
		t.Errorf("of a private registry: %d", w.Code)
	}
}

func TestOneLine(t *testing.T) {
	for text, want := range map[string]string{
		"a\n\n# b":         "a # b",
		"[x](javascript:)": `\[x\](javascript:)`,
		"<script>":         "&lt;script>",
	} {
		if got := oneLine(text); got != want {
			t.Errorf("%q is %q", text, got)
		}
	}
}

func TestOtherFormsOfAPage(t *testing.T) {
	s := siteOf(t, snapshotOf(t, siteTree(t)))
	for path, want := range map[string]struct{ canonical, alternates string }{
		"/modules/acme/vpc/aws/latest":                                              {"/modules/acme/vpc/aws", "/modules/acme/vpc/aws?format=md /v1/modules/acme/vpc/aws /modules/acme/vpc/aws/feed.atom"},
		"/modules/acme/vpc/aws/1.3.0?tab=inputs":                                    {"/modules/acme/vpc/aws/1.3.0?tab=inputs", "/modules/acme/vpc/aws/1.3.0?tab=inputs&format=md /v1/modules/acme/vpc/aws/1.3.0 /modules/acme/vpc/aws/feed.atom"},
		"/modules/acme":                                                             {"/modules/acme", "/modules/acme?format=md /modules/acme/feed.atom"},
		"/registries/registry.example.com/modules/acme/vpc/aws/latest":              {"/modules/acme/vpc/aws", "/modules/acme/vpc/aws?format=md /v1/modules/acme/vpc/aws /modules/acme/vpc/aws/feed.atom"},
		"/registries/registry.example.com/modules/acme":                             {"/modules/acme", "/modules/acme?format=md /modules/acme/feed.atom"},
		"/registries/registry.example.com/modules/acme/vpc/aws/latest/code/main.tf": {"/modules/acme/vpc/aws/latest/code/main.tf", "/modules/acme/vpc/aws/latest/code/main.tf?format=md"},
		"/":                              {"/", "/?format=md /feed.atom"},
		"/browse/modules?namespace=acme": {"/browse/modules?namespace=acme", "/browse/modules?namespace=acme&format=md"},
		"/registries/registry.terraform.io/providers/hashicorp/null": {"/registries/registry.terraform.io/providers/hashicorp/null", "/registries/registry.terraform.io/providers/hashicorp/null?format=md /v1/registries/registry.terraform.io/providers/hashicorp/null /registries/registry.terraform.io/providers/hashicorp/null/feed.atom"},
		"/modules/acme/nothing/aws":                                  {"", ""},
		"/modules/acme/vpc/aws/9.9.9":                                {"", ""},
	} {
		var canonical string
		var alternates []string
		for n := range parse(t, s.get(path, "")).Descendants() {
			if n.Type == html.ElementNode && n.DataAtom == atom.Link {
				switch attr(n, "rel") {
				case "canonical":
					canonical = attr(n, "href")
				case "alternate":
					alternates = append(alternates, attr(n, "href"))
				}
			}
		}
		if canonical != want.canonical || strings.Join(alternates, " ") != want.alternates {
			t.Errorf("%s: canonical is %s, alternates are %s", path, canonical, strings.Join(alternates, " "))
		}
	}
	body := s.get("/modules/acme/vpc/aws", "").Body.String()
	if !strings.Contains(body, `<meta name="description" content="A network.`) {
		t.Error("a module's page has no description")
	}
}

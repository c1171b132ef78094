package pages

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

func TestAnAcceptHeaderThatPrefersMarkdown(t *testing.T) {
	for accept, want := range map[string]bool{
		"":                                      false,
		"text/markdown":                         true,
		"text/markdown, text/html;q=0.9, */*":   true,
		"text/html, text/markdown;q=0.9":        false,
		"text/markdown, text/html":              false,
		"text/html;q=0.5, text/markdown;q=0.6":  true,
		"text/markdown;q=0":                     false,
		"text/*, */*":                           false,
		"text/markdown;q=x":                     false,
		"TEXT/Markdown":                         false,
		"text/html,application/xhtml+xml,*/*":   false,
		"text/markdown; charset=utf-8; q=0.1":   true,
		"application/json, text/markdown;q=0.2": true,
	} {
		if got := prefersMarkdown(accept); got != want {
			t.Errorf("%q prefers it: %t", accept, got)
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
		"/modules/acme/vpc/aws/latest":           {"/modules/acme/vpc/aws", "/modules/acme/vpc/aws?format=md /v1/modules/acme/vpc/aws /modules/acme/vpc/aws/feed.atom"},
		"/modules/acme/vpc/aws/1.3.0?tab=inputs": {"/modules/acme/vpc/aws/1.3.0?tab=inputs", "/modules/acme/vpc/aws/1.3.0?tab=inputs&format=md /v1/modules/acme/vpc/aws/1.3.0 /modules/acme/vpc/aws/feed.atom"},
		"/modules/acme":                          {"/modules/acme", "/modules/acme?format=md /modules/acme/feed.atom"},
		"/":                                      {"/", "/?format=md /feed.atom"},
		"/browse/modules?namespace=acme":         {"/browse/modules?namespace=acme", "/browse/modules?namespace=acme&format=md"},
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

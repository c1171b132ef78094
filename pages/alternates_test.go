package pages

import (
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

func TestListForAgents(t *testing.T) {
	s := siteOf(t, snapshotOf(t, siteTree(t)))
	w := s.get("/llms.txt", "")
	checkText(t, "/llms.txt", w.Body.String(), []string{
		"# registry.example.com\n", "\n## Modules\n", "- [acme/vpc/aws](/modules/acme/vpc/aws?format=md): A network.", "\n## Providers\n",
		"- [registry.terraform.io/hashicorp/null](/registries/registry.terraform.io/providers/hashicorp/null?format=md)",
	}, nil)
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
		"/providers/acme/demo?tab=pages&group=Guides&offset=1":       {"/providers/acme/demo?tab=pages&group=Guides&offset=1", "/providers/acme/demo?tab=pages&group=Guides&offset=1&format=md /v1/providers/acme/demo /providers/acme/demo/feed.atom"},
		"/providers/acme/demo?tab=pages&q=thing":                     {"/providers/acme/demo?tab=pages&q=thing", "/providers/acme/demo?tab=pages&q=thing&format=md /v1/providers/acme/demo /providers/acme/demo/feed.atom"},
		"/modules/acme/vpc/aws/1.3.0?tab=changes&from=1.2.0":         {"/modules/acme/vpc/aws/1.3.0?tab=changes&from=1.2.0", "/modules/acme/vpc/aws/1.3.0?tab=changes&from=1.2.0&format=md /v1/modules/acme/vpc/aws/1.3.0 /modules/acme/vpc/aws/feed.atom"},
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

package pages

import (
	"strings"
	"testing"

	"golang.org/x/net/html/atom"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// headingsAndItems returns the headings of a page, and the links in its lists.
func headingsAndItems(t *testing.T, s *Site, path string) string {
	t.Helper()
	var found []string
	for n := range parse(t, s.get(path, "")).Descendants() {
		switch {
		case n.DataAtom == atom.H1 || n.DataAtom == atom.H2:
			found = append(found, "# "+textIn(n))
		case n.DataAtom == atom.P && attr(n, "class") == "name":
			found = append(found, attr(elements(n, atom.A)[0], "href"))
		}
	}
	return strings.Join(found, "\n")
}

func TestWhatIsAtAPlace(t *testing.T) {
	files := siteTree(t)
	files.Write("modules/acme/vpc/google/1.0.0/main.tf", "#")
	s := siteOf(t, snapshotOf(t, files))
	for _, test := range []struct{ rule, path, want string }{
		{"a namespace has its modules and providers", "/modules/acme", "# acme\n# Modules 3\n/modules/acme/labels/null\n/modules/acme/vpc/aws\n/modules/acme/vpc/google\n# Providers 1\n/providers/acme/demo"},
		{"below providers, those come first", "/providers/acme", "# acme\n# Providers 1\n/providers/acme/demo\n# Modules 3\n/modules/acme/labels/null\n/modules/acme/vpc/aws\n/modules/acme/vpc/google"},
		{"a name has its systems", "/modules/acme/vpc", "# acme/vpc\n# Modules 2\n/modules/acme/vpc/aws\n/modules/acme/vpc/google"},
		{"a namespace of another registry is another one", "/registries/registry.terraform.io/modules/acme", "# acme\n# Modules 1\n/registries/registry.terraform.io/modules/acme/tags/null"},
		{"a registry has what is mirrored from it", "/registries/registry.terraform.io", "# registry.terraform.io\n# Modules 1\n/registries/registry.terraform.io/modules/acme/tags/null\n# Providers 1\n/registries/registry.terraform.io/providers/hashicorp/null"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			if got := headingsAndItems(t, s, test.path); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// A long list goes on where it can be filtered.
func TestALargeNamespaceLeadsToItsList(t *testing.T) {
	files := indextest.New(t)
	for i := range pageItems + 1 {
		files.Write("modules/acme/m"+strings.Repeat("x", i)+"/aws/1.0.0/main.tf", "#")
	}
	body := siteOf(t, snapshotOf(t, files)).get("/modules/acme", "").Body.String()
	if !strings.Contains(body, `<a href="/browse/modules?namespace=acme&amp;registry=-">All 31</a>`) {
		t.Errorf("there is no link to all:\n%s", body)
	}
}

// A module leads to the same for other systems that its visitor sees.
func TestOtherSystems(t *testing.T) {
	files := siteTree(t)
	files.Write("modules/acme/vpc/google/1.0.0/main.tf", "#").Write("modules/acme/vpc/azurerm/1.0.0/main.tf", "#")
	s := siteOf(t, snapshotOf(t, files), "deny anonymous read acme/vpc/azurerm", "allow anonymous read *")
	doc := parse(t, s.get("/modules/acme/vpc/aws", ""))
	var others []string
	for _, li := range elements(doc, atom.Li) {
		if strings.HasPrefix(textIn(li), "also for") {
			others = append(others, textIn(li)+" "+attr(elements(li, atom.A)[0], "href"))
		}
	}
	if len(others) != 1 || others[0] != "also for google /modules/acme/vpc/google" {
		t.Errorf("others: %q", others)
	}
}

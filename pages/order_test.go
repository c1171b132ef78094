package pages

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html/atom"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// A list is by address or by date, and stays so where its links lead.
func TestListsHaveAnOrder(t *testing.T) {
	files := indextest.New(t)
	for i := range pageItems + 5 {
		name := fmt.Sprintf("modules/acme/m%02d/aws/1.0.0/main.tf", i)
		setTime(t, files.Write(name, "# a module"), name, indextest.Born.Add(time.Duration(i*7%11)*time.Hour))
	}
	files.Write("modules/other/one/aws/1.0.0/main.tf", "# a module").Write("modules/acme/one/google/1.0.0/main.tf", "# a module")
	s := siteOf(t, snapshotOf(t, files))
	for _, test := range []struct {
		rule, path string
		first      []string
		links      []string // that the page has
	}{
		{"by address", "/browse/modules?namespace=acme", []string{"acme/m00/aws", "acme/m01/aws"}, []string{"/browse/modules?namespace=acme&sort=newest", "/browse/modules?namespace=acme&offset=30"}},
		{"by date, then by address", "/browse/modules?namespace=acme&sort=newest", []string{"acme/one/google", "acme/m03/aws", "acme/m14/aws", "acme/m25/aws"}, []string{"/browse/modules?namespace=acme", "/browse/modules?namespace=acme&sort=newest&offset=30", "/browse/modules?sort=newest"}},
		{"an unknown order is by address", "/browse/modules?namespace=acme&sort=oldest", []string{"acme/m00/aws"}, []string{"/browse/modules?namespace=acme&sort=newest"}},
		{"a namespace by address", "/modules/acme", []string{"acme/m00/aws"}, []string{"/modules/acme?sort=newest", "/browse/modules?namespace=acme&registry=-"}},
		{"a namespace by date", "/modules/acme?sort=newest", []string{"acme/one/google", "acme/m03/aws", "acme/m14/aws"}, []string{"/modules/acme", "/browse/modules?namespace=acme&registry=-&sort=newest"}},
		{"a filter keeps it", "/browse/modules?sort=newest", []string{"acme/one/google", "other/one/aws"}, []string{"/browse/modules?namespace=acme&sort=newest"}},
		{"the only one has no order", "/modules/other", []string{"other/one/aws"}, nil},
	} {
		t.Run(test.rule, func(t *testing.T) {
			main := elements(parse(t, s.get(test.path, "")), atom.Main)[0]
			var names, links []string
			for _, a := range elements(main, atom.A) {
				links = append(links, attr(a, "href"))
				if attr(a.Parent, "class") == "name" {
					names = append(names, textIn(a))
				}
			}
			if len(names) < len(test.first) || !slices.Equal(names[:len(test.first)], test.first) {
				t.Errorf("it begins with %q", names)
			}
			for _, want := range test.links {
				if !slices.Contains(links, want) {
					t.Errorf("no link leads to %s: %q", want, links)
				}
			}
			if orders := strings.Contains(textIn(main), "Newest first"); orders != (test.links != nil) {
				t.Errorf("it has orders: %t", orders)
			}
		})
	}
	if text := s.get("/browse/modules?sort=newest&format=md", "").Body.String(); !strings.Contains(text, "[By name](/browse/modules?format=md) · [Newest first](/browse/modules?sort=newest&format=md)") {
		t.Errorf("as Markdown:\n%.500s", text)
	}
}

package pages

import (
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/html/atom"

	"github.com/caddy-terraform/caddy-terraform-registry/pages/assets"
)

func TestARegistryHasAFace(t *testing.T) {
	logo, err := assets.NewLogo("/etc/acme.SVG", []byte(`<svg xmlns="http://www.w3.org/2000/svg"/>`))
	if err != nil {
		t.Fatal(err)
	}
	s := siteOf(t, snapshotOf(t, siteTree(t)))
	s.Path, s.Name, s.Logo, s.Links = "/ui", "Acme platform", logo, []Link{{"Ask in #infra", "https://chat.example.com/infra"}, {"Bad", "javascript:alert(1)"}}
	doc := parse(t, s.get("/ui/", ""))
	if h1, title := textIn(elements(doc, atom.H1)[0]), textIn(elements(doc, atom.Title)[0]); h1 != "Acme platform" || title != "Acme platform" {
		t.Errorf("the home page is %q with the title %q", h1, title)
	}
	if main := textIn(elements(doc, atom.Main)[0]); !strings.Contains(main, "Terraform and OpenTofu, at registry.example.com.") || !strings.Contains(main, `"registry.example.com/NAMESPACE`) {
		t.Errorf("it does not say by which name clients use it:\n%s", main)
	}
	var links []string
	for _, a := range elements(elements(doc, atom.Footer)[0], atom.A) {
		links = append(links, textIn(a)+" "+attr(a, "href"))
	}
	if got := strings.Join(links, "\n"); !strings.HasPrefix(got, "Ask in #infra https://chat.example.com/infra\nBad #ZgotmplZ\n") {
		t.Errorf("links:\n%s", got)
	}
	if title := textIn(elements(parse(t, s.get("/ui/modules/acme/vpc/aws?tab=inputs", "")), atom.Title)[0]); title != "Inputs · acme/vpc/aws 1.4.0 · Acme platform" {
		t.Errorf("the title of a page is %q", title)
	}
	src := attr(elements(elements(doc, atom.Header)[0], atom.Img)[0], "src")
	w := s.get(src, "")
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "image/svg+xml" || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") ||
		!strings.Contains(w.Header().Get("Content-Security-Policy"), "sandbox") {
		t.Errorf("%s: %d %v", src, w.Code, w.Header())
	}
	if w := s.get("/ui/_registry/logo-0123456789.svg", ""); w.Code != http.StatusNotFound {
		t.Errorf("another name: %d", w.Code)
	}
}

package handlers_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

func TestProviderLists(t *testing.T) {
	s := serve(t, registry(scan(t, catalogTree(t))))
	const demo, other, zeta = "acme/demo/1.1.0", "acme/other/0.1.0", "zeta/demo/1.0.0"
	for _, test := range []struct {
		rule, path string
		want       []string
	}{
		{"all hosted ones, each with its latest version", "", []string{demo, other, zeta}},
		{"the same with a slash", "/", []string{demo, other, zeta}},
		{"of a namespace", "/acme", []string{demo, other}},
		{"of a namespace in another case", "/ACME", []string{demo, other}},
		{"of a namespace that has none", "/nobody", nil},
		{"of a namespace by a filter", "?namespace=zeta", []string{zeta}},
		{"a filter of systems is for modules", "?provider=aws", []string{demo, other, zeta}},
		{"found by name", "/search?q=demo", []string{demo, zeta}},
		{"found by the description", "/search?q=demonstrations", []string{demo}},
		{"found by namespace and type", "/search?q=zeta/demo", []string{zeta}},
		{"what is mirrored is not found", "/search?q=null", nil},
	} {
		s.rule(test.rule, func(t *testing.T, s *site) {
			var page struct {
				Providers []map[string]any `json:"providers"`
			}
			s.json("/v1/providers"+test.path, &page)
			if got := idsOf(page.Providers); page.Providers == nil || !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
	s.rule("an entry has the fields of the public registry", func(t *testing.T, s *site) {
		const want = `{"meta":{"limit":1,"current_offset":0,"next_offset":1,"next_url":"/v1/providers/acme?limit=1\u0026offset=1"},` +
			`"providers":[{"id":"acme/demo/1.1.0","owner":"platform team","namespace":"acme","name":"demo","alias":"","version":"1.1.0","tag":"v1.1.0",` +
			`"description":"Manages demonstrations","source":"https://github.com/acme/terraform-provider-demo","published_at":"2026-01-02T03:04:05Z",` +
			`"downloads":0,"tier":"community","logo_url":""}]}`
		if a := s.get("/v1/providers/acme?limit=1"); a.body != want {
			t.Errorf("got %s\nwant %s", a.body, want)
		}
	})
}

func TestProviderDetail(t *testing.T) {
	s := serve(t, registry(scan(t, catalogTree(t))))
	s.rule("it has the fields of the public registry", func(t *testing.T, s *site) {
		const want = `{"id":"acme/demo/1.1.0","owner":"platform team","namespace":"acme","name":"demo","alias":"","version":"1.1.0","tag":"v1.1.0",` +
			`"description":"Manages demonstrations","source":"https://github.com/acme/terraform-provider-demo","published_at":"2026-01-02T03:04:05Z",` +
			`"downloads":0,"tier":"community","logo_url":"","versions":["1.0.0","1.1.0","2.0.0-beta.1"],"docs":[` +
			`{"id":"acme/demo/1.1.0/docs/index.md","title":"The provider","path":"docs/index.md","slug":"index","category":"overview","subcategory":"","language":"hcl"},` +
			`{"id":"acme/demo/1.1.0/docs/resources/thing.md","title":"demo_thing","path":"docs/resources/thing.md","slug":"thing","category":"resources","subcategory":"Things","language":"hcl"}]}`
		for _, path := range []string{"/v1/providers/acme/demo", "/v1/providers/acme/demo/1.1.0", "/v1/providers/Acme/demo/1.1.0"} {
			if a := s.get(path); a.body != want {
				t.Errorf("%s: got %s\nwant %s", path, a.body, want)
			}
		}
	})
	s.rule("a release without documentation has a list without any", func(t *testing.T, s *site) {
		if a := s.get("/v1/providers/acme/demo/1.0.0"); !strings.HasSuffix(a.body, `"docs":[]}`) {
			t.Errorf("got %s", a.body)
		}
	})
	s.rule("Dependabot finds the changelog by the source of the version that is used", func(t *testing.T, s *site) {
		var d struct{ Version, Source string }
		s.json(s.resolve(s.service("providers.v1").String(), "acme/demo/1.0.0").String(), &d)
		if d.Version != "1.0.0" || d.Source != "https://github.com/acme/terraform-provider-demo" {
			t.Errorf("got %+v", d)
		}
	})
	s.rule("a version that is withdrawn is gone, with the reason", func(t *testing.T, s *site) {
		a := s.get("/v1/providers/acme/demo/0.9.0")
		mustRefuse(t, a, http.StatusGone)
		if !strings.Contains(a.body, "it loses state") {
			t.Errorf("got %s", a.body)
		}
	})
	for _, path := range []string{"acme/nothing", "acme/demo/9.9.9", "acme/demo/v1.1.0", "mirrored.example.com/acme/null", "acme/search"} {
		s.rule("what does not exist is 404: "+path, func(t *testing.T, s *site) {
			mustRefuse(t, s.get("/v1/providers/"+path), http.StatusNotFound)
		})
	}
}

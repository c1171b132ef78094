package pages

import (
	"strings"
	"testing"

	svchost "github.com/hashicorp/terraform-svchost"
	"golang.org/x/net/html/atom"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// twoNamesOf serves a tree under two names.
func twoNamesOf(t *testing.T, files *indextest.Tree) *Site {
	t.Helper()
	s := siteOf(t, snapshotOf(t, files))
	s.Registry.Hostnames = []svchost.Hostname{"registry.example.com", "tf.example.com"}
	return s
}

// Providers and modules without HOSTNAME are the same under each name of the registry. Pages show them
// as hosted, whichever name a configuration or a path has.
func TestHostedUnderEachNameOfTheRegistry(t *testing.T) {
	files := indextest.New(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64").Docs("index.md", "# It", "resources/thing.md", "# demo_thing")
	files.Provider("tf.example.com/acme/own", "1.0.0", "linux_amd64")
	files.Write("modules/acme/vpc/demo/1.0.0/main.tf", `
terraform {
  required_providers {
    demo = { source = "tf.example.com/acme/demo" }
    own  = { source = "tf.example.com/acme/own" }
  }
}
resource "demo_thing" "this" {}
module "labels" {
  source = "tf.example.com/acme/labels/null"
}
`)
	files.Write("modules/acme/labels/null/1.0.0/main.tf", "")
	s := twoNamesOf(t, files)
	for _, test := range []struct{ rule, path, link string }{
		{"a provider", "/modules/acme/vpc/demo?tab=dependencies", "/providers/acme/demo"},
		{"a module", "/modules/acme/vpc/demo?tab=dependencies", "/modules/acme/labels/null"},
		{"what only that name has", "/modules/acme/vpc/demo?tab=dependencies", "/registries/tf.example.com/providers/acme/own"},
		{"the documentation of a resource", "/modules/acme/vpc/demo?tab=resources", "/providers/acme/demo/latest/docs/resources/thing"},
		{"the page by the other name", "/registries/tf.example.com/providers/acme/demo", "/providers/acme/demo?tab=versions"},
		{"the page of a module by the other name", "/registries/tf.example.com/modules/acme/labels/null", "/modules/acme/labels/null?tab=versions"},
		{"the page by the name itself", "/registries/registry.example.com/providers/acme/demo", "/providers/acme/demo?tab=versions"},
		{"the page of what only that name has", "/registries/tf.example.com/providers/acme/own", "/registries/tf.example.com/providers/acme/own?tab=versions"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			w := s.get(test.path, "")
			page, linked := parse(t, w), false
			if strings.Contains(w.Body.String(), "in place of") {
				t.Error("it says that it is mirrored")
			}
			for _, a := range elements(page, atom.A) {
				to, _, _ := strings.Cut(attr(a, "href"), "#")
				linked = linked || to == test.link
				if strings.HasPrefix(to, "/") && !strings.HasPrefix(to, "/v1/") && s.get(to, "").Code >= 400 {
					t.Errorf("it links to %s, which is not there", to)
				}
			}
			if !linked {
				t.Errorf("it does not link to %s", test.link)
			}
		})
	}
}

// What one name of the registry has of its own is merged with what is hosted under that name alone.
func TestPagesOfNamesThatDiffer(t *testing.T) {
	files := indextest.New(t)
	files.Provider("acme/demo", "1.0.0", "linux_amd64")
	files.Provider("registry.example.com/acme/demo", "2.0.0", "linux_amd64")
	s := twoNamesOf(t, files)
	for path, version := range map[string]string{"/providers/acme/demo": "2.0.0", "/registries/tf.example.com/providers/acme/demo": "1.0.0"} {
		page := parse(t, s.get(path+"?tab=packages", ""))
		for _, l := range elements(page, atom.Link) {
			if attr(l, "rel") == "canonical" && !strings.HasSuffix(attr(l, "href"), path+"?tab=packages") {
				t.Errorf("%s is said to be %s", path, attr(l, "href"))
			}
		}
		if text := textIn(page); !strings.Contains(text, version) {
			t.Errorf("%s does not show %s:\n%s", path, version, text)
		}
	}
}

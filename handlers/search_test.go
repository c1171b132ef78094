package handlers_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// searchTree has modules and providers of two teams, which use each other's.
func searchTree(t *testing.T) *index.Snapshot {
	files := indextest.New(t)
	module := func(name, source, provider string) {
		files.Write("modules/"+name+"/1.0.0/main.tf", `
terraform {
  required_providers {
    demo = {
      source  = "`+provider+`"
      version = "~> 1.0"
    }
  }
}
module "used" {
  source  = "`+source+`"
  version = "~> 1.0"
}
resource "demo_thing" "one" {}
`)
	}
	module("open/caller/aws", "registry.example.com/open/vpc/aws", "registry.example.com/open/demo")
	module("secret/caller/aws", "registry.example.com/open/vpc/aws", "registry.example.com/open/demo")
	module("open/vpc/aws", "acme/other/aws", "hashicorp/aws")
	module("registry.terraform.io/acme/other/aws", "acme/none/aws", "secret/demo")
	for _, system := range []string{"azurerm", "google"} {
		files.Write("modules/systems/vpc/"+system+"/1.0.0/main.tf", "# a module")
	}
	files.Write("modules/systems/vpc2/aws/1.0.0/main.tf", "# a module")
	files.Write("modules/open/caller/aws/1.0.0/variables.tf", `variable "vcp_size" {}`)
	for _, provider := range []string{"open/demo", "secret/demo"} {
		files.Provider(provider, "1.0.0", "linux_amd64").Docs("resources/thing.md", "# "+provider, "guides/start.md", "# Start with "+provider)
	}
	x := index.New(index.Options{Open: files.Open, Signer: newKey(t)})
	t.Cleanup(func() { x.Close() })
	return indextest.Rescan(t, x)
}

// found lists the results of a search.
func found(t *testing.T, v *handlers.View, query string) (list []string) {
	t.Helper()
	s, err := v.Search(v.ParseQuery(query), 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []handlers.FoundList{s.Modules, s.Providers, s.Pages} {
		for i := range l.Len() {
			e, page := l.Item(i)
			name := e.Address.String()
			if page >= 0 {
				name += "#" + e.Titles().Title(page).Slug
			}
			list = append(list, name)
		}
	}
	return list
}

// A search finds only what the user may see, and so do the modules that use something.
func TestSearchesHaveRights(t *testing.T) {
	s := searchTree(t)
	g := privately(t, registry(s), "allow anonymous read open registry.terraform.io", "allow reader read secret")
	g2 := registry(s)
	for _, test := range []struct{ rule, query, seen, all string }{
		{"a type of resources", "demo_thing", "open/caller/aws open/vpc/aws registry.terraform.io/acme/other/aws open/demo#thing", "open/caller/aws open/vpc/aws secret/caller/aws registry.terraform.io/acme/other/aws open/demo#thing secret/demo#thing"},
		{"a required provider that is hidden is named by who requires it alone", "secret/demo", "registry.terraform.io/acme/other/aws", "registry.terraform.io/acme/other/aws secret/caller/aws secret/demo"},
		{"a hidden address, in whose place stands what has most of its words", "secret/caller/aws", "open/caller/aws registry.terraform.io/acme/other/aws", "secret/caller/aws"},
		{"a pasted source", `source = "registry.example.com/open/vpc/aws"`, "open/vpc/aws", "open/vpc/aws"},
		{"an address of the public registry", "acme/other/aws", "registry.terraform.io/acme/other/aws", "registry.terraform.io/acme/other/aws"},
		{"an address with a typo, not what has its words in a text", "open/vcp/aws", "open/vpc/aws open/caller/aws", "open/vpc/aws open/caller/aws"},
		{"the URL of a page of documentation", "https://registry.example.com/providers/open/demo/1.0.0/docs/resources/thing", "open/demo#thing", "open/demo#thing"},
		{"the URL of a hidden one", "https://registry.example.com/providers/secret/demo/1.0.0/docs/guides/start", "registry.terraform.io/acme/other/aws open/demo#start", "secret/demo#start"},
		{"a typo of a word that only something hidden has", "strat scret", "open/demo#start", "secret/demo#start"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			visit(t, g, anonymous, ownHost, func(v *handlers.View) {
				if got := strings.Join(found(t, v, test.query), " "); got != test.seen {
					t.Errorf("seen is %q, want %q", got, test.seen)
				}
			})
			visit(t, g2, anonymous, ownHost, func(v *handlers.View) {
				if got := strings.Join(found(t, v, test.query), " "); got != test.all {
					t.Errorf("all is %q, want %q", got, test.all)
				}
			})
		})
	}
	systems := func(v *handlers.View, a address.Address) (list []string) {
		others, err := v.OtherSystems(a)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range others {
			list = append(list, o.Address.String())
		}
		return list
	}
	callers := func(v *handlers.View, a address.Address) (list []string) {
		used, err := v.UsedBy(a)
		if err != nil {
			t.Fatal(err)
		}
		for c := range used.Callers() {
			list = append(list, c.Address.String()+" "+c.Constraint)
		}
		return list
	}
	vpc := address.Address{Namespace: "open", Name: "vpc", System: "aws"}
	demo := address.Address{Namespace: "open", Name: "demo"}
	visit(t, g, anonymous, ownHost, func(v *handlers.View) {
		if got := systems(v, address.Address{Namespace: "systems", Name: "vpc", System: "google"}); got != nil {
			t.Errorf("hidden modules are for other systems: %q", got)
		}
		for _, a := range []address.Address{vpc, demo} {
			if got, want := callers(v, a), []string{"open/caller/aws ~> 1.0"}; !slices.Equal(got, want) {
				t.Errorf("%s is used by %q, want %q", a, got, want)
			}
		}
		if titles, err := v.DocTitles(demo.WithHostname("")); err != nil || len(titles.All()) != 2 {
			t.Errorf("there are titles %+v, %v", titles, err)
		}
		if titles, err := v.DocTitles(address.Address{Namespace: "secret", Name: "demo"}); err != nil || titles != nil {
			t.Errorf("hidden titles are %+v, %v", titles, err)
		}
	})
	visit(t, g2, anonymous, ownHost, func(v *handlers.View) {
		for system, want := range map[string][]string{"azurerm": {"systems/vpc/google"}, "aws": {"systems/vpc/azurerm", "systems/vpc/google"}} {
			if got := systems(v, address.Address{Namespace: "systems", Name: "vpc", System: system}); !slices.Equal(got, want) {
				t.Errorf("for other systems than %s there are %q, want %q", system, got, want)
			}
		}
		if got, want := callers(v, vpc), []string{"open/caller/aws ~> 1.0", "secret/caller/aws ~> 1.0"}; !slices.Equal(got, want) {
			t.Errorf("it is used by %q, want %q", got, want)
		}
	})
	visit(t, g2, anonymous, "other.example.com", func(v *handlers.View) {
		if got := callers(v, vpc); got != nil {
			t.Errorf("by another name it is used by %q", got)
		}
	})
}

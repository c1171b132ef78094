package clientconfig

import (
	"fmt"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
)

const sampleSettings = `
plugin_cache_dir = "/var/cache"
credentials "registry.example.com" { token = "secret" }
host "registry.terraform.io" {
  services = {
    "providers.v1" = "https://registry.example.com/v1/registries/registry.terraform.io/providers/"
    "login.v1"     = { client = "terraform" }
  }
}
provider_installation {
  dev_overrides {
    "hashicorp/null"    = "/home/dev/{ü}${"a"}"
  }
  network_mirror {
    url     = "https://mirror.example.com/v1/mirror/"
    include = ["*/*/*"]
    exclude = ["registry.example.com/*/*", "hashicorp/aws"]
  }
  network_mirror {
    url     = "https://second.example.com/v1/mirror/"
    include = ["hashicorp/*"]
  }
  filesystem_mirror { path = "/usr/share/terraform" }
  direct { include = ["registry.example.com/*/*"] }
}
`

func TestSettings(t *testing.T) {
	s, err := Parse([]byte(sampleSettings)).Settings()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(s.Services), "map[registry.terraform.io:map[providers.v1:https://registry.example.com/v1/registries/registry.terraform.io/providers/]]"; got != want {
		t.Errorf("the services are %s", got)
	}
	for _, test := range []struct{ rule, provider, want string }{
		{"included", "registry.terraform.io/acme/demo", "[https://mirror.example.com/v1/mirror/] false true"},
		{"excluded, with the default hostname, and included in another", "registry.terraform.io/hashicorp/aws", "[https://second.example.com/v1/mirror/] false true"},
		{"the same with OpenTofu's default hostname", "registry.opentofu.org/hashicorp/aws", "[https://second.example.com/v1/mirror/] false true"},
		{"in both", "registry.terraform.io/hashicorp/null", "[https://mirror.example.com/v1/mirror/ https://second.example.com/v1/mirror/] false true"},
		{"from its own registry", "registry.example.com/acme/demo", "[] true true"},
	} {
		a, err := address.Parse(test.provider)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(s.Sources(a)); got != test.want {
			t.Errorf("%s: %s", test.rule, got)
		}
	}
	if got := fmt.Sprint(Settings{}.Sources(address.Address{})); got != "[] true false" {
		t.Errorf("without methods, a provider comes from %s", got)
	}
}

// Clients read an older HCL, in which a line may have more than one block or argument.
func TestSettingsInFewLines(t *testing.T) {
	for _, content := range []string{
		`provider_installation { network_mirror { url = "https://mirror/" } direct { exclude = ["*/*/*"]}}`,
		`provider_installation { dev_overrides { "hashicorp/null" = "/home/dev" } network_mirror { url = "https://mirror/" include = ["*/*/*"] } } plugin_cache_dir = "${x["a"]}"`,
		"host \"a.example.com\" { services = { \"modules.v1\" = \"https://b/\", \"login.v1\" = { client = \"a\", ports = [1, 2] } } }\r\nprovider_installation {\r\n  network_mirror { # the mirror\r\n    url = \"https://mirror/\", include = [\r\n\"*/*/*\"] } }\r\n",
	} {
		s, err := Parse([]byte(content)).Settings()
		if err != nil {
			t.Errorf("%v in\n%s", err, content)
			continue
		}
		if got := fmt.Sprint(s.Sources(address.Address{Hostname: "registry.terraform.io", Namespace: "acme", Name: "demo"})); got != "[https://mirror/] false false" {
			t.Errorf("the sources are %s by\n%s", got, content)
		}
	}
}

func TestSettingsThatCannotBeRead(t *testing.T) {
	for _, test := range []struct{ rule, content, want string }{
		{"no HCL", "a {", "line 1 cannot be read: correct it"},
		{"no hostname", `host "a b" {}`, "line 1 cannot be read: correct it"},
		{"no URL", "provider_installation {\n network_mirror {\n url = \"mirror\"\n }\n}", "line 3 cannot be read: correct it"},
		{"no pattern", "provider_installation {\n direct {\n include = [\"a\"]\n }\n}", "line 3 cannot be read: correct it"},
		{"no list", "provider_installation {\n direct {\n include = 1\n }\n}", "line 3 cannot be read: correct it"},
		{"after overrides", "provider_installation {\n dev_overrides {\n \"hashicorp/null\" = \"/ü\"\n }\n direct {\n include = 1\n }\n}", "line 6 cannot be read: correct it"},
		{"overrides that do not end", "provider_installation {\n dev_overrides {\n \"hashicorp/null\" = \"/x\"\n", "line 3 cannot be read: correct it"},
		{"in few lines, no HCL", "provider_installation { direct {} }\na = [", "line 1 cannot be read: correct it"},
		{"in few lines, no URL", "provider_installation { direct {}\n network_mirror { url = \"mirror\" include = [] } }", "line 2 cannot be read: correct it"},
		{"in few lines, no hostname", "a = 1 b = 2\nhost \"a b\" {}", "line 2 cannot be read: correct it"},
		{"in few lines, no label", "a = 1 b = 2\n\nhost {}", "line 3 cannot be read: correct it"},
		{"no JSON", "{", "line 1 cannot be read: correct it"},
	} {
		if _, err := Parse([]byte(test.content)).Settings(); fmt.Sprint(err) != test.want {
			t.Errorf("%s: %v", test.rule, err)
		}
	}
}

// A file is JSON by its content, as for clients.
func TestSettingsInJSON(t *testing.T) {
	s, err := Parse([]byte(" \n" + `{"host":{"a.example.com":{"services":{"modules.v1":"https://b/"}}}}`)).Settings()
	if got := fmt.Sprint(s.Services); err != nil || got != "map[a.example.com:map[modules.v1:https://b/]]" {
		t.Errorf("%s, %v", got, err)
	}
}

// The settings that the registry prints are read again.
func TestPrintedSettingsAreRead(t *testing.T) {
	r := Registry{Hostnames: []string{"registry.example.com"}, URL: services, HostsProviders: true}
	for _, text := range []string{r.Mirror(), r.StandIn(Origin{Hostname: "registry.terraform.io", Providers: true, Modules: true}), r.Host("registry.example.com"), Credentials("a.example.com", "b")} {
		if _, err := Parse([]byte(text)).Settings(); err != nil {
			t.Errorf("%v in\n%s", err, text)
		}
	}
}

func FuzzSettings(f *testing.F) {
	f.Add([]byte(sampleSettings))
	f.Add([]byte("a = 1 b = \"${c[{d=2, e={}}]}\" f { g \"h\" {} # i\n } j = <<K\nl\nK\n"))
	f.Add([]byte(`{"host":{"a.example.com":{"services":{"modules.v1":"https://b/"}}}}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		s, err := Parse(content).Settings()
		if err == nil {
			s.Sources(address.Address{Hostname: "registry.example.com", Namespace: "acme", Name: "demo"})
		}
	})
}

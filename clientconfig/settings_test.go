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
	s, err := ReadSettings([]byte(sampleSettings), "a.tfrc")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(s.Services), "map[registry.terraform.io:map[providers.v1:https://registry.example.com/v1/registries/registry.terraform.io/providers/]]"; got != want {
		t.Errorf("the services are %s", got)
	}
	for _, test := range []struct{ rule, provider, want string }{
		{"included", "registry.terraform.io/acme/demo", "[https://mirror.example.com/v1/mirror/] false"},
		{"excluded, with the default hostname, and included in another", "registry.terraform.io/hashicorp/aws", "[https://second.example.com/v1/mirror/] false"},
		{"the same with OpenTofu's default hostname", "registry.opentofu.org/hashicorp/aws", "[https://second.example.com/v1/mirror/] false"},
		{"in both", "registry.terraform.io/hashicorp/null", "[https://mirror.example.com/v1/mirror/ https://second.example.com/v1/mirror/] false"},
		{"from its own registry", "registry.example.com/acme/demo", "[] true"},
	} {
		a, err := address.Parse(test.provider)
		if err != nil {
			t.Fatal(err)
		}
		mirrors, direct := s.Mirrors(a)
		if got := fmt.Sprint(mirrors, direct); got != test.want {
			t.Errorf("%s: %s", test.rule, got)
		}
	}
	if mirrors, direct := (Settings{}).Mirrors(address.Address{}); len(mirrors) > 0 || !direct {
		t.Error("without methods, a provider does not come from its registry")
	}
}

// Clients read an older HCL, in which a line may have more than one block or argument.
func TestSettingsInFewLines(t *testing.T) {
	for _, content := range []string{
		`provider_installation { network_mirror { url = "https://mirror/" } direct { exclude = ["*/*/*"]}}`,
		`provider_installation { dev_overrides { "hashicorp/null" = "/home/dev" } network_mirror { url = "https://mirror/" include = ["*/*/*"] } } plugin_cache_dir = "${x["a"]}"`,
		"host \"a.example.com\" { services = { \"modules.v1\" = \"https://b/\", \"login.v1\" = { client = \"a\", ports = [1, 2] } } }\r\nprovider_installation {\r\n  network_mirror { # the mirror\r\n    url = \"https://mirror/\", include = [\r\n\"*/*/*\"] } }\r\n",
	} {
		s, err := ReadSettings([]byte(content), "a.tfrc")
		if err != nil {
			t.Errorf("%v in\n%s", err, content)
			continue
		}
		mirrors, direct := s.Mirrors(address.Address{Hostname: "registry.terraform.io", Namespace: "acme", Name: "demo"})
		if got := fmt.Sprint(mirrors, direct); got != "[https://mirror/] false" {
			t.Errorf("the mirrors are %s by\n%s", got, content)
		}
	}
}

func TestSettingsThatCannotBeRead(t *testing.T) {
	for _, test := range []struct{ rule, content, name, want string }{
		{"no HCL", "a {", "a.tfrc", "line 1 cannot be read: correct it"},
		{"no hostname", `host "a b" {}`, "a.tfrc", "line 1 cannot be read: correct it"},
		{"no URL", "provider_installation {\n network_mirror {\n url = \"mirror\"\n }\n}", "a.tfrc", "line 3 cannot be read: correct it"},
		{"no pattern", "provider_installation {\n direct {\n include = [\"a\"]\n }\n}", "a.tfrc", "line 3 cannot be read: correct it"},
		{"no list", "provider_installation {\n direct {\n include = 1\n }\n}", "a.tfrc", "line 3 cannot be read: correct it"},
		{"after overrides", "provider_installation {\n dev_overrides {\n \"hashicorp/null\" = \"/ü\"\n }\n direct {\n include = 1\n }\n}", "a.tfrc", "line 6 cannot be read: correct it"},
		{"overrides that do not end", "provider_installation {\n dev_overrides {\n \"hashicorp/null\" = \"/x\"\n", "a.tfrc", "line 3 cannot be read: correct it"},
		{"in few lines, no HCL", "provider_installation { direct {} }\na = [", "a.tfrc", "line 1 cannot be read: correct it"},
		{"in few lines, no URL", "provider_installation { direct {}\n network_mirror { url = \"mirror\" include = [] } }", "a.tfrc", "line 2 cannot be read: correct it"},
		{"in few lines, no hostname", "a = 1 b = 2\nhost \"a b\" {}", "a.tfrc", "line 2 cannot be read: correct it"},
		{"in few lines, no label", "a = 1 b = 2\n\nhost {}", "a.tfrc", "line 3 cannot be read: correct it"},
		{"no JSON", "{", "a.json", "line 1 cannot be read: correct it"},
	} {
		if _, err := ReadSettings([]byte(test.content), test.name); fmt.Sprint(err) != test.want {
			t.Errorf("%s: %v", test.rule, err)
		}
	}
}

// A file is JSON or not by its content, as for clients.
func TestSettingsInJSON(t *testing.T) {
	const want = "map[a.example.com:map[modules.v1:https://b/]]"
	for _, name := range []string{".terraformrc", "a.tfrc.json"} {
		s, err := ReadSettings([]byte(" \n"+`{"host":{"a.example.com":{"services":{"modules.v1":"https://b/"}}}}`), name)
		if got := fmt.Sprint(s.Services); err != nil || got != want {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	if _, err := ReadSettings([]byte("plugin_cache_dir = \"/var/cache\"\n"), "a.tfrc.json"); err != nil {
		t.Error(err)
	}
}

// The settings that the registry prints are read again.
func TestPrintedSettingsAreRead(t *testing.T) {
	r := Registry{Hostnames: []string{"registry.example.com"}, URL: services, HostsProviders: true}
	for _, text := range []string{r.Mirror(), r.StandIn(Origin{Hostname: "registry.terraform.io", Providers: true, Modules: true}), r.Host("registry.example.com"), Credentials("a.example.com", "b")} {
		if _, err := ReadSettings([]byte(text), "a"); err != nil {
			t.Errorf("%v in\n%s", err, text)
		}
	}
}

func FuzzReadSettings(f *testing.F) {
	f.Add([]byte(sampleSettings), false)
	f.Add([]byte("a = 1 b = \"${c[{d=2, e={}}]}\" f { g \"h\" {} # i\n } j = <<K\nl\nK\n"), false)
	f.Add([]byte(`{"host":{"a.example.com":{"services":{"modules.v1":"https://b/"}}}}`), true)
	f.Fuzz(func(t *testing.T, content []byte, json bool) {
		name := "a"
		if json {
			name = "a.json"
		}
		s, err := ReadSettings(content, name)
		if err == nil {
			s.Mirrors(address.Address{Hostname: "registry.example.com", Namespace: "acme", Name: "demo"})
		}
	})
}

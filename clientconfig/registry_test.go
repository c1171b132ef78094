package clientconfig

import (
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

const services = "https://registry.example.com/v1"

func TestMirror(t *testing.T) {
	for _, test := range []struct {
		rule     string
		registry Registry
		want     string
	}{
		{"a mirror alone excludes nothing", Registry{Hostnames: []string{"registry.example.com"}, URL: services}, `provider_installation {
  network_mirror {
    url = "https://registry.example.com/v1/mirror/"
  }
  direct {} # leave this out where the public registries cannot be reached
}
`},
		{"hosted providers come from the registry, under all of its names", Registry{Hostnames: []string{"registry.example.com", "tf.example.com"}, URL: services, HostsProviders: true}, `provider_installation {
  network_mirror {
    url     = "https://registry.example.com/v1/mirror/"
    exclude = ["registry.example.com/*/*", "tf.example.com/*/*"]
  }
  direct {
    # Where the public registries cannot be reached:
    # include = ["registry.example.com/*/*", "tf.example.com/*/*"]
  }
}
`},
		{"a name with a port is excluded in any case", Registry{Hostnames: []string{"tf.example.com", "tf.example.com:8443"}, URL: "https://tf.example.com:8443/v1"}, `provider_installation {
  network_mirror {
    url     = "https://tf.example.com:8443/v1/mirror/"
    exclude = ["tf.example.com:8443/*/*"]
  }
  direct {
    # Where the public registries cannot be reached:
    # include = ["tf.example.com:8443/*/*"]
  }
}
`},
	} {
		t.Run(test.rule, func(t *testing.T) { isBlock(t, test.registry.Mirror(), test.want) })
	}
}

func TestStandIn(t *testing.T) {
	for _, test := range []struct {
		rule   string
		origin Origin
		want   string
	}{
		{"providers and modules", Origin{Hostname: "registry.terraform.io", Providers: true, Modules: true}, `host "registry.terraform.io" {
  services = {
    "providers.v1" = "https://registry.example.com/v1/registries/registry.terraform.io/providers/"
    "modules.v1"   = "https://registry.example.com/v1/registries/registry.terraform.io/modules/"
  }
}
`},
		{"missing services can come from the public registry", Origin{Hostname: "registry.opentofu.org", Providers: true}, `host "registry.opentofu.org" {
  services = {
    "providers.v1" = "https://registry.example.com/v1/registries/registry.opentofu.org/providers/"
    # Its modules are not here. Where the public registry can be reached:
    # "modules.v1"   = "https://registry.opentofu.org/v1/modules/"
  }
}
`},
		{"the services of other registries are not known", Origin{Hostname: "origin.example.com:8443", Modules: true}, `host "origin.example.com:8443" {
  services = {
    # Its providers are not here.
    "modules.v1"   = "https://registry.example.com/v1/registries/origin.example.com:8443/modules/"
  }
}
`},
		{"a name is in Unicode, and in a path as clients of mirrors write it", Origin{Hostname: "xn--bcher-kva.example.com", Providers: true, Modules: true}, `host "bücher.example.com" {
  services = {
    "providers.v1" = "https://registry.example.com/v1/registries/xn--bcher-kva.example.com/providers/"
    "modules.v1"   = "https://registry.example.com/v1/registries/xn--bcher-kva.example.com/modules/"
  }
}
`},
	} {
		t.Run(test.rule, func(t *testing.T) { isBlock(t, Registry{URL: services}.StandIn(test.origin), test.want) })
	}
}

func TestHostOfTheRegistryItself(t *testing.T) {
	isBlock(t, Registry{URL: "https://example.com/terraform"}.Host("tf.example.com"), `host "tf.example.com" {
  services = {
    "providers.v1" = "https://example.com/terraform/providers/"
    "modules.v1"   = "https://example.com/terraform/modules/"
  }
}
`)
}

func TestCredentials(t *testing.T) {
	isBlock(t, Credentials("tf.example.com:8443", `a"b`), `credentials "tf.example.com:8443" {
  token = "a\"b"
}
`)
}

// isBlock checks the text of a block, which must be readable.
func isBlock(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if _, problems := hclsyntax.ParseConfig([]byte(got), "", hcl.InitialPos); problems.HasErrors() {
		t.Errorf("%v in\n%s", problems, got)
	}
}

package e2e_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	publicRegistry = "registry.terraform.io"
	openRegistry   = "registry.opentofu.org"
)

// standingIn is a client configuration in which mirror.example.com stands in for other
// registries.
func standingIn(hostnames ...string) string {
	var blocks strings.Builder
	for _, hostname := range hostnames {
		blocks.WriteString(`
host "` + hostname + `" {
  services = {
    "providers.v1" = "https://mirror.example.com/v1/registries/` + hostname + `/providers/"
    "modules.v1"   = "https://mirror.example.com/v1/registries/` + hostname + `/modules/"
  }
}
`)
	}
	return blocks.String()
}

// threeProviders needs two providers of one registry and one of another.
const threeProviders = `
terraform {
  required_providers {
    demo = {
      source  = "registry.terraform.io/acme/demo"
      version = ">= 1.0.0"
    }
    demo-beta = {
      source  = "registry.terraform.io/acme/demo-beta"
      version = "1.0.0"
    }
    open = {
      source  = "registry.opentofu.org/acme/demo"
      version = "1.0.0"
    }
  }
}

resource "demo_greeting" "public" {
  name = "public"
}

resource "demo_beta_greeting" "beta" {
  provider = demo-beta
  name     = "beta"
}

resource "demo_greeting" "open" {
  provider = open
  name     = "open"
}

output "public" {
  value = demo_greeting.public.text
}

output "beta" {
  value = demo_beta_greeting.beta.text
}

output "open" {
  value = demo_greeting.open.text
}
`

// twoCalls calls a module of the public registry and its submodule.
const twoCalls = `
module "vpc" {
  source  = "registry.terraform.io/acme/vpc/aws"
  version = "~> 1.0"
}

module "subnet" {
  source  = "registry.terraform.io/acme/vpc/aws//modules/subnet"
  version = "1.0.0"
}

output "vpc" {
  value = "${module.vpc.text} and ${module.subnet.text}"
}
`

// publicTree is the content of two public registries, in the layout of a mirror or, for
// the registries themselves, in the layout of a host.
func publicTree(t *testing.T, acme *Publisher, hostname string) *Tree {
	t.Helper()
	prefix := hostname
	if prefix != "" {
		prefix += "/"
	}
	return newTree(t).
		Provider(prefix+"acme/demo", "1.0.0", signedBy(acme)).
		Provider(prefix+"acme/demo-beta", "1.0.0", signedBy(acme)).
		Module(prefix+"acme/vpc/aws", "1.0.0", asTarGz).
		Keys(prefix+"acme", acme)
}

// lockFile returns the text of a workspace's lock file.
func (ws *Workspace) lockFile(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(ws.Dir, ".terraform.lock.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// newOrigins runs the two public registries.
func newOrigins(t *testing.T, acme *Publisher) (o *Outside, public *Tree) {
	t.Helper()
	public = publicTree(t, acme, "")
	return newOutsideWith(t, site(publicRegistry, public), site(openRegistry, publicTree(t, acme, ""))), public
}

// From a tree alone, and with the documented configuration, clients get providers and
// modules of other registries as from these registries. The client verifies them with
// the publisher's key, and the lock file is the same, even if the tree has only one
// platform of a release.
func TestStandInFromATree(t *testing.T) {
	t.Parallel()
	acme := publisher(t, "acme")
	files := publicTree(t, acme, publicRegistry).OnlyThisPlatform("registry.terraform.io/acme/demo-beta", "1.0.0")
	files.Provider("registry.opentofu.org/acme/demo", "1.0.0", signedBy(acme)).Keys("registry.opentofu.org/acme", acme)
	outside, _ := newOrigins(t, acme)
	registry := startRegistry(t, site("mirror.example.com", files, "rescan 100ms"))
	blocks := documented(t, "docs/stand-in.md", "hcl", `host "registry.opentofu.org"`)
	blocks = substitute(t, blocks, "https://registry.example.com/", "https://mirror.example.com/")
	zh := func(hostname, name string) []string {
		t.Helper()
		return digests(files.Read("providers/" + hostname + "/acme/" + name + "/terraform-provider-" + name + "_1.0.0_SHA256SUMS"))
	}

	eachClient(t, func(t *testing.T, c Client) {
		direct := newWorkspace(t, outside.Origin, threeProviders)
		c.Run(t, direct, "init")

		ws := newWorkspace(t, registry, threeProviders)
		ws.Write(t, "modules.tf", twoCalls)
		ws.CLIConfig(t, blocks)
		out := c.Run(t, ws, "init")
		if n := strings.Count(out, "signed, key ID "+acme.KeyID(t)+")"); n != 3 {
			t.Errorf("the publisher's key is in the output %d times, want 3:\n%s", n, out)
		}
		expect(t, c.Run(t, ws, "apply", "-auto-approve"),
			`public = "hello public from 1.0.0"`, `beta = "hello beta from 1.0.0"`, `open = "hello open from 1.0.0"`,
			`vpc = "registry.terraform.io/acme/vpc/aws 1.0.0 and subnet of registry.terraform.io/acme/vpc/aws 1.0.0"`)

		if got, want := ws.lockFile(t), direct.lockFile(t); got != want {
			t.Errorf("the lock file differs from that of the registries:\n%s\nwant\n%s", got, want)
		}
		for address, want := range map[string][]string{
			"registry.terraform.io/acme/demo":      zh(publicRegistry, "demo"),
			"registry.terraform.io/acme/demo-beta": zh(publicRegistry, "demo-beta"),
			"registry.opentofu.org/acme/demo":      zh(openRegistry, "demo"),
		} {
			lock := ws.Lock(t, address)
			if !slices.Equal(lock.ZH, want) {
				t.Errorf("the lock file has zh: %v for %s, SHA256SUMS has %v", lock.ZH, address, want)
			}
			h1 := 1
			if c.Name == "tofu" && strings.HasPrefix(address, openRegistry) {
				h1 = len(threePlatforms()) // OpenTofu trusts the hashes of its own registry
			}
			if len(lock.H1) != h1 {
				t.Errorf("the lock file has h1: %v for %s, want %d", lock.H1, address, h1)
			}
		}
	})

	files.Provider("registry.terraform.io/acme/demo", "1.1.0", signedBy(acme)).
		Module("registry.terraform.io/acme/vpc/aws", "1.1.0", asTarGz)
	for _, list := range []string{"providers/acme/demo/versions", "modules/acme/vpc/aws/versions"} {
		eventually(t, "1.1.0 is listed", func() bool {
			return registry.lists(t, "https://mirror.example.com/v1/registries/registry.terraform.io/"+list, "1.1.0")
		})
	}
	eachClient(t, func(t *testing.T, c Client) {
		ws := newWorkspace(t, registry, strings.Replace(threeProviders, ">= 1.0.0", "1.0.0", 1))
		ws.Write(t, "modules.tf", strings.ReplaceAll(twoCalls, "~> 1.0", "1.0.0"))
		ws.CLIConfig(t, blocks)
		c.Run(t, ws, "init")
		ws.Write(t, "main.tf", threeProviders)
		ws.Write(t, "modules.tf", twoCalls)
		c.Run(t, ws, "init", "-upgrade")
		expect(t, c.Run(t, ws, "apply", "-auto-approve"), `public = "hello public from 1.1.0"`, `vpc = "registry.terraform.io/acme/vpc/aws 1.1.0 and`)
		if lock := ws.Lock(t, "registry.terraform.io/acme/demo"); lock.Version != "1.1.0" || len(lock.ZH) != 4 {
			t.Errorf("after -upgrade, the lock file has %+v", lock)
		}
	})
}

// A private stand-in gets the token for the hostname for which it stands in, and signs
// its links. Without the token, it reveals nothing.
func TestPrivateStandIn(t *testing.T) {
	t.Parallel()
	acme := publisher(t, "acme")
	tokens := newTokens(t)
	ci, stranger := tokens.New("ci"), tokens.New("stranger")
	registry := startRegistry(t, site("mirror.example.com", publicTree(t, acme, publicRegistry),
		"auth terraform_tokens "+tokens.File,
		"access {",
		"allow ci read registry.terraform.io",
		"allow stranger read somewhere",
		"}"))

	eachClient(t, func(t *testing.T, c Client) {
		machine := func(configuration string) *Workspace {
			ws := newWorkspace(t, registry, configuration)
			ws.CLIConfig(t, standingIn(publicRegistry))
			return ws
		}
		ws := machine(greeting("registry.terraform.io/acme/demo", "1.0.0") + twoCalls)
		ws.Setenv("TF_TOKEN_registry_terraform_io", ci)
		expect(t, c.Run(t, ws, "init"), "signed, key ID "+acme.KeyID(t)+")")
		expect(t, c.Run(t, ws, "apply", "-auto-approve"), `text = "hello world from 1.0.0"`, `vpc = "registry.terraform.io/acme/vpc/aws 1.0.0 and`)

		for name, token := range map[string]string{"none": "", "another's": stranger} {
			for _, configuration := range []string{greeting("registry.terraform.io/acme/demo", "1.0.0"), twoCalls} {
				ws := machine(configuration)
				// A token of the stand-in's own hostname is not sent to it.
				ws.Setenv("TF_TOKEN_mirror_example_com", ci)
				if token != "" {
					ws.Setenv("TF_TOKEN_registry_terraform_io", token)
				}
				if out := c.Refused(t, ws, "init"); strings.Contains(out, "1.0.0 and") {
					t.Errorf("with the token %s: %s", name, out)
				}
			}
		}
	})
	for _, path := range []string{
		"mirror/registry.terraform.io/acme/demo/" + zipOfDemo("1.0.0", thisPlatform),
		"modules/registry.terraform.io/acme/vpc/aws/1.0.0/archive.tar.gz",
	} {
		if answer := registry.Get(t, "https://mirror.example.com/v1/"+path); answer.Status != 401 {
			t.Errorf("%s without a link: %d", path, answer.Status)
		}
	}
}

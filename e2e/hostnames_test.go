package e2e_test

import "testing"

// bothDemos is a configuration that needs acme/demo from two hostnames at once.
const bothDemos = `
terraform {
  required_providers {
    one = {
      source = "one.example.com/acme/demo"
    }
    two = {
      source = "two.example.com/acme/demo"
    }
  }
}

resource "demo_greeting" "one" {
  provider = one
  name     = "first"
}

resource "demo_greeting" "two" {
  provider = two
  name     = "second"
}

module "one" {
  source = "one.example.com/acme/vpc/aws"
}

module "two" {
  source = "two.example.com/acme/vpc/aws"
}

output "texts" {
  value = [demo_greeting.one.text, demo_greeting.two.text, module.one.text, module.two.text]
}
`

// Two hostnames on one Caddy have providers and modules with the same names and
// versions, and are never mixed up: neither with a tree for each, nor with one
// tree for both, in which the paths have the hostname.
func TestTwoHostnames(t *testing.T) {
	t.Parallel()
	one := newTree(t).
		Provider("acme/demo", "1.0.0", built("one")).
		Module("acme/vpc/aws", "1.0.0", asFolder)
	two := newTree(t).
		Provider("acme/demo", "1.0.0", built("two")).
		Module("acme/vpc/aws", "1.1.0", asFolder)
	both := newTree(t).
		Provider("one.example.com/acme/demo", "1.0.0", built("one")).
		Provider("two.example.com/acme/demo", "1.0.0", built("two")).
		Module("one.example.com/acme/vpc/aws", "1.0.0", asFolder).
		Module("two.example.com/acme/vpc/aws", "1.1.0", asFolder)

	for name, sites := range map[string][]Site{
		"two trees": {site("one.example.com", one), site("two.example.com", two)},
		"one tree":  {site("one.example.com", both), site("two.example.com", both)},
	} {
		t.Run(name, func(t *testing.T) {
			registry := startRegistry(t, sites...)
			eachClient(t, func(t *testing.T, c Client) {
				ws := newWorkspace(t, registry, bothDemos)
				c.Run(t, ws, "init")
				out := c.Run(t, ws, "apply", "-auto-approve")
				expect(t, out, `"hello first from one"`, `"hello second from two"`, `acme/vpc/aws 1.0.0"`, `acme/vpc/aws 1.1.0"`)
				h1 := ws.Lock(t, "one.example.com/acme/demo").H1[0]
				if h1 == ws.Lock(t, "two.example.com/acme/demo").H1[0] {
					t.Errorf("both have the package %s", h1)
				}
			})
		})
	}
}

// A port is part of a registry's name (#12).
func TestHostnameWithPort(t *testing.T) {
	t.Parallel()
	files := newTree(t).
		Provider("acme/demo", "1.0.0").
		Module("acme/vpc/aws", "1.0.0", asZip)
	registry := startRegistry(t, site("registry.example.com:8443", files))

	eachClient(t, func(t *testing.T, c Client) {
		ws := newWorkspace(t, registry, greeting("registry.example.com:8443/acme/demo", "1.0.0"))
		c.Run(t, ws, "init")
		expect(t, c.Run(t, ws, "apply", "-auto-approve"), `text = "hello world from 1.0.0"`)

		ws = newWorkspace(t, registry, calling("registry.example.com:8443/acme/vpc/aws", "1.0.0"))
		c.Run(t, ws, "init")
	})
}

// An internationalised hostname is written in Unicode by users and by
// `providers mirror`, and requested in punycode by clients (#62).
func TestInternationalHostname(t *testing.T) {
	t.Parallel()
	registry := startRegistry(t,
		site("xn--bcher-kva.example", newTree(t).Provider("acme/demo", "1.0.0")),
		site("mirror.example.com", newTree(t).Provider("bücher.example/acme/demo", "1.0.0", zipsOnly)))

	for name, cliConfig := range map[string]string{"direct": "", "mirror": viaMirror} {
		t.Run(name, func(t *testing.T) {
			eachClient(t, func(t *testing.T, c Client) {
				ws := newWorkspace(t, registry, greeting("bücher.example/acme/demo", "1.0.0"))
				ws.CLIConfig(t, cliConfig)
				c.Run(t, ws, "init")
				expect(t, c.Run(t, ws, "apply", "-auto-approve"), `text = "hello world from 1.0.0"`)
			})
		})
	}
}

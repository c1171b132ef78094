package command

import (
	"slices"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// sampleReport has one of everything.
func sampleReport() *index.Report {
	return &index.Report{
		Offered: []index.Offer{
			{Kind: "provider", Address: "acme/demo", Version: "2.0.0-beta1", Platforms: []string{"linux_amd64"}, Signature: "registry 0123456789ABCDEF"},
			{Kind: "provider", Address: "acme/demo", Version: "1.2.0", Platforms: []string{"darwin_arm64", "linux_amd64"}, Signature: "publisher FEDCBA9876543210"},
			{Kind: "provider", Address: "registry.terraform.io/hashicorp/null", Version: "3.2.1", Platforms: []string{"linux_amd64"}, Signature: "none",
				Notes: []string{"it is not signed: only the mirror offers it"}},
			{Kind: "module", Address: "acme/vpc/aws", Version: "1.0.0"},
		},
		Withheld: []index.Problem{{
			Path: "providers/acme/demo/terraform-provider-demo_1.3.0_linux_amd64.zip", Address: "acme/demo", Version: "1.3.0",
			Reason: tree.ChecksumMismatch, Detail: "its sha256 is not the one SHA256SUMS lists: copy it again",
		}},
		Ignored:      []index.Problem{{Path: "README.md", Reason: tree.NotPartOfTree, Detail: "a file has no address here"}},
		IgnoredTotal: 1,
	}
}

func welcomeFor(t *testing.T, domain, listen string, internalCerts bool, report *index.Report) string {
	t.Helper()
	s, err := planSite(domain, listen, internalCerts)
	if err != nil {
		t.Fatal(err)
	}
	w := welcome{site: s, root: "/srv/terraform", report: report}
	if len(s.internal) > 0 {
		w.certificateFile = "/home/bob/Application Support/root.crt"
	}
	var b strings.Builder
	if err := w.write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestWelcome(t *testing.T) {
	const want = `Serving /srv/terraform on https://localhost:8443
Open https://localhost:8443/ in a browser to search and read what it offers.

Offered: 2 providers in 3 versions, 1 module in 1 version. Withheld: 1. Ignored:
1 file that has no place in the tree.

Withheld, and what to do:
  providers/acme/demo/terraform-provider-demo_1.3.0_linux_amd64.zip
      acme/demo 1.3.0: checksum_mismatch
      its sha256 is not the one SHA256SUMS lists: copy it again

The certificate is issued by an authority on this machine, which clients have to
trust. On Linux:

export SSL_CERT_FILE='/home/bob/Application Support/root.crt'

On macOS and Windows, add that file to the trusted certificates of the system.

As a mirror for all providers, in ~/.terraformrc for Terraform and in ~/.tofurc
for OpenTofu:

provider_installation {
  network_mirror {
    url     = "https://localhost:8443/v1/mirror/"
    exclude = ["localhost:8443/*/*"]
  }
  direct {
    # Where the public registries cannot be reached:
    # include = ["localhost:8443/*/*"]
  }
}

Or, instead of the mirror, in place of registry.terraform.io. Then clients
verify the publishers' signatures themselves, and lock files get the hashes of
all platforms:

host "registry.terraform.io" {
  services = {
    "providers.v1" = "https://localhost:8443/v1/registries/registry.terraform.io/providers/"
    # Its modules are not here. Where the public registry can be reached:
    # "modules.v1"   = "https://registry.terraform.io/v1/modules/"
  }
}

As a registry, in a configuration:

terraform {
  required_providers {
    demo = {
      source  = "localhost:8443/acme/demo"
      version = "1.2.0"
    }
  }
}

module "vpc" {
  source  = "127.0.0.1:8443/acme/vpc/aws"
  version = "1.0.0"
}

`
	got := welcomeFor(t, "", "localhost:8443", true, sampleReport())
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestWelcomeSays(t *testing.T) {
	only := func(offers ...index.Offer) *index.Report { return &index.Report{Offered: offers} }
	demo := index.Offer{Kind: "provider", Address: "acme/demo", Version: "1.0.0", Signature: "registry 0"}
	many := &index.Report{Withheld: slices.Repeat([]index.Problem{{Path: "providers/x", Reason: tree.BadName, Detail: "rename it"}}, maxWithheld+2)}
	tests := []struct {
		rule           string
		domain, listen string
		internalCerts  bool
		report         *index.Report
		want           []string
		wantNot        []string
	}{
		{"a public name needs no trust", "registry.example.com", "", false, only(demo),
			[]string{"url     = \"https://registry.example.com/v1/mirror/\"\n", `"registry.example.com/acme/demo"`},
			[]string{"SSL_CERT_FILE", "in place of"}},
		{"hosted providers come from the registry", "registry.example.com", "", false, only(demo),
			[]string{`exclude = ["registry.example.com/*/*"]`}, nil},
		{"others come from the mirror alone", "registry.example.com", "", false,
			only(index.Offer{Kind: "provider", Address: "acme/demo", Version: "1.0.0", Signature: "none"}),
			[]string{"direct {} # leave this out"}, []string{"exclude"}},
		{"it can stand in for all that it has something of", "registry.example.com", "", false,
			only(index.Offer{Kind: "module", Address: "b.example.com/acme/vpc/aws", Version: "1.0.0"}, index.Offer{Kind: "provider", Address: "c.example.com/acme/demo", Version: "1.0.0", Signature: "none"},
				index.Offer{Kind: "provider", Address: "a.example.com/acme/demo", Version: "1.0.0", Signature: "none"}, index.Offer{Kind: "module", Address: "a.example.com/acme/vpc/aws", Version: "1.0.0"}),
			[]string{"in place of a.example.com, b.example.com and\nc.example.com. Then", `"modules.v1"   = "https://registry.example.com/v1/registries/a.example.com/modules/"`,
				`"modules.v1"   = "https://registry.example.com/v1/registries/b.example.com/modules/"`, `"providers.v1" = "https://registry.example.com/v1/registries/c.example.com/providers/"`},
			[]string{"b.example.com/providers/", "c.example.com/modules/"}},
		{"plain HTTP needs a proxy", "", ":8080", false, only(demo),
			[]string{"on http://localhost:8080", "Clients require HTTPS", "https://registry.example.com/v1/mirror/", `"registry.example.com/acme/demo"`},
			[]string{"SSL_CERT_FILE", "https://localhost"}},
		{"an address under the registry's hostname is hosted", "registry.example.com", "", false,
			only(index.Offer{Kind: "provider", Address: "registry.example.com/acme/demo", Version: "1.0.0", Signature: "registry 0"}),
			[]string{`"registry.example.com/acme/demo"`}, nil},
		{"without hosted providers the example is a mirrored one", "registry.example.com", "", false,
			only(index.Offer{Kind: "provider", Address: "registry.terraform.io/hashicorp/null", Version: "3.2.1", Signature: "none"}),
			[]string{`null = {`, `"registry.terraform.io/hashicorp/null"`, `"3.2.1"`}, []string{`module "`}},
		{"a release that only the mirror offers is no example", "registry.example.com", "", false,
			only(index.Offer{Kind: "provider", Address: "acme/demo", Version: "1.0.0", Signature: "none"}),
			nil, []string{"required_providers", "acme/demo"}},
		{"a mirrored module is no example", "registry.example.com", "", false,
			only(index.Offer{Kind: "module", Address: "registry.terraform.io/acme/vpc/aws", Version: "1.0.0"}),
			nil, []string{`module "vpc"`}},
		{"a hostname is shown in Unicode", "bücher.example.com", "", false, only(demo),
			[]string{`"bücher.example.com/acme/demo"`}, []string{"xn--"}},
		{"an IPv6 address is in no pattern and no address", "", "[::1]:8443", true, only(demo),
			[]string{"url = \"https://[::1]:8443/v1/mirror/\"\n", "direct {}"}, []string{"exclude", `"[::1]:8443/`}},
		{"nothing to offer", "registry.example.com", "", false, only(),
			[]string{"Nothing is offered. Withheld: 0.", "provider_installation"}, []string{"As a registry"}},
		{"control characters in a path are quoted", "registry.example.com", "", false,
			&index.Report{Withheld: []index.Problem{{Path: "providers/\x1b[2J", Reason: tree.BadName, Detail: "rename it"}}},
			[]string{`"providers/\x1b[2J"`}, []string{"\x1b"}},
		{"many problems", "registry.example.com", "", false, many,
			[]string{"  … and 2 more: `caddy-terraform-registry check` lists all\n\nAs a mirror"}, nil},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			got := welcomeFor(t, test.domain, test.listen, test.internalCerts, test.report)
			for _, want := range test.want {
				if !strings.Contains(got, want) {
					t.Errorf("%q is missing in\n%s", want, got)
				}
			}
			for _, not := range test.wantNot {
				if strings.Contains(got, not) {
					t.Errorf("%q is in\n%s", not, got)
				}
			}
		})
	}
}

func TestShellQuote(t *testing.T) {
	for s, want := range map[string]string{
		"/data/root.crt":    "/data/root.crt",
		"/my data/root.crt": "'/my data/root.crt'",
		"/bob's/root.crt":   `'/bob'\''s/root.crt'`,
		"/$HOME":            "'/$HOME'",
		"":                  "''",
	} {
		if got := shellQuote(s); got != want {
			t.Errorf("%q: got %s, want %s", s, got, want)
		}
	}
}

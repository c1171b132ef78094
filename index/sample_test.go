package index_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
)

// The sample tree has one example of everything, without errors.
func TestSampleTree(t *testing.T) {
	dir := filepath.Join("..", "testdata", "registry")
	if *update {
		writeSample(t, indextest.OnDisk(t, dir))
	}
	s := scanWith(t, options(t, source.Directories{Root: dir}.Open))
	if len(s.Report().Withheld) > 0 {
		t.Errorf("withheld: %+v", s.Report().Withheld)
	}
	for _, want := range []struct{ address, version, signature string }{
		{"acme/demo", "0.1.0", "publisher"},
		{"registry.terraform.io/example/hello", "1.2.3", "registry"},
		{"acme/naming/any", "1.0.0", ""},
		{"acme/naming/any", "1.1.0", ""},
		{"acme/vpc/aws", "1.2.0", ""},
		{"acme/vpc/aws", "1.3.2", ""},
		{"acme/vpc/aws", "1.4.0", ""},
		{"acme/vpc/aws", "2.0.0-rc.1", ""},
		{"globex/bucket/google", "0.4.0", ""},
		{"registry.terraform.io/example/tags/null", "1.0.2", ""},
	} {
		if !slices.ContainsFunc(s.Report().Offered, func(o index.Offer) bool {
			return o.Address == want.address && o.Version == want.version && strings.HasPrefix(o.Signature, want.signature)
		}) {
			t.Errorf("%s %s is not offered, or not signed by its %s", want.address, want.version, want.signature)
		}
	}
}

// writeSample writes the generated files of the sample tree. The others are written by hand:
// acme/vpc/aws, a module of realistic size, and the other modules and documents.
func writeSample(t *testing.T, files *indextest.Tree) {
	publisher := indextest.NewPublisher(t)

	// The registry's own provider, as its publisher released it. The release
	// that runs is built when the sample is served.
	files.Keys("acme", publisher)
	files.ProviderIn("providers/acme/demo/0.1.0", "demo", "0.1.0", "darwin_arm64", "linux_amd64", "linux_arm64", "windows_amd64").
		Manifest("5.0").Signed(publisher)

	// A provider of another registry, as `terraform providers mirror` leaves it.
	files.Provider("registry.terraform.io/example/hello", "1.2.3", "darwin_arm64", "linux_amd64")
	files.Write("providers/registry.terraform.io/example/hello/index.json", "{\n  \"versions\": {\n    \"1.2.3\": {}\n  }\n}\n")

	// A module with a submodule: one version as a folder, one packed.
	files.Write("modules/acme/naming/any/1.0.0/main.tf", namingModule)
	files.Write("modules/acme/naming/any/1.0.0/modules/label/main.tf", labelModule)
	files.Write("modules/acme/naming/any/1.1.0.tar.gz", indextest.TarGz(
		"main.tf", namingModule, "modules/label/main.tf", labelModule))
}

const namingModule = `variable "team" {
  type = string
}

variable "service" {
  type = string
}

module "label" {
  source = "./modules/label"
  parts  = [var.team, var.service]
}

output "name" {
  value = module.label.text
}
`

const labelModule = `variable "parts" {
  type = list(string)
}

output "text" {
  value = lower(join("-", var.parts))
}
`

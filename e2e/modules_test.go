package e2e_test

import (
	"strings"
	"testing"
)

// Modules in every form in which they can be stored and called (#75, #80 to
// #82, #87, #88, #91, #94, #96).
func TestModules(t *testing.T) {
	t.Parallel()
	files := newTree(t).
		Module("acme/vpc/aws", "1.0.0", asFolder).
		Module("acme/vpc/aws", "1.1.0", asTarGz).
		Module("acme/vpc/aws", "1.2.0", asTgz).
		Module("acme/vpc/aws", "1.3.0", asZip).
		Module("acme/vpc/aws", "2.0.0-rc.1", asFolder).
		Module("acme/under_score/null", "0.1.0", asZip).
		Module("acme/hosted/aws", "1.0.0", asHostedTarGz).
		Module("acme/hosted/aws", "1.1.0", asHostedZip).
		Module("acme/built/aws", "1.0.0", asFolder).
		Module("acme/built/aws", "1.0.0+x", asFolder).
		Module("acme/several/aws", "1.0.0", func(t *testing.T, path string, files map[string]string) {
			delete(files, "main.tf")
			asHostedTarGz(t, path, files)
		})
	registry := startRegistry(t, site("registry.example.com", files))

	calls := map[string]struct{ source, constraint, want string }{
		"folder":              {"acme/vpc/aws", "1.0.0", "acme/vpc/aws 1.0.0"},
		"tar_gz":              {"acme/vpc/aws", "1.1.0", "acme/vpc/aws 1.1.0"},
		"tgz":                 {"acme/vpc/aws", "1.2.0", "acme/vpc/aws 1.2.0"},
		"zip":                 {"acme/vpc/aws", "1.3.0", "acme/vpc/aws 1.3.0"},
		"newest":              {"acme/vpc/aws", ">= 1.0.0", "acme/vpc/aws 1.3.0"},
		"constraint":          {"acme/vpc/aws", "~> 1.0, < 1.2", "acme/vpc/aws 1.1.0"},
		"pre_release":         {"acme/vpc/aws", "2.0.0-rc.1", "acme/vpc/aws 2.0.0-rc.1"},
		"submodule_of_folder": {"acme/vpc/aws//modules/subnet", "1.0.0", "subnet of acme/vpc/aws 1.0.0"},
		"submodule_of_tar_gz": {"acme/vpc/aws//modules/subnet", "1.1.0", "subnet of acme/vpc/aws 1.1.0"},
		"submodule_of_zip":    {"acme/vpc/aws//modules/subnet", "1.3.0", "subnet of acme/vpc/aws 1.3.0"},
		"hosted_tar_gz":       {"acme/hosted/aws", "1.0.0", "acme/hosted/aws 1.0.0"}, // #89, #96
		"hosted_zip":          {"acme/hosted/aws", "1.1.0", "acme/hosted/aws 1.1.0"},
		"submodule_of_hosted": {"acme/hosted/aws//modules/subnet", "1.0.0", "subnet of acme/hosted/aws 1.0.0"},
		"submodule_of_zipped": {"acme/hosted/aws//modules/subnet", "1.1.0", "subnet of acme/hosted/aws 1.1.0"},
		"submodules_only":     {"acme/several/aws//modules/subnet", "1.0.0", "subnet of acme/several/aws 1.0.0"},
		"underscore":          {"acme/under_score/null", "0.1.0", "acme/under_score/null 0.1.0"}, // #79
		"version_of_builds":   {"acme/built/aws", "1.0.0", "acme/built/aws 1.0.0"},               // which clients take for the same
		"build_of_a_version":  {"acme/built/aws", "1.0.0+x", "acme/built/aws 1.0.0"},
		"another_case":        {"Acme/VPC/aws", "1.0.0", "acme/vpc/aws 1.0.0"}, // #78
	}
	// One configuration with all of them: clients are slow to start.
	var configuration strings.Builder
	for name, call := range calls {
		configuration.WriteString(`
module "` + name + `" {
  source  = "registry.example.com/` + call.source + `"
  version = "` + call.constraint + `"
}

output "` + name + `" {
  value = module.` + name + `.text
}
`)
	}
	eachClient(t, func(t *testing.T, c Client) {
		ws := newWorkspace(t, registry, configuration.String())
		c.Run(t, ws, "init")
		out := c.Run(t, ws, "apply", "-auto-approve")
		_, outputs, _ := strings.Cut(out, "Outputs:")
		for name, call := range calls {
			if want := " " + name + ` = "` + call.want + `"`; !strings.Contains(outputs, want) {
				t.Errorf("the outputs lack%s:%s", want, outputs)
			}
		}
	})
}

// Absent modules: one that does not exist (#77), and one without the version.
func TestAbsentModule(t *testing.T) {
	t.Parallel()
	files := newTree(t).
		Module("acme/vpc/aws", "1.0.0", asFolder).
		Module("acme/vpc/aws", "2.0.0-rc.1", asFolder)
	registry := startRegistry(t, site("registry.example.com", files))

	eachClient(t, func(t *testing.T, c Client) {
		ws := newWorkspace(t, registry, calling("registry.example.com/acme/missing/aws", "1.0.0"))
		expect(t, c.Refused(t, ws, "init"), "cannot be found in the module registry at registry.example.com")

		ws = newWorkspace(t, registry, calling("registry.example.com/acme/vpc/aws", ">= 1.1.0"))
		expect(t, c.Refused(t, ws, "init"), "There is no available version of module")
	})
}

// A private module in the single top-level folder of its archive: the link is
// signed for the archive and names the folder (#89, #93). OpenTofu, which would
// otherwise be told to send its token, also gets the link (#84).
func TestPrivateModuleInAFolderOfItsArchive(t *testing.T) {
	t.Parallel()
	files, tokens := newTree(t).Module("acme/hosted/aws", "1.0.0", asHostedTarGz).Module("acme/hosted/aws", "1.1.0", asHostedZip), newTokens(t)
	ci := tokens.New("ci")
	registry := startRegistry(t, site("registry.example.com", files, privately(tokens)...))

	eachClient(t, func(t *testing.T, c Client) {
		ws := newWorkspace(t, registry, `
module "hosted" {
  source  = "registry.example.com/acme/hosted/aws"
  version = "1.0.0"
}

module "subnet" {
  source  = "registry.example.com/acme/hosted/aws//modules/subnet"
  version = "1.1.0"
}

output "hosted" {
  value = "${module.hosted.text} and ${module.subnet.text}"
}
`)
		ws.Setenv("TF_TOKEN_registry_example_com", ci)
		c.Run(t, ws, "init")
		expect(t, c.Run(t, ws, "apply", "-auto-approve"), `hosted = "acme/hosted/aws 1.0.0 and subnet of acme/hosted/aws 1.1.0"`)
	})
}

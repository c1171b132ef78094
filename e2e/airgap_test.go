package e2e_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// standIn is the client configuration with which mirror.example.com stands in for
// origin.example.com.
const standIn = `
host "origin.example.com" {
  services = {
    "providers.v1" = "https://mirror.example.com/v1/registries/origin.example.com/providers/"
    "modules.v1"   = "https://mirror.example.com/v1/registries/origin.example.com/modules/"
  }
}
`

// One command carries a project over an air gap: its module, the module that this one
// calls, their provider, and the keys of the provider's publisher. On the other side
// the same configuration and lock file work unchanged.
func TestAirGap(t *testing.T) {
	t.Parallel()
	acme := publisher(t, "acme")
	stack := func(t *testing.T, path string, files map[string]string) {
		files["main.tf"] = greeting(demoOfOrigin, "~> 1.0") + `
module "subnet" {
  source  = "origin.example.com/acme/vpc/aws//modules/subnet"
  version = "~> 1.0"
}

output "subnet" {
  value = module.subnet.text
}
`
		asTarGz(t, path, files)
	}
	outside := newOutside(t, newTree(t).
		Provider("acme/demo", "1.0.0", signedBy(acme)).
		Provider("acme/demo", "2.0.0", signedBy(acme)).
		Keys("acme", acme).
		Module("acme/stack/aws", "1.0.0", stack).
		Module("acme/vpc/aws", "1.0.0", asZip).
		Module("acme/vpc/aws", "1.1.0", asTarGz).
		Module("acme/vpc/aws", "2.0.0", asTarGz))
	const configuration = `
module "stack" {
  source = "origin.example.com/acme/stack/aws"
}

output "text" {
  value = "${module.stack.text}, ${module.stack.subnet}"
}
`
	eachClient(t, func(t *testing.T, c Client) {
		project := newWorkspace(t, outside.Origin, configuration)
		for _, initialised := range []bool{false, true} {
			if initialised { // the second run finds everything by the lock file and modules.json
				c.Run(t, project, "init")
			}
			files := newTree(t)
			args := []string{"mirror", "--root", files.Dir, "--modules", project.Dir}
			if out := outside.command(t, args...); !strings.Contains(out, ": 1 package, ") || !strings.Contains(out, ": 2 modules, ") {
				t.Errorf("init has been run: %v. Its output is: %s", initialised, out)
			}
			if out := outside.command(t, args...); !strings.Contains(out, ": 0 modules, ") || !strings.Contains(out, "There already: 3. Failed: 0.") {
				t.Errorf("the second time its output is: %s", out)
			}
			if out := outside.command(t, "prune", "--root", files.Dir, "--own", "", "--modules", "--dry-run", lockedProject(t, c, outside, configuration)); !strings.Contains(out, ": 0 module versions, ") {
				t.Errorf("prune would remove what is needed: %s", out)
			}

			inside := startRegistry(t, site("mirror.example.com", files))
			ws := newWorkspace(t, inside, configuration)
			ws.CLIConfig(t, standIn)
			flags := []string{"init"}
			if initialised {
				copyFile(t, filepath.Join(project.Dir, ".terraform.lock.hcl"), filepath.Join(ws.Dir, ".terraform.lock.hcl"))
				flags = append(flags, "-lockfile=readonly")
			}
			expect(t, c.Run(t, ws, flags...), "signed, key ID "+acme.KeyID(t)+")")
			expect(t, c.Run(t, ws, "apply", "-auto-approve"), `text = "hello world from 1.0.0, subnet of acme/vpc/aws 1.1.0"`)
			if asked := slices.Compact(inside.Proxy.Asked()); len(asked) != 1 {
				t.Errorf("the client connected to %v", asked)
			}
		}
	})
}

// lockedProject returns the folder of a configuration that init has been run for.
func lockedProject(t *testing.T, c Client, outside *Outside, configuration string) string {
	t.Helper()
	ws := newWorkspace(t, outside.Origin, configuration)
	c.Run(t, ws, "init")
	return ws.Dir
}

package e2e_test

import (
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// networkModule is a repository as public modules have, with a module in a folder
// that calls another module beside it.
func networkModule(version string) map[string]string {
	return map[string]string{
		"README.md":                "# Network\n",
		"main.tf":                  `output "text" { value = "the root" }` + "\n",
		"modules/network/main.tf":  "module \"shared\" {\n  source = \"../shared\"\n}\n\noutput \"text\" {\n  value = \"network " + version + " with ${module.shared.text}\"\n}\n",
		"modules/shared/main.tf":   `output "text" { value = "shared ` + version + `" }` + "\n",
		"modules/another/main.tf":  `output "text" { value = "another" }` + "\n",
		"examples/simple/main.tf":  "module \"network\" {\n  source = \"../../modules/network\"\n}\n",
		"modules/network/.gitkeep": "",
	}
}

// networkCall calls it.
const networkCall = `
module "network" {
  source  = "code.example.com/acme/network/aws"
  version = "~> 1.0"
}

output "network" {
  value = module.network.text
}
`

// publishNetwork commits a version of the repository and publishes the folder in it.
func publishNetwork(h *CodeHost, r *Repository, version string) {
	commit := r.Commit(networkModule(version))
	h.Publish("acme/network/aws/"+version, "git::"+r.URL+"//modules/network?ref="+commit)
}

// Clients that can reach only the stand-in install a configuration with three providers
// and two modules, one of them in a git repository. The result is the same as from the
// origins, with the same lock file, even when the origins are gone.
func TestStandInFillsItself(t *testing.T) {
	t.Parallel()
	acme := publisher(t, "acme")
	eachClient(t, func(t *testing.T, c Client) {
		outside, public := newOrigins(t, acme)
		code := outside.CodeHost(t)
		repository := code.Repository("terraform-aws-network")
		publishNetwork(code, repository, "1.0.0")
		filled := newTree(t)
		s := mirrorOf(strings.Join([]string{publicRegistry, openRegistry, codeHostRegistry}, " "), filled, "modules", "versions_ttl 1ms")
		mirror := outside.StartMirror(t, s)
		machine := func() *Workspace {
			ws := newWorkspace(t, mirror, threeProviders)
			ws.Write(t, "modules.tf", twoCalls+networkCall)
			ws.CLIConfig(t, standingIn(publicRegistry, openRegistry, codeHostRegistry))
			return ws
		}
		direct := outside.newWorkspace(t, threeProviders)
		direct.Write(t, "modules.tf", twoCalls+networkCall)
		sameLock := func(what string, ws *Workspace) {
			t.Helper()
			if got, want := ws.lockFile(t), direct.lockFile(t); got != want {
				t.Errorf("%s: the lock file differs from that of the registries:\n%s\nwant\n%s", what, got, want)
			}
		}

		first := machine()
		out := c.Run(t, first, "init")
		if n := strings.Count(out, "signed, key ID "+acme.KeyID(t)+")"); n != 3 {
			t.Errorf("the publisher's key is in the output %d times, want 3:\n%s", n, out)
		}
		expect(t, c.Run(t, first, "apply", "-auto-approve"),
			`public = "hello public from 1.0.0"`, `vpc = "acme/vpc/aws 1.0.0 and subnet of acme/vpc/aws 1.0.0"`,
			`network = "network 1.0.0 with shared 1.0.0"`)
		c.Run(t, direct, "init")
		sameLock("the first init", first)

		public.Provider("acme/demo", "1.1.0", signedBy(acme)).Module("acme/vpc/aws", "1.1.0", asHostedZip)
		publishNetwork(code, repository, "1.1.0")
		for _, list := range []string{"providers/acme/demo/versions", "modules/acme/vpc/aws/versions"} {
			eventually(t, "the origin lists 1.1.0", func() bool {
				return outside.Origin.lists(t, "https://registry.terraform.io/v1/"+list, "1.1.0")
			})
		}
		c.Run(t, direct, "init", "-upgrade")
		c.Run(t, first, "init", "-upgrade")
		sameLock("init -upgrade", first)

		outside.Origin.Stop(t)
		code.Fails(codeHostRegistry, hangUp)
		code.Fails(codeHostGit, hangUp)
		installed := []string{`public = "hello public from 1.1.0"`, `beta = "hello beta from 1.0.0"`, `open = "hello open from 1.0.0"`,
			`vpc = "acme/vpc/aws 1.1.0 and subnet of acme/vpc/aws 1.0.0"`, `network = "network 1.1.0 with shared 1.1.0"`}
		second := machine()
		c.Run(t, second, "init")
		expect(t, c.Run(t, second, "apply", "-auto-approve"), installed...)
		sameLock("without the origins", second)
		c.Run(t, second, "init", "-upgrade")
		sameLock("init -upgrade without the origins", second)

		if report, status := check(t, filled); status != 0 || len(report.Offered) != 8 {
			t.Errorf("check of the filled tree exits with %d: %+v", status, report)
		}
		mirror.Settle(t)
		s.Options = nil
		mirror.Reload(t, s)
		plain := machine()
		c.Run(t, plain, "init")
		expect(t, c.Run(t, plain, "apply", "-auto-approve"), installed...)
		if asked := mirror.Proxy.Asked(); len(slices.Compact(asked)) != 1 {
			t.Errorf("clients connected to other hosts than the stand-in: %v", asked)
		}
	})
}

// For a module in a folder of a repository, the package has this folder and the folders
// of the modules that it calls, at the same paths. A record of the origin is hidden
// beside it.
func TestKeptModule(t *testing.T) {
	t.Parallel()
	outside := newOutside(t, newTree(t))
	code := outside.CodeHost(t)
	repository := code.Repository("terraform-aws-network")
	publishNetwork(code, repository, "1.0.0")
	commit := repository.git(repository.work, "rev-parse", "HEAD")
	folders := newTree(t)
	mirror := outside.StartMirror(t, mirrorOf(codeHostRegistry, folders, "modules"))

	files, folder := mirror.module(t, "acme/network/aws", "1.0.0")
	if got, want := slices.Sorted(maps.Keys(files)), []string{"modules/network/.gitkeep", "modules/network/main.tf", "modules/shared/main.tf"}; !slices.Equal(got, want) || folder != "modules/network" {
		t.Errorf("the package has %v, the module in %q; want %v", got, folder, want)
	}
	const kept = "modules/code.example.com/acme/network/aws/"
	if record := folders.Read(kept + ".1.0.0.source.json"); !strings.Contains(record, commit) || !strings.Contains(record, repository.URL) {
		t.Errorf("the record is %s, want the commit %s", record, commit)
	}
	if got := slices.DeleteFunc(folders.files(), func(name string) bool { return strings.HasPrefix(path.Base(name), ".") }); !slices.Equal(got, []string{kept + "1.0.0.tar.gz"}) {
		t.Errorf("the tree has %v", got)
	}

	// Fetched again, the module has the same bytes.
	before := sha256Of(t, folders.Path(kept+"1.0.0.tar.gz"))
	mirror.removeModule(t, folders, "acme/network/aws", "1.0.0")
	mirror.module(t, "acme/network/aws", "1.0.0")
	if after := sha256Of(t, folders.Path(kept+"1.0.0.tar.gz")); after != before {
		t.Errorf("the package has the sha256 %s, before it had %s", after, before)
	}
}

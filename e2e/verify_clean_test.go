package e2e_test

import (
	"archive/tar"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// packedWith packs a module with links, which stand before its files.
func packedWith(links ...tar.Header) Packaging {
	return func(t *testing.T, path string, files map[string]string) {
		t.Helper()
		tarGz(t, path+".tar.gz", files, links...)
	}
}

func linkTo(name, target string) tar.Header {
	return tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target, Mode: 0o777}
}

// called is a call of a version of a module.
func called(name, source, version string) string {
	return "module \"" + name + "\" {\n  source  = \"" + source + "\"\n  version = \"" + version + "\"\n}\n\n"
}

// Nothing is found where nothing is wrong, whatever a configuration calls, and wherever clients
// put it.
func TestVerifyFindsNothing(t *testing.T) {
	t.Parallel()
	const of = "registry.example.com/"
	files := newTree(t).
		Provider("acme/demo", "1.0.0").OnlyThisPlatform("acme/demo", "1.0.0"). // the others were never fetched
		Module("acme/vpc/aws", "1.0.0", func(t *testing.T, path string, files map[string]string) {
			files[".hidden"], files["modules/.config/x"] = "hidden\n", "hidden, too\n" // which second copies lack
			asTarGz(t, path, files)
		}).
		Module("acme/vpc/aws", "1.2.0", asZip).
		Module("acme/vpc/aws", "1.3.0", asHostedTarGz).
		Module("acme/link/aws", "1.0.0", packedWith(linkTo("LICENSE", "README.md"), linkTo("modules/subnet/README.md", "../../README.md"))).
		Module("acme/caller/aws", "1.0.0", func(t *testing.T, path string, files map[string]string) {
			files["calls.tf"] = called("vpc", of+"acme/vpc/aws", "1.0.0") + called("same", of+"acme/vpc/aws", "1.0.0") +
				"module \"local\" {\n  source = \"./modules/subnet\"\n}\n"
			asTarGz(t, path, files)
		})
	registry := startRegistry(t, site("registry.example.com", files, "hostname registry.example.com", "tlog "+t.TempDir()))
	for _, path := range []string{"providers/acme/demo/1.0.0", "modules/acme/vpc/aws/1.0.0", "modules/acme/vpc/aws/1.2.0", "modules/acme/vpc/aws/1.3.0", "modules/acme/link/aws/1.0.0", "modules/acme/caller/aws/1.0.0"} {
		registry.onRecord(t, path)
	}
	demo := greeting(of+"acme/demo", "1.0.0")
	vpc := of + "acme/vpc/aws"

	for _, test := range []struct {
		rule          string
		configuration string
		folder        string // of the configuration
		setUp         func(t *testing.T, ws *Workspace)
		args          []string
		says          string
	}{
		{rule: "a submodule and its package", configuration: called("a", vpc, "1.0.0") + called("b", vpc+"//modules/subnet", "1.0.0"), says: "As on record: 1 of 1 version."},
		{rule: "a submodule alone", configuration: called("b", vpc+"//modules/subnet", "1.0.0"), says: "As on record: 1 of 1 version."},
		{rule: "several calls of a module, copied without hidden files", configuration: called("a", vpc, "1.0.0") + called("b", vpc, "1.0.0") + called("c", vpc, "1.0.0"), says: "As on record: 1 of 1 version."},
		{rule: "two versions, one of which is in a folder of its archive", configuration: called("a", vpc, "1.2.0") + called("b", vpc, "1.3.0"), says: "As on record: 2 of 2 versions."},
		{rule: "calls in a module, one of them local", configuration: called("a", of+"acme/caller/aws", "1.0.0") + called("b", vpc, "1.0.0"), says: "As on record: 2 of 2 versions."},
		{rule: "links in a module", configuration: called("a", of+"acme/link/aws", "1.0.0") + called("b", of+"acme/link/aws", "1.0.0"), says: "As on record: 1 of 1 version."},
		{rule: "a provider of which the registry has this platform alone", configuration: demo, says: "As on record: 1 of 1 version."},
		{rule: "a data folder elsewhere", configuration: demo + called("a", vpc, "1.0.0"), setUp: func(t *testing.T, ws *Workspace) {
			ws.Setenv("TF_DATA_DIR", filepath.Join(ws.home, "data"))
		}, says: "As on record: 2 of 2 versions."},
		{rule: "a plugin cache", configuration: demo, setUp: func(t *testing.T, ws *Workspace) {
			cache := filepath.Join(ws.home, "plugins")
			if err := os.Mkdir(cache, 0o755); err != nil {
				t.Fatal(err)
			}
			ws.CLIConfig(t, "plugin_cache_dir = \""+cache+"\"\n")
		}, says: "As on record: 1 of 1 version."},
		{rule: "a monorepo", configuration: demo + called("a", vpc, "1.0.0"), folder: "live/prod", args: []string{"--recursive"}, says: "As on record: 3 of 3 versions."},
		{rule: "a folder that is named", configuration: demo + called("a", vpc, "1.0.0"), folder: "live/prod", args: []string{"live/prod"}, says: "As on record: 2 of 2 versions."},
		{rule: "Terragrunt's folders", configuration: demo + called("a", vpc, "1.0.0"), folder: "live/prod/.terragrunt-cache/0Z5d2kq9zJ/q3bXw1rT/aws", setUp: func(t *testing.T, ws *Workspace) {
			ws.Write(t, "live/prod/terragrunt.hcl", "terraform {\n  source = \"../../modules//aws\"\n}\n")
		}, args: []string{"--recursive"}, says: "As on record: 3 of 3 versions."},
	} {
		t.Run(test.rule, func(t *testing.T) {
			eachClientSince013(t, func(t *testing.T, c Client) {
				t.Parallel()
				ws := newWorkspace(t, registry, "")
				root := ws.Dir
				if test.setUp != nil {
					test.setUp(t, ws)
				}
				if test.folder != "" {
					ws.Write(t, "main.tf", called("root", vpc, "1.2.0")) // the folder above has one, too
					c.Run(t, ws, "init")
					ws.Dir = filepath.Join(root, filepath.FromSlash(test.folder))
				}
				ws.Write(t, "main.tf", test.configuration)
				c.Run(t, ws, "init")
				if strings.Contains(test.folder, ".terragrunt-cache") && c.hasLockFile() { // Terragrunt copies it back
					writeFile(t, filepath.Join(root, "live/prod/.terraform.lock.hcl"), ws.lockFile(t))
				}
				ws.Dir = root
				for _, when := range []string{"as init leaves it", "by what has been kept"} {
					status, out := ws.verify(t, test.args...)
					says := test.says
					if strings.Contains(test.folder, ".terragrunt-cache") && c.hasLockFile() {
						says = "As on record: 4 of 4 versions."
					}
					if status != 0 || !strings.Contains(out, says) {
						t.Errorf("%s: the status is %d, want 0 and %q:\n%s", when, status, says, out)
					}
				}
			})
		})
	}
}

// hasLockFile reports whether the client writes a lock file.
func (c Client) hasLockFile() bool { return !strings.HasPrefix(c.Version, "0.13.") }

// A folder that the registry packs is as on record, however clients copy what they unpack.
func TestVerifyAModuleFolder(t *testing.T) {
	t.Parallel()
	files := &Tree{Dir: filepath.Join(repository(), "testdata", "registry"), t: t} // which has rested, or does so in a minute
	registry := startRegistry(t, site("registry.example.com", files, "hostname registry.example.com", "tlog "+t.TempDir()))
	registry.onRecord(t, "modules/acme/naming/any/1.0.0")
	registry.onRecord(t, "modules/acme/vpc/aws/1.4.0")
	const of = "registry.example.com/acme/"
	eachClientSince013(t, func(t *testing.T, c Client) {
		t.Parallel()
		ws := newWorkspace(t, registry, called("a", of+"naming/any", "1.0.0")+called("b", of+"naming/any", "1.0.0"))
		c.Run(t, ws, "get")
		ws.verified(t, "as the client leaves it", 0, "As on record: 1 of 1 version.")
		restore := ws.tampered(t, ".terraform/modules/a/main.tf")
		ws.verified(t, "a byte of a file", 1, of+"naming/any 1.0.0 other bytes: .terraform/modules/a:", "changed main.tf")
		restore()
		ws.Write(t, ".terraform/modules/b/more.tf", "")
		ws.verified(t, "another file", 1, "added more.tf")
	})
}

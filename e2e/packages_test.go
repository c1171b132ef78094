package e2e_test

import (
	"archive/zip"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const demoAddress = "registry.example.com/acme/demo"

// zipEntry is an entry of a package with its Unix mode.
type zipEntry struct {
	name    string
	mode    os.FileMode
	content []byte
}

// packageOf writes the package of acme/demo for this platform.
func packageOf(t *testing.T, files *Tree, version string, entries ...zipEntry) {
	t.Helper()
	path := files.Path("providers/" + demoAddress + "/terraform-provider-demo_" + version + "_" + thisPlatform + ".zip")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	packed := zip.NewWriter(file)
	for _, e := range entries {
		header := &zip.FileHeader{Name: e.name}
		header.SetMode(e.mode)
		w, err := packed.CreateHeader(header)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(e.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := packed.Close(); err != nil {
		t.Fatal(err)
	}
}

// mirrorHashes returns the hashes of a version in the mirror, without their
// schemes.
func mirrorHashes(t *testing.T, r *Registry, version string) (h1, zh []string) {
	t.Helper()
	var document struct {
		Archives map[string]struct{ Hashes []string }
	}
	answer := r.Get(t, "https://registry.example.com/v1/mirror/"+demoAddress+"/"+version+".json")
	if err := json.Unmarshal([]byte(answer.Body), &document); err != nil {
		t.Fatal(err)
	}
	for _, hash := range document.Archives[thisPlatform].Hashes {
		switch scheme, sum, _ := strings.Cut(hash, ":"); scheme {
		case "h1":
			h1 = append(h1, sum)
		case "zh":
			zh = append(zh, sum)
		}
	}
	return h1, zh
}

// Packages as publishers make them: packages that clients could not run are not
// offered. All others can be installed again with the clients' lock files.
func TestPackagesAsPublished(t *testing.T) {
	t.Parallel()
	const program = "terraform-provider-demo_v"
	binary := func(version string) []byte {
		content, err := os.ReadFile(buildProvider(t, "demo", version))
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	files := newTree(t)
	folder := files.Path("providers/" + demoAddress + "/1.0.0/" + thisPlatform)
	writeFile(t, filepath.Join(folder, program+"1.0.0"), string(binary("1.0.0"))) // not executable on disk
	writeFile(t, filepath.Join(folder, "docs", "index.md"), "# Demo\n")
	packageOf(t, files, "1.1.0", zipEntry{"docs/", os.ModeDir | 0o755, nil}, zipEntry{"docs/index.md", 0o644, []byte("# Demo\n")}, zipEntry{program + "1.1.0", 0o755, binary("1.1.0")})
	packageOf(t, files, "1.2.0", zipEntry{program + "1.2.0", 0o644, binary("1.2.0")})
	registry := startRegistry(t, site("registry.example.com", files))

	const mirrorOnly = `
provider_installation {
  network_mirror {
    url = "https://registry.example.com/v1/mirror/"
  }
}
`
	eachClient(t, func(t *testing.T, c Client) {
		// again installs the locked packages of ws on a fresh machine.
		again := func(ws *Workspace, cli string) {
			t.Helper()
			elsewhere := newWorkspace(t, registry, greeting(demoAddress, ">= 1.0.0"))
			elsewhere.CLIConfig(t, cli)
			copyFile(t, ws.Dir+"/.terraform.lock.hcl", elsewhere.Dir+"/.terraform.lock.hcl")
			c.Run(t, elsewhere, "init", "-lockfile=readonly")
		}

		t.Run("not executable", func(t *testing.T) {
			ws := newWorkspace(t, registry, greeting(demoAddress, "1.2.0"))
			c.Refused(t, ws, "init")
		})
		t.Run("with entries for folders", func(t *testing.T) {
			ws := newWorkspace(t, registry, greeting(demoAddress, ">= 1.0.0"))
			c.Run(t, ws, "init")
			expect(t, c.Run(t, ws, "apply", "-auto-approve"), `text = "hello world from 1.1.0"`)
			h1, zh := mirrorHashes(t, registry, "1.1.0")
			if lock := ws.Lock(t, demoAddress); len(h1) != 2 || !slices.Contains(lock.H1, h1[0]) || !slices.Equal(lock.ZH, zh) {
				t.Errorf("the lock file has %+v, the mirror %v and %v", lock, h1, zh)
			}
			again(ws, "")
			again(ws, mirrorOnly)
		})
		t.Run("unpacked", func(t *testing.T) {
			ws := newWorkspace(t, registry, greeting(demoAddress, "1.0.0"))
			ws.CLIConfig(t, mirrorOnly)
			c.Run(t, ws, "init")
			expect(t, c.Run(t, ws, "apply", "-auto-approve"), `text = "hello world from 1.0.0"`)
			h1, _ := mirrorHashes(t, registry, "1.0.0")
			if lock := ws.Lock(t, demoAddress); !slices.Equal(lock.H1, h1) {
				t.Errorf("the lock file has %v, the mirror %v", lock.H1, h1)
			}
			again(ws, mirrorOnly)
			again(ws, "")

			// Locked from the folder itself, used as a filesystem mirror.
			ws = newWorkspace(t, registry, greeting(demoAddress, "1.0.0"))
			ws.CLIConfig(t, `
provider_installation {
  filesystem_mirror {
    path = "`+filepath.ToSlash(files.Path("providers"))+`"
  }
}
`)
			c.Run(t, ws, "init")
			again(ws, mirrorOnly)
		})
	})

	report, status := check(t, files)
	if status != 1 || len(report.Withheld) != 1 || report.Withheld[0].Reason != "not_executable" {
		t.Errorf("check exits with %d: %+v", status, report)
	}
}

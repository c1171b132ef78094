package e2e_test

import (
	"archive/tar"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The instructions in docs/moving.md work on small trees of the layouts that it describes.

const movingDocs = "docs/moving.md"

// offers returns the offered versions of a report, as "ADDRESS VERSION SIGNATURE"
// without the ID of a key.
func (r Report) offers() (offers []string) {
	for _, o := range r.Offered {
		signature, _, _ := strings.Cut(o.Signature, " ")
		offers = append(offers, strings.TrimSpace(o.Address+" "+o.Version+" "+signature))
	}
	slices.Sort(offers)
	return offers
}

// checked is the report on the folder tree of the working directory, by the documented
// command.
func (ws *Workspace) checked(t *testing.T) Report {
	t.Helper()
	out := ws.Shell(t, ".", "("+strings.TrimSpace(documented(t, movingDocs, "sh", "check --root tree"))+" --json) || true")
	var report Report
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	return report
}

// signingKeys is the file of boring-registry with the keys of a namespace.
func signingKeys(t *testing.T, publishers ...*Publisher) string {
	t.Helper()
	type key struct {
		ASCIIArmor string `json:"ascii_armor"`
	}
	var document struct {
		Keys []key `json:"gpg_public_keys"`
	}
	for _, p := range publishers {
		document.Keys = append(document.Keys, key{p.PublicKey(t)})
	}
	text, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestMovingDocsLayouts(t *testing.T) {
	t.Parallel()
	_, err := exec.LookPath("jq")
	require(t, err)
	acme, other := publisher(t, "acme"), publisher(t, "other")
	here := platforms(thisPlatform)
	const mirrored = "registry.terraform.io/acme/demo"

	for _, test := range []struct {
		registry string
		block    string // a text in the block of commands; "": the layout is a tree already
		lay      func(t *testing.T, ws *Workspace)
		want     []string
	}{
		{
			registry: "boring-registry",
			block:    "signing-keys.json",
			lay: func(t *testing.T, ws *Workspace) {
				ours, theirs := ws.Path("boring"), filepath.Join(ws.Dir, "boring", "mirror")
				newRelease("acme/demo", "1.2.0", here, signedBy(acme)).publish(t, ours)
				ws.Write(t, "boring/providers/acme/signing-keys.json", signingKeys(t, acme, other))
				newRelease(mirrored, "1.0.0", here, signedBy(other)).publish(t, theirs)
				// As its releases before 0.11 wrote it.
				old := strings.TrimSuffix(strings.TrimPrefix(signingKeys(t, other), `{"gpg_public_keys":[`), `]}`)
				ws.Write(t, "boring/mirror/providers/registry.terraform.io/acme/signing-keys.json", old)
				for _, version := range []string{"1.2.0", "1.10.0-rc.1"} {
					asTarGz(t, filepath.Join(ours, "modules", "acme", "tls-key", "aws", "acme-tls-key-aws-"+version), moduleFiles("acme/tls-key/aws", version))
				}
			},
			want: []string{
				"acme/demo 1.2.0 publisher", "acme/tls-key/aws 1.10.0-rc.1", "acme/tls-key/aws 1.2.0",
				mirrored + " 1.0.0 publisher",
			},
		},
		{
			registry: "boring-registry without a mirror",
			block:    "signing-keys.json",
			lay: func(t *testing.T, ws *Workspace) {
				newRelease("acme/demo", "1.2.0", here, signedBy(acme)).publish(t, ws.Path("boring"))
				ws.Write(t, "boring/providers/acme/signing-keys.json", signingKeys(t, acme))
			},
			want: []string{"acme/demo 1.2.0 publisher"},
		},
		{
			registry: "Artifactory",
			lay: func(t *testing.T, ws *Workspace) {
				newRelease("acme/demo", "1.2.0", here, perFolder, zipsOnly).publish(t, ws.Path("tree"))
				newRelease("acme/demo", "1.3.0", here, perFolder, signedBy(acme)).publish(t, ws.Path("tree"))
				ws.Write(t, "tree/keys/acme.asc", acme.PublicKey(t))
				asZip(t, filepath.Join(ws.Path("tree"), "modules", "acme", "vpc", "aws", "1.2.0"), moduleFiles("acme/vpc/aws", "1.2.0"))
			},
			want: []string{"acme/demo 1.2.0 registry", "acme/demo 1.3.0 publisher", "acme/vpc/aws 1.2.0"},
		},
		{
			registry: "terrareg",
			block:    "-name source.zip",
			lay: func(t *testing.T, ws *Workspace) {
				for _, version := range []string{"1.2.0", "1.3.0"} {
					source := filepath.Join(ws.Path("data"), "modules", "acme", "vpc", "aws", version, "source")
					asZip(t, source, moduleFiles("acme/vpc/aws", version))
					writeFile(t, source+".tar.gz", "not to be taken")
				}
			},
			want: []string{"acme/vpc/aws 1.2.0", "acme/vpc/aws 1.3.0"},
		},
		{
			registry: "hermitcrab",
			block:    "/var/run/hermitcrab",
			lay: func(t *testing.T, ws *Workspace) {
				newRelease(mirrored, "1.0.0", here, zipsOnly).publish(t, ws.Path("hermitcrab/data"))
			},
			want: []string{mirrored + " 1.0.0 registry"},
		},
		{
			registry: "nginx, with the documents of `providers mirror`",
			lay: func(t *testing.T, ws *Workspace) {
				newRelease(mirrored, "1.0.0", here, zipsOnly).publish(t, ws.Path("tree"))
				ws.Write(t, "tree/providers/"+mirrored+"/index.json", `{"versions":{"1.0.0":{}}}`)
				ws.Write(t, "tree/providers/"+mirrored+"/1.0.0.json", `{"archives":{}}`)
			},
			want: []string{mirrored + " 1.0.0 registry"},
		},
	} {
		t.Run(test.registry, func(t *testing.T) {
			t.Parallel()
			ws := machineWithCaddy(t)
			test.lay(t, ws)
			if test.block != "" {
				commands := documented(t, movingDocs, "sh", test.block)
				ws.Shell(t, ".", strings.ReplaceAll(commands, "/var/run/hermitcrab", "hermitcrab"))
			}
			report := ws.checked(t)
			if got := report.offers(); !slices.Equal(got, test.want) {
				t.Errorf("it offers %q, want %q", got, test.want)
			}
			if len(report.Withheld) > 0 {
				t.Errorf("it withholds %v", report.Withheld)
			}
		})
	}
}

// terrareg's other archive begins with the entry "/". Clients unpack it all the same.
func TestMovingDocsTerraregTar(t *testing.T) {
	t.Parallel()
	files := newTree(t)
	tarGz(t, files.Path("modules/acme/vpc/aws/1.2.0.tar.gz"), moduleFiles("acme/vpc/aws", "1.2.0"),
		tar.Header{Typeflag: tar.TypeDir, Name: "/", Mode: 0o755})
	registry := startRegistry(t, site("registry.example.com", files))
	eachClient(t, func(t *testing.T, c Client) {
		ws := newWorkspace(t, registry, `
module "vpc" {
  source  = "registry.example.com/acme/vpc/aws"
  version = "1.2.0"
}
`)
		c.Run(t, ws, "init")
		c.Run(t, ws, "validate")
	})
}

// Clients keep the URL of their former mirror, of nginx or hermitcrab.
func TestMovingDocsURLs(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ registry, block, url string }{
		{"nginx", "uri path_regexp ^/terraform/", "https://mirror.example.com/terraform/"},
		{"hermitcrab", "uri path_regexp ^/v1/providers/", "https://mirror.example.com/v1/providers/"},
	} {
		t.Run(test.registry, func(t *testing.T) {
			t.Parallel()
			files := newTree(t).
				Provider("registry.terraform.io/acme/demo", "1.0.0", zipsOnly).
				Provider("acme/demo", "1.2.0")
			block := documented(t, movingDocs, "caddyfile", test.block)
			block = strings.NewReplacer("/srv", files.Dir, "/var/www/mirror", files.Path("providers")).Replace(block)
			registry := startRegistry(t, documentedSite(t, block))
			registry.Log.Wait(t, "it has scanned its tree", Entry.scan)
			eachClient(t, func(t *testing.T, c Client) {
				ws := newWorkspace(t, registry, greeting("registry.terraform.io/acme/demo", "1.0.0"))
				ws.CLIConfig(t, strings.ReplaceAll(viaMirror, "https://mirror.example.com/v1/mirror/", test.url))
				c.Run(t, ws, "init")

				ws = newWorkspace(t, registry, greeting("mirror.example.com/acme/demo", "1.2.0"))
				c.Run(t, ws, "init")
			})
		})
	}
}

// Releases that are fetched again come with the documents that their publisher has
// signed.
func TestMovingDocsSignatures(t *testing.T) {
	t.Parallel()
	acme := publisher(t, "acme")
	outside := newOutside(t, newTree(t).Provider("acme/demo", "1.0.0", platforms("linux_amd64", "darwin_arm64"), signedBy(acme)).Keys("acme", acme))
	files := newTree(t)
	command := substitute(t, documented(t, movingDocs, "sh", "mirror --root"), "--root tree", "--root "+files.Dir, "hashicorp/null@3.2.2", demoOfOrigin+"@1.0.0")
	outside.command(t, strings.Fields(strings.TrimPrefix(command, "caddy-terraform-registry "))...)
	report, status := check(t, files)
	if want := []string{demoOfOrigin + " 1.0.0 publisher"}; !slices.Equal(report.offers(), want) || status != 0 {
		t.Errorf("it offers %q with status %d, want %q", report.offers(), status, want)
	}
}

// A provider under a new name of its registry: the documented command moves its state.
func TestMovingDocsAddresses(t *testing.T) {
	t.Parallel()
	files := newTree(t).Provider("acme/demo", "1.2.0", platforms(thisPlatform))
	const before, after = "old.example.com/acme/demo", "registry.example.com/acme/demo"
	registry := startRegistry(t, site("old.example.com", files), site("registry.example.com", files))
	eachClient(t, func(t *testing.T, c Client) {
		ws := newWorkspace(t, registry, greeting(before, "1.2.0"))
		c.Run(t, ws, "init")
		c.Run(t, ws, "apply", "-auto-approve")
		ws.Write(t, "main.tf", greeting(after, "1.2.0"))
		command := strings.Fields(documented(t, movingDocs, "sh", "replace-provider"))
		c.Run(t, ws, append([]string{"state", "replace-provider", "-auto-approve"}, command[3:]...)...)
		c.Run(t, ws, "init")
		expect(t, c.Run(t, ws, "plan"), "No changes.")
		if got := ws.Lock(t, after).Version; got != "1.2.0" {
			t.Errorf("the lock file has version %q", got)
		}
	})
}

// All tags of a repository become versions.
func TestMovingDocsGit(t *testing.T) {
	t.Parallel()
	registry, token := startPublishing(t, newTree(t))
	repo := newMonorepo(t, registry)
	repo.InstallCaddy(t)
	repo.Setenv("TF_TOKEN_registry_example_com", token)
	for _, version := range []string{"1.0.0", "1.1.0"} {
		asFolder(t, repo.Dir, moduleFiles("acme/vpc/aws", version))
		repo.commit(t, "v"+version)
	}
	repo.Shell(t, ".", substitute(t, documented(t, movingDocs, "sh", "--from-git"), "https://git.example.com/acme/vpc.git", "."))
	expect(t, registry.Get(t, "https://registry.example.com/v1/modules/acme/vpc/aws/versions").Body, `"1.0.0"`, `"1.1.0"`)
}

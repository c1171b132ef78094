package e2e_test

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The instructions in docs/publish.md work as they are written.

const publishDocs = "docs/publish.md"

// startPublishing runs a registry with the first Caddyfile of docs/publish.md, and
// returns the token of its user ci, who may publish in acme.
func startPublishing(t *testing.T, files *Tree) (r *Registry, token string) {
	t.Helper()
	tokens := newTokens(t)
	token = tokens.New("ci")
	return startPublishingWith(t, files, tokens), token
}

// startPublishingWith runs it with the tokens of its users. The user ops may manage
// all.
func startPublishingWith(t *testing.T, files *Tree, tokens *Tokens) (r *Registry) {
	t.Helper()
	block := substitute(t, codeBlocks(t, publishDocs, "caddyfile")[0], "/srv", files.Dir, "/etc/caddy-terraform-registry/tokens", tokens.File)
	r = startRegistry(t, documentedSite(t, block))
	r.Log.Wait(t, "it has scanned its tree", Entry.scan)
	return r
}

// release puts the files of acme/demo 1.2.0 into the folder dist of the working directory.
func (ws *Workspace) release(t *testing.T) {
	t.Helper()
	newRelease("acme/demo", "1.2.0").publish(t, ws.Dir)
	if err := os.Rename(filepath.Join(ws.Dir, "providers", "acme", "demo"), filepath.Join(ws.Dir, "dist")); err != nil {
		t.Fatal(err)
	}
}

// From a release without checksums to a provider and a module with everything.
func TestPublishDocsCurl(t *testing.T) {
	t.Parallel()
	_, err := exec.LookPath("curl")
	require(t, err)
	files := newTree(t)
	tokens := newTokens(t)
	token, ops := tokens.New("ci"), tokens.New("ops")
	registry := startPublishingWith(t, files, tokens)
	ws := newWorkspace(t, registry, "")
	ws.Setenv("REGISTRY_TOKEN", token)
	ws.Setenv("OPS_TOKEN", ops)
	ws.release(t)
	checksums := filepath.Join(ws.Dir, "dist", "terraform-provider-demo_1.2.0_SHA256SUMS")
	released := readFile(t, checksums)
	if err := os.Remove(checksums); err != nil {
		t.Fatal(err)
	}
	asFolder(t, filepath.Join(ws.Dir, "modules", "vpc"), moduleFiles("acme/vpc/aws", "1.2.0"))
	ws.Write(t, "docs/index.md", "# Demo\n")
	ws.Write(t, "registry.hcl", `description = "A network"`+"\n")

	ws.Shell(t, "dist", documented(t, publishDocs, "sh", "sha256sum terraform-provider"))
	if got := readFile(t, checksums); !slices.Equal(sortedLines(got), sortedLines(released)) {
		t.Errorf("sha256sum writes\n%swant\n%s", got, released)
	}
	states := documented(t, publishDocs, "sh", "-X DELETE")
	for _, of := range []struct{ block, want string }{
		{"for file in", `"status":"published"`},
		{"-T docs.tar.gz", `"status":"published"`},
		{"-T 1.2.0.tar.gz", `"status":"published"`},
		{`$OPS_TOKEN" -T registry.hcl`, `"status":"published"`},
		{"--etag-save", `"status":"published"`},
	} {
		expect(t, ws.Shell(t, ".", documented(t, publishDocs, "sh", of.block)), of.want)
	}
	expect(t, ws.Shell(t, ".", states), `"status":"published"`, "is not deleted: withdraw it")

	const host = "registry.example.com"
	eachClient(t, func(t *testing.T, c Client) {
		ws := newWorkspace(t, registry, greeting(host+"/acme/demo", "1.2.0"))
		ws.Write(t, "module.tf", `
module "vpc" {
  source  = "`+host+`/acme/vpc/aws"
  version = "1.2.0"
}

output "vpc" {
  value = module.vpc.text
}
`)
		c.Run(t, ws, "init")
		expect(t, c.Run(t, ws, "apply", "-auto-approve"),
			`text = "hello world from 1.2.0"`, `vpc = "acme/vpc/aws 1.2.0"`)
	})
	expect(t, registry.Get(t, "https://"+host+"/v1/providers/acme/demo/1.2.0").Body, `"path":"docs/index.md"`)
	expect(t, registry.Get(t, "https://"+host+"/v1/modules/acme/vpc/aws/1.2.0").Body, `"description":"A network"`)
	expect(t, readFile(t, files.Path("modules/acme/vpc/aws/registry.hcl")), `owner = "platform team"`)
}

// The documented commands show and discard staged files.
func TestPublishDocsStaging(t *testing.T) {
	t.Parallel()
	_, err := exec.LookPath("curl")
	require(t, err)
	registry, token := startPublishing(t, newTree(t))
	ws := newWorkspace(t, registry, "")
	ws.Setenv("REGISTRY_TOKEN", token)
	ws.release(t)

	file := filepath.Join(ws.Dir, "dist", "terraform-provider-demo_1.2.0_"+thisPlatform+".zip")
	const folder = "https://registry.example.com/v1/providers/acme/demo/1.2.0/"
	if status, body := ws.put(t, token, file, folder); status != http.StatusAccepted {
		t.Fatalf("got %d %s", status, body)
	}
	out := ws.Shell(t, ".", documented(t, publishDocs, "sh", "-X DELETE"))
	var state struct {
		Status  string
		Files   []struct{ Name, SHA256 string }
		Missing []string
	}
	if err := json.Unmarshal([]byte(out), &state); err != nil {
		t.Fatalf("%v: want one document, and nothing from DELETE:\n%s", err, out)
	}
	if state.Status != "staged" || len(state.Files) != 1 || state.Files[0].SHA256 != sha256Of(t, file) ||
		!slices.Equal(state.Missing, []string{"terraform-provider-demo_1.2.0_SHA256SUMS"}) {
		t.Errorf("got %+v", state)
	}
	expect(t, ws.Shell(t, ".", documented(t, publishDocs, "sh", "-X DELETE")), `"errors"`)
}

// The commands for copying offer a complete release.
func TestPublishDocsCopying(t *testing.T) {
	t.Parallel()
	files := newTree(t)
	registry, _ := startPublishing(t, files)
	ws := newWorkspace(t, registry, "")
	ws.release(t)
	// GoReleaser leaves the manifest outside of dist.
	if err := os.Rename(filepath.Join(ws.Dir, "dist", "terraform-provider-demo_1.2.0_manifest.json"),
		filepath.Join(ws.Dir, "terraform-registry-manifest.json")); err != nil {
		t.Fatal(err)
	}
	ws.Shell(t, ".", substitute(t, documented(t, publishDocs, "sh", "mv -T"), "/srv", files.Dir))
	registry.Log.Wait(t, "it offers the release", func(e Entry) bool {
		return strings.HasPrefix(e.Message, "now offered acme/demo 1.2.0")
	})
	eachClient(t, func(t *testing.T, c Client) {
		ws := newWorkspace(t, registry, greeting("registry.example.com/acme/demo", "1.2.0"))
		c.Run(t, ws, "init")
	})
}

func sortedLines(text string) []string { return slices.Sorted(strings.Lines(text)) }

package e2e_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
)

// The statements of docs/tools.md about tools other than the clients, as far as they
// can be tried without the tools: the tests send the same requests.

const toolsDocs = "docs/tools.md"

// A site of a registry for tools that know no stand-in. Discovery and URLs are as at
// the registry itself, for its mirrored packages.
func TestToolsDocsSite(t *testing.T) {
	t.Parallel()
	files := newTree(t).
		Provider("registry.terraform.io/acme/demo", "1.0.0").
		Module("registry.terraform.io/acme/vpc/aws", "1.0.0", asZip).
		Provider("acme/demo", "2.0.0")
	block := documented(t, toolsDocs, "caddyfile", "public.example.com")
	// Nothing is fetched here.
	before, after, _ := strings.Cut(block, "\t\tupstream")
	_, after, found := strings.Cut(after, "\t\t}\n")
	if !found {
		t.Fatalf("it has no upstream:\n%s", block)
	}
	registry := startRegistry(t, documentedSite(t, substitute(t, before+after, "/srv", files.Dir)))
	registry.Log.Wait(t, "it has scanned its tree", Entry.scan)

	const host = "https://public.example.com"
	var discovery struct {
		Providers string `json:"providers.v1"`
		Modules   string `json:"modules.v1"`
	}
	if err := json.Unmarshal([]byte(registry.Get(t, host+"/.well-known/terraform.json").Body), &discovery); err != nil {
		t.Fatal(err)
	}
	for _, request := range []struct{ tool, url, want string }{
		{"Renovate and tfupdate, versions of a provider", host + discovery.Providers + "acme/demo/versions", `"version":"1.0.0"`},
		{"Renovate, a package", host + discovery.Providers + "acme/demo/1.0.0/download/" + strings.Replace(thisPlatform, "_", "/", 1),
			`"download_url":"` + host + "/"},
		{"Renovate and tfupdate, versions of a module", host + discovery.Modules + "acme/vpc/aws/versions", `"version":"1.0.0"`},
	} {
		answer := registry.Get(t, request.url)
		if answer.Status != http.StatusOK || !strings.Contains(answer.Body, request.want) || strings.Contains(answer.Body, "2.0.0") {
			t.Errorf("%s: got %d %s", request.tool, answer.Status, answer.Body)
		}
	}
}

// tfupdate is built from its Go module, at the version that tfupdate/go.mod requires.
var tfupdate = sync.OnceValues(func() (string, error) { return goTool("tfupdate") })

// tfupdate finds versions, and writes lock files that clients accept.
func TestToolsDocsTfupdate(t *testing.T) {
	t.Parallel()
	binary, err := tfupdate()
	require(t, err)
	const host = "registry.example.com"
	files := newTree(t).
		Provider("acme/demo", "1.0.0").Provider("acme/demo", "1.1.0").
		Module("acme/vpc/aws", "1.0.0", asZip).Module("acme/vpc/aws", "1.2.0", asZip)
	registry := startRegistry(t, site(host, files))
	ws := newWorkspace(t, registry, greeting(host+"/acme/demo", "1.1.0"))
	ws.Install(t, "tfupdate", binary)
	if got := strings.Fields(ws.Shell(t, "", documented(t, toolsDocs, "sh", "tfupdate release"))); !slices.Equal(got, []string{"1.2.0", "1.0.0", "1.1.0"}) {
		t.Errorf("it finds the versions %v", got)
	}
	eachClient(t, func(t *testing.T, c Client) {
		ws := newWorkspace(t, registry, greeting(host+"/acme/demo", "1.0.0"))
		ws.Install(t, "tfupdate", binary)
		c.Run(t, ws, "init")
		ws.Write(t, "main.tf", greeting(host+"/acme/demo", "1.1.0"))
		ws.Shell(t, "", documented(t, toolsDocs, "sh", "tfupdate lock"))
		c.Run(t, ws, "init", "-lockfile=readonly")
		expect(t, ws.lockFile(t), `version     = "1.1.0"`, "zh:")
	})
}

// Configuration in JSON can be pasted.
func TestToolsDocsJSON(t *testing.T) {
	for _, block := range codeBlocks(t, toolsDocs, "json") {
		if !json.Valid([]byte(block)) {
			t.Errorf("it is no JSON:\n%s", block)
		}
	}
}

// A client with the documented credentials can read private packages.
func TestToolsDocsCredentials(t *testing.T) {
	t.Parallel()
	files := newTree(t).Module("acme/vpc/aws", "1.2.0", asZip)
	tokens := newTokens(t)
	token := tokens.New("ci")
	registry := startRegistry(t, site("registry.example.com", files, "auth terraform_tokens "+tokens.File))
	for _, way := range []string{"variable", "block"} {
		eachClient(t, func(t *testing.T, c Client) {
			ws := newWorkspace(t, registry, calling("registry.example.com/acme/vpc/aws", "1.2.0"))
			expect(t, c.Refused(t, ws, "init"), "401")
			if way == "variable" {
				name, _, _ := strings.Cut(strings.TrimPrefix(codeBlocks(t, toolsDocs, "sh")[0], "export "), "=")
				ws.Setenv(name, token)
			} else {
				ws.CLIConfig(t, substitute(t, documented(t, toolsDocs, "hcl", "credentials"), "tfr_…", token))
			}
			c.Run(t, ws, "init")
		})
	}
}

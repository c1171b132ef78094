package e2e_test

import (
	"os/exec"
	"strings"
	"testing"
)

const apiDocs = "docs/api.md"

// The requests of docs/api.md get the answers that it shows.
func TestAPIDocs(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"curl", "jq"} {
		_, err := exec.LookPath(tool)
		require(t, err)
	}
	files := newTree(t)
	for _, name := range []string{"vpc", "subnet", "peering"} {
		asFolder(t, files.Path("modules/acme/"+name+"/aws/1.10.0"), map[string]string{
			"main.tf": "variable \"cidr\" {\n  type        = string\n  description = \"Addresses of the network.\"\n}\n",
		})
	}
	registry := startRegistry(t, site("registry.example.com", files))
	closed, token := startPublishing(t, files)
	registry.Settle(t)
	closed.Settle(t)
	open, private := newWorkspace(t, registry, ""), newWorkspace(t, closed, "")
	private.Setenv("TOKEN", token)

	for _, request := range []struct {
		block string
		at    *Workspace
		want  string
	}{
		{"v1/modules/search?q=vpc", open, `"name":"vpc"`},
		{"/v1/registries/", open, `"modules":[]`},
		{"Authorization: Bearer", private, `"name":"vpc"`},
	} {
		expect(t, request.at.Shell(t, ".", documented(t, apiDocs, "sh", request.block)), request.want)
	}
	shown := 0
	for _, block := range codeBlocks(t, apiDocs, "sh") {
		command, answer, found := strings.Cut(block, "\n")
		if command, isPrompt := strings.CutPrefix(command, "$ "); isPrompt && found {
			shown++
			if got := open.Shell(t, ".", command); got != answer {
				t.Errorf("%s answers\n%swant\n%s", command, got, answer)
			}
		}
	}
	if shown != 2 {
		t.Errorf("it shows %d answers", shown)
	}
}

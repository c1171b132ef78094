package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The commands of docs/publish.md for a provider, a module, and modules in a monorepo, by
// a user who has a token in the environment.
func TestPublishDocsCommand(t *testing.T) {
	t.Parallel()
	const host = "registry.example.com"
	caddy, err := caddyBinary()
	if err != nil {
		t.Fatal(err)
	}
	registry, token := startPublishing(t, newTree(t))
	ws := newWorkspace(t, registry, "")
	ws.Setenv("TF_TOKEN_registry_example_com", token)
	commands := func(text string) string {
		return substitute(t, documented(t, publishDocs, "sh", text), "caddy-terraform-registry", `"`+caddy+`" terraform-registry`)
	}

	ws.release(t)
	asFolder(t, filepath.Join(ws.Dir, "modules", "vpc"), moduleFiles("acme/vpc/aws", "1.2.0"))
	ws.Shell(t, ".", commands("1.2.0 modules/vpc"))

	repo := newMonorepo(t, registry)
	for _, version := range []string{"1.0.0", "1.1.0", "1.2.0"} {
		repo.tag(t, "vpc", version)
	}
	repo.Setenv("TF_TOKEN_registry_example_com", token)
	monorepo := commands("--path modules/vpc")
	all := substitute(t, monorepo, "--tag vpc/v1.2.0", "--all-tags")
	// 1.2.0 has just been published from a folder with the same files.
	repo.Shell(t, ".", monorepo)
	repo.Shell(t, ".", all)
	repo.Shell(t, ".", all)
	repo.tag(t, "subnet", "2.0.0")
	expect(t, plain(repo.Shell(t, ".", commands("{name}"))), "Published: acme/subnet/aws 2.0.0.", "Published before, with the same bytes: acme/vpc/aws 1.2.0, 1.1.0, 1.0.0.")

	eachClient(t, func(t *testing.T, c Client) {
		ws := newWorkspace(t, registry, greeting(host+"/acme/demo", "1.2.0"))
		c.Run(t, ws, "init")
		expect(t, c.Run(t, ws, "apply", "-auto-approve"), `text = "hello world from 1.2.0"`)
		for _, version := range []string{"1.0.0", "1.1.0", "1.2.0"} {
			ws := newWorkspace(t, registry, calling(host+"/acme/vpc/aws", version))
			c.Run(t, ws, "init")
			expect(t, c.Run(t, ws, "apply", "-auto-approve"), `text = "acme/vpc/aws `+version+`"`)
		}
	})

	// A tag that was moved is refused, and the reason is printed.
	repo.Write(t, "modules/vpc/main.tf", `output "text" { value = "moved" }`+"\n")
	repo.commit(t, "vpc/v1.2.0")
	out := repo.Shell(t, ".", "! "+strings.TrimSpace(monorepo)+" 2>&1")
	expect(t, plain(out), "vpc/v1.2.0", "a version never changes")
}

// monorepo is a git repository with modules in folders, each with tags of its own.
type monorepo struct{ *Workspace }

func newMonorepo(t *testing.T, r *Registry) monorepo {
	t.Helper()
	repo := monorepo{newWorkspace(t, r, "")}
	repo.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	repo.Setenv("GIT_CONFIG_SYSTEM", os.DevNull)
	for _, role := range []string{"AUTHOR", "COMMITTER"} {
		repo.Setenv("GIT_"+role+"_NAME", "Acme")
		repo.Setenv("GIT_"+role+"_EMAIL", "platform@acme.example")
	}
	repo.Shell(t, ".", "git init --quiet --initial-branch=main")
	return repo
}

// tag commits a version of a module, and tags it.
func (m monorepo) tag(t *testing.T, module, version string) {
	t.Helper()
	asFolder(t, filepath.Join(m.Dir, "modules", module), moduleFiles("acme/"+module+"/aws", version))
	m.commit(t, module+"/v"+version)
}

func (m monorepo) commit(t *testing.T, tag string) {
	t.Helper()
	m.Shell(t, ".", "git add --all && git commit --quiet --message '"+tag+"' && git tag --force '"+tag+"'")
}

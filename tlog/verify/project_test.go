package verify_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/tlog/verify"
)

// Projects are where init has left something, whatever is around them.
func TestFindProjects(t *testing.T) {
	const lock, modules = "/.terraform.lock.hcl", "/.terraform/modules/modules.json"
	for _, test := range []struct {
		rule, data string
		files      []string
		want       string
	}{
		{"a monorepo", ".terraform", []string{"a" + lock, "b/c" + modules, "d/main.tf"}, "[a b/c]"},
		{"the folder itself", ".terraform", []string{"." + lock}, "[.]"},
		{"Terragrunt's folders", ".terraform", []string{"live/.terragrunt-cache/x/y" + lock, "live/.terragrunt-cache/x/y" + modules, "live" + lock}, "[live live/.terragrunt-cache/x/y]"},
		{"another folder of data", "data", []string{"a/data/modules/modules.json", "a/data/modules/vpc" + lock, "b" + modules}, "[a]"},
		{"another folder of data, further down", "tmp/prod", []string{"a/tmp/prod/modules/modules.json", "a/tmp/prod/modules/vpc" + lock, "live/prod" + lock}, "[a live/prod]"},
		{"an absolute folder of data", "/prod", []string{"prod/modules/vpc" + lock, "live/prod" + lock}, "[live/prod]"},
		{"not what modules have with them", ".terraform", []string{"a" + lock, "a/.terraform/modules/vpc" + lock}, "[a]"},
		{"not what Git has", ".terraform", []string{".git" + lock}, "[]"},
		{"of Terraform 0.13", ".terraform", []string{"a/.terraform/plugins/selections.json"}, "[a]"},
	} {
		root := t.TempDir()
		for _, name := range test.files {
			path := filepath.Join(root, filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		data := test.data
		if strings.HasPrefix(data, "/") {
			data = filepath.Join(root, filepath.FromSlash(data))
		}
		found, err := verify.FindProjects(root, data)
		for i, path := range found {
			relative, _ := filepath.Rel(root, path)
			found[i] = filepath.ToSlash(relative)
		}
		if fmt.Sprint(found) != test.want || err != nil {
			t.Errorf("%s: got %v, %v", test.rule, found, err)
		}
	}
}

// A file that cannot be read is no absence.
func TestProjectsThatCannotBeRead(t *testing.T) {
	for _, test := range []struct{ rule, name, content, want string }{
		{"a lock file", ".terraform.lock.hcl", "provider", ".terraform.lock.hcl:1:"},
		{"modules.json", ".terraform/modules/modules.json", "{", "let `init` write it again"},
	} {
		m := &machine{t: t, dir: t.TempDir()}
		m.write(test.name, test.content)
		if _, _, err := verify.ReadProject(m.dir, verify.DefaultData); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", test.rule, err)
		}
	}
	if _, known, err := verify.ReadProject(t.TempDir(), verify.DefaultData); known || err != nil {
		t.Errorf("an empty folder: %t, %v", known, err)
	}
}

// An absolute TF_DATA_DIR belongs to the folder in which the client runs.
func TestAbsoluteDataFolder(t *testing.T) {
	r := full(t)
	m := installed(t, r)
	data := filepath.Join(t.TempDir(), "data")
	m.must(os.Rename(m.path(".terraform"), data))
	p, known, err := verify.ReadProject(m.dir, data)
	if err != nil || !known || len(p.Modules) != 1 || p.Modules[0].Folder != filepath.Join(data, "modules", "vpc") || len(p.Providers) != 1 || len(p.Providers[0].Packages) != 1 {
		t.Errorf("it has %+v, %v", p, err)
	}
}

// Clients need no dot in the hostname of a provider. What they have installed is found by its folder.
func TestProvidersOfAHostnameWithoutADot(t *testing.T) {
	for _, hasLock := range []bool{true, false} { // Terraform 0.13 writes none
		m := &machine{t: t, dir: t.TempDir()}
		m.write(".terraform/providers/registry/acme/demo/1.0.0/linux_amd64/terraform-provider-demo", "x")
		if hasLock {
			m.write(".terraform.lock.hcl", "provider \"registry/acme/demo\" {\n  version = \"1.0.0\"\n}\n")
		}
		p, known, err := verify.ReadProject(m.dir, verify.DefaultData)
		if err != nil || !known || len(p.Providers) != 1 || p.Providers[0].Address.String() != "registry:443/acme/demo" || len(p.Providers[0].Packages) != 1 {
			t.Errorf("with a lock file: %t: it has %+v, %v", hasLock, p, err)
		}
	}
}

package index_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/index/offer"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
)

func constraints(t testing.TB, text string) address.Constraints {
	t.Helper()
	c, err := address.ParseConstraints(text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAddressFolders(t *testing.T) {
	root := t.TempDir()
	files := indextest.OnDisk(t, root)
	files.Provider("a.example/ACME/demo", "1.10.0", "linux_amd64", "linux_arm64")
	files.Provider("a.example/ACME/demo", "1.9.0", "linux_amd64")
	files.Write("modules/acme/vpc/aws/1.0.0/main.tf", "#").Write("modules/acme/vpc/aws/1.0.0.tar.gz", "no archive").Write("modules/acme/vpc/aws/registry.hcl", "# ours\n")
	open, err := source.Directories{Root: root}.Open()
	if err != nil {
		t.Fatal(err)
	}
	folders, err := index.Folders(t.Context(), open)
	if err != nil || len(folders) != 2 {
		t.Fatalf("there are %+v (%v)", folders, err)
	}
	p, m := folders[0], folders[1]
	if p.Path != "providers/a.example/ACME/demo" || p.Address.String() != "a.example/acme/demo" || m.Path != "modules/acme/vpc/aws" {
		t.Errorf("they are %+v and %+v", p, m)
	}
	if n, names := offer.Covered(p.Versions, constraints(t, ">= 1.9")); n != 2 || names != "1.9.0 and 1.10.0" {
		t.Errorf("%d are covered: %s", n, names)
	}
	if n, names := offer.Covered(m.Versions, constraints(t, ">= 1.9")); n != 0 || names != "" {
		t.Errorf("%d are covered: %s", n, names)
	}

	file := filepath.Join(root, "modules/acme/vpc/aws/registry.hcl")
	before, err := m.ReadMetadata()
	if err != nil || string(before) != "# ours\n" {
		t.Fatalf("it has %q (%v)", before, err)
	}
	if err := os.Chmod(file, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := m.WriteMetadata(before, []byte("# new\n")); err != nil || files.Read("modules/acme/vpc/aws/registry.hcl") != "# new\n" {
		t.Errorf("it cannot be written: %v", err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("it is %v (%v)", info.Mode(), err)
	}
	if err := m.WriteMetadata(before, []byte("# other\n")); err != tree.ErrMetadataChanged {
		t.Errorf("what has changed meanwhile is overwritten: %v", err)
	}
	if err := m.WriteMetadata([]byte("# new\n"), []byte("\n")); err != nil {
		t.Error(err)
	}
	entries, err := os.ReadDir(filepath.Dir(file))
	if err != nil || len(entries) != 2 {
		t.Errorf("the folder has %v (%v)", entries, err)
	}

	new := open.Folder(addressAt("b.example", "acme/other"))
	if err := new.WriteMetadata(nil, []byte("# new\n")); err != nil || files.Read("providers/b.example/acme/other/registry.hcl") != "# new\n" {
		t.Errorf("a new folder: %v", err)
	}
	if err := os.Symlink("registry.hcl", filepath.Join(root, "providers/b.example/acme/registry.hcl")); err != nil {
		t.Fatal(err)
	}
	linked := filepath.Join(root, "providers/b.example/acme/linked")
	if err := os.MkdirAll(linked, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../other/registry.hcl", filepath.Join(linked, "registry.hcl")); err != nil {
		t.Fatal(err)
	}
	if err := open.Folder(addressAt("b.example", "acme/linked")).WriteMetadata([]byte("# new\n"), []byte("# x\n")); err == nil || !strings.Contains(err.Error(), "symlink") {
		t.Errorf("a symlink is replaced: %v", err)
	}
}

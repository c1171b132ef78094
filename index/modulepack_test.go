package index_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
)

// A packed folder has the bytes that the registry serves for the same folder in a
// tree.
func TestPackModule(t *testing.T) {
	root := t.TempDir()
	folders := indextest.OnDisk(t, root)
	const dir = "modules/acme/network/aws/1.0.0/"
	files := networkFiles("")
	for i := 0; i < len(files); i += 2 {
		folders.Write(dir+files[i], files[i+1])
	}
	folders.Write(dir+".terraformignore", "*.bin\n").Write(dir+"big.bin", "x").Write(dir+".git/config", "x").Write(dir+"terraform.tfstate", "{}")
	folders.Write(dir+"run.sh", "#!/bin/sh\n").Write(dir+".tflint.hcl", "x")
	module := filepath.Join(root, filepath.FromSlash(dir))
	s := scanWith(t, options(t, source.Directories{Root: root}.Open))
	want := s.Module(index.PlaceOf(network)).Version("1.0.0")

	for range 2 {
		m, err := archive.PackModule(t.Context(), module)
		if err != nil {
			t.Fatal(err)
		}
		if m.Size != want.Archive.Size || m.SHA256 != want.Archive.SHA256 {
			t.Errorf("it is %+v, want %+v", m, want.Archive)
		}
		if notes := offerOf(s, "acme/network/aws", "1.0.0").Notes; m.LeftOut == "" || len(notes) != 1 || notes[0] != "leaves out "+m.LeftOut {
			t.Errorf("it leaves out %q, and the report says %q", m.LeftOut, notes)
		}
		for range 2 {
			r := m.Open()
			content, err := io.ReadAll(r)
			if err := errors.Join(err, r.Close()); err != nil || string(content) != served(t, s, want.Archive) {
				t.Errorf("its bytes are others: %v", err)
			}
		}
	}
}

func TestModulesThatAreNotPacked(t *testing.T) {
	for _, test := range []struct {
		rule   string
		files  []string // names and contents in turn
		reason tree.Reason
	}{
		{"nothing to use", []string{"README.md", "x"}, tree.NoConfiguration},
		{"a secret", []string{"main.tf", "", "key.txt", indextest.NewPublisher(t).PrivateKey()}, tree.Secret},
		{"a bad .terraformignore", []string{"main.tf", "", ".terraformignore", "../x\n"}, tree.BadName},
	} {
		t.Run(test.rule, func(t *testing.T) {
			dir := t.TempDir()
			files := indextest.OnDisk(t, dir)
			for i := 0; i < len(test.files); i += 2 {
				files.Write(test.files[i], test.files[i+1])
			}
			_, err := archive.PackModule(t.Context(), dir)
			var bad *archive.PackageError
			if !errors.As(err, &bad) || bad.Reason != test.reason || strings.Contains(err.Error(), dir) {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("a symlink out of the folder", func(t *testing.T) {
		dir := t.TempDir()
		indextest.OnDisk(t, dir).Write("main.tf", "")
		if err := os.Symlink(t.TempDir(), filepath.Join(dir, "outside")); err != nil {
			t.Fatal(err)
		}
		_, err := archive.PackModule(t.Context(), dir)
		var bad *archive.PackageError
		if !errors.As(err, &bad) || bad.Reason != tree.Unreadable || !strings.Contains(err.Error(), "outside") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("no folder", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "none")
		if _, err := archive.PackModule(t.Context(), dir); !errors.Is(err, os.ErrNotExist) || strings.Contains(err.Error(), dir) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("it is given up", func(t *testing.T) {
		dir := t.TempDir()
		indextest.OnDisk(t, dir).Write("main.tf", "")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := archive.PackModule(ctx, dir); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

// A reader gets the files that were packed, or an error.
func TestAPackedModuleThatChanges(t *testing.T) {
	dir := t.TempDir()
	files := indextest.OnDisk(t, dir).Write("main.tf", "# one\n")
	m, err := archive.PackModule(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	files.Remove("main.tf").Write("main.tf", "# two\n")
	r := m.Open()
	defer r.Close()
	if _, err := io.ReadAll(r); !errors.Is(err, tree.ErrChanged) {
		t.Errorf("got %v", err)
	}
}

package iofs_test

import (
	"errors"
	"io/fs"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/iofs"
)

// The tree on a file system of Caddy's is read like any other, and never written to.
func TestAFileSystemIsOnlyRead(t *testing.T) {
	files := fstest.MapFS{"tree/providers/acme/demo/1.0.0/a": {Data: []byte("x")}, "tree/providers/acme/b": {Data: []byte("y")}}
	p := tree.Part{Storage: iofs.In(files)}.Sub("tree/providers")
	if content, err := p.ReadFile("acme/b", 10); err != nil || string(content) != "y" {
		t.Errorf("a file has %q, %v", content, err)
	}
	if _, _, err := p.Open("acme/demo"); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder is opened as a file: %v", err)
	}
	if entries, err := p.Entries("acme"); err != nil || len(entries) != 2 || !entries[0].IsFile() || !entries[1].IsDir() {
		t.Errorf("a folder has %v, %v", entries, err)
	}
	if entries, err := p.Entries("none"); err != nil || entries != nil {
		t.Errorf("a folder that does not exist has %v, %v", entries, err)
	}
	if _, err := p.Entries("acme/b"); !errors.Is(err, tree.ErrNoFolder) {
		t.Errorf("a file is read as a folder: %v", err)
	}
	var names []string
	if err := p.Walk(t.Context(), "acme", func(name string, _ fs.FileInfo) { names = append(names, name) }); err != nil || !slices.Equal(names, []string{"acme/b", "acme/demo/1.0.0/a"}) {
		t.Errorf("a walk visits %q, %v", names, err)
	}
	_, temporary := p.NewTemporary(t.Context(), "acme/c")
	for does, err := range map[string]error{
		"write": p.WriteFile("acme/b", nil), "create": temporary, "move": p.Move("acme/b", "acme/c"), "remove": tree.StorageError(p.Remove("acme/b")),
	} {
		if !errors.Is(err, tree.ErrNotWritable) {
			t.Errorf("%s: %v", does, err)
		}
	}
	if p.RemoveIfEmpty("acme") {
		t.Error("a folder with files is removed")
	}
}

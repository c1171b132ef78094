package index_test

import (
	"errors"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

func TestReadFile(t *testing.T) {
	root := t.TempDir()
	files := indextest.OnDisk(t, root)
	files.Write("keys/acme.asc", "123456")
	files.Write("keys/folder.asc/file", "")
	opened, err := tree.Directories{Root: root}.Open()
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		rule, name string
		limit      int64
		content    string
		err        error
	}{
		{rule: "whole", name: "acme.asc", limit: 6, content: "123456"},
		{rule: "larger than the limit, which is not cut off", name: "acme.asc", limit: 5, err: tree.ErrDocumentTooLarge},
		{rule: "a folder", name: "folder.asc", limit: 6, err: tree.ErrNotWritable},
		{rule: "none", name: "other.asc", limit: 6},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			content, err := opened.Keys.ReadFile(test.name, test.limit)
			if string(content) != test.content || !errors.Is(err, test.err) || (content == nil) != (test.content == "") {
				t.Errorf("%q, %v", content, err)
			}
			if _, err := opened.Keys.Digest(test.name); (err == nil) != (test.name == "acme.asc") {
				t.Errorf("digest: %v", err)
			}
		})
	}
}

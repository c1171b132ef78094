package source_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
)

func TestLocateInAFileSystem(t *testing.T) {
	fsys := fstest.MapFS{"a/b/file": new(fstest.MapFile), "b/file": new(fstest.MapFile), "c/file": new(fstest.MapFile)}
	for _, test := range []struct{ root, providers, wantRoot, wantProviders string }{
		{"/", "/", ".", "."},
		{".", "a", ".", "a"},
		{"a/", "b/", "a", "a/b"},
		{"/a/../b", "/c", "b", "c"},
	} {
		d, err := source.Directories{Root: test.root, Providers: test.providers}.Locate(fsys)
		if err != nil || d.Root != test.wantRoot {
			t.Errorf("root %s: got %s, %v", test.root, d.Root, err)
			continue
		}
		files, err := d.OpenIn(fsys)
		if err != nil || files.Providers.Path() != test.wantProviders {
			t.Errorf("providers %s: got %s, %v", test.providers, files.Providers.Path(), err)
		}
	}
	for _, test := range []struct{ root, providers, want string }{
		{"../a", "", "root: ../a leads out of the file system"},
		{"a", "a/../../b", "providers: a/../../b leads out of the root"},
		{"a", "c", "providers: there is no folder a/c"},
		{"a", "/b/file", "providers: b/file is not a folder"},
	} {
		_, err := source.Directories{Root: test.root, Providers: test.providers}.Locate(fsys)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("root %s, providers %s: got error %v, want %q", test.root, test.providers, err, test.want)
		}
	}
}

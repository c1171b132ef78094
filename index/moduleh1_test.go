package index_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/dirhash"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
)

// The h1 of a module is the h1 of the folder into which clients unpack its package, whatever
// the form of the module in the tree.
func TestH1OfModules(t *testing.T) {
	files := indextest.New(t)
	networks(t, files)
	files.Write("modules/acme/network/aws/1.0.0/empty.tf", "")
	files.Write("modules/acme/network/aws/2.0.0.tar.gz", indextest.TarGz(append(networkFiles("./"), "empty.tf", "")...))
	for _, v := range scan(t, files).Module(index.PlaceOf(network)).Versions {
		t.Run(v.Version, func(t *testing.T) {
			var names, contents []string
			files := networkFiles("")
			for i := 0; i < len(files); i += 2 {
				names, contents = append(names, filepath.Join(v.Folder, files[i])), append(contents, files[i+1])
			}
			if v.Version == "1.0.0" || v.Version == "2.0.0" {
				names, contents = append(names, "empty.tf"), append(contents, "")
			}
			dir := t.TempDir()
			for i, name := range names {
				file := filepath.Join(dir, filepath.FromSlash(name))
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(contents[i]), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := dirhash.HashDir(dir, "", func(files []string, open func(string) (io.ReadCloser, error)) (string, error) {
				for i := range files {
					files[i] = strings.TrimPrefix(files[i], "/")
				}
				return dirhash.Hash1(files, open)
			})
			if err != nil {
				t.Fatal(err)
			}
			if v.FileHashes.H1() != want {
				t.Errorf("it is %s, want %s", v.FileHashes, want)
			}
		})
	}
}

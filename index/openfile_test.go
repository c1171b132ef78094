package index_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
)

// Bytes read from a file that is written to meanwhile do not count, whether clients download
// the file or a package with it.
func TestFilesThatChangeWhileTheyAreRead(t *testing.T) {
	const archive, folder = "modules/acme/vpc/aws/1.0.0.zip", "modules/acme/net/aws/1.0.0/"
	large := strings.Repeat("some data\n", 15_000)
	rewrite := func(name string) error {
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteAt([]byte("#"), 0)
		return errors.Join(err, f.Close())
	}
	for _, test := range []struct {
		rule, address, file string
		change              func(name string) error
		read                int64 // before that
		changed             bool
	}{
		{"nothing happens to a file", "acme/vpc/aws", archive, func(string) error { return nil }, 100, false},
		{"a file is rewritten", "acme/vpc/aws", archive, rewrite, 100, true},
		{"a file is given other permissions", "acme/vpc/aws", archive, func(name string) error { return os.Chmod(name, 0o444) }, 100, false},
		{"nothing happens to a folder", "acme/net/aws", folder + "a.txt", func(string) error { return nil }, 100, false},
		{"the first file of a folder is rewritten", "acme/net/aws", folder + "a.txt", rewrite, 100, true},
		{"a later file of a folder is rewritten", "acme/net/aws", folder + "b.txt", rewrite, 250_000, true},
		{"a file of a folder is rewritten that was read before", "acme/net/aws", folder + "a.txt", rewrite, 250_000, false},
	} {
		t.Run(test.rule, func(t *testing.T) {
			root := t.TempDir()
			indextest.OnDisk(t, root).
				Write(archive, indextest.Zip("main.tf", "", "data", large)).
				Write(folder+"a.txt", large).Write(folder+"b.txt", large).Write(folder+"main.tf", "")
			s := scanWith(t, options(t, source.Directories{Root: root}.Open))
			f := s.Module(index.PlaceOf(addressAt("", test.address))).Versions[0].Archive
			open, err := s.Open(f)
			if err != nil {
				t.Fatal(err)
			}
			defer open.Close()
			if _, err := io.CopyN(io.Discard, open, test.read); err != nil {
				t.Fatal(err)
			}
			if err := test.change(filepath.Join(root, filepath.FromSlash(test.file))); err != nil {
				t.Fatal(err)
			}
			_, err = io.Copy(io.Discard, open)
			if err == nil {
				err = open.Unchanged()
			}
			if test.changed && !errors.Is(err, tree.ErrChanged) || !test.changed && err != nil {
				t.Errorf("error %v", err)
			}
		})
	}
}

package index_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	version "github.com/hashicorp/go-version"

	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
)

// Reading a module outside of a scan returns the module that the scan offers.
func TestReadModule(t *testing.T) {
	v1 := version.Must(version.NewVersion("1.0.0"))
	for _, test := range []struct {
		rule   string
		files  []string    // names and contents
		there  bool        // something is returned
		reason tree.Reason // why it would be withheld
	}{
		{"a folder", []string{"1.0.0/main.tf", "x"}, true, ""},
		{"a folder in short, with a v", []string{"v1.0/main.tf", "x"}, true, ""},
		{"a .tar.gz in a folder with another spelling", []string{"../../VPC/aws/1.0.0.tar.gz", indextest.TarGz("main.tf", "x")}, true, ""},
		{"a .tgz", []string{"1.0.0.tgz", indextest.TarGz("vpc/main.tf", "x")}, true, ""},
		{"a .zip", []string{"1.0.0.zip", indextest.Zip("main.tf", "x")}, true, ""},
		{"the preferred one of several", []string{"1.0.0.zip", indextest.Zip("main.tf", "x"), "1.0.0/main.tf", "y", "1.0.0.tar.gz", indextest.TarGz("main.tf", "z")}, true, ""},
		{"a .zip beside an empty .tar.gz", []string{"1.0.0.tar.gz", "", "1.0.0.zip", indextest.Zip("main.tf", "x")}, true, ""},
		{"no empty file that was abandoned", []string{"1.0.0.tar.gz", ""}, false, ""},
		{"none of another version", []string{"1.0.1.zip", indextest.Zip("main.tf", "x"), "1.0.0-rc.1/main.tf", "x", "README.md", "x"}, false, ""},
		{"none that is temporary", []string{".1.0.0.tar.gz.AAAAAAAAAA.part", "x", "1.0.0.tar.gz.part", "x"}, false, ""},
		{"nothing", nil, false, ""},
		{"an archive that is broken", []string{"1.0.0.tar.gz", "x"}, false, tree.BadArchive},
		{"a folder without a module", []string{"1.0.0/README.md", "x"}, false, tree.NoConfiguration},
		{"a folder with a secret", []string{"1.0.0/main.tf", "x", "1.0.0/a.txt", indextest.NewPublisher(t).PrivateKey()}, false, tree.Secret},
	} {
		t.Run(test.rule, func(t *testing.T) {
			files := indextest.New(t)
			for i := 0; i < len(test.files); i += 2 {
				files.Write("modules/acme/vpc/aws/"+test.files[i], test.files[i+1])
			}
			opened, err := files.Open()
			if err != nil {
				t.Fatal(err)
			}
			got, err := index.ReadVersion(t.Context(), opened, ownVPC, v1)
			var bad *archive.PackageError
			if (got != nil) != test.there || errors.As(err, &bad) != (test.reason != "") || bad != nil && bad.Reason != test.reason {
				t.Fatalf("got %+v, %v", got, err)
			}
			if got == nil {
				return
			}
			s := scan(t, files)
			want := s.Module(index.Place{Address: ownVPC, Merged: true}).Version("1.0.0")
			if got.Archive.SHA256 != want.Archive.SHA256 || got.Archive.Name != want.Archive.Name || got.Archive.Path() != want.Archive.Path() || got.FileHashes != want.FileHashes || got.Folder != want.Folder {
				t.Errorf("got %+v, want %+v", got, want)
			}
			if content := served(t, s, got.Archive); int64(len(content)) != got.Archive.Size {
				t.Errorf("%d bytes are served of %d", len(content), got.Archive.Size)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := index.ReadVersion(ctx, opened, ownVPC, v1); !errors.Is(err, context.Canceled) {
				t.Errorf("when it is given up the error is %v", err)
			}
		})
	}
}

// An empty file is about to be written to for a while, and is not missing.
func TestReadModuleThatIsReserved(t *testing.T) {
	files := indextest.New(t).Write("modules/acme/vpc/aws/1.0.0.tar.gz", "")
	now := time.Now()
	if err := files.Fs.Chtimes("modules/acme/vpc/aws/1.0.0.tar.gz", now, now); err != nil {
		t.Fatal(err)
	}
	opened, err := files.Open()
	if err != nil {
		t.Fatal(err)
	}
	v1 := version.Must(version.NewVersion("1.0.0"))
	if got, err := index.ReadVersion(t.Context(), opened, ownVPC, v1); got != nil || !errors.Is(err, tree.ErrReserved) {
		t.Errorf("got %+v, %v", got, err)
	}
	files.Write("modules/acme/vpc/aws/1.0.0.zip", indextest.Zip("main.tf", "x"))
	if got, err := index.ReadVersion(t.Context(), opened, ownVPC, v1); got == nil || err != nil {
		t.Errorf("with a package in another format: got %+v, %v", got, err)
	}
}

// A folder that has changed just now may be being copied at this moment, whatever files it
// has.
func TestReadModuleThatIsBeingCopied(t *testing.T) {
	v1 := version.Must(version.NewVersion("1.0.0"))
	const dir = "modules/acme/vpc/aws/1.0.0/"
	for _, test := range []struct {
		rule   string
		files  []string
		age    time.Duration // of the last one
		copied bool
	}{
		{"a file that has just been written", []string{"main.tf"}, 0, false},
		{"beside an older one", []string{"main.tf", "outputs.tf"}, 0, false},
		{"in a folder inside", []string{"main.tf", "modules/a/main.tf"}, 0, false},
		{"before there is any configuration", []string{"README.md"}, 0, false},
		{"when it has rested", []string{"main.tf", "outputs.tf"}, 3 * time.Second, true},
	} {
		t.Run(test.rule, func(t *testing.T) {
			files := indextest.New(t)
			for _, name := range test.files {
				files.Write(dir+name, "")
			}
			when := time.Now().Add(-test.age)
			if err := files.Fs.Chtimes(dir+test.files[len(test.files)-1], when, when); err != nil {
				t.Fatal(err)
			}
			opened, err := files.Open()
			if err != nil {
				t.Fatal(err)
			}
			if got, err := index.ReadVersion(t.Context(), opened, ownVPC, v1); (got != nil) != test.copied || errors.Is(err, tree.ErrChanged) == test.copied {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
	t.Run("an empty folder on a disk", func(t *testing.T) {
		root := t.TempDir()
		if err := os.MkdirAll(filepath.Join(root, filepath.FromSlash(dir)), 0o755); err != nil {
			t.Fatal(err)
		}
		opened, err := source.Directories{Root: root}.Open()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := index.ReadVersion(t.Context(), opened, ownVPC, v1); got != nil || !errors.Is(err, tree.ErrChanged) {
			t.Errorf("got %+v, %v", got, err)
		}
	})
}

// While a file of a version cannot be read, the version is neither missing nor broken.
func TestReadModuleWhileTheDiskFails(t *testing.T) {
	v1 := version.Must(version.NewVersion("1.0.0"))
	for _, test := range []struct{ rule, name, content string }{
		{"a folder", "1.0.0/main.tf", "x"},
		{"a .tar.gz", "1.0.0.tar.gz", indextest.TarGz("main.tf", "x")},
	} {
		t.Run(test.rule, func(t *testing.T) {
			files := indextest.New(t).Write("modules/acme/vpc/aws/"+test.name, test.content)
			var faults treetest.Faults
			opened, err := faults.Open(files.Open)()
			if err != nil {
				t.Fatal(err)
			}
			for n, asked := 1, 1; n <= asked; n++ {
				faults.When(func(i int, o treetest.Operation) error {
					if i == n && strings.Contains(o.Path, "1.0.0") { // the finder of the folder has tests of its own
						return syscall.EMFILE
					}
					return nil
				})
				got, err := index.ReadVersion(t.Context(), opened, ownVPC, v1)
				var failed []treetest.Operation
				if asked, failed = faults.End(); len(failed) > 0 && !errors.Is(err, tree.ErrNotWritable) || len(failed) == 0 && got == nil {
					t.Errorf("%v: got %+v, %v", failed, got, err)
				}
			}
		})
	}
}

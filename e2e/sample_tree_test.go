package e2e_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// sampleTree is a copy of the sample tree, with the release of its provider for this
// platform. Its versions were published at fixed dates.
func sampleTree(t *testing.T) *Tree {
	t.Helper()
	files := newTree(t)
	if err := os.CopyFS(files.Dir, os.DirFS(filepath.Join(repository(), "testdata", "registry"))); err != nil {
		t.Fatal(err)
	}
	// Serving the sample may have left this on a developer's machine.
	if err := os.RemoveAll(files.Path("providers/acme/demo/1.0.0")); err != nil {
		t.Fatal(err)
	}
	files.Provider("acme/demo", "1.0.0", perFolder)
	if err := os.CopyFS(files.Path("providers/acme/demo/1.0.0/docs"), os.DirFS(files.Path("providers/acme/demo/0.1.0/docs"))); err != nil {
		t.Fatal(err)
	}
	for name, published := range samplePublished {
		files.Date(name, published)
	}
	return files
}

// sampleOffers is how many versions of a sampleTree are offered.
const sampleOffers = 12

// samplePublished are the dates of the sample's versions.
var samplePublished = map[string]time.Time{
	"modules/acme/naming/any/1.0.0":                         time.Date(2026, 1, 19, 9, 12, 0, 0, time.UTC),
	"modules/acme/naming/any/1.1.0.tar.gz":                  time.Date(2026, 3, 2, 14, 40, 0, 0, time.UTC),
	"modules/acme/vpc/aws/1.2.0.tar.gz":                     time.Date(2026, 3, 4, 10, 0, 0, 0, time.UTC),
	"modules/acme/vpc/aws/1.3.1.tar.gz":                     time.Date(2026, 5, 6, 10, 0, 0, 0, time.UTC),
	"modules/acme/vpc/aws/1.3.2":                            time.Date(2026, 5, 6, 16, 25, 0, 0, time.UTC),
	"modules/acme/vpc/aws/1.4.0":                            time.Date(2026, 9, 14, 14, 3, 0, 0, time.UTC),
	"modules/acme/vpc/aws/2.0.0-rc.1":                       time.Date(2026, 11, 2, 8, 55, 0, 0, time.UTC),
	"modules/globex/bucket/google/0.3.0":                    time.Date(2026, 2, 10, 11, 0, 0, 0, time.UTC),
	"modules/globex/bucket/google/0.4.0":                    time.Date(2026, 7, 21, 13, 30, 0, 0, time.UTC),
	"modules/registry.terraform.io/example/tags/null/1.0.2": time.Date(2025, 10, 8, 7, 0, 0, 0, time.UTC),
	"providers/acme/demo/0.1.0":                             time.Date(2026, 4, 1, 12, 0, 0, 0, time.UTC),
	"providers/acme/demo/1.0.0":                             time.Date(2026, 8, 18, 15, 45, 0, 0, time.UTC),
	"providers/registry.terraform.io/example/hello":         time.Date(2025, 12, 12, 12, 12, 0, 0, time.UTC),
}

// Date sets the time of a file, or of a folder with everything in it.
func (files *Tree) Date(name string, at time.Time) {
	files.t.Helper()
	err := filepath.WalkDir(files.Path(name), func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chtimes(path, at, at)
	})
	if err != nil {
		files.t.Fatal(err)
	}
}

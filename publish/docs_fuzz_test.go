package publish

import (
	"bytes"
	"errors"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// The files of an archive of documentation are below their folder, within the limits.
func FuzzReadDocs(f *testing.F) {
	for _, name := range []string{docsZip, "docs.tar.gz"} {
		f.Add(name, []byte(indextest.Zip("docs/index.md", "# Demo", "docs/resources/thing.md", "x")))
		f.Add(name, []byte(indextest.TarGz("website/docs/index.md", "# Demo", "../x", "x")))
	}
	f.Fuzz(func(t *testing.T, name string, packed []byte) {
		files, err := readDocs(t.Context(), bytes.NewReader(packed), int64(len(packed)), name)
		if err != nil {
			if !errors.Is(err, ErrRefused) {
				t.Errorf("%v", err)
			}
			return
		}
		total, count := 0, 0
		err = files.files(t.Context())(func(name string, content []byte) error {
			total, count = total+len(content), count+1
			if !fs.ValidPath(name) || name == "." || strings.Contains(name, `\`) {
				t.Errorf("%q", name)
			}
			return nil
		})
		if err != nil || count == 0 || count > maxDocFiles || count != len(files.sizes) || total > maxDocTotal {
			t.Errorf("%d files of %d bytes, %v", count, total, err)
		}
	})
}

// A failing disk is not the publisher's fault, and publishers learn no paths of it.
func TestDocsFromADiskThatFails(t *testing.T) {
	for _, name := range []string{docsZip, "docs.tar.gz"} {
		_, err := readDocs(t.Context(), failingDisk{}, 1000, name)
		if !errors.Is(err, tree.ErrNotWritable) || strings.Contains(err.Error(), "/srv") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

type failingDisk struct{}

func (failingDisk) ReadAt([]byte, int64) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: "/srv/providers", Err: syscall.EIO}
}

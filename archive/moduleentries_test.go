package archive_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/archive"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// linkedTarGz has a file, a symlink and a hard link.
func linkedTarGz(t testing.TB) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, h := range []tar.Header{
		{Name: "./main.tf", Typeflag: tar.TypeReg, Size: 3, Mode: 0o644},
		{Name: "link.tf", Typeflag: tar.TypeSymlink, Linkname: "main.tf"},
		{Name: "hard.tf", Typeflag: tar.TypeLink, Linkname: "main.tf"},
	} {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			if _, err := w.Write([]byte("# a")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func linkedZip(t testing.TB) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, content := range map[string]string{"main.tf": "# a", "link.tf": "main.tf"} {
		h := &zip.FileHeader{Name: name}
		if name == "link.tf" {
			h.SetMode(fs.ModeSymlink | 0o777)
		}
		w, err := z.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestEntriesOfAModule(t *testing.T) {
	for _, test := range []struct {
		rule, format string
		content      []byte
		links        map[string]string
	}{
		{"a .tar.gz", "tar.gz", linkedTarGz(t), map[string]string{"link.tf": "main.tf", "hard.tf": "main.tf"}},
		{"a zip, in which the content of a link is its target", "zip", linkedZip(t), map[string]string{"link.tf": "main.tf"}},
	} {
		e, err := archive.ReadModuleEntries(t.Context(), bytes.NewReader(test.content), int64(len(test.content)), test.format)
		if err != nil {
			t.Errorf("%s: %v", test.rule, err)
			continue
		}
		if len(e.Files) != 1 || e.Files["main.tf"] != wire.SHA256Of([]byte("# a")) || fmt.Sprint(e.Links) != fmt.Sprint(test.links) {
			t.Errorf("%s: it has %v", test.rule, e)
		}
	}
	if _, err := archive.ReadModuleEntries(t.Context(), strings.NewReader("no archive"), 10, "tar.gz"); err == nil {
		t.Error("no archive is read")
	}
}

// A registry that is checked may send anything: its packages unpack to no more than packages
// that are published.
func TestEntriesOfAModuleThatUnpacksWithoutEnd(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	const size = 1 << 30
	if err := tar.NewWriter(z).WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "zeros", Size: size}); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := archive.ReadModuleEntries(t.Context(), bytes.NewReader(b.Bytes()), int64(b.Len()), "tar.gz")
	var bad *archive.PackageError
	if !errors.As(err, &bad) || bad.Reason != tree.TooLarge {
		t.Errorf("got %v", err)
	}
}

func FuzzReadModuleEntries(f *testing.F) {
	f.Add(linkedTarGz(f), false)
	f.Add(linkedZip(f), true)
	f.Fuzz(func(t *testing.T, content []byte, zip bool) {
		format := "tar.gz"
		if zip {
			format = "zip"
		}
		_, _ = archive.ReadModuleEntries(context.Background(), bytes.NewReader(content), int64(len(content)), format)
	})
}

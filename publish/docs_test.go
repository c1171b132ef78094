package publish_test

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

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/publish"
)

func TestDocs(t *testing.T) { eachTree(t, testDocs) }

func testDocs(t *testing.T, on treeKind) {
	d := newDist(t, "")
	docs := indextest.Zip("docs/index.md", "# Demo", "docs/resources/thing.md", "# Thing", "README.md", "not a page")
	want := append(filesIn("providers/acme/demo/1.0.0", d.names()...), filesIn("providers/acme/demo/1.0.0/docs", "index.md", "resources/thing.md")...)

	t.Run("with the release", func(t *testing.T) {
		r := on.newRegistry(t)
		r.mustPut("docs.zip", docs, publish.Waiting)
		r.putAll(d, d.names()...)
		r.holds(want...)
		r.isClean()
	})
	t.Run("later, and replaced", func(t *testing.T) {
		r := on.newRegistry(t)
		r.putAll(d, d.names()...)
		r.mustPut("docs.zip", docs, publish.Added)
		r.holds(want...)
		r.mustPut("docs.tar.gz", indextest.TarGz("./index.md", "# Demo", "./resources/thing.md", "# Thing"), publish.Unchanged)
		r.mustPut("docs.zip", indextest.Zip("index.md", "# Dome", "resources/thing.md", "# Thing"), publish.Added)
		if text := r.Read("providers/acme/demo/1.0.0/docs/index.md"); text != "# Dome" {
			t.Errorf("instead of a page of the same size, the page says %q", text)
		}
		r.mustPut("docs.zip", indextest.Zip("index.md", "# New"), publish.Added)
		r.holds(append(filesIn("providers/acme/demo/1.0.0", d.names()...), "providers/acme/demo/1.0.0/docs/index.md")...)
		if text := r.Read("providers/acme/demo/1.0.0/docs/index.md"); text != "# New" {
			t.Errorf("the page says %q", text)
		}
		release := r.index.Snapshot().Provider(index.PlaceOf(demo)).Release("1.0.0")
		if release.Docs() == "" {
			t.Error("the index has no documentation")
		}
		r.isClean()
	})
	t.Run("of a release beside others", func(t *testing.T) {
		r := on.newRegistry(t)
		for name, content := range d {
			r.Write("providers/acme/demo/"+name, content)
		}
		r.mustPut("docs.zip", docs, publish.Added)
		r.isClean()
		r.Read("providers/acme/demo/1.0.0/docs/index.md")
	})
	t.Run("replaced before the release", func(t *testing.T) {
		r := on.newRegistry(t)
		r.mustPut("docs.zip", docs, publish.Waiting)
		r.mustPut("docs.zip", indextest.Zip("docs/index.md", "# New"), publish.Waiting)
		r.putAll(d, d.names()...)
		if text := r.Read("providers/acme/demo/1.0.0/docs/index.md"); text != "# New" {
			t.Errorf("the page says %q", text)
		}
	})
}

func TestDocsThatAreRefused(t *testing.T) {
	page := indextest.TarGz("index.md", "# Demo")
	damaged := []byte(page)
	damaged[len(damaged)-8] ^= 0xff // in the checksum
	tests := []struct {
		rule, name, content, says string
	}{
		{"an archive that is none", "docs.zip", "hello", "cannot be read to its end"},
		{"a zip whose directory would take much memory", "docs.zip", directoryOf(t, 50_001), "more than 50000 entries"},
		{"a tar that is none", "docs.tar.gz", "hello", "cannot be read to its end"},
		{"a tar with another checksum", "docs.tar.gz", string(damaged), "cannot be read to its end"},
		{"a tar without its end", "docs.tar.gz", page[:len(page)-1], "cannot be read to its end"},
		{"a page behind more than is read", "docs.tar.gz", longDocs(t), "it unpacks to more than 134217728 bytes"},
		{"without a page", "docs.zip", indextest.Zip("main.tf", ""), "no page of documentation"},
		{"a path that leads out", "docs.zip", indextest.Zip("../index.md", ""), "is not the name of a file below its folder"},
		{"a path that leads out of docs", "docs.tar.gz", indextest.TarGz("docs/../../index.md", ""), "is not the name of a file below its folder"},
		{"an absolute path", "docs.zip", indextest.Zip("/index.md", ""), "is not the name of a file below its folder"},
		{"a backslash", "docs.zip", indextest.Zip(`docs\index.md`, ""), "rename it"},
		{"a stream of another file", "docs.zip", indextest.Zip("index.md:evil", ""), "is not the name of a file below its folder"},
		{"a control character", "docs.zip", indextest.Zip("index\x1b.md", ""), "is not the name of a file below its folder"},
		{"a long name", "docs.zip", indextest.Zip(strings.Repeat("x", 300)+".md", ""), "too long or too deep"},
		{"a deep path", "docs.zip", indextest.Zip(strings.Repeat("x/", 20)+"index.md", ""), "too long or too deep"},
		{"two names that differ in case", "docs.zip", indextest.Zip("index.md", "", "Index.md", ""), "one file on some systems"},
		{"a file that is a folder", "docs.zip", indextest.Zip("index.md", "", "index.md/other.md", ""), "is a file and a folder"},
		{"a symlink", "docs.tar.gz", tarOf(&tar.Header{Typeflag: tar.TypeSymlink, Name: "index.md", Linkname: "/etc/passwd"}), "is not a regular file"},
		{"a hard link", "docs.tar.gz", tarOf(&tar.Header{Typeflag: tar.TypeLink, Name: "index.md", Linkname: "/etc/passwd"}), "is not a regular file"},
		{"a device", "docs.tar.gz", tarOf(&tar.Header{Typeflag: tar.TypeChar, Name: "index.md"}), "is not a regular file"},
		{"a symlink in a zip", "docs.zip", zipOf(t, "index.md", fs.ModeSymlink|0o777, "/etc/passwd"), "is not a regular file"},
		{"a large file", "docs.zip", indextest.Zip("index.md", strings.Repeat("x", 9<<20)), "is larger than"},
		{"a directory without bound, of files that are left out", "docs.zip", hiddenFiles(30_000), "directory is larger than"},
		{"many files", "docs.zip", manyFiles(t, 5001), "more than 5000 files"},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			err := publish.CheckDocs(t.Context(), strings.NewReader(test.content), int64(len(test.content)), test.name)
			saying(t, err, publish.ErrRefused, test.says)
		})
	}
	t.Run("not by a reader who has left", func(t *testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		leave()
		for name, content := range map[string]string{"docs.zip": indextest.Zip("index.md", ""), "docs.tar.gz": page} {
			if err := publish.CheckDocs(ctx, strings.NewReader(content), int64(len(content)), name); !errors.Is(err, publish.ErrInterrupted) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	t.Run("of such an archive nothing stays", func(t *testing.T) {
		r := newRegistry(t)
		_, err := r.put("docs.zip", "hello")
		saying(t, err, publish.ErrRefused, "cannot be read to its end")
		r.isClean()
	})
}

// tarOf returns an archive of one entry without content.
func tarOf(h *tar.Header) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	if w.WriteHeader(h) != nil || w.Close() != nil || z.Close() != nil {
		panic("writing to memory fails")
	}
	return b.String()
}

// longDocs returns an archive of a page, of a file that is left out and ends where no more is read,
// and of another page.
func longDocs(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	b.Write(gzipOf(t, append(tarStart(t, "index.md", 0), tarStart(t, ".terraform/provider", 128<<20-1024)...)))
	zeros := gzipOf(t, make([]byte, 1<<20))
	for range 127 {
		b.Write(zeros)
	}
	b.Write(gzipOf(t, make([]byte, 1<<20-1024)))
	b.Write(gzipOf(t, tarStart(t, "resources/thing.md", 0)))
	b.Write(gzipOf(t, make([]byte, 1024)))
	return b.String()
}

// tarStart returns the header of a file in a tar.
func tarStart(t *testing.T, name string, size int64) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := tar.NewWriter(&b).WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gzipOf(t *testing.T, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := z.Write(content); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// zipOf returns an archive of one entry with a mode.
func zipOf(t *testing.T, name string, mode fs.FileMode, content string) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	h := &zip.FileHeader{Name: name}
	h.SetMode(mode)
	f, err := w.CreateHeader(h)
	if err == nil {
		_, err = f.Write([]byte(content))
	}
	if err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	return b.String()
}

// directoryOf returns an archive of a page and many empty files that are not read.
func directoryOf(t *testing.T, entries int) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for range entries - 1 {
		if _, err := w.CreateHeader(&zip.FileHeader{Name: ".x"}); err != nil {
			t.Fatal(err)
		}
	}
	_, err := w.Create("index.md")
	if err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	return b.String()
}

func manyFiles(t *testing.T, n int) string {
	t.Helper()
	var names []string
	for i := range n {
		names = append(names, strings.Repeat("a", i/100+1)+strings.Repeat("b", i%100)+".md", "")
	}
	return indextest.Zip(names...)
}

// hiddenFiles returns an archive whose directory alone has a megabyte for every six
// thousand of its files.
func hiddenFiles(n int) string {
	names := make([]string, 0, 2*n)
	for i := range n {
		names = append(names, fmt.Sprintf(".%0150d", i), "")
	}
	return indextest.Zip(names...)
}

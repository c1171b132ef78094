package archive

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/address"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// Whatever format a module may have is read: when it is published, scanned, shown and verified.
func TestEveryFormatOfAModuleIsRead(t *testing.T) {
	packages := map[string][]byte{"tar.gz": gzipOf(tarOfFiles("main.tf", "x")), "zip": zipOf("main.tf", "x")}
	for _, f := range address.ModuleFormats {
		content, file := packages[f.Format], "1.0.0"+f.Suffix
		if content == nil {
			t.Errorf("%s: this test has no such package", f.Format)
			continue
		}
		arriving := NewArrivingModule(file)
		arriving.Write(content)
		if w, err := arriving.wait(t.Context(), int64(len(content))); err != nil || w.module == nil {
			t.Errorf("%s is not read while it arrives: %v", file, err)
		}
		arriving.Close()
		d, err := unseen.CheckModule(t.Context(), fileOf(content), int64(len(content)), file, wire.SHA256{})
		if err != nil || d.FileHashes == "" {
			t.Errorf("%s is not checked: %v", file, err)
		}
		if e, err := ReadModuleEntries(t.Context(), bytes.NewReader(content), int64(len(content)), f.Format); err != nil || H1(e.Files) != d.FileHashes.H1() {
			t.Errorf("%s has the entries %v: %v", file, e, err)
		}
		var read string
		complete, err := WalkModule(t.Context(), bytes.NewReader(content), int64(len(content)), f.Format, 1<<20, func(name string) bool { return name == "main.tf" },
			func(_ string, r io.Reader) error { b, err := io.ReadAll(r); read = string(b); return err })
		if !complete || err != nil || read != "x" {
			t.Errorf("%s is walked to %q: %v", file, read, err)
		}
	}
	if _, err := tarStream(bytes.NewReader(nil), "tar.other"); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("another format: %v", err)
	}
	var bad *PackageError
	if _, err := unseen.CheckModule(t.Context(), fileOf([]byte("x")), 1, "1.0.0.tar", wire.SHA256{}); !errors.As(err, &bad) || bad.Reason != tree.BadName || bad.Detail != "it is not named VERSION.tar.gz, VERSION.tgz or VERSION.zip: rename it" {
		t.Errorf("a name of no format: %v", err)
	}
}

// Every reader of a tar takes the types of files that clients write.
func TestEveryTypeOfAFileIsRead(t *testing.T) {
	for rule, content := range map[string][]byte{
		"a regular file":    gzipOf(tarOf(tar.Header{Name: "main.tf", Typeflag: tar.TypeReg, Size: 1})),
		"a file with holes": gzipOf(append(sparseEntry("main.tf", 1, "\x00"), tarOf()...)),
		"a contiguous file": gzipOf(tarOf(tar.Header{Name: "main.tf", Typeflag: tar.TypeCont, Size: 1})),
	} {
		e, err := ReadModuleEntries(t.Context(), bytes.NewReader(content), int64(len(content)), "tar.gz")
		if err != nil || e.Files["main.tf"] != wire.SHA256Of([]byte{0}) {
			t.Errorf("%s is read to %v: %v", rule, e.Files, err)
		}
		visited := ""
		_, err = WalkModule(t.Context(), bytes.NewReader(content), int64(len(content)), "tar.gz", 1<<20, func(string) bool { return true },
			func(name string, _ io.Reader) error { visited += name; return nil })
		if err != nil || visited != "main.tf" {
			t.Errorf("%s is walked to %q: %v", rule, visited, err)
		}
	}
}

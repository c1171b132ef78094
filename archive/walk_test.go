package archive

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/index/moduledoc"
)

// describeArchive reads any archive as Describe does.
func describeArchive(t testing.TB, content []byte, isZip bool) {
	var c moduledoc.Collector
	format := "tar.gz"
	if isZip {
		format = "zip"
	}
	_, _ = WalkModule(t.Context(), bytes.NewReader(content), int64(len(content)), format, 1<<20, c.Wants, c.Add)
	c.Package("").Summary()
}

// An archive is read up to a bound of unpacked bytes, and files before the bound are kept.
func TestATarIsReadUpToABound(t *testing.T) {
	content := gzipOf(tarOfFiles("main.tf", `variable "a" {}`, "zeros", strings.Repeat("\x00", 1<<20), "z.tf", `variable "b" {}`))
	for _, test := range []struct {
		limit     int64
		complete  bool
		variables int
	}{{100, false, 0}, {64 << 10, false, 1}, {4 << 20, true, 2}} {
		var c moduledoc.Collector
		complete, err := WalkModule(t.Context(), bytes.NewReader(content), int64(len(content)), "tar.gz", test.limit, c.Wants, c.Add)
		if p := c.Package(""); complete != test.complete || err != nil || len(p.Root.Variables) != test.variables {
			t.Errorf("up to %d bytes it is complete: %t, %v, with %+v", test.limit, complete, err, p.Root.Variables)
		}
	}
}

func TestReadingAPackageEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	all := func(string) bool { return true }
	read := func(_ string, r io.Reader) error { _, err := io.Copy(io.Discard, r); return err }
	content := zipOf("main.tf", "x")
	if err := WalkZip(ctx, bytes.NewReader(content), int64(len(content)), all, read); !errors.Is(err, context.Canceled) {
		t.Errorf("of a zip the error is %v", err)
	}
	if _, err := WalkModule(ctx, bytes.NewReader(gzipOf(nil)), 0, "tar.gz", 100, all, read); !errors.Is(err, context.Canceled) {
		t.Errorf("of a tar the error is %v", err)
	}
}

func TestModuleContent(t *testing.T) {
	for _, facts := range []string{"", "facts"} {
		s := moduledoc.Summary{Description: "A network"}
		gotFacts, encoded := splitModuleContent(encodeModuleContent([]byte(facts), s))
		if got, err := moduledoc.DecodeSummary(encoded); string(gotFacts) != facts || err != nil || got.Description != s.Description {
			t.Errorf("%q became %q, %+v, %v", facts, gotFacts, got, err)
		}
	}
	for _, damaged := range []string{"", "\x05abc", "\xff", strings.Repeat("\xff", 20)} {
		if facts, summary := splitModuleContent([]byte(damaged)); facts != nil || summary != nil {
			t.Errorf("%q became %q, %q", damaged, facts, summary)
		}
	}
}

// tarOfFiles packs files given as names and contents in turn.
func tarOfFiles(namesAndContents ...string) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i := 0; i < len(namesAndContents); i += 2 {
		w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: namesAndContents[i], Size: int64(len(namesAndContents[i+1]))})
		io.WriteString(w, namesAndContents[i+1])
	}
	w.Close()
	return b.Bytes()
}

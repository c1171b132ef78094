package bucket_test

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
)

// A file appears in a bucket whole and only under its final name, and no file stays on the
// local disk.
func TestTemporaryFilesForABucket(t *testing.T) {
	down := errors.New("503 SlowDown")
	for _, test := range []struct {
		rule string
		fail error
		end  func(*testing.T, tree.TemporaryFile) error
		kind error
		want string // content of the file a; empty: there is none
		b    string // of the file b, which is there before
	}{
		{rule: "named", end: func(t *testing.T, f tree.TemporaryFile) error { _, err := f.Rename(t.Context(), "a"); return err }, want: "content", b: "before"},
		{rule: "created", end: func(t *testing.T, f tree.TemporaryFile) error { _, err := f.Create(t.Context(), "a"); return err }, want: "content", b: "before"},
		{rule: "discarded", end: func(t *testing.T, f tree.TemporaryFile) error { f.Discard(); return nil }, b: "before"},
		{rule: "named like another", end: func(t *testing.T, f tree.TemporaryFile) error { _, err := f.Rename(t.Context(), "b"); return err }, b: "content"},
		{rule: "created over another", end: func(t *testing.T, f tree.TemporaryFile) error { _, err := f.Create(t.Context(), "b"); return err }, kind: tree.ErrChanged, b: "before"},
		{rule: "named while the store is down", fail: down, end: func(t *testing.T, f tree.TemporaryFile) error { _, err := f.Rename(t.Context(), "a"); return err }, kind: tree.ErrStore, b: "before"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			b, p := providersInBucket(t)
			b.Put("providers/b", "before", time.Now())
			f, err := p.NewTemporary(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(f, "content"); err != nil {
				t.Fatal(err)
			}
			if names := b.Names(); len(names) != 1 {
				t.Errorf("while it comes in, there are %v", names)
			}
			b.Fail = func(string, string) error { return test.fail }
			if err := test.end(t, f); !errors.Is(err, test.kind) {
				t.Errorf("got %v", err)
			}
			f.Discard() // has no effect any more
			b.Fail = nil
			now := b.Contents()
			if names := strings.Join(b.Names(), " "); (names == "providers/a providers/b") != (test.want != "") {
				t.Errorf("there are %s", names)
			}
			if test.want != "" && now["providers/a"] != test.want || now["providers/b"] != test.b {
				t.Error("a file has other content")
			}
			if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
				t.Errorf("left on the disk are %v, %v", left, err)
			}
		})
	}
}

// providersInBucket returns a bucket, and the part for the providers in it.
func providersInBucket(t *testing.T) (*treetest.Bucket, tree.Part) {
	t.Helper()
	b := new(treetest.Bucket)
	files, err := source.Directories{Root: "."}.OpenIn(b)
	if err != nil {
		t.Fatal(err)
	}
	return b, files.Providers
}

// An upload of another release that a killed instance has left stays as long as it may be a
// copy that goes on, and makes room then.
func TestUploadsOfOtherReleases(t *testing.T) {
	for _, row := range []struct {
		rule string
		age  time.Duration
		err  error
	}{
		{"a moment ago", 0, tree.ErrReserved},
		{"an hour ago", time.Hour, nil},
	} {
		b, p := providersInBucket(t)
		b.Put("providers/.staging/demo/SUMS", "sums", time.Now())
		b.Put("providers/acme/demo/1.0.0/"+tree.UploadName, `{"format":1,"sha256sums":"00"}`+"\n", time.Now().Add(-row.age))
		b.Put("providers/acme/demo/1.0.0/old.zip", "x", time.Now().Add(-row.age))
		_, err := p.InstallFolder(t.Context(), ".staging/demo", "acme/demo/1.0.0", "SUMS")
		_, old := b.Contents()["providers/acme/demo/1.0.0/old.zip"]
		if !errors.Is(err, row.err) || old != (row.err != nil) {
			t.Errorf("%s: %v, and there are %q", row.rule, err, b.Names())
		}
	}
}

// A folder without files does not exist in a bucket: removing it costs no request.
func TestAnEmptyFolderIsRemovedWithoutARequest(t *testing.T) {
	b, p := providersInBucket(t)
	b.Put("providers/.staging/demo/SUMS", "sums", time.Now())
	b.Requests()
	for _, dir := range []string{".staging", ".staging/other"} {
		if removed, asked := p.RemoveIfEmpty(dir), b.Requests(); removed || len(asked) > 0 {
			t.Errorf("%s: removed %t, with %v", dir, removed, asked)
		}
	}
}

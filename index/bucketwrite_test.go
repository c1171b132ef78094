package index_test

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
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
			b := new(treetest.Bucket)
			b.Put("providers/b", "before", time.Now())
			f, err := providersIn(t, b).NewTemporary(t.Context(), "a")
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
			files := indextest.InBucket(t, b)
			if names := strings.Join(b.Names(), " "); (names == "providers/a providers/b") != (test.want != "") {
				t.Errorf("there are %s", names)
			}
			if test.want != "" && files.Read("providers/a") != test.want || files.Read("providers/b") != test.b {
				t.Error("a file has other content")
			}
			if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
				t.Errorf("left on the disk are %v, %v", left, err)
			}
		})
	}
}

package index_test

import (
	"context"
	"io/fs"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/spf13/afero"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/signing"
)

// options are those of a registry that signs what publishers did not.
func options(t testing.TB, open func() (index.Tree, error)) index.Options {
	t.Helper()
	key, err := signing.ReadKey([]byte(indextest.NewPublisher(t).PrivateKey()), "")
	if err != nil {
		t.Fatal(err)
	}
	return index.Options{
		Open:   open,
		Signer: key,
	}
}

// scan scans a tree once.
func scan(t testing.TB, tree *indextest.Tree) *index.Snapshot {
	t.Helper()
	return scanWith(t, options(t, tree.Open))
}

func scanWith(t testing.TB, o index.Options) *index.Snapshot {
	t.Helper()
	s, err := index.Scan(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const zipName = "terraform-provider-demo_1.0.0_linux_amd64.zip"

// short opens only so many files, and then fails as a process does that has too
// many open.
type short struct {
	afero.Fs
	left *atomic.Int64
}

func (s short) Open(name string) (afero.File, error) {
	if s.left.Add(-1) < 0 {
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.EMFILE}
	}
	return s.Fs.Open(name)
}

// A server short of descriptors knows nothing of its tree. Wherever in a scan
// that happens, what was offered stays offered, and nothing is withheld.
func TestAScanWithTooFewDescriptorsFails(t *testing.T) {
	tree := indextest.New(t)
	publisher := indextest.NewPublisher(t)
	tree.Keys("acme", publisher)
	tree.Provider("acme/demo", "1.0.0", "linux_amd64", "linux_arm64").Manifest("5.0").Signed(publisher)
	tree.Write("modules/acme/vpc/aws/1.0.0/main.tf", "# a module\n")
	tree.Write("modules/acme/vpc/aws/1.1.0.tar.gz", indextest.TarGz("main.tf", "# a module\n"))
	left := new(atomic.Int64)
	o := options(t, indextest.On(t, short{tree.Fs, left}).Open)
	o.Workers = 1

	left.Store(1000)
	whole, err := index.Scan(context.Background(), o)
	if err != nil || len(whole.Report.Offered) != 3 || len(whole.Report.Withheld) > 0 {
		t.Fatalf("with enough: %v, %+v", err, whole)
	}
	needed := 1000 - left.Load()
	for enough := range needed {
		x := index.New(o)
		left.Store(enough)
		s, err := x.Rescan(context.Background())
		if err == nil || !strings.Contains(err.Error(), "too many open files") {
			t.Fatalf("with %d of %d: %v, %+v", enough, needed, err, s)
		}
		if partial := x.Snapshot(); partial != nil && len(partial.Report.Withheld) > 0 {
			t.Errorf("with %d of %d, on the way was withheld: %+v", enough, needed, partial.Report.Withheld)
		}
		left.Store(1000)
		s, err = x.Rescan(context.Background())
		if err != nil || len(s.Report.Offered) != 3 || len(s.Report.Withheld) > 0 {
			t.Fatalf("after one with %d of %d: %v, %+v", enough, needed, err, s)
		}
		x.Close()
	}
	t.Logf("a scan opens %d files and folders", needed)
}

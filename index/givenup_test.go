package index_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
)

// A reload or the end of the server waits for the scan under way, which on a network disk may take
// minutes.
func TestAScanThatIsGivenUpListsNothingMore(t *testing.T) {
	dir := t.TempDir()
	files := indextest.OnDisk(t, dir)
	for n := range 20 {
		files.Write(fmt.Sprintf("modules/acme/m%d/aws/1.0.0.tar.gz", n), indextest.TarGz("main.tf", ""))
	}
	var faults treetest.Faults
	o, opened := options(t, nil), &scannedTree{open: faults.Open(source.Directories{Root: dir}.Open)}
	o.Listed = opened
	o.Workers, o.Now = 1, inAnHour // so that folders are known to be unchanged
	x := newIndex(t, o)
	rescan(t, x)
	ctx, giveUp := context.WithCancel(t.Context())
	listed := 0
	faults.When(func(_ int, op treetest.Operation) error {
		if op.Name == "readdir" && strings.HasSuffix(op.Path, "/aws") {
			listed++
			giveUp()
			<-opened.ctx.Done()
		}
		return nil
	})
	if _, err := x.Rescan(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	if listed != 1 {
		t.Errorf("%d folders are listed", listed)
	}
}

// A scannedTree has the context of the scan that has opened it last.
type scannedTree struct {
	open func() (tree.Tree, error)
	ctx  context.Context
}

func (s *scannedTree) Open(ctx context.Context) (tree.Tree, error) {
	s.ctx = ctx
	return s.open()
}

func (*scannedTree) Forget(...string) {}

// A reload that leaves a network disk whose server is away, for example for another one, ends nevertheless.
func TestAnIndexIsClosedAlthoughItsDiskHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		back := make(chan struct{})
		x := index.New(index.Options{Open: func() (tree.Tree, error) {
			<-back
			return tree.Tree{}, errors.New("stale file handle")
		}})
		x.Start()
		synctest.Wait()
		began := time.Now()
		x.Close()
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("it takes %v", took)
		}
		close(back)
		synctest.Wait()
	})
}

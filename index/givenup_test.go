package index_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
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
	o := options(t, faults.Open(source.Directories{Root: dir}.Open))
	o.Workers, o.Now = 1, func() time.Time { return time.Now().Add(time.Hour) } // so that folders are known to be unchanged
	x := index.New(o)
	defer x.Close()
	rescan(t, x)
	ctx, giveUp := context.WithCancel(t.Context())
	listed := 0
	faults.When(func(_ int, op treetest.Operation) error {
		if op.Name == "readdir" && strings.HasSuffix(op.Path, "/aws") {
			listed++
			giveUp()
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

package bucket_test

import (
	"io/fs"
	"os"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/tree/bucket"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
)

// onlyOpen hides all methods but Open, as Caddy does.
type onlyOpen struct{ fs.FS }

func TestABucketIsFoundBehindCaddysWrapper(t *testing.T) {
	b := new(treetest.Bucket)
	b.Put("providers/a", "", time.Now())
	for name, fsys := range map[string]fs.FS{"as it is": b, "wrapped": onlyOpen{b}} {
		if found, ok := bucket.From(fsys); !ok || found != bucket.Bucket(b) {
			t.Errorf("%s: %v, %t", name, found, ok)
		}
	}
	if _, ok := bucket.From(onlyOpen{os.DirFS(t.TempDir())}); ok {
		t.Error("a folder of the disk is taken for a bucket")
	}
}

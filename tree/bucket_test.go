package tree_test

import (
	"io/fs"
	"os"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/treetest"
)

// onlyOpen hides all methods but Open, as Caddy does.
type onlyOpen struct{ fs.FS }

func TestABucketIsFoundBehindCaddysWrapper(t *testing.T) {
	bucket := new(treetest.Bucket)
	bucket.Put("providers/a", "", time.Now())
	for name, fsys := range map[string]fs.FS{"as it is": bucket, "wrapped": onlyOpen{bucket}} {
		if found, ok := tree.BucketOf(fsys); !ok || found != tree.Bucket(bucket) {
			t.Errorf("%s: %v, %t", name, found, ok)
		}
	}
	if _, ok := tree.BucketOf(onlyOpen{os.DirFS(t.TempDir())}); ok {
		t.Error("a folder of the disk is taken for a bucket")
	}
}

package tree_test

import (
	"io/fs"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// Methods of Directories open the local disk, or another file system than the source has.
func TestSourceHasOnlyMethodsThatKnowItsFileSystem(t *testing.T) {
	var source any = tree.Source{}
	if _, has := source.(interface{ OpenReadOnly() (tree.Tree, error) }); has {
		t.Error("OpenReadOnly opens the local disk")
	}
	if _, has := source.(interface {
		OpenIn(fsys fs.FS) (tree.Tree, error)
	}); has {
		t.Error("OpenIn opens any file system")
	}
	if _, has := source.(interface {
		Locate(fsys fs.FS) (tree.Directories, error)
	}); has {
		t.Error("Locate looks at any file system")
	}
}

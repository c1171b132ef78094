package source_test

import (
	"io/fs"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
	"github.com/caddy-terraform/caddy-terraform-registry/tree/source"
)

// Methods of Directories open the local disk, or another file system than the source has.
func TestSourceHasOnlyMethodsThatKnowItsFileSystem(t *testing.T) {
	var of any = source.Source{}
	if _, has := of.(interface{ OpenReadOnly() (tree.Tree, error) }); has {
		t.Error("OpenReadOnly opens the local disk")
	}
	if _, has := of.(interface {
		OpenIn(fsys fs.FS) (tree.Tree, error)
	}); has {
		t.Error("OpenIn opens any file system")
	}
	if _, has := of.(interface {
		Locate(fsys fs.FS) (source.Directories, error)
	}); has {
		t.Error("Locate looks at any file system")
	}
}

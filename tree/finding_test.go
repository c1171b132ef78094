package tree_test

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

func TestStorageErrors(t *testing.T) {
	failed := func(err error) error { return &fs.PathError{Op: "write", Path: "/secret/path", Err: err} }
	for _, test := range []struct {
		rule string
		err  error
		kind error
		says string
	}{
		{"a full disk", failed(syscall.ENOSPC), tree.ErrDiskFull, "make room"},
		{"a quota that is used up", failed(syscall.EDQUOT), tree.ErrDiskFull, "make room"},
		{"no permission", failed(syscall.EACCES), tree.ErrNotWritable, "the right to"},
		{"a disk mounted read-only", failed(syscall.EROFS), tree.ErrNotWritable, "the right to"},
		{"a broken disk", failed(syscall.EIO), tree.ErrNotWritable, "input/output"},
		{"anything else", errors.New("at /secret/path"), tree.ErrNotWritable, ""},
		{"one that is one already", tree.StorageError(failed(syscall.ENOSPC)), tree.ErrDiskFull, "make room"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			err := tree.StorageError(test.err)
			if !errors.Is(err, test.kind) || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "secret") {
				t.Errorf("it is %v", err)
			}
		})
	}
	if err := tree.StorageError(nil); err != nil {
		t.Errorf("nil becomes %v", err)
	}
}

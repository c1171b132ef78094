package tree

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// Why a tree cannot be written to. Callers decide by these with errors.Is.
var (
	// ErrDiskFull: there is no room for a file.
	ErrDiskFull = errors.New("the disk is full")

	// ErrNotWritable: the process may not write, or the disk fails.
	ErrNotWritable = errors.New("the tree cannot be read and written")

	// ErrReplaced: the tree that was opened is no longer the one on the disk. It is an
	// ErrNotWritable, and over once the tree has been opened again.
	ErrReplaced = fmt.Errorf("%w: its folder has been replaced meanwhile, try again", ErrNotWritable)

	// ErrStore: the store of a Bucket failed, which says nothing about the file. It is an
	// ErrNotWritable, and may be over a moment later.
	ErrStore error = notWritable("the store failed")
)

// notWritable is a kind of ErrNotWritable with a text of its own.
type notWritable string

func (n notWritable) Error() string        { return string(n) }
func (n notWritable) Is(target error) bool { return target == ErrNotWritable }

// StorageError returns what the disk reports as ErrDiskFull or ErrNotWritable with
// what to do about it, and without a path; nil for nil. An error that is one of these
// already stays as it is.
func StorageError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrDiskFull), errors.Is(err, ErrNotWritable):
		return err
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w: make room for the tree", ErrDiskFull)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%w: give the server the right to", ErrNotWritable)
	}
	var number syscall.Errno
	if errors.As(err, &number) {
		return fmt.Errorf("%w: %w", ErrNotWritable, number)
	}
	return ErrNotWritable
}

package tree

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// The reasons why a tree cannot be written to. Callers compare them by errors.Is.
var (
	// ErrDiskFull means that the disk has no room for a file.
	ErrDiskFull = errors.New("the disk is full")

	// ErrNotWritable means that the process may not write, or that the disk fails.
	ErrNotWritable = errors.New("the tree cannot be read and written")

	// ErrReplaced means that the tree that was opened is no longer the tree on the disk. It
	// is an ErrNotWritable, and goes away once the tree has been opened again.
	ErrReplaced = fmt.Errorf("%w: its folder has been replaced meanwhile, try again", ErrNotWritable)

	// ErrStore means that the store of a Bucket failed, which says nothing about the file.
	// It is an ErrNotWritable, and a later attempt may succeed.
	ErrStore error = notWritable("the store failed")
)

// notWritable is an ErrNotWritable with its own text.
type notWritable string

func (n notWritable) Error() string        { return string(n) }
func (n notWritable) Is(target error) bool { return target == ErrNotWritable }

// StorageError returns an error of the disk as ErrDiskFull or ErrNotWritable, with advice
// and without a path; nil for nil. An error that is one of these already is returned
// unchanged.
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

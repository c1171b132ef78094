package tree

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// Exhausted is the reason of a file that cannot be read because the server itself is short
// of something, which says nothing about the tree. Reports call it Unreadable, and a scan
// that no other scan follows fails as a whole.
const Exhausted Reason = "exhausted"

// StoreFailed is the reason of a file that the store of a Bucket failed to return. Like
// Exhausted, it says nothing about the tree. A later scan reads an archive that has not been
// read yet.
const StoreFailed Reason = "store_failed"

// A fault tells why the file system could not say whether a file or folder exists. It says
// nothing about the tree: only a file that does not exist is absent. While there is a fault
// in a folder, its earlier content stays offered.
type fault uint8

const (
	none    fault = iota // the finding is about the content
	Passing              // it may be over a moment later: EIO, ESTALE, EMFILE, a store that fails
	Lasting              // until the operator mends the tree: a dangling link or out of the root, a missing right
)

// Faultf makes a finding of a fault, with its detail as fmt.Sprintf does.
func Faultf(kind fault, reason Reason, format string, args ...any) *Finding {
	return &Finding{Reason: reason, Detail: fmt.Sprintf(format, args...), fault: kind}
}

// IsFault reports whether the result of an earlier scan still counts. f may be nil.
func (f *Finding) IsFault() bool { return f != nil && f.fault != none }

// Passes reports whether trying again soon may succeed. f may be nil.
func (f *Finding) Passes() bool { return f != nil && f.fault == Passing }

// HasNoFile reports whether an error of looking at a name says that no process finds a file
// there: there is none, or a symlink leads to nothing, to itself or out of the root. A file
// that this process may not read may be one that others offer.
func HasNoFile(err error) bool {
	return errors.Is(err, syscall.ENOTDIR) || !errors.Is(err, fs.ErrPermission) && !AsFinding(err).Passes()
}

// Inside returns the finding for the folder of a file that has the finding f.
func (f *Finding) Inside(name string) *Finding {
	return &Finding{Reason: f.Reason, Detail: fmt.Sprintf("%q in it: %s", name, f.Detail), fault: f.fault}
}

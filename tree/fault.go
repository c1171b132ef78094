package tree

import "fmt"

// Exhausted is the reason of what cannot be read because the server itself is
// short of something, which says nothing about the tree. Reports call it Unreadable, and
// a scan that nothing follows fails as a whole.
const Exhausted Reason = "exhausted"

// StoreFailed is the reason of what the store of a Bucket did not give, for the same
// reason. An archive that was to be read for the first time is read by a later scan.
const StoreFailed Reason = "store_failed"

// A fault is why the file system could not tell what a file or folder is. It says nothing
// about the tree: only what does not exist is absent. What was known of a folder before
// stays offered while there is a fault in it.
type fault uint8

const (
	none    fault = iota // the finding is about what was read
	Passing              // it may be over a moment later: EIO, ESTALE, EMFILE, a store that fails
	Lasting              // until somebody mends the tree: a link to nothing or out of the root, a missing right
)

// Faultf makes a finding of a fault, with its detail as fmt.Sprintf does.
func Faultf(kind fault, reason Reason, format string, args ...any) *Finding {
	return &Finding{Reason: reason, Detail: fmt.Sprintf(format, args...), fault: kind}
}

// IsFault reports whether what was found before still counts. f may be nil.
func (f *Finding) IsFault() bool { return f != nil && f.fault != none }

// Passes reports whether it is worth trying again soon. f may be nil.
func (f *Finding) Passes() bool { return f != nil && f.fault == Passing }

// Inside is the finding of a folder of which one file has it.
func (f *Finding) Inside(name string) *Finding {
	return &Finding{Reason: f.Reason, Detail: fmt.Sprintf("%q in it: %s", name, f.Detail), fault: f.fault}
}

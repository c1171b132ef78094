package index

import "fmt"

// A fault is why the file system could not tell what a file or folder is. It says nothing
// about the tree: only what does not exist is absent. What was known of a folder before
// stays offered while there is a fault in it.
type fault uint8

const (
	none    fault = iota // the finding is about what was read
	passing              // it may be over a moment later: EIO, ESTALE, EMFILE, a store that fails
	lasting              // until somebody mends the tree: a link to nothing or out of the root, a missing right
)

// faulty makes a finding of a fault, with its detail as fmt.Sprintf does.
func faulty(kind fault, reason Reason, format string, args ...any) *finding {
	return &finding{reason: reason, detail: fmt.Sprintf(format, args...), fault: kind}
}

// isFault reports whether what was found before still counts. f may be nil.
func (f *finding) isFault() bool { return f != nil && f.fault != none }

// passes reports whether it is worth trying again soon. f may be nil.
func (f *finding) passes() bool { return f != nil && f.fault == passing }

// inside is the finding of a folder of which one file has it.
func (f *finding) inside(name string) *finding {
	return &finding{reason: f.reason, detail: fmt.Sprintf("%q in it: %s", name, f.detail), fault: f.fault}
}

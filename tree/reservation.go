package tree

import (
	"io/fs"
	"time"
)

// ReservedFor is how long an empty file or folder may be a reservation of a process that is
// about to write to it. A network file system may show a file as empty until its client has
// sent some of the content.
const ReservedFor = 5 * time.Minute

// ErrReserved means that a process is about to write a file or folder of that name. It is an
// ErrNotWritable, and a later attempt may succeed.
var ErrReserved error = notWritable("a file of this name is being written: try again in a moment")

// Reserved reports whether a process may be about to write to a file: it is empty, and has
// not been empty for long.
func Reserved(file fs.FileInfo) bool {
	return file.Size() == 0 && time.Since(file.ModTime()) < ReservedFor
}

// Abandoned reports whether an empty file is left over from a process that died before it
// wrote to the file, or from a copy that was interrupted as early. The file has no content
// to keep.
func Abandoned(file fs.FileInfo) bool {
	return file.Mode().IsRegular() && file.Size() == 0 && !Reserved(file)
}

package tree

import (
	"io/fs"
	"time"
)

// A Stamp identifies a state of a file, or of a folder's files: with another stamp
// the content may have changed.
type Stamp struct {
	Size    int64
	ModTime int64  // nanoseconds
	Inode   uint64 // where there are any; in a Bucket, what its ETag is known by
	Changed int64  // nanoseconds: when its inode was last changed
	Files   string // of a folder: the sha256 of what identifies each of its files; otherwise empty
}

// StampOf returns the stamp of a file. A directory listing on Linux has it already.
func StampOf(info fs.FileInfo) Stamp {
	if known, ok := info.(interface{ stamp() Stamp }); ok {
		return known.stamp()
	}
	inode, changed := identity(info)
	s := Stamp{Size: info.Size(), ModTime: info.ModTime().UnixNano(), Inode: inode}
	if !changed.IsZero() {
		s.Changed = changed.UnixNano()
	}
	if tag := contentTag(info); tag != 0 {
		s.Inode, s.Changed = tag, ByTag
	}
	return s
}

// ByTag stands where a stamp has a time of change, for a file in a Bucket: its ETag alone
// says whether the content has changed, however young the file is.
const ByTag = -1

// sameContent reports whether size and time of the content agree. On file systems
// without inodes that has to be enough.
func (s Stamp) sameContent(other Stamp) bool {
	return s.Size == other.Size && s.ModTime == other.ModTime
}

// TooYoung reports whether the last change is so recent that there may be others.
func (s Stamp) TooYoung(now time.Time, rest time.Duration) bool {
	return !s.Settled(now) || !s.rested(now, rest)
}

// Settled reports whether a further change would give another stamp. File systems
// keep times with the precision of the kernel's clock, some milliseconds; the
// coarsest have two seconds. A time in the future says that a clock was set, and
// nothing of the file's age.
func (s Stamp) Settled(now time.Time) bool {
	if s.Changed == ByTag {
		return true
	}
	precision := 2 * time.Second
	if s.Newest()%int64(time.Second) != 0 {
		precision = 50 * time.Millisecond
	}
	return s.rested(now, precision)
}

// rested reports whether the last change is at least rest ago.
func (s Stamp) rested(now time.Time, rest time.Duration) bool {
	age := time.Duration(now.UnixNano() - s.Newest())
	return age < 0 || age >= rest
}

// Newest is the time of the last change, in nanoseconds.
func (s Stamp) Newest() int64 {
	if s.Changed > 0 {
		return s.Changed
	}
	return s.ModTime
}

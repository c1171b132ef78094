package index

import (
	"io/fs"
	"time"
)

// A stamp identifies a state of a file, or of a folder's files: with another stamp
// the content may have changed.
type stamp struct {
	size    int64
	modTime int64  // nanoseconds
	inode   uint64 // where there are any; in a Bucket, what its ETag is known by
	changed int64  // nanoseconds: when its inode was last changed
	files   string // of a folder: the sha256 of what identifies each of its files; otherwise empty
}

func stampOf(info fs.FileInfo) stamp {
	if known, ok := info.(interface{ stamp() stamp }); ok {
		return known.stamp()
	}
	inode, changed := identity(info)
	s := stamp{size: info.Size(), modTime: info.ModTime().UnixNano(), inode: inode}
	if !changed.IsZero() {
		s.changed = changed.UnixNano()
	}
	if tag := contentTag(info); tag != 0 {
		s.inode, s.changed = tag, byTag
	}
	return s
}

// byTag stands where a stamp has a time of change, for a file in a Bucket: its ETag alone
// says whether the content has changed, however young the file is.
const byTag = -1

// sameContent reports whether size and time of the content agree. On file systems
// without inodes that has to be enough.
func (s stamp) sameContent(other stamp) bool {
	return s.size == other.size && s.modTime == other.modTime
}

// tooYoung reports whether the last change is so recent that there may be others.
func (s stamp) tooYoung(now time.Time, rest time.Duration) bool {
	return !s.settled(now) || !s.rested(now, rest)
}

// settled reports whether a further change would give another stamp. File systems
// keep times with the precision of the kernel's clock, some milliseconds; the
// coarsest have two seconds. A time in the future says that a clock was set, and
// nothing of the file's age.
func (s stamp) settled(now time.Time) bool {
	if s.changed == byTag {
		return true
	}
	precision := 2 * time.Second
	if s.newest()%int64(time.Second) != 0 {
		precision = 50 * time.Millisecond
	}
	return s.rested(now, precision)
}

// rested reports whether the last change is at least rest ago.
func (s stamp) rested(now time.Time, rest time.Duration) bool {
	age := time.Duration(now.UnixNano() - s.newest())
	return age < 0 || age >= rest
}

// newest is the time of the last change, in nanoseconds.
func (s stamp) newest() int64 {
	if s.changed > 0 {
		return s.changed
	}
	return s.modTime
}

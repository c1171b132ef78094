package tree

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"hash/fnv"
	"io"
	"io/fs"
	"time"
)

// A Stamp identifies a state of a file, or of a folder's files. If the stamp differs, the
// content may have changed.
type Stamp struct {
	Size    int64
	ModTime int64  // nanoseconds
	Inode   uint64 // zero if there are none; in a Bucket, the number of its ETag
	Changed int64  // nanoseconds: when its inode was last changed
	Files   string // of a folder: the sha256 of the stamps of its files; otherwise empty
}

// StampOf returns the stamp of a file. On Linux, a directory listing has all of it already.
func StampOf(info fs.FileInfo) Stamp {
	if known, ok := info.(interface{ Stamp() Stamp }); ok {
		return known.Stamp()
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

// contentTag returns a number for the ETag of a file in a store, and zero for any other
// file. It takes the place of the inode of a file on a disk: a file that replaces another
// has a different number.
func contentTag(info fs.FileInfo) uint64 {
	tagged, ok := info.(interface{ ETag() string })
	if !ok {
		return 0
	}
	h := fnv.New64a()
	io.WriteString(h, tagged.ETag())
	return h.Sum64()
}

// ByTag replaces the change time in the stamp of a file in a Bucket: the ETag alone tells
// whether the content has changed, however young the file is.
const ByTag = -1

// SameContent reports whether two stamps say that a file was not written to between them: its
// size and modification time agree, and the ETag where there is one. On file systems without
// inodes this must suffice.
func (s Stamp) SameContent(other Stamp) bool {
	return s.Size == other.Size && s.ModTime == other.ModTime && (s.Changed != ByTag || s.Inode == other.Inode)
}

// TooYoung reports whether the last change is so recent that others may follow.
func (s Stamp) TooYoung(now time.Time, rest time.Duration) bool {
	return !s.Settled(now) || !s.unchangedFor(now, rest)
}

// Settled reports whether a further change would give another stamp. File systems keep times
// with the precision of the kernel's clock, some milliseconds; the coarsest keep two
// seconds.
func (s Stamp) Settled(now time.Time) bool {
	if s.Changed == ByTag {
		return true
	}
	precision := 2 * time.Second
	if s.Newest()%int64(time.Second) != 0 {
		precision = 50 * time.Millisecond
	}
	return s.unchangedFor(now, precision)
}

// maxSkew is how far the clock of a file server may be ahead. A time further in the future
// means that a clock was set, and says nothing about the file's age.
const maxSkew = time.Minute

// unchangedFor reports whether the last change is at least rest ago.
func (s Stamp) unchangedFor(now time.Time, rest time.Duration) bool {
	age := time.Duration(now.UnixNano() - s.Newest())
	return age >= rest || age < -maxSkew
}

// Newest returns the time of the last change, in nanoseconds.
func (s Stamp) Newest() int64 {
	if s.Changed > 0 {
		return s.Changed
	}
	return s.ModTime
}

// WithChanges returns the stamp of the files in a folder, with the last time at which a name in
// one of dirs was removed or added, if that was later. Only local file systems keep this time:
// others make one up, and then a folder might never count as unchanged.
func (p Part) WithChanges(s Stamp, folder string, dirs []string, taken time.Time) Stamp {
	if !p.keepsChanges(folder) {
		return s
	}
	now := taken.UnixNano()
	for _, dir := range dirs {
		info, err := p.Lookup(dir)
		if err != nil {
			s.Changed = max(s.Newest(), now) // the next scan sees the new state
			continue
		}
		if t := info.ModTime().UnixNano(); t <= now { // a later time says nothing of the folder's age
			s.Changed = max(s.Newest(), t)
		}
	}
	return s
}

// StampOfNames returns a stamp that differs as soon as a name is added to a folder or removed. ok is
// false if the file system does not tell, or if another change now could have the same time.
func (p Part) StampOfNames(folder string, now func() time.Time) (s Stamp, ok bool) {
	if !p.keepsChanges(folder) {
		return Stamp{}, false
	}
	info, err := p.Lookup(folder)
	if err != nil || !info.IsDir() {
		return Stamp{}, false
	}
	s = StampOf(info)
	return s, s.Changed > 0 && s.Settled(now())
}

// UnchangedSince returns the time of the last change in a folder with that stamp. ok is false if the
// file system does not tell it, as a network disk, whose server may have another clock.
func (p Part) UnchangedSince(s Stamp, folder string) (since time.Time, ok bool) {
	if !p.keepsChanges(folder) || s.Changed <= 0 {
		return time.Time{}, false
	}
	return time.Unix(0, s.Changed), true
}

// A FolderStamp makes the stamp of a folder from the stamps of its files. The zero value is
// of no files.
type FolderStamp struct {
	stamp Stamp
	hash  hash.Hash
	timed bool // a file has no ETag
}

// Add adds a file, by its name or path in the folder.
func (f *FolderStamp) Add(name string, s Stamp) {
	if f.hash == nil {
		f.hash = sha256.New()
	}
	f.stamp.Size += s.Size
	f.stamp.ModTime, f.stamp.Changed = max(f.stamp.ModTime, s.ModTime), max(f.stamp.Changed, s.Changed)
	f.timed = f.timed || s.Changed != ByTag
	fmt.Fprintf(f.hash, "%s\x00%d %d %d %d\n", name, s.Size, s.ModTime, s.Inode, s.Changed)
}

// Stamp returns a stamp that changes whenever a file may have changed. Its time is the time of
// the newest file. If all files have ETags, they alone tell.
func (f *FolderStamp) Stamp() Stamp {
	s := f.stamp
	if f.hash == nil {
		s.Files = string(sha256.New().Sum(nil))
		return s
	}
	if !f.timed {
		s.Changed = ByTag
	}
	s.Files = string(f.hash.Sum(nil))
	return s
}

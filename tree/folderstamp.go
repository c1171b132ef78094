package tree

import (
	"crypto/sha256"
	"fmt"
	"hash"
)

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

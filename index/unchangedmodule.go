package index

import (
	"bytes"
	"slices"
)

// What a scan finds of a module as it was is the same version, and if there are no
// others, the same module with the same documents.

// or returns the version as it was before, which may be nil, if nothing of it has changed.
func (v *ModuleVersion) or(before *ModuleVersion) *ModuleVersion {
	if before == nil || v.Hostname != before.Hostname || v.Version != before.Version || v.H1 != before.H1 || v.Folder != before.Folder ||
		!slices.Equal(v.notes, before.notes) || !bytes.Equal(v.summary, before.summary) || !v.Archive.same(before.Archive) {
		return v
	}
	return before
}

// same reports whether two files of a tree have the same bytes and lie in the same place.
func (f *File) same(other *File) bool {
	if f.Name != other.Name || f.Size != other.Size || f.SHA256 != other.SHA256 || f.ContentType != other.ContentType ||
		f.Path() != other.Path() || f.modTime != other.modTime || f.inode != other.inode || f.changed != other.changed ||
		f.IsFolder() != other.IsFolder() {
		return false
	}
	return !f.IsFolder() || slices.Equal(f.made.packed.Files(), other.made.packed.Files())
}

// consistsOf reports whether a module has these versions and no others. A nil Module has
// none.
func (m *Module) consistsOf(versions []*ModuleVersion, s standing) bool {
	if m == nil || len(m.Versions) != len(versions) || !m.standing.equal(s) {
		return false
	}
	return !slices.ContainsFunc(versions, func(v *ModuleVersion) bool { return m.Version(v.Version) != v })
}

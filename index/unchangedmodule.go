package index

import (
	"bytes"
	"slices"
)

// A module version that has not changed since the last scan stays the same ModuleVersion. If
// no version has changed, the module stays the same Module, with the same documents.

// orUnchanged returns the version before, which may be nil, if v does not differ from it,
// and otherwise v.
func (v *ModuleVersion) orUnchanged(before *ModuleVersion) *ModuleVersion {
	if before == nil || v.Hostname != before.Hostname || v.Version != before.Version || v.H1 != before.H1 || v.Folder != before.Folder ||
		!slices.Equal(v.notes, before.notes) || !bytes.Equal(v.summary, before.summary) || !v.Archive.same(before.Archive) {
		return v
	}
	return before
}

// same reports whether two files of a tree have the same bytes and the same path.
func (f *File) same(other *File) bool {
	if f.Name != other.Name || f.Size != other.Size || f.SHA256 != other.SHA256 || f.ContentType != other.ContentType ||
		f.Path() != other.Path() || f.modTime != other.modTime || f.inode != other.inode || f.changed != other.changed ||
		f.IsFolder() != other.IsFolder() {
		return false
	}
	return !f.IsFolder() || slices.Equal(f.made.packed.Files(), other.made.packed.Files())
}

// consistsOf reports whether a module has exactly these versions. A nil Module has none.
func (m *Module) consistsOf(versions []*ModuleVersion, s addressMetadata) bool {
	if m == nil || len(m.Versions) != len(versions) || !m.metadata.equal(s) {
		return false
	}
	return !slices.ContainsFunc(versions, func(v *ModuleVersion) bool { return m.Version(v.Version) != v })
}

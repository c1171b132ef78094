package offer

import "slices"

// Pending says which versions of an address may be missing in a snapshot because they have
// not been read yet. The zero value means none.
type Pending struct {
	Versions []string // versions with new files

	// List: versions may be missing that an earlier process offered to clients. A list without
	// them would make clients choose an older version.
	List bool

	// Unreadable: the folder cannot be read at the moment, and keeps the results of the last
	// scan. There may be other versions.
	Unreadable bool
}

// Has reports whether files of a version are pending; an empty version stands for any.
func (p Pending) Has(version string) bool {
	return p.Unreadable || len(p.Versions) > 0 && (version == "" || slices.Contains(p.Versions, version))
}

package index

import (
	"fmt"
	"slices"

	"github.com/caddy-terraform/caddy-terraform-registry/index/layout"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// A part of the tree in which there were versions, or repositories with versions, and in which there
// is nothing any more, looks like the mount point of a volume that is not mounted. Scans keep its
// state until it has content, so nothing may come into it by the registry itself: one fetched
// package would be the content after which all the rest is gone.

// hasVersions reports whether versions are known in a part of the tree, by its path in the report.
// A nil Snapshot has none.
func (s *Snapshot) hasVersions(part string) bool {
	if s == nil {
		return false
	}
	for _, g := range s.groups.All() {
		if slices.ContainsFunc(g.entries, func(e *entry) bool { return e.hasVersions() && tree.IsBelow(e.folder.Report, part) }) {
			return true
		}
	}
	return false
}

// hasVersions reports whether versions are offered of the entry, or are still to be read, or are
// the tags of a repository. Files that are all withheld are none: a publication into a new tree that
// breaks off leaves such files, and removes them.
func (e *entry) hasVersions() bool {
	if file := e.metadata.File; file != nil && file.Git != nil {
		return true
	}
	return !e.empty && !e.unknown && (e.offers() || e.pending.Has(""))
}

// emptied returns the finding for a part of the tree in which the last scan found versions, and
// in which this scan finds nothing. It returns nil if the caller of the scan accepts that.
func (s *scan) emptied(part string) *tree.Finding {
	if s.accepts || !s.last.hasVersions(part) {
		return nil
	}
	return tree.Faultf(tree.Lasting, tree.Unreadable, "%v", tree.ErrEmptied)
}

// Guarded returns a function that opens a tree for code that writes into it. latest returns the
// latest snapshots of the tree; any of them may be nil, and so may latest. If a part of the tree is
// empty in which a snapshot has versions, the folders of its addresses have the error
// tree.ErrEmptied. No scan needs to have noticed that the part is empty. A scan that accepts it
// makes a snapshot without these versions, which ends the error.
func Guarded(open func() (tree.Tree, error), latest func() []*Snapshot) func() (tree.Tree, error) {
	if latest == nil {
		return open
	}
	guard := func(part tree.Part, report string, top []string) error {
		if slices.ContainsFunc(top, func(name string) bool { return isContent(name, true) }) {
			return nil // which is known without another request to a store
		}
		if !slices.ContainsFunc(latest(), func(s *Snapshot) bool { return s.hasVersions(report) }) {
			return nil
		}
		entries, err := part.Entries(".")
		if err != nil {
			return err
		}
		if slices.ContainsFunc(entries, func(e tree.Entry) bool { return isContent(e.Name, !e.IsDir()) }) {
			return nil
		}
		return fmt.Errorf("%s: %w", report, tree.ErrEmptied)
	}
	return func() (tree.Tree, error) {
		files, err := open()
		return files.Guarded(guard), err
	}
}

// isContent reports whether a name at the top of a part is one of those that a scan looks at: see
// walker.List.
func isContent(name string, isFile bool) bool {
	return !layout.IsHarmless(name, isFile) && !tree.IsHiddenOrTemporary(name)
}

package index

import "strings"

// A location is where a file or folder lies in a tree. Most are never written out: a
// folder's name is shared by all that lies in it.
type location struct {
	dir    string // the folder it is in, by its path in a part of the tree; "." is the part
	name   string
	report string // the path of the folder in a report
}

// path is the path in a part of the tree, with slashes.
func (l location) path() string { return inFolder(l.dir, l.name) }

// reportPath is the path that a report names.
func (l location) reportPath() string { return inFolder(l.report, l.name) }

// inFolder is path.Join for a clean path and a name.
func inFolder(dir, name string) string {
	if dir == "." || dir == "" {
		return name
	}
	return dir + "/" + name
}

// detachName copies the name, which may share its memory with all others in the folder,
// where it is kept for longer than those.
func (l *location) detachName() { l.name = strings.Clone(l.name) }

// locationOf is that of a path in a report. It has no dir.
func locationOf(report string) *location {
	i := strings.LastIndexByte(report, '/')
	return &location{report: report[:max(i, 0)], name: report[i+1:]}
}

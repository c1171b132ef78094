package tree

import "strings"

// A Location tells where a file or folder lies in a tree. Most locations are never
// formatted: a folder's name is shared by all files in it.
type Location struct {
	Dir    string // the folder of the file, by its path in a part of the tree; "." is the part
	Name   string
	Report string // the path of the folder in a report
}

// Path is the path in a part of the tree, with slashes.
func (l Location) Path() string { return InFolder(l.Dir, l.Name) }

// ReportPath is the path that a report names.
func (l Location) ReportPath() string { return InFolder(l.Report, l.Name) }

// InFolder is path.Join for a clean path and a name.
func InFolder(dir, name string) string {
	if dir == "." || dir == "" {
		return name
	}
	return dir + "/" + name
}

// DetachName copies the name. The name may share its memory with all other names in the
// folder, and a copy lets them be freed.
func (l *Location) DetachName() { l.Name = strings.Clone(l.Name) }

// LocationOf returns the location of a path in a report. It has no Dir.
func LocationOf(report string) *Location {
	i := strings.LastIndexByte(report, '/')
	return &Location{Report: report[:max(i, 0)], Name: report[i+1:]}
}

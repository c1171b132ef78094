//go:build !linux

package index

// networkFileSystem is not known here; the periodic scan finds what no event
// tells of.
func networkFileSystem(string) string { return "" }

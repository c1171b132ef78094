package index

import "strings"

// hiddenOrTemporary names are how a file says that it is not there yet.
func hiddenOrTemporary(name string) bool {
	return strings.HasPrefix(name, ".") || temporary(name)
}

func temporary(name string) bool {
	return strings.HasSuffix(name, ".tmp") || strings.HasSuffix(name, ".part") || strings.HasSuffix(name, "~")
}

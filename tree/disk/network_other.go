//go:build !linux

package disk

// NetworkFileSystem is not known here. The periodic scan finds changes that raise no event.
func NetworkFileSystem(string) string { return "" }

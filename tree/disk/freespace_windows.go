package disk

import "golang.org/x/sys/windows"

// freeSpaceOn is like FreeSpace, for a directory that exists.
func freeSpaceOn(dir string) (int64, error) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, err
	}
	var free uint64
	if err := windows.GetDiskFreeSpaceEx(name, &free, nil, nil); err != nil {
		return 0, err
	}
	return int64(free), nil
}

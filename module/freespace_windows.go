package module

import "golang.org/x/sys/windows"

// freeSpaceOn returns how many bytes the server may still write to the disk that a
// folder is on.
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

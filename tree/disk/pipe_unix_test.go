//go:build unix

package disk_test

import "syscall"

func makePipe(name string) error { return syscall.Mkfifo(name, 0o644) }

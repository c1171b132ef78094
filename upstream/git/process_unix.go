//go:build unix

package git

import (
	"os/exec"
	"syscall"
)

// endWithChildren has the children of a command end with it, such as one that unpacks
// what was received.
func endWithChildren(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

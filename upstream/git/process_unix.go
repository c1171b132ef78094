//go:build unix

package git

import (
	"os/exec"
	"syscall"
)

// endWithChildren makes the children of a command end with it, such as a child that
// unpacks the received pack.
func endWithChildren(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

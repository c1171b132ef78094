//go:build !unix

package git

import "os/exec"

// endWithChildren does nothing: children of a command end when nothing reads from them.
func endWithChildren(*exec.Cmd) {}

package index

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"
)

// The system says "no space left on device" when it means a limit that can be
// raised.
func TestLimitsOfInotify(t *testing.T) {
	for err, says := range map[error]string{
		syscall.ENOSPC: "raise fs.inotify.max_user_watches",
		syscall.EMFILE: "raise fs.inotify.max_user_instances",
		&fs.PathError{Op: "inotify_add_watch", Path: "/srv/providers", Err: syscall.ENOSPC}: "raise fs.inotify.max_user_watches",
		fmt.Errorf("watching: %w", syscall.ENOSPC):                                          "raise fs.inotify.max_user_watches",
		&fs.PathError{Op: "stat", Path: "/srv/providers", Err: errors.New("it failed")}:     "it failed",
	} {
		if got := watchError(err).Error(); !strings.Contains(got, says) || strings.Contains(got, "/srv") || strings.Contains(got, "no space") {
			t.Errorf("of %q it says %q", err, got)
		}
	}
}

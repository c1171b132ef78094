package load

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// cpuTime is what the threads of a process and of its children have used, to
// the nanosecond where the clock ticks of other sources are as long as a
// thousand answers. Zero where there is no Linux to tell. Go's threads stay, so
// do the workers of servers that have some: none is missed.
func cpuTime(pid int) time.Duration {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	var sum time.Duration
	for _, thread := range threads {
		content, err := os.ReadFile(filepath.Join(thread, "schedstat"))
		if err != nil {
			continue // it has just ended
		}
		var used int64
		if _, err := fmt.Sscan(string(content), &used); err == nil {
			sum += time.Duration(used)
		}
		children, _ := os.ReadFile(filepath.Join(thread, "children"))
		for child := range strings.FieldsSeq(string(children)) {
			if pid, err := strconv.Atoi(child); err == nil {
				sum += cpuTime(pid)
			}
		}
	}
	return sum
}

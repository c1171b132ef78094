package main

import (
	"cmp"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// cores are the cores for processes, in the form that taskset takes. A server on one
// core does nothing but answer. The client is this process. It keeps to another core,
// and so do the tools that it runs.
type cores struct{ all, server, client string }

var number = regexp.MustCompile(`[0-9]+`)

// chooseCores also restricts this process to the client's core.
func chooseCores(ctx context.Context) (c cores, err error) {
	c.all = field("/proc/self/status", "Cpus_allowed_list")
	allowed := number.FindAllString(c.all, -1)
	if len(allowed) == 0 {
		return c, errors.New("the kernel does not list the cores of this process")
	}
	c.server, c.client = allowed[0], allowed[len(allowed)-1]
	if c.server == c.client {
		progress("server and client share one core: the numbers mean little")
	}
	runtime.GOMAXPROCS(1)
	out, err := exec.CommandContext(ctx, "taskset", "-apc", c.client, strconv.Itoa(os.Getpid())).CombinedOutput()
	if err != nil {
		return c, fmt.Errorf("taskset: %w: %s", err, out)
	}
	return c, nil
}

// cpuTime returns the CPU time that the threads of a process and of its children have
// used, such as the workers of nginx. It is read from schedstat, in nanoseconds,
// because a tick of /proc/PID/stat is as long as hundreds of answers. Threads of Go do
// not end, so none is missed.
func cpuTime(pid int) (sum time.Duration) {
	for _, pid := range withChildren(pid) {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
		for _, file := range threads {
			var used int64
			content, _ := os.ReadFile(file)
			if _, err := fmt.Sscan(string(content), &used); err == nil {
				sum += time.Duration(used)
			}
		}
	}
	return sum
}

// resetPeakMemory resets the peak memory of a process.
func resetPeakMemory(pid int) error {
	const peak = "5" // proc(5), clear_refs
	for _, pid := range withChildren(pid) {
		if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte(peak), 0); err != nil {
			return err
		}
	}
	return nil
}

// peakMemory returns the largest resident memory of a process and of its children, in
// bytes. Shared memory counts for each of them.
func peakMemory(pid int) int64 { return memory(pid, "VmHWM") }

// watchOwnMemory begins to watch the memory of processes and of their children that holds no
// file. The returned function ends that, and returns the largest sum that was seen. The
// kernel keeps no peak of it.
func watchOwnMemory(pids []int) (peak func() int64) {
	const interval = 10 * time.Millisecond
	ended, result := make(chan struct{}), make(chan int64)
	go func() {
		var most int64
		for {
			var now int64
			for _, pid := range pids {
				now += memory(pid, "RssAnon")
			}
			most = max(most, now)
			select {
			case <-time.After(interval):
			case <-ended:
				result <- most
				return
			}
		}
	}()
	return func() int64 {
		close(ended)
		return <-result
	}
}

// memory returns the sum of a field of the status of a process and of its children, in bytes.
func memory(pid int, name string) (sum int64) {
	for _, pid := range withChildren(pid) {
		var kilobytes int64
		if _, err := fmt.Sscan(field(fmt.Sprintf("/proc/%d/status", pid), name), &kilobytes); err == nil {
			sum += kilobytes << 10
		}
	}
	return sum
}

// withChildren returns a process and its children, such as the workers of nginx.
func withChildren(pid int) []int {
	pids := []int{pid}
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range threads {
		children, _ := os.ReadFile(file)
		for child := range strings.FieldsSeq(string(children)) {
			if pid, err := strconv.Atoi(child); err == nil {
				pids = append(pids, withChildren(pid)...)
			}
		}
	}
	return pids
}

// describeMachine lists the properties that are needed to compare results. Nothing in
// it names the machine or its folders.
func (l *lab) describeMachine() [][2]string {
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	facts := [][2]string{
		{"CPU", cmp.Or(field("/proc/cpuinfo", "model name"), runtime.GOARCH)},
		{"cores", fmt.Sprint(runtime.NumCPU())},
		{"memory", field("/proc/meminfo", "MemTotal")},
		{"kernel", strings.TrimSpace(string(kernel))},
	}
	if info, err := buildinfo.ReadFile(l.subject.binary); err == nil {
		facts = append(facts, [2]string{"Go", strings.TrimPrefix(info.GoVersion, "go")})
		for _, d := range info.Deps {
			if d.Path == "github.com/caddyserver/caddy/v2" {
				facts = append(facts, [2]string{"Caddy", d.Version})
			}
		}
	}
	return append(facts, [2]string{"load average before", loadAverage()})
}

// field returns the value of a "name : value" line.
func field(file, name string) string {
	content, _ := os.ReadFile(file)
	for l := range strings.Lines(string(content)) {
		if key, value, ok := strings.Cut(l, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func loadAverage() string {
	content, _ := os.ReadFile("/proc/loadavg")
	fields := strings.Fields(string(content))
	return strings.Join(fields[:min(len(fields), 3)], " ")
}

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

// cores says where processes run, in the form that taskset takes. A server
// that has one core is busy with what it is asked and nothing else; the client
// is this process and keeps to another core, as do the tools it runs.
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

// cpuTime is the CPU time that the threads of a process and of its children have
// used, such as the workers of nginx. It is read from schedstat, in nanoseconds,
// because /proc/PID/stat counts ticks as long as hundreds of answers. Threads of
// Go do not end, so none is missed.
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

// resetPeakMemory has peakMemory of a process begin anew.
func resetPeakMemory(pid int) error {
	const peak = "5" // proc(5), clear_refs
	for _, pid := range withChildren(pid) {
		if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte(peak), 0); err != nil {
			return err
		}
	}
	return nil
}

// peakMemory is the largest resident memory of a process and of its children, in
// bytes. What they share counts for each of them.
func peakMemory(pid int) (sum int64) {
	for _, pid := range withChildren(pid) {
		var kilobytes int64
		if _, err := fmt.Sscan(field(fmt.Sprintf("/proc/%d/status", pid), "VmHWM"), &kilobytes); err == nil {
			sum += kilobytes << 10
		}
	}
	return sum
}

// withChildren is a process and its children, such as the workers of nginx.
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

// describeMachine lists what has to be known to compare results. Nothing in it
// names the machine or its folders.
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

// field is the value of a "name : value" line.
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

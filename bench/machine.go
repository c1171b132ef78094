package main

import (
	"cmp"
	"debug/buildinfo"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// describeMachine is what one has to know to compare results: nothing in it
// names the machine or its folders.
func describeMachine(l *lab) []fact {
	facts := []fact{
		{"CPU", cmp.Or(field("/proc/cpuinfo", "model name"), runtime.GOARCH)},
		{"cores", fmt.Sprint(runtime.NumCPU())},
		{"memory", memory()},
		{"kernel", cmp.Or(line("/proc/sys/kernel/osrelease"), runtime.GOOS)},
		{"file system", fileSystem(l.dir)},
	}
	if info, err := buildinfo.ReadFile(l.binary); err == nil {
		facts = append(facts, fact{"Go", strings.TrimPrefix(info.GoVersion, "go")})
		for _, d := range info.Deps {
			if d.Path == "github.com/caddyserver/caddy/v2" {
				facts = append(facts, fact{"Caddy", d.Version})
			}
		}
		if c := commit(info); c != "" {
			facts = append(facts, fact{"commit", c})
		}
	}
	return append(facts,
		fact{"processes", l.pinning.note},
		fact{"page cache", "warm: files were written or read just before"},
		fact{"load average before", loadAverage()},
	)
}

func memory() string {
	var kilobytes float64
	if _, err := fmt.Sscan(field("/proc/meminfo", "MemTotal"), &kilobytes); err != nil {
		return "unknown"
	}
	return bytesText(kilobytes * 1024)
}

// commit that the binary was built from; empty where builds do not say.
func commit(info *buildinfo.BuildInfo) string {
	var commit, modified string
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value[:min(len(s.Value), 12)]
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = ", with changes"
		}
	}
	return commit + modified
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

func line(file string) string {
	content, _ := os.ReadFile(file)
	return strings.TrimSpace(string(content))
}

func loadAverage() string {
	averages := strings.Fields(line("/proc/loadavg"))
	if len(averages) < 3 {
		return "unknown"
	}
	return strings.Join(averages[:3], " ")
}

// fileSystem is the type of the one that dir lies in.
func fileSystem(dir string) string {
	content, _ := os.ReadFile("/proc/mounts")
	best, kind := "", "unknown"
	for l := range strings.Lines(string(content)) {
		fields := strings.Fields(l)
		if len(fields) < 3 {
			continue
		}
		below, err := filepath.Rel(fields[1], dir)
		if err == nil && filepath.IsLocal(below) && len(fields[1]) >= len(best) {
			best, kind = fields[1], fields[2]
		}
	}
	return kind
}

package main

import (
	"os/exec"
	"regexp"
	"strings"
)

// pinning keeps server and client on different cores where both have one. A
// server that has one core is busy with what it is asked and nothing else.
type pinning struct {
	server, client []string // what comes before a command
	note           string
}

// pinnedRows are those that ask as fast as the server can answer.
const pinnedRows = "metadata, tls, private, upstream, archive"

var core = regexp.MustCompile(`[0-9]+`)

func newPinning() pinning {
	allowed := core.FindAllString(field("/proc/self/status", "Cpus_allowed_list"), -1)
	switch taskset, err := exec.LookPath("taskset"); {
	case err != nil:
		return pinning{note: pinnedRows + ": the server has GOMAXPROCS=1 on no core in particular, for there is no taskset"}
	case len(allowed) < 2:
		return pinning{note: pinnedRows + ": server and client share one core"}
	default:
		first, last := allowed[0], allowed[len(allowed)-1]
		return pinning{
			server: []string{taskset, "-c", first},
			client: []string{taskset, "-c", last},
			note:   pinnedRows + ": the server has core " + first + " with GOMAXPROCS=1, the client core " + last + "; all else: all cores",
		}
	}
}

// oneCore makes a command one that has one core, and says so.
func (p pinning) oneCore(command ...string) ([]string, string) {
	if len(p.server) == 0 {
		return command, "on no core in particular"
	}
	return append(strings.Fields(strings.Join(p.server, " ")), command...), "on one core"
}

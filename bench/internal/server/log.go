package server

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"sync"
	"time"
)

// A log is what a process writes to its standard error.
type log struct {
	mutex   sync.Mutex
	partial []byte
	events  []event
	last    []string // lines
}

// An event is a line of the log.
type event struct {
	Time     float64 `json:"ts"`
	Message  string  `json:"msg"`
	Duration float64 `json:"duration"` // seconds
}

const lastLines = 20

// Write takes what the process writes, in pieces of any size.
func (l *log) Write(p []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.partial = append(l.partial, p...)
	for {
		line, rest, ok := bytes.Cut(l.partial, []byte("\n"))
		if !ok {
			return len(p), nil
		}
		l.partial = rest
		var e event
		if json.Unmarshal(line, &e) == nil && e.Message != "" {
			l.events = append(l.events, e)
		}
		if l.last = append(l.last, string(line)); len(l.last) > lastLines {
			l.last = l.last[1:]
		}
	}
}

func (l *log) tail() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return strings.Join(l.last, "\n")
}

// all returns the events with a message.
func (l *log) all(message string) []event {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	var found []event
	for _, e := range l.events {
		if e.Message == message {
			found = append(found, e)
		}
	}
	return found
}

// Loading is when the process began to load its configuration: what came
// before is the start of any Caddy, and the first thing that it does for this
// configuration is to open its admin endpoint.
func (p *Process) Loading() (time.Time, bool) {
	events := p.log.all("admin endpoint started")
	if len(events) == 0 {
		return time.Time{}, false
	}
	seconds, fraction := math.Modf(events[0].Time)
	return time.Unix(int64(seconds), int64(fraction*1e9)), true
}

// Scans are the durations of the scans so far.
func (p *Process) Scans() []time.Duration {
	var scans []time.Duration
	for _, e := range p.log.all("scanned") {
		scans = append(scans, time.Duration(e.Duration*1e9))
	}
	return scans
}

package e2e_test

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Log has the log entries of a Caddy so far. Tests wait for log entries instead of
// sleeping.
type Log struct {
	mu      sync.Mutex
	entries []Entry
	grown   chan struct{} // closed and replaced with each entry
	end     chan struct{} // closed after the last one
}

// Entry is a line of Caddy's JSON log.
type Entry struct {
	Level   string `json:"level"`
	Logger  string `json:"logger"`
	Message string `json:"msg"`

	// Fields of an event.
	Event string `json:"name"`
	Data  struct {
		SANs []string `json:"sans"`
	} `json:"data"`

	// Fields of a scan.
	Offered int `json:"offered"`

	// Fields of an access log.
	Status  int `json:"status"`
	Request struct {
		Method string `json:"method"`
		Host   string `json:"host"`
		URI    string `json:"uri"`

		Headers map[string][]string `json:"headers"`
	} `json:"request"`

	Line string `json:"-"`
}

// readLog collects the standard error of a Caddy until it ends, and also writes
// it to copyTo.
func readLog(stderr io.Reader, copyTo string) (*Log, error) {
	file, err := os.Create(copyTo)
	if err != nil {
		return nil, err
	}
	l := &Log{grown: make(chan struct{}), end: make(chan struct{})}
	go func() {
		defer close(l.end)
		defer file.Close()
		lines := bufio.NewReader(io.TeeReader(stderr, file))
		for {
			line, err := lines.ReadString('\n')
			if line != "" {
				l.add(line)
			}
			if err != nil {
				return
			}
		}
	}()
	return l, nil
}

func (l *Log) add(line string) {
	e := Entry{Line: strings.TrimSpace(line)}
	// A line that is not JSON, such as a line of a panic, becomes an entry with only
	// its text.
	_ = json.Unmarshal([]byte(line), &e)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = append(l.entries, e)
	close(l.grown)
	l.grown = make(chan struct{})
}

// End returns a channel that is closed when the Caddy has ended and its log is
// complete.
func (l *Log) End() <-chan struct{} { return l.end }

// Entries returns the log so far.
func (l *Log) Entries() []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.entries)
}

// Wait waits for the first matching entry, from the start of the log.
func (l *Log) Wait(t *testing.T, what string, wanted func(Entry) bool) {
	t.Helper()
	l.WaitAfter(t, 0, 1, what, wanted)
}

// WaitAfter waits for a number of matching entries after a point in the log.
func (l *Log) WaitAfter(t *testing.T, point, times int, what string, wanted func(Entry) bool) {
	t.Helper()
	timeout := time.NewTimer(time.Minute)
	defer timeout.Stop()
	for seen := point; ; {
		l.mu.Lock()
		entries, grown := l.entries[seen:], l.grown
		l.mu.Unlock()
		for _, e := range entries {
			if wanted(e) {
				times--
			}
		}
		if times <= 0 {
			return
		}
		if seen += len(entries); len(entries) > 0 {
			continue
		}
		select {
		case <-grown:
		case <-l.end:
			if len(l.Entries()) > seen {
				continue
			}
			t.Fatalf("Caddy ended without logging that %s; it logged:\n%s", what, l.tail())
		case <-timeout.C:
			t.Fatalf("Caddy did not log that %s; it logged:\n%s", what, l.tail())
		}
	}
}

// Accesses lists the answered requests for one host or, given "", for all
// hosts.
func (l *Log) Accesses(host string) []Entry {
	var accesses []Entry
	for _, e := range l.Entries() {
		if e.access() && (host == "" || e.Request.Host == host) {
			accesses = append(accesses, e)
		}
	}
	return accesses
}

// WaitAccess waits until the log has a request for a path. The entry is written
// after the client has its answer.
func (l *Log) WaitAccess(t *testing.T, host, path string) {
	t.Helper()
	l.Wait(t, "https://"+host+path+" was requested", func(e Entry) bool {
		uri, _, _ := strings.Cut(e.Request.URI, "?")
		return e.access() && e.Request.Host == host && uri == path
	})
}

func (e Entry) scan() bool { return e.Logger == "terraform_registry" && e.Message == "scanned" }

func (e Entry) access() bool { return strings.HasPrefix(e.Logger, "http.log.access") }

// tail returns the end of the log without the debug level.
func (l *Log) tail() string {
	var lines []string
	for _, e := range l.Entries() {
		if e.Level != "debug" && !e.access() {
			lines = append(lines, e.Line)
		}
	}
	return strings.Join(lines[max(0, len(lines)-40):], "\n")
}

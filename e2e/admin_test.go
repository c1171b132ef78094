package e2e_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A running Caddy, seen from outside: its admin API, its metrics, and answers that
// change over time.

// eventually waits for a condition that is not logged.
func eventually(t *testing.T, what string, happened func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !happened() {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
		<-tick.C
	}
}

// Admin sends a request to the admin API.
func (r *Registry) Admin(t *testing.T, method, path string) Response {
	t.Helper()
	return r.admin(t, method, path, "", nil)
}

func (r *Registry) admin(t *testing.T, method, path, contentType string, body io.Reader) Response {
	t.Helper()
	client := &http.Client{
		Timeout: time.Minute,
		Transport: &http.Transport{
			DisableKeepAlives: true,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return endpoint{"unix", r.path("admin.sock")}.dial(ctx)
			},
		},
	}
	request, err := http.NewRequest(method, "http://127.0.0.1"+path, body)
	if err != nil {
		t.Fatal(err)
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
		request.Header.Set("Cache-Control", "must-revalidate") // even if nothing has changed
	}
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return Response{Status: answer.StatusCode, Header: answer.Header, Body: string(content)}
}

// Load gives the Caddy other sites, as Reload does, but does not wait until
// they are ready, and starts no process.
func (r *Registry) Load(t *testing.T, sites ...Site) {
	t.Helper()
	r.configure(t, sites)
	r.join(sites)
	file, err := os.Open(r.path("Caddyfile"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if answer := r.admin(t, http.MethodPost, "/load", "text/caddyfile", file); answer.Status != 200 {
		t.Fatalf("reloading: %d %s", answer.Status, answer.Body)
	}
}

// Rescan scans all trees and returns when this is done.
func (r *Registry) Rescan(t *testing.T) {
	t.Helper()
	if answer := r.Admin(t, http.MethodPost, "/terraform_registry/rescan"); answer.Status != 200 {
		t.Fatalf("rescan: %d %s", answer.Status, answer.Body)
	}
}

// Settle scans until everything has been read. Files written a moment ago may still
// change, so they are read again.
func (r *Registry) Settle(t *testing.T) {
	t.Helper()
	eventually(t, "a scan reads nothing", func() bool {
		before := r.archivesRead(t)
		r.Rescan(t)
		for _, state := range r.Indexes(t) {
			if state.Pending > 0 {
				return false
			}
		}
		return r.archivesRead(t) == before
	})
}

// archivesRead returns how many archives this Caddy has read in all trees.
func (r *Registry) archivesRead(t *testing.T) (n float64) {
	t.Helper()
	for series, value := range r.Metrics(t) {
		if strings.HasPrefix(series, "caddy_terraform_registry_archives_total{") && strings.Contains(series, `source="read"`) {
			n += value
		}
	}
	return n
}

// Metrics returns all series by name and labels.
func (r *Registry) Metrics(t *testing.T) map[string]float64 {
	t.Helper()
	answer := r.Admin(t, http.MethodGet, "/metrics")
	if answer.Status != 200 {
		t.Fatalf("metrics: %d %s", answer.Status, answer.Body)
	}
	metrics := map[string]float64{}
	for lines := bufio.NewScanner(strings.NewReader(answer.Body)); lines.Scan(); {
		at := strings.LastIndexByte(lines.Text(), ' ')
		if at < 0 || strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		value, err := strconv.ParseFloat(lines.Text()[at+1:], 64)
		if err != nil {
			t.Fatalf("%v in %s", err, lines.Text())
		}
		metrics[lines.Text()[:at]] = value
	}
	return metrics
}

// IndexState has the fields of an index in the admin API that tests read.
type IndexState struct {
	Offered  map[string]int
	Withheld map[string]int
	Pending  int
	Scans    int
	Failed   int
	Progress *struct {
		Done  int
		Total int
		Bytes int64
	}
}

// Indexes returns the indexes of the trees that are served, by root.
func (r *Registry) Indexes(t *testing.T) map[string]IndexState {
	t.Helper()
	answer := r.Admin(t, http.MethodGet, "/terraform_registry/indexes")
	var states map[string]IndexState
	if err := json.Unmarshal([]byte(answer.Body), &states); err != nil || answer.Status != 200 {
		t.Fatalf("indexes: %d %v\n%s", answer.Status, err, answer.Body)
	}
	return states
}

// number returns a field of an entry, such as how many archives a scan has
// read.
func (e Entry) number(field string) int {
	var fields map[string]any
	if json.Unmarshal([]byte(e.Line), &fields) != nil {
		return 0
	}
	n, _ := fields[field].(float64)
	return int(n)
}

// Find lists the matching entries after a point in the log.
func (l *Log) Find(point int, wanted func(Entry) bool) (found []Entry) {
	for _, e := range l.Entries()[point:] {
		if wanted(e) {
			found = append(found, e)
		}
	}
	return found
}

// firstScan returns the scan at the start of the Caddy.
func (r *Registry) firstScan(t *testing.T) Entry {
	t.Helper()
	r.Log.Wait(t, "it has scanned", Entry.scan)
	return r.Log.Find(0, Entry.scan)[0]
}

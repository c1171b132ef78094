package load_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/bench/internal/load"
)

// A client that takes a wrong answer for a right one measures nothing.
func TestWork(t *testing.T) {
	body := []byte(strings.Repeat("0123456789", 100_000))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != "registry.example.com" || r.URL.Path != "/right" {
			http.NotFound(w, r)
			return
		}
		http.ServeContent(w, r, "body.bin", time.Time{}, bytes.NewReader(body))
	}))
	defer server.Close()
	right := load.Job{
		Protocol: load.HTTP, Address: server.Listener.Addr().String(), Host: "registry.example.com", Path: "/right",
		Connections: 2, Warmup: time.Millisecond, Duration: 50 * time.Millisecond,
		Length: int64(len(body)), SHA256: load.Digest(body),
	}
	for _, c := range []struct {
		name, fails string
		change      func(*load.Job)
	}{
		{"right", "", func(*load.Job) {}},
		{"another status", "404", func(j *load.Job) { j.Path = "/wrong" }},
		{"another length", "Content-Length", func(j *load.Job) { j.Length++ }},
		{"another body", "sha256", func(j *load.Job) { j.SHA256 = load.Digest(nil) }},
		{"another machine", "not on this machine", func(j *load.Job) { j.Address = "192.0.2.1:80" }},
	} {
		j := right
		c.change(&j)
		var in, out bytes.Buffer
		if err := json.NewEncoder(&in).Encode(j); err != nil {
			t.Fatal(err)
		}
		if err := load.Work(t.Context(), &in, &out); err != nil {
			t.Fatal(err)
		}
		var r load.Result
		if err := json.NewDecoder(&out).Decode(&r); err != nil {
			t.Fatal(err)
		}
		switch {
		case c.fails == "" && (r.Error != "" || r.Answers == 0 || r.Bytes < r.Answers/2*j.Length):
			t.Errorf("%s: %+v", c.name, r)
		case !strings.Contains(r.Error, c.fails):
			t.Errorf("%s: the error is %q, want %q in it", c.name, r.Error, c.fails)
		}
	}
}

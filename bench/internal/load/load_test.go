package load_test

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddy-terraform/caddy-terraform-registry/bench/internal/load"
	"github.com/caddy-terraform/caddy-terraform-registry/bench/internal/server"
)

// A client that takes a wrong answer for a right one measures nothing.
func TestWork(t *testing.T) {
	body := []byte(strings.Repeat("0123456789", 30_000)) // more than is read at once
	site := answering(body)
	plain := httptest.NewServer(site)
	defer plain.Close()
	secure, ca := startTLS(t, site)

	for _, protocol := range []load.Protocol{load.HTTP, load.HTTPS, load.H2} {
		right := load.Job{
			Protocol: protocol, Address: plain.Listener.Addr().String(), Host: server.Host, Path: "/right",
			Connections: 2, Warmup: time.Millisecond, Duration: 50 * time.Millisecond,
			Length: int64(len(body)), SHA256: load.Digest(body),
		}
		if protocol != load.HTTP {
			right.Address, right.CA = secure.Listener.Addr().String(), ca
		}
		noContent := func(j *load.Job) { j.Status, j.Length, j.SHA256 = http.StatusNoContent, 0, load.Digest(nil) }
		for _, c := range []struct {
			name, fails string
			change      func(*load.Job)
		}{
			{"right", "", func(*load.Job) {}},
			{"another status", "404", func(j *load.Job) { j.Path = "/wrong" }},
			{"another length", fmt.Sprint("want ", len(body)+1), func(j *load.Job) { j.Length++ }},
			{"another body", "sha256", func(j *load.Job) { j.SHA256 = load.Digest(nil) }},
			{"another machine", "not on this machine", func(j *load.Job) { j.Address = "192.0.2.1:80" }},

			{"credentials", "", func(j *load.Job) { j.Path, j.Authorization = "/private", "Bearer token" }},
			{"other credentials", "401", func(j *load.Job) { j.Path, j.Authorization = "/private", "Bearer other" }},
			{"no credentials", "401", func(j *load.Job) { j.Path = "/private" }},

			{"a body that changes", "sha256", func(j *load.Job) { j.Path = "/changing" }},
			{"a body that may change", "", func(j *load.Job) { j.Path, j.SHA256 = "/changing", "" }},
			{"another length of one that may change", fmt.Sprint("want ", len(body)-1), func(j *load.Job) {
				j.Path, j.SHA256 = "/changing", ""
				j.Length--
			}},

			{"no content", "", func(j *load.Job) { noContent(j); j.Path = "/empty" }},
			{"no content where there should be some", "204", func(j *load.Job) { j.Path = "/empty" }},
			{"content where there should be none", "200", noContent},
		} {
			j := right
			c.change(&j)
			r := work(t, j)
			switch {
			case c.fails == "" && (r.Error != "" || r.Answers == 0 || r.Bytes < r.Answers/2*j.Length):
				t.Errorf("%s, %s: %+v", protocol, c.name, r)
			case !strings.Contains(r.Error, c.fails):
				t.Errorf("%s, %s: the error is %q, want %q in it", protocol, c.name, r.Error, c.fails)
			}
		}
	}
}

// answering is a site with an answer of each kind.
func answering(body []byte) http.Handler {
	var answers atomic.Int64
	site := http.NewServeMux()
	serve := func(w http.ResponseWriter, r *http.Request, body []byte) {
		http.ServeContent(w, r, "body.bin", time.Time{}, bytes.NewReader(body))
	}
	site.HandleFunc(server.Host+"/right", func(w http.ResponseWriter, r *http.Request) { serve(w, r, body) })
	site.HandleFunc(server.Host+"/private", func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header["Authorization"]; len(got) != 1 || got[0] != "Bearer token" {
			http.Error(w, "", http.StatusUnauthorized)
			return
		}
		serve(w, r, body)
	})
	site.HandleFunc(server.Host+"/changing", func(w http.ResponseWriter, r *http.Request) {
		changed := bytes.Clone(body)
		copy(changed, fmt.Sprintf("%09d", answers.Add(1)))
		serve(w, r, changed)
	})
	site.HandleFunc(server.Host+"/empty", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	return site
}

// startTLS starts a server, and returns the file with its certificate as well.
func startTLS(t *testing.T, site http.Handler) (*httptest.Server, string) {
	t.Helper()
	files, err := server.NewCertificate(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := tls.LoadX509KeyPair(files.File, files.Key)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(site)
	s.EnableHTTP2 = true
	s.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s, files.File
}

// work has one job done.
func work(t *testing.T, j load.Job) (r load.Result) {
	t.Helper()
	var in, out bytes.Buffer
	if err := json.NewEncoder(&in).Encode(j); err != nil {
		t.Fatal(err)
	}
	if err := load.Work(t.Context(), &in, &out); err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(&out).Decode(&r); err != nil {
		t.Fatal(err)
	}
	return r
}

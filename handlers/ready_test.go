package handlers_test

import (
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
	"github.com/caddy-terraform/caddy-terraform-registry/index"
	"github.com/caddy-terraform/caddy-terraform-registry/index/indextest"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog"
	"github.com/caddy-terraform/caddy-terraform-registry/tlog/tlogtest"
)

// Load balancers probe without a token, and some by HEAD.
func TestReadiness(t *testing.T) {
	var ready atomic.Bool
	g := registry(scan(t, indextest.New(t)))
	g.Ready = ready.Load
	g.Snapshot = func() *index.Snapshot {
		t.Error("a probe waits for a snapshot")
		return nil
	}
	s := serve(t, g)
	for _, test := range []struct {
		name, method, path string
		ready              bool
		status             int
		body               string
	}{
		{"an instance that has not read its tree gets no requests", "GET", "/v1/ready", false, http.StatusServiceUnavailable, ""},
		{"one that has does", "GET", "/v1/ready", true, http.StatusOK, "ready\n"},
		{"also by HEAD", "HEAD", "/v1/ready", true, http.StatusOK, ""},
		{"only for reading", "POST", "/v1/ready", true, http.StatusMethodNotAllowed, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			ready.Store(test.ready)
			answer := s.do(test.method, absolute(test.path))
			if answer.StatusCode != test.status || test.body != "" && answer.body != test.body {
				t.Errorf("got %d %q", answer.StatusCode, answer.body)
			}
			if test.status == http.StatusServiceUnavailable && answer.Header.Get("Retry-After") == "" {
				t.Error("503 without Retry-After")
			}
		})
	}
	if kind := handlers.KindReady.String(); kind != "ready" {
		t.Errorf("in metrics it is %q", kind)
	}
}

// An instance that needs its log, and has not read it yet, offers nothing.
func TestReadinessWithALog(t *testing.T) {
	log := tlogtest.New(t).MustOpen(t)
	for _, test := range []struct {
		name     string
		required bool
		log      *tlog.Log // nil: it cannot be read yet
		status   int
	}{
		{"a log that is required and has been read", true, log, http.StatusOK},
		{"a log that is required and cannot be read", true, nil, http.StatusServiceUnavailable},
		{"a log that is not required and cannot be read", false, nil, http.StatusOK},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := registry(scan(t, indextest.New(t)))
			g.RequireLog, g.Log = test.required, func() *tlog.Log { return test.log }
			if answer := serve(t, g).do("GET", absolute("/v1/ready")); answer.StatusCode != test.status {
				t.Errorf("got %d %q", answer.StatusCode, answer.body)
			}
		})
	}
}

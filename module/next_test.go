package module

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// A request that no handler answers gets 404. Other answers stay unchanged.
func TestRequestsThatNoHandlerAnswers(t *testing.T) {
	c := newConfiguration(t)
	h := c.mustHandle(Handler{Root: sampleTree(t)})
	c.mustStart()
	snapshot(t, h)
	failure := errors.New("it fails")
	for _, test := range []struct {
		rule, method string
		next         func(http.ResponseWriter) error
		status       int
		body         string
		err          error
	}{
		{"nothing", http.MethodGet, func(http.ResponseWriter) error { return nil }, 404, "There is nothing at this path.\n", nil},
		{"nothing to HEAD", http.MethodHead, func(http.ResponseWriter) error { return nil }, 404, "", nil},
		{"nothing to PUT", http.MethodPut, func(http.ResponseWriter) error { return nil }, 404, "There is nothing at this path.\n", nil},
		{"fields of the header alone", http.MethodGet, func(w http.ResponseWriter) error { w.Header().Set("X-A", "b"); return nil }, 404, "There is nothing at this path.\n", nil},
		{"a body", http.MethodGet, func(w http.ResponseWriter) error { _, err := io.WriteString(w, "a page"); return err }, 200, "a page", nil},
		{"a status", http.MethodGet, func(w http.ResponseWriter) error { w.WriteHeader(204); return nil }, 204, "", nil},
		{"an error", http.MethodGet, func(http.ResponseWriter) error { return failure }, 200, "", failure},
	} {
		t.Run(test.rule, func(t *testing.T) {
			w := httptest.NewRecorder()
			r := caddyhttp.PrepareRequest(httptest.NewRequest(test.method, "https://registry.example.com/elsewhere", nil), caddy.NewReplacer(), w, &caddyhttp.Server{})
			err := h.ServeHTTP(w, r, caddyhttp.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) error { return test.next(w) }))
			if !errors.Is(err, test.err) || w.Code != test.status || w.Body.String() != test.body {
				t.Errorf("%d %q %v, want %d %q %v", w.Code, w.Body, err, test.status, test.body, test.err)
			}
		})
	}
}

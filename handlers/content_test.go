package handlers_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/handlers"
)

func TestContent(t *testing.T) {
	const etag, compressed = `"a"`, `"a-gzip"`
	answer := func(status int, body string) string { return fmt.Sprintf("%d %s", status, body) }
	for _, test := range []struct {
		rule, method, etag, known string
		want                      string // status and body
	}{
		{"the content to who has none", "GET", etag, "", answer(200, "body")},
		{"its header alone to a HEAD", "HEAD", etag, "", answer(200, "")},
		{"304 to who has it", "GET", etag, `"a"`, answer(304, "")},
		{"also in another form", "GET", etag, `"a-gzip"`, answer(304, "")},
		{"also where a proxy has made the validator weak", "GET", etag, `W/"a"`, answer(304, "")},
		{"also among others", "GET", etag, `"x", "a" ,"y"`, answer(304, "")},
		{"also to who has anything", "HEAD", etag, `*`, answer(304, "")},
		{"the content to who has another", "GET", etag, `"b"`, answer(200, "body")},
		{"or the same in no quotes", "GET", etag, `a`, answer(200, "body")},
		{"or a part of it", "GET", etag, `"a`, answer(200, "body")},
		{"or nothing between commas", "GET", etag, `,,`, answer(200, "body")},
	} {
		t.Run(test.rule, func(t *testing.T) {
			c := handlers.Content{Type: "text/plain", Body: []byte("body"), Caching: "no-cache", ETag: test.etag}
			r, w := httptest.NewRequest(test.method, "/", nil), httptest.NewRecorder()
			if test.known != "" {
				r.Header.Set("If-None-Match", test.known)
			}
			if !c.NotModified(w, r, compressed) {
				if n := c.Write(w, r, http.StatusOK); n != w.Body.Len() {
					t.Errorf("it reports %d bytes", n)
				}
			}
			if got := answer(w.Code, w.Body.String()); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			h := w.Header()
			if h.Get("ETag") != test.etag || h.Get("Cache-Control") != "no-cache" || h.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("the header is %v", h)
			}
			if length, want := h.Get("Content-Length"), map[bool]string{true: "4", false: ""}[strings.HasPrefix(test.want, "200")]; length != want {
				t.Errorf("the length is %q, want %q", length, want)
			}
		})
	}
	t.Run("content without a validator has no ETag", func(t *testing.T) {
		w := httptest.NewRecorder()
		c := handlers.Content{Type: "text/plain", Caching: "no-store"}
		c.Write(w, httptest.NewRequest(http.MethodGet, "/", nil), http.StatusOK)
		if _, ok := w.Header()["Etag"]; ok {
			t.Errorf("the header is %v", w.Header())
		}
	})
}

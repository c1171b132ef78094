package module

import (
	"io"
	"net/http"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// serveNext calls the next handler, and answers 404 if no handler answers. Without it,
// Caddy would answer an empty page with status 200, which is a success for scripts and
// a broken answer for clients.
func serveNext(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	recorder := caddyhttp.NewResponseRecorder(w, nil, nil)
	if err := next.ServeHTTP(recorder, r); err != nil || recorder.Status() != 0 || r.Method == http.MethodConnect {
		return err
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(http.StatusNotFound)
	if r.Method != http.MethodHead {
		io.WriteString(w, "There is nothing at this path.\n")
	}
	return nil
}

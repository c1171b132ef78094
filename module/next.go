package module

import (
	"io"
	"net/http"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// serveNext has the next handler answer, and answers 404 if none does. Caddy's own end of all
// handlers is an empty page with status 200, which a script takes for success, and a client
// for a broken answer.
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

package handlers_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/publish"
	"github.com/caddy-terraform/caddy-terraform-registry/tree"
)

// The log has what fails here, and not the clients that leave.
func TestWhichFailuresAreLogged(t *testing.T) {
	broken := errors.New("input/output error")
	for _, test := range []struct {
		rule string
		err  error
		left bool
		logs int
	}{
		{"the store fails", fmt.Errorf("%w: %w", tree.ErrStore, broken), false, 1},
		{"a client leaves while the store is asked", fmt.Errorf("%w: %w", tree.ErrStore, context.Canceled), true, 0},
		{"a client leaves while the store is asked, which its error does not say", fmt.Errorf("%w: %w", tree.ErrStore, broken), true, 0},
		{"a client leaves while something waits", fmt.Errorf("waiting: %w", context.Canceled), true, 0},
		{"this side gives up", fmt.Errorf("%w: %w", tree.ErrStore, context.Canceled), false, 1},
		{"a fault", broken, false, 1},
		{"a fault whose client has left", broken, true, 1},
	} {
		t.Run(test.rule, func(t *testing.T) {
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			g := publishing(t, &shelf{put: func(publish.File, publish.Upload) (publish.Result, error) {
				if test.left {
					leave()
				}
				return publish.Result{}, test.err
			}})
			var log strings.Builder
			g.Logger = slog.New(slog.NewTextHandler(&log, nil))
			r := withHeaders(requestFor(http.MethodPut, zipPath), publisherOnly).WithContext(ctx)
			r.Host, r.Body, r.ContentLength = ownHost, io.NopCloser(strings.NewReader("content")), 7
			serveRecorded(g, r)
			if got := strings.Count(log.String(), "request failed"); got != test.logs {
				t.Errorf("the log has %q", log.String())
			}
		})
	}
}
